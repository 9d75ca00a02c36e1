"""The folder of a comparison: its name, whether it may be written to, and the writing."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.cli.diff_inputs import name_of
from embgeo.cli.shared import is_occupied
from embgeo.core.errors import BadOption, EmbgeoError

if TYPE_CHECKING:
    from embgeo.comparison.comparison import Comparison


def default_folder(paths: Sequence[Path], track: bool) -> Path:
    """``baseline-vs-other.embgeo`` here; a track is named by its first and last checkpoint."""
    from embgeo.comparison.originals import saved_folder

    names = [name_of(path, saved_folder(path))[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")


def check_folder(folder: Path, inputs: Sequence[Path]) -> None:
    """Refuse, before anything is computed, a folder whose content is not ours to replace.

    Raises
    ------
    BadOption
    """
    from embgeo.comparison.files import COMPARISON_NAME

    if not is_occupied(folder):
        return
    own = folder.resolve()
    if not (folder / COMPARISON_NAME).is_file():
        cause = "exists and holds something else than a comparison"
    elif any(own in (p, *p.parents) for p in map(Path.resolve, inputs)):
        cause = "holds one of the analyses that are compared"
    else:
        return
    raise BadOption(cause, where=folder, way_out="choose another folder with -o")


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Comparison, analyses and report in `folder`, whole or not at all; the path of the report.

    What an earlier comparison wrote into `folder` is replaced; other files in it stay.
    """
    from embgeo.comparison.files import save_comparison
    from embgeo.report.comparison import write

    folder = folder.absolute()
    fresh: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        save_comparison(comparison, fresh)
        page = write(comparison, fresh)
        if folder.exists():
            replace_content(folder, fresh)
        else:
            mask = os.umask(0)
            os.umask(mask)
            fresh.chmod(0o777 & ~mask)
            fresh.rename(folder)
    except (OSError, EmbgeoError) as error:
        cause = error.cause if isinstance(error, EmbgeoError) else error.strerror or str(error)
        raise EmbgeoError(
            f"cannot be written: {cause.removeprefix('cannot be written: ')}",
            where=folder,
            way_out="choose another folder with -o",
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder / page.name


def replace_content(folder: Path, fresh: Path) -> None:
    """Put what is in `fresh` in the place of what an earlier comparison wrote."""
    from embgeo.comparison.files import COMPARISON_NAME, earlier_folders
    from embgeo.result.analysis import ARRAYS_NAME, JSON_NAME, REPORT_NAME

    earlier = earlier_folders(folder)
    # Without its list of members the folder is no comparison: nobody reads a half-replaced one.
    (folder / COMPARISON_NAME).unlink()
    for name in earlier:
        for file in (JSON_NAME, ARRAYS_NAME, REPORT_NAME):
            (folder / name / file).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files are in it, or it is gone
            (folder / name).rmdir()
    files = sorted(path for path in fresh.rglob("*") if path.is_file())
    # The list of members comes last.
    for path in sorted(files, key=lambda path: path.name == COMPARISON_NAME):
        target = folder / path.relative_to(fresh)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
