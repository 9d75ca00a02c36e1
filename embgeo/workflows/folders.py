"""Folders of results: their names, checks before work begins, and atomic writes."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from embgeo.comparison.comparison import Comparison, earlier_folders
from embgeo.comparison.originals import saved_folder
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.comparison.saved import FORMAT as COMPARISON
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import (
    BadOption,
    EmbgeoError,
    UnreadableFile,
    argument,
    looking_at,
    writing,
)
from embgeo.io.bounded.records import ARRAYS_NAME
from embgeo.io.bounded.saved import PREFIX, is_record, locked, remove_leftovers, write_text
from embgeo.io.remote.names import as_written, is_remote, short_name
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.result.saved import FORMAT as ANALYSIS
from embgeo.result.saved import JSON_NAME

if TYPE_CHECKING:
    from embgeo.workflows.request import AnalysisRequest

#: The folder of the analysis of the output matrix, inside the folder of the input embedding.
OUTPUT_FOLDER = "output"
ELSEWHERE = f"choose another folder with {argument('out')}"


def is_occupied(folder: Path) -> bool:
    """Whether a folder exists and is not empty; BadOption if the path cannot be a folder."""
    refuse_stdout(folder, ELSEWHERE)
    with looking_at(folder, ELSEWHERE):
        near = find_nearest(folder)
        if near.is_dir():
            return near == folder.absolute() and any(near.iterdir())
    cause = "is not a folder" if near == folder.absolute() else f"{near} is not a folder"
    raise BadOption(cause, where=folder, way_out=ELSEWHERE)


def refuse_stdout(out: Path, way_out: str) -> None:
    """Refuse ``-``, which would be the name of a file or folder."""
    refuse_if(str(out) == "-", argument("out"), "cannot be standard output", way_out)


def find_nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())


def check_folder(folder: Path, name: str, what: str) -> None:
    """Refuse, before anything is computed, a folder that is not empty and lacks the file `name`."""
    refuse_stdout(folder, f"print the result with {argument('json')}, or choose a folder")
    if is_occupied(folder) and not (folder / name).is_file():
        cause = f"exists and holds something other than {what}"
        raise BadOption(cause, where=folder, way_out=ELSEWHERE)
    with fresh_folder(find_nearest(folder), folder):
        pass  # it can be written to


def check_analysis_folder(folder: Path) -> None:
    check_folder(folder, JSON_NAME, "an analysis")


def refuse_less(folder: Path, request: AnalysisRequest) -> None:
    """Refuse to replace an analysis that has more sections, or all rows instead of some."""
    from embgeo.metrics import SECTIONS

    try:
        saved = load_analysis(folder).provenance
    except UnreadableFile:  # missing or damaged
        return
    lost = [s for s in saved.get("sections") or () if s not in (request.sections or SECTIONS)]
    cause = ""
    if lost:
        cause = f"holds an analysis that also has {', '.join(lost)}"
    elif request.source.rows is not None and saved.get("row_range") is None:
        cause = "holds an analysis of all rows"
    refuse_if(bool(cause), str(folder), cause, f"{ELSEWHERE}, or add {argument('force')}")


def refuse_other(folder: Path, path: Path | str) -> None:
    """Refuse to replace the analysis of another file: two checkpoints can have the same name."""
    try:
        provenance = load_analysis(folder).provenance
    except UnreadableFile:  # missing or damaged
        return
    saved = str(provenance.get("file") or "")
    files = [saved, *(str(part["file"]) for part in provenance.get("parts") or ())]
    given = as_written(path)
    # A pattern names all files of one matrix.
    names = [given, *glob.glob(given, recursive=True)]
    if not saved or any(is_same_place(file, name) for file in files for name in names):
        return
    cause = f"holds the analysis of {saved}"
    raise BadOption(cause, where=folder, way_out=f"{ELSEWHERE}, or add {argument('force')}")


def is_same_place(first: str, second: str) -> bool:
    """Whether two names are of one file, or of a file and a folder that it lies in."""
    if first == second or is_remote(first) or is_remote(second):
        return first == second
    one, other = Path(first).resolve(), Path(second).resolve()
    return one == other or one in other.parents or other in one.parents


def check_comparison_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Refuse the folder of a comparison if it cannot be replaced, or holds one of the inputs."""
    check_folder(folder, COMPARISON_NAME, "a comparison")
    own = folder.resolve()
    if is_occupied(folder) and any(own in (p, *p.parents) for p in map(Path.resolve, inputs)):
        raise BadOption("holds one of the compared analyses", where=folder, way_out=ELSEWHERE)


@contextmanager
def keep_earlier(folder: Path) -> Iterator[None]:
    """Add a note to an interrupt inside the block if `folder` keeps an earlier result."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        if any((folder / name).is_file() for name in (JSON_NAME, COMPARISON_NAME)):
            stopped.add_note(f"the earlier result in {folder} stands")
        raise


def write_analysis(analysis: Analysis, folder: Path, output: Analysis | None = None) -> Path:
    """Write an analysis and its report, whole or not at all; return the path of the report.

    The analysis of the output matrix is written into a folder inside, where it replaces an earlier
    one.
    """
    from embgeo.report import analysis as page

    def fill(fresh: Path) -> None:
        for place, found in ((fresh, analysis), (fresh / OUTPUT_FOLDER, output)):
            if found is not None:
                place.mkdir(exist_ok=True)
                found.save(place)
                write_text(place / REPORT_NAME, page.render(found))

    def replace(fresh: Path, old: Path) -> None:
        # Until all files are moved, nobody may read matrices of two different runs.
        if output is not None or (old / OUTPUT_FOLDER / JSON_NAME).is_file():
            ANALYSIS.mark_unfinished(old)
        if (old / OUTPUT_FOLDER / JSON_NAME).is_file():
            remove_analysis(old / OUTPUT_FOLDER)
        names = (ARRAYS_NAME, JSON_NAME, REPORT_NAME)
        inner = () if output is None else [Path(OUTPUT_FOLDER, name) for name in names]
        move_files(fresh, old, (*inner, *names))

    return write_whole(folder, fill, replace) / REPORT_NAME


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write a comparison and its report, whole or not at all; return the path of the report.

    The files of an earlier comparison are replaced; other files stay.
    """
    from embgeo.report import comparison as page

    def fill(fresh: Path) -> None:
        comparison.save(fresh)
        write_text(fresh / REPORT_NAME, page.render(comparison))

    return write_whole(folder, fill, replace_comparison) / REPORT_NAME


def write_whole(
    folder: Path,
    fill: Callable[[Path], object],
    replace: Callable[[Path, Path], None] | None = None,
    way_out: str = ELSEWHERE,
) -> Path:
    """Make a folder that appears with everything in it, and return its absolute path.

    ``fill(fresh)`` writes all files into a new folder, which takes the place of an empty `folder`.
    If `folder` holds something, ``replace(fresh, folder)`` moves the files to their places; by
    default files of the same names are replaced.
    """
    folder = folder.absolute()
    renames = not folder.exists() or can_rename_over(folder)
    try:
        # Otherwise inside the folder, which may be a file system of its own.
        with fresh_folder(folder.parent if renames else folder, folder) as fresh:
            with keep_earlier(folder):
                fill(fresh)
            if renames:
                rename_folder(fresh, folder)
            elif replace is not None:
                replace(fresh, folder)
            else:
                move_files(fresh, folder, list_files(fresh))
    except EmbgeoError as error:
        # An error about a file in the folder is reported of the folder.
        inner = error.__cause__
        cause = inner.strerror or str(inner) if isinstance(inner, OSError) else error.cause
        raise EmbgeoError(f"cannot be written: {cause}", where=folder, way_out=way_out) from error
    return folder


def can_rename_over(folder: Path) -> bool:
    """Whether a folder is empty, and another one can take its place, as POSIX allows.

    A shell whose working directory is replaced would be left in a folder that is gone.
    """
    if os.name != "posix" or folder.is_symlink() or os.path.ismount(folder):
        return False
    try:
        mine = folder.stat().st_uid == os.geteuid() and not folder.samefile(".")
        return mine and os.access(folder.parent, os.W_OK | os.X_OK) and not any(folder.iterdir())
    except OSError:  # it cannot be looked into
        return False


def rename_folder(fresh: Path, folder: Path) -> None:
    """Give a temporary folder its name, with the permissions of the empty folder it replaces."""
    if folder.exists():
        mode = stat.S_IMODE(folder.stat().st_mode)
    else:  # those of any other new folder
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o777 & ~mask
    fresh.chmod(mode)
    try:
        fresh.replace(folder)
    except OSError as error:
        # Bind mounts of the same file system, which `os.path.ismount` does not recognize.
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        shutil.copytree(fresh, folder, dirs_exist_ok=True)


@contextmanager
def fresh_folder(home: Path, where: Path, way_out: str = ELSEWHERE) -> Iterator[Path]:
    """A temporary folder in `home`; an error that occurs in it is reported of `where`."""
    with writing(where, way_out):
        home.mkdir(parents=True, exist_ok=True)
        remove_leftovers(home)
        # The folder may have been renamed by then, hence ignore_cleanup_errors.
        with (
            TemporaryDirectory(prefix=PREFIX, dir=home, ignore_cleanup_errors=True) as fresh,
            locked(Path(fresh)),
        ):
            yield Path(fresh)


def move_files(fresh: Path, folder: Path, names: Iterable[str | Path]) -> None:
    """Move files from `fresh` to `folder`, in this order."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).replace(folder / name)


def list_files(folder: Path) -> list[Path]:
    """The relative paths of all files; records come first, by which the others are ours."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(found, key=lambda path: (path.suffix != ".json", path))


def remove_analysis(folder: Path) -> None:
    """Remove the files of an analysis, and the folder if it holds nothing else."""
    for file in (JSON_NAME, ARRAYS_NAME, REPORT_NAME):
        (folder / file).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it holds other files, or is gone
        folder.rmdir()


def replace_comparison(fresh: Path, folder: Path) -> None:
    """Replace the files of an earlier comparison with those in `fresh`."""
    earlier = earlier_folders(folder)
    # A half-replaced comparison is unreadable, and names the members of both for the next one.
    both = dict.fromkeys((*earlier, *earlier_folders(fresh)))
    COMPARISON.mark_unfinished(folder, members=[{"folder": name} for name in both])
    for name in earlier:
        remove_analysis(folder / name)
    # The list of members comes last.
    files = sorted(list_files(fresh), key=lambda path: path.name == COMPARISON_NAME)
    move_files(fresh, folder, files)


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all; devices, pipes and links are written to, not replaced."""
    with writing(path, "choose another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            write_text(path, text)


def check_free(folder: Path, name: str, suffixes: tuple[str, ...], form: str) -> None:
    """Refuse to replace ``NAME.suffix`` without a record of this form, ``NAME.json``."""
    refuse_stdout(folder, ELSEWHERE)
    with looking_at(folder, ELSEWHERE):
        if folder.exists() and not folder.is_dir():
            raise BadOption("is not a folder", where=folder, way_out=ELSEWHERE)
        paths = [folder / f"{name}{suffix}" for suffix in (*suffixes, ".json")]
        taken = [path for path in paths if path.exists() or path.is_symlink()]
    if taken and not is_record(folder / f"{name}.json", form):
        cause = "exists and was not made by this command"
        raise BadOption(cause, where=taken[0], way_out=ELSEWHERE)


def write_set(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name into a folder: all of them, or none if one cannot be written."""

    def fill(fresh: Path) -> None:
        for name, content in files.items():
            (fresh / name).write_bytes(content)

    write_whole(folder, fill)


def default_name(path: Path) -> str:
    """The name of a folder or an archive's member, or of a file without its last suffix."""
    if str(path) == "-":
        return "stdin"
    if is_remote(path):
        return short_name(path)
    _, _, member = str(path).partition("::")
    resolved = Path(member if member and not path.exists() else path).resolve()
    return (resolved.name if resolved.is_dir() else resolved.stem) or "analysis"


def result_name(path: Path) -> str:
    """The name of the folder of a saved analysis, or of a checkpoint."""
    folder = saved_folder(path)
    if folder is None:
        return default_name(path)
    return folder.resolve().name.removesuffix(".embgeo") or "analysis"


def comparison_folder(paths: Sequence[Path], track: bool) -> Path:
    """``BASELINE-vs-OTHER.embgeo``, or ``FIRST-to-LAST.embgeo`` for a track."""
    names = [result_name(path)[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")
