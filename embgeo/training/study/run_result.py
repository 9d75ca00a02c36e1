"""What a finished run says about itself: ``result.json``.

Format history
--------------
1 : first version; embgeo 0.1 wrote ``"format": 1`` and no name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.records import RecordFormat

RESULT_NAME = "result.json"

#: Numbers of one split by name; None where one is not known.
SplitScores = Mapping[str, int | float | None]


@dataclass(frozen=True, slots=True)
class RunResult:
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
    valid: SplitScores
    test: SplitScores | None
    settings: Mapping[str, Any]
    source: str
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    command: str
    corpus: Mapping[str, Any]
    initial_sha256: str

    @property
    def own_settings(self) -> dict[str, Any]:
        """What the settings say about the method itself: the table ``[method.NAME]``."""
        table = self.settings.get("method")
        own = table.get(self.method) if isinstance(table, Mapping) else None
        return dict(own) if isinstance(own, Mapping) else {}


RUN_RESULT = RecordFormat(
    "embgeo.run",
    1,
    RunResult,
    RESULT_NAME,
    what="the result of a run",
    again="train it again with: embgeo train",
    bare=True,
)


def is_finished(folder: Path) -> bool:
    """Whether a run's folder holds its result."""
    return (folder / RESULT_NAME).is_file()


def load_result(folder: Path) -> RunResult:
    """The result of a finished run.

    Raises
    ------
    UnreadableFile
        Not finished, damaged, or of another format.
    """
    if not (folder / RESULT_NAME).exists():
        raise UnreadableFile(
            "the run is not finished", where=folder, way_out="let the run finish first"
        )
    return RUN_RESULT.load(folder)
