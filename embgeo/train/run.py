"""A run and a comparison of runs, as folders of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from embgeo.train.config import Config
from embgeo.train.outcome import Result

if TYPE_CHECKING:
    from embgeo.train.data import Corpus  # type: ignore[import-not-found,unused-ignore]

#: Numbers by name from the embedding W, and the output matrix where that is another one.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]


class Progress(Protocol):
    """Hears about long work; `embgeo.passes.Progress` is one."""

    @property
    def start(self) -> Callable[[str, int], None]:
        """``start(what, total)`` at the beginning of something; 0: nobody knows how much."""

    @property
    def advance(self) -> Callable[[int], None]:
        """``advance(done)`` while it goes on."""


def train(
    config: Config,
    corpus: Corpus,
    folder: Path,
    *,
    measure: Measure | None,
    progress: Progress,
    command: str,
) -> Result:
    """Train one method with one seed, going on where the folder's state says.

    Parameters
    ----------
    config : Config
        With one method and one seed; see `Config.one`.
    corpus : Corpus
    folder : Path
        Of the run.
    measure : callable, optional
        Gives numbers of the embedding every so many steps.
    progress : Progress
    command : str
        As it was typed.

    Returns
    -------
    Result
        That of the folder, if the run is finished already.

    Raises
    ------
    BadOption
        Settings that make no sense, or a folder with a run of other settings.
    """
    raise NotImplementedError


def train_all(
    config: Config,
    corpus: Corpus,
    folder: Path,
    *,
    measure: Measure | None,
    progress: Progress,
    command: str,
) -> list[Result]:
    """All runs of a comparison, in ``folder/METHOD/seed-S``; ``folder/train.toml`` besides."""
    raise NotImplementedError


def run_folder(folder: Path, method: str, seed: int) -> Path:
    """Where a run of a comparison is."""
    return folder / method / f"seed-{seed}"


def describe(_config: Config, _corpus: Corpus) -> dict[str, Any]:
    """Sizes, steps and an estimate of time, without training: ``--dry-run``."""
    raise NotImplementedError
