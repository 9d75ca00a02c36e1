"""What a finished run says about itself: ``result.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile

RESULT_NAME = "result.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run.

    Attributes
    ----------
    method : str
    seed : int
    steps : int
        Steps of the optimizer.
    epochs : float
    tokens : int
        Targets that were trained on.
    seconds : float
        Time of all sessions of the run, evaluation included.
    parameters : int
        Of the model as it is saved, each once.
    valid, test : dict
        ``perplexity``, ``loss``, ``tokens``, ``rare``, ``popular`` (perplexities), and where they
        were asked for ``cache`` and ``dynamic`` (perplexities); test None without a split.
    settings : dict
        The tables of the run's settings.
    source : str
        The publication of the method.
    deviations : tuple of str
        Each way in which this is not what was published.
    notes : tuple of str
    versions : dict of str to str
    command : str
    corpus : dict
        ``name``, ``unit``, ``rows``, ``tokens`` by split, ``files`` (file to sha256), ``notes``.
    initial_sha256 : str
        Of the plain weights before the first step: the same for all methods of a comparison that
        have the same matrices.
    """

    method: str
    seed: int
    steps: int
    epochs: float
    tokens: int
    seconds: float
    parameters: int
    valid: Mapping[str, Any]
    test: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    source: str
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    command: str
    corpus: Mapping[str, Any]
    initial_sha256: str

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def finished(folder: Path) -> bool:
    """Whether a run's folder holds its result."""
    return (folder / RESULT_NAME).is_file()


def load(folder: Path) -> Result:
    """The result of a finished run.

    Raises
    ------
    UnreadableFile
        Not finished, not JSON, or of a later format.
    """
    path = folder / RESULT_NAME
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(
            error.strerror or str(error), where=path, way_out="let the run finish first"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("no JSON", where=path, way_out="train again") from error
    names = {entry.name for entry in fields(Result)}
    if not isinstance(table, dict) or table.get("format") != FORMAT or not names <= set(table):
        raise UnreadableFile(
            f"no result of a run in format {FORMAT}", where=path, way_out="train again"
        )
    given = {name: table[name] for name in names}
    for name in ("deviations", "notes"):
        given[name] = tuple(given[name])
    return Result(**given)
