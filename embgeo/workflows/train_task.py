"""What is to be trained, and whether its folder may be written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.workflows.folders import is_occupied
from embgeo.workflows.train_request import TrainRequest

if TYPE_CHECKING:
    from embgeo.training.data import Corpus
    from embgeo.training.settings import StudySettings


@dataclass(frozen=True, slots=True)
class StudyTask:
    """What is to be trained, and where.

    Attributes
    ----------
    settings : StudySettings
    corpus : Corpus
    folder : Path
    command : str
    """

    settings: StudySettings
    corpus: Corpus
    folder: Path
    command: str

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Method and seed of every run; all methods of one seed before the next."""
        return [(method, seed) for seed in self.settings.seeds for method in self.settings.compare]

    def home(self, method: str, seed: int) -> Path:
        """The folder of a run."""
        from embgeo.training.loop.run import run_folder

        return run_folder(self.folder, method, seed)


def prepare(request: TrainRequest, command: str) -> StudyTask:
    """Settings and text, checked as far as that is possible before training.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.training.data import load_corpus
    from embgeo.training.loop.planning import rehearse
    from embgeo.training.resolve import resolve

    settings = resolve(request.resolve())
    if not settings.data.path:
        raise BadOption(
            "no text is given", way_out=f"give a file or a folder with {argument('data')}"
        )
    path = Path(settings.data.path)
    if request.resume and request.data is None and not path.exists():
        raise BadOption(
            "the text that the runs were begun with is not there, seen from here",
            where=path,
            way_out=f"say where it is with {argument('data')}",
        )
    chosen = settings.data
    corpus = load_corpus(
        path,
        unit=chosen.unit,
        min_count=chosen.min_count,
        size=chosen.size,
        tokenizer=None if chosen.tokenizer is None else Path(chosen.tokenizer),
        tokens=chosen.tokens,
    )
    rehearse(settings, corpus)
    return StudyTask(settings, corpus, request.folder(path), command)


def check_runs_folder(folder: Path, *, resume: bool, own: str = "train.toml") -> None:
    """Refuse, before anything is computed, a folder whose content is not ours to add to.

    Parameters
    ----------
    folder : Path
    resume : bool
        Whether runs in it are gone on with.
    own : str
        The file by which a folder of ours is known.

    Raises
    ------
    BadOption
    """
    empty = not is_occupied(folder)
    ours = (folder / own).is_file()
    again, elsewhere = argument("resume"), f"choose another with {argument('out')}"
    if resume and empty:
        raise BadOption("holds no runs", where=folder, way_out=f"leave out {again}")
    if empty or (ours and resume):
        return
    if ours:
        way_out = f"go on with {again}, or {elsewhere}"
        raise BadOption("holds runs", where=folder, way_out=way_out)
    raise BadOption(
        "exists and holds something else than runs",
        where=folder,
        way_out=elsewhere.replace("another", "another folder"),
    )


def check_runs(task: StudyTask) -> None:
    """Refuse settings that are not those of the runs that are there, before anything is written.

    Raises
    ------
    BadOption
    """
    from embgeo.training.loop.checkpoint import identity, require_same
    from embgeo.training.loop.run import RUN_NAME, read_identity
    from embgeo.training.settings import read_settings

    for method, seed in task.runs:
        home = task.home(method, seed)
        now = task.settings.one(method, seed).tables()
        known = read_identity(home)
        if known is not None:
            require_same(known, identity(now, task.corpus.files), home)
        elif (home / RUN_NAME).is_file():
            before = read_settings(home / RUN_NAME).tables()
            require_same(identity(before, {}), identity(now, {}), home)


def explain_interrupt(
    folder: Path, how: str, kept: str = "what was trained is kept"
) -> EmbgeoError:
    """The error for somebody who has stopped a training.

    Parameters
    ----------
    folder : Path
    how : str
        The command that goes on.
    kept : str
        What is said of it where something was written.
    """
    state = kept if folder.exists() else "nothing was written"
    return EmbgeoError(f"interrupted; {state}", way_out=f"go on with: {how}")
