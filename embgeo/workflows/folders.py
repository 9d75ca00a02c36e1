"""Folders of results: checks before work begins, and atomic writes."""

from __future__ import annotations

import errno
import glob
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison
from embgeo.core import errors
from embgeo.core.arguments import refuse_if
from embgeo.core.source import Source
from embgeo.files.records import ARRAYS_NAME
from embgeo.files.saved import is_record, name_temporary, temporary_folder, write_file
from embgeo.io.places.names import as_written, is_remote
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.workflows.saved_analysis import default_name

#: The folder of the analysis of the output matrix, inside the folder of the input embedding.
OUTPUT_FOLDER = "output"
_FILES = (JSON_NAME, ARRAYS_NAME, REPORT_NAME)
#: The files of an analysis and of a comparison, as patterns.
ANALYSIS_FILES = (*_FILES, *(f"{OUTPUT_FOLDER}/{name}" for name in _FILES))
COMPARISON_FILES = (
    COMPARISON_NAME,
    ARRAYS_NAME,
    REPORT_NAME,
    *(f"[0-9]*-*/{name}" for name in _FILES),
)
#: Errors of a rename over a mount point, and in a folder of another user.
NOT_RENAMED = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES)
ELSEWHERE = f"choose another folder with {errors.argument('out')}"


def is_occupied(folder: Path) -> bool:
    """Tell whether a folder exists and is not empty; BadOption if the path cannot be a folder."""
    return bool(list_names(folder))


def list_names(folder: Path) -> list[str]:
    """List the names in a folder, none if there is no folder; BadOption if it cannot be one."""
    refuse_place(folder, ELSEWHERE)
    with errors.looking_at(folder, ELSEWHERE):
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            near = find_nearest(folder)
    cause = "is not a folder" if near == folder.absolute() else f"{near} is not a folder"
    raise errors.BadOption(cause, where=folder, way_out=ELSEWHERE)


def refuse_place(out: Path, way_out: str) -> None:
    """Refuse ``-``, which would be the name of a file or folder, and links to nothing."""
    refuse_if(str(out) == "-", errors.argument("out"), "cannot be standard output", way_out)
    with errors.looking_at(out, way_out):
        dead = next((p for p in (out, *out.parents) if p.is_symlink() and not p.exists()), None)
    cause = "is a link to nothing" if dead == out else f"{dead} is a link to nothing"
    refuse_if(dead is not None, str(out), cause, way_out)


def choose_folder(out: Path | None, usual: Path) -> Path:
    """Return the folder that the user names, else the usual one, unless that is a link.

    In a checkout of unknown origin it may lead anywhere.
    """
    if out is None:
        way_out = f"name a folder with {errors.argument('out')}"
        refuse_if(usual.is_symlink(), str(usual), "is a link", way_out)
    return usual if out is None else out


def find_nearest(folder: Path) -> Path:
    """Find the folder, or the nearest one above it that exists."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())


def check_folder(folder: Path, name: str, what: str) -> None:
    """Refuse, before anything is computed, a folder that is not empty and lacks the file `name`."""
    refuse_place(folder, f"print the result with {errors.argument('json')}, or choose a folder")
    names = list_names(folder)
    if names and name not in names:
        cause = f"exists and holds something other than {what}"
        raise errors.BadOption(cause, where=folder, way_out=ELSEWHERE)
    home = folder if folder.is_dir() and not can_be_renamed(folder) else folder.parent
    with errors.writing(folder, ELSEWHERE), temporary_folder(find_nearest(home)):
        pass  # it can be written to


def check_analysis_folder(folder: Path) -> None:
    check_folder(folder, JSON_NAME, "an analysis")


def choose_analysis_folder(
    out: Path | None, source: Source, sections: Collection[str] | None, force: bool
) -> Path:
    """Return the folder of an analysis, before anything is computed.

    Unless `force`, it does not hold an analysis of another file or one that says more.
    """
    folder = choose_folder(out, Path(f"{default_name(Path(source.path))}.embgeo"))
    check_analysis_folder(folder)
    if not force:
        if out is None:
            refuse_other(folder, source.path)
        refuse_less(folder, source, sections)
    return folder


def refuse_less(folder: Path, source: Source, sections: Collection[str] | None) -> None:
    """Refuse to replace an analysis that has more sections, or all rows instead of some."""
    from embgeo.metrics import SECTIONS

    try:
        saved = load_analysis(folder).provenance
    except errors.UnreadableFile:  # missing or damaged
        return
    lost = [s for s in saved.get("sections") or () if s not in (sections or SECTIONS)]
    cause = ""
    if lost:
        cause = f"holds an analysis that also has {', '.join(lost)}"
    elif source.rows is not None and saved.get("row_range") is None:
        cause = "holds an analysis of all rows"
    refuse_if(bool(cause), str(folder), cause, f"{ELSEWHERE}, or add {errors.argument('force')}")


def refuse_other(folder: Path, path: Path | str) -> None:
    """Refuse to replace the analysis of another file: two checkpoints can have the same name."""
    try:
        provenance = load_analysis(folder).provenance
    except errors.UnreadableFile:  # missing or damaged
        return
    saved = str(provenance.get("file") or "")
    files = [saved, *(str(part["file"]) for part in provenance.get("parts") or ())]
    given = as_written(path)
    # A pattern names all files of one matrix.
    names = [given, *glob.glob(given, recursive=True)]
    if not saved or any(is_same_place(file, name) for file in files for name in names):
        return
    cause = f"holds the analysis of {saved}"
    raise errors.BadOption(
        cause, where=folder, way_out=f"{ELSEWHERE}, or add {errors.argument('force')}"
    )


def is_same_place(first: str, second: str) -> bool:
    """Tell whether two names are of one file, or of a file and a folder that it lies in."""
    if first == second or is_remote(first) or is_remote(second):
        return first == second
    one, other = Path(first).resolve(), Path(second).resolve()
    return one == other or one in other.parents or other in one.parents


def check_comparison_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Refuse the folder of a comparison if it cannot be replaced, or holds one of the inputs."""
    check_folder(folder, COMPARISON_NAME, "a comparison")
    own = folder.resolve()
    if is_occupied(folder) and any(own in (p, *p.parents) for p in map(Path.resolve, inputs)):
        raise errors.BadOption(
            "holds one of the compared analyses", where=folder, way_out=ELSEWHERE
        )


def write_analysis(analysis: Analysis, folder: Path, output: Analysis | None = None) -> Path:
    """Write an analysis and its report, whole or not at all; return the path of the report.

    The analysis of the output matrix is written into a folder inside. Files of an earlier analysis
    are replaced; others stay.
    """
    from embgeo.report import analysis as page

    def fill(fresh: Path) -> None:
        for place, found in ((fresh, analysis), (fresh / OUTPUT_FOLDER, output)):
            if found is not None:
                found.save(place)
                write_file(place / REPORT_NAME, page.render(found))

    return write_whole(folder, fill, ANALYSIS_FILES) / REPORT_NAME


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write a comparison and its report, whole or not at all; return the path of the report.

    Files of an earlier comparison are replaced; others stay.
    """
    from embgeo.report import comparison as page

    def fill(fresh: Path) -> None:
        comparison.save(fresh)
        write_file(fresh / REPORT_NAME, page.render(comparison))

    return write_whole(folder, fill, COMPARISON_FILES) / REPORT_NAME


def write_whole(
    folder: Path,
    fill: Callable[[Path], object],
    own: Sequence[str] = (),
    way_out: str = ELSEWHERE,
) -> Path:
    """Make a folder that appears with everything in it, and return its absolute path.

    ``fill(fresh)`` writes all files into a temporary folder, which takes the place of `folder`. Of
    what that holds, files that match `own` are removed, and others stay. Without `own`, files are
    added to a folder that is not empty one after another.
    """
    folder = folder.resolve()
    try:
        adds = not own and is_occupied(folder)
        inside = folder.is_dir() and (adds or not can_be_renamed(folder))
        with (
            errors.writing(folder, way_out),
            temporary_folder(folder if inside else folder.parent) as fresh,
        ):
            fill(fresh)
            if inside:
                replace_files(fresh, folder, own)
            else:
                replace_folder(fresh, folder, own)
    except errors.EmbgeoError as error:
        inner = error.__cause__
        if isinstance(error, errors.UnreadableFile) or not isinstance(inner, OSError):
            raise
        # An error about a file in the folder is reported of the folder.
        cause = f"cannot be written: {inner.strerror or inner}"
        raise errors.EmbgeoError(cause, where=folder, way_out=way_out) from error
    return folder


def can_be_renamed(folder: Path) -> bool:
    """Tell whether another folder can take the place; a shell would be left in one that is gone."""
    folder = folder.resolve()
    return os.access(folder.parent, os.W_OK | os.X_OK) and folder != Path.cwd()


def replace_folder(fresh: Path, folder: Path, own: Sequence[str]) -> None:
    """Rename a temporary folder, as :func:`write_whole` does."""
    there, aside = folder.is_dir(), name_temporary(folder.parent)
    try:
        if there:
            shutil.copymode(folder, fresh)
            folder.rename(aside)
        try:
            fresh.rename(folder)
        except BaseException:
            if there:
                aside.rename(folder)
            raise
    except OSError as error:
        if error.errno not in NOT_RENAMED or not folder.is_dir():
            raise
        replace_files(fresh, folder, own)
        return
    if there:
        removed = find_files(aside, own)
        for name in list_files(aside):
            if name not in removed and not (folder / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (aside / name).rename(folder / name)
        shutil.rmtree(aside, ignore_errors=True)


def replace_files(fresh: Path, folder: Path, own: Sequence[str] = ()) -> None:
    """Move the files of a temporary folder one after another.

    Records mark a result as whole and are removed first and moved last; those of files that stand
    alone come first, as they tell which of them are ours.
    """
    names = list_files(fresh)
    if own:
        names.reverse()
    for name in sorted(find_files(folder, own), key=lambda path: path.suffix != ".json"):
        (folder / name).unlink(missing_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh / name, folder / name)


def find_files(folder: Path, patterns: Iterable[str]) -> set[Path]:
    """Find the relative paths that match."""
    return {path.relative_to(folder) for one in patterns for path in folder.glob(one)}


def list_files(folder: Path) -> list[Path]:
    """List the relative paths of all files, records first."""
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())
    return sorted(found, key=lambda path: (path.suffix != ".json", path))


def write_output(path: Path, text: str) -> None:
    """Write a file whole or not at all; devices, pipes and links are written to, not replaced."""
    with errors.writing(path, "choose another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            write_file(path, text)


def check_free(folder: Path, name: str, suffixes: tuple[str, ...], form: str) -> None:
    """Refuse to replace ``NAME.suffix`` without a record of this form, ``NAME.json``."""
    refuse_place(folder, ELSEWHERE)
    with errors.looking_at(folder, ELSEWHERE):
        if folder.exists() and not folder.is_dir():
            raise errors.BadOption("is not a folder", where=folder, way_out=ELSEWHERE)
        paths = [folder / f"{name}{suffix}" for suffix in (*suffixes, ".json")]
        taken = [path for path in paths if path.exists() or path.is_symlink()]
    if taken and not is_record(folder / f"{name}.json", form):
        cause = "exists and was not made by this command"
        raise errors.BadOption(cause, where=taken[0], way_out=ELSEWHERE)


def write_set(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name into a folder: all of them, or none if one cannot be written."""

    def fill(fresh: Path) -> None:
        for name, content in files.items():
            write_file(fresh / name, content)

    write_whole(folder, fill)
