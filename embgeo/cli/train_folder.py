"""The folder of a comparison: whether it may be written to, and how to go on with it."""

from __future__ import annotations

from pathlib import Path

from embgeo.cli.train_settings import SETTINGS_NAME
from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.workflows.folders import is_occupied


def check_runs_folder(folder: Path, *, resume: bool, own: str = SETTINGS_NAME) -> None:
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
    if resume and empty:
        raise BadOption("holds no runs", where=folder, way_out="leave out --resume")
    if empty or (ours and resume):
        return
    if ours:
        raise BadOption(
            "holds runs", where=folder, way_out="go on with --resume, or choose another with -o"
        )
    raise BadOption(
        "exists and holds something else than runs",
        where=folder,
        way_out="choose another folder with -o",
    )


def interrupted(folder: Path, how: str, kept: str = "what was trained is kept") -> EmbgeoError:
    """What is said to somebody who has stopped a training.

    Parameters
    ----------
    folder : Path
    how : str
        The command that goes on.
    kept : str
        What is said of it where something was written.
    """
    told = kept if folder.exists() else "nothing was written"
    return EmbgeoError(f"interrupted; {told}", way_out=f"go on with: {how}")
