"""Folders of results: their names, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import Comparison, earlier_folders
from embgeo.comparison.originals import saved_folder
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.comparison.saved import FORMAT as COMPARISON
from embgeo.core.errors import (
    BadOption,
    EmbgeoError,
    UnreadableFile,
    argument,
    looking_at,
    writing,
)
from embgeo.io.bounded.leftovers import PREFIX, locked, remove_leftovers
from embgeo.io.bounded.records import ARRAYS_NAME
from embgeo.io.bounded.saved import is_record, write_text
from embgeo.io.remote.names import is_remote, short_name
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.result.saved import FORMAT as ANALYSIS
from embgeo.result.saved import JSON_NAME

if TYPE_CHECKING:
    from embgeo.workflows.request import AnalysisRequest

#: Where the analysis of an untied model's output matrix lies.
OUTPUT_FOLDER = "output"
_ELSEWHERE = f"choose another folder with {argument('out')}"


def is_occupied(folder: Path) -> bool:
    """Whether a folder to be written to exists and holds something."""
    with looking_at(folder, _ELSEWHERE):
        near = find_nearest(folder)
        if near.is_dir():
            return near == folder.absolute() and any(near.iterdir())
    cause = "is not a folder" if near == folder.absolute() else f"{near} is not a folder"
    raise BadOption(cause, where=folder, way_out=_ELSEWHERE)


def find_nearest(folder: Path) -> Path:
    """The folder, or the first of those above it that exists."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())


def check_writable(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that cannot be written to."""
    with fresh_folder(find_nearest(folder), folder):
        pass


def check_analysis_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a folder whose content is not ours to replace."""
    if is_occupied(folder) and not (folder / JSON_NAME).exists():
        cause = "exists and holds something other than an analysis"
        raise BadOption(cause, where=folder, way_out=_ELSEWHERE)
    check_writable(folder)


def refuse_less(folder: Path, request: AnalysisRequest) -> None:
    """Refuse to replace an analysis of more sections, or of all rows where some are asked for."""
    if not (folder / JSON_NAME).exists():
        return
    from embgeo.metrics import SECTIONS

    try:
        saved = load_analysis(folder).provenance
    except UnreadableFile:
        return
    lost = [s for s in saved.get("sections") or () if s not in (request.sections or SECTIONS)]
    if lost:
        cause = f"holds an analysis that also has {', '.join(lost)}"
    elif request.source.rows is not None and saved.get("row_range") is None:
        cause = "holds an analysis of all rows"
    else:
        return
    raise BadOption(cause, where=folder, way_out=f"{_ELSEWHERE}, or add {argument('force')}")


def check_comparison_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """The same for the folder of a comparison of `inputs`."""
    if not is_occupied(folder):
        check_writable(folder)
        return
    own = folder.resolve()
    if not (folder / COMPARISON_NAME).is_file():
        cause = "exists and holds something other than a comparison"
    elif any(own in (p, *p.parents) for p in map(Path.resolve, inputs)):
        cause = "holds one of the analyses that are compared"
    else:
        check_writable(folder)
        return
    raise BadOption(cause, where=folder, way_out=_ELSEWHERE)


@contextmanager
def keep_earlier(folder: Path) -> Iterator[None]:
    """Note on an interrupt inside the block that an earlier result in `folder` is still there."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        if any((folder / name).is_file() for name in (JSON_NAME, COMPARISON_NAME)):
            stopped.add_note(f"the earlier result in {folder} stands")
        raise


def write_analysis(analysis: Analysis, folder: Path, output: Analysis | None = None) -> Path:
    """Result and report in `folder`, whole or not at all; the path of the report.

    Those of the output matrix come into a folder inside; an earlier one there is removed.
    """
    from embgeo.report import analysis as page

    def fill(fresh: Path) -> None:
        for place, found in ((fresh, analysis), (fresh / OUTPUT_FOLDER, output)):
            if found is not None:
                place.mkdir(exist_ok=True)
                found.save(place)
                page.write(found, place)

    def replace(fresh: Path, old: Path) -> None:
        # Nobody reads one matrix of an earlier run next to the other one of this run.
        if output is not None or (old / OUTPUT_FOLDER / JSON_NAME).is_file():
            ANALYSIS.mark_unfinished(old)
        if (old / OUTPUT_FOLDER / JSON_NAME).is_file():
            remove_analysis(old / OUTPUT_FOLDER)
        names = (ARRAYS_NAME, JSON_NAME, REPORT_NAME)
        inner = () if output is None else [Path(OUTPUT_FOLDER, name) for name in names]
        move_files(fresh, old, (*inner, *names))

    return write_whole(folder, fill, replace) / REPORT_NAME


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Comparison, analyses and report in `folder`, whole or not at all; the path of the report.

    What an earlier comparison wrote into `folder` is replaced; other files in it stay.
    """
    from embgeo.report import comparison as page

    def fill(fresh: Path) -> None:
        comparison.save(fresh)
        page.write(comparison, fresh)

    return write_whole(folder, fill, replace_comparison) / REPORT_NAME


def write_whole(
    folder: Path,
    fill: Callable[[Path], object],
    replace: Callable[[Path, Path], None],
    way_out: str = _ELSEWHERE,
) -> Path:
    """A folder that appears with everything in it; its absolute path.

    `fill`: writes all files into a new folder. `replace`: ``replace(fresh, folder)`` moves the new
    files in place of old ones, if `folder` exists.
    """
    folder = folder.absolute()
    try:
        # Inside a folder that exists: it may be a file system of its own.
        with fresh_folder(folder if folder.exists() else folder.parent, folder) as fresh:
            with keep_earlier(folder):
                fill(fresh)
            if folder.exists():
                replace(fresh, folder)
            else:
                mask = os.umask(0)
                os.umask(mask)
                fresh.chmod(0o777 & ~mask)
                fresh.rename(folder)
    except EmbgeoError as error:
        # What fails to be written inside the folder is reported of the folder.
        inner = error.__cause__
        cause = inner.strerror or str(inner) if isinstance(inner, OSError) else error.cause
        raise EmbgeoError(f"cannot be written: {cause}", where=folder, way_out=way_out) from error
    return folder


@contextmanager
def fresh_folder(home: Path, where: Path, way_out: str = _ELSEWHERE) -> Iterator[Path]:
    """A new folder in `home`, from which files are moved to their places once all are written.

    What fails to be written is reported of `where`.
    """
    with writing(where, way_out):
        home.mkdir(parents=True, exist_ok=True)
        remove_leftovers(home)
        # It may have become the result itself: then there is nothing to clear away.
        with (
            TemporaryDirectory(prefix=PREFIX, dir=home, ignore_cleanup_errors=True) as fresh,
            locked(Path(fresh)),
        ):
            yield Path(fresh)


def move_files(fresh: Path, folder: Path, names: Iterable[str | Path]) -> None:
    """Put files of `fresh` in the place of those in `folder`, in this order."""
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (fresh / name).replace(folder / name)


def remove_analysis(folder: Path) -> None:
    """Remove the files of an analysis, and the folder where it holds nothing else."""
    for file in (JSON_NAME, ARRAYS_NAME, REPORT_NAME):
        (folder / file).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody else's files are in it, or it is gone
        folder.rmdir()


def replace_comparison(fresh: Path, folder: Path) -> None:
    """Put what is in `fresh` in the place of what an earlier comparison wrote."""
    earlier = earlier_folders(folder)
    # Nobody reads a half-replaced one; whoever replaces that one removes the members of both.
    both = dict.fromkeys((*earlier, *earlier_folders(fresh)))
    COMPARISON.mark_unfinished(folder, members=[{"folder": name} for name in both])
    for name in earlier:
        remove_analysis(folder / name)
    files = sorted(path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file())
    # The list of members comes last.
    files.sort(key=lambda path: path.name == COMPARISON_NAME)
    move_files(fresh, folder, files)


def write_file(path: Path, text: str) -> None:
    """Write the whole file or nothing, in a folder that is made where it is missing.

    Devices, pipes and links are written to, not replaced.
    """
    with writing(path, "choose another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            write_text(path, text)


def check_free(folder: Path, name: str, suffixes: tuple[str, ...], form: str) -> None:
    """Refuse to write ``NAME.suffix`` over files without a record of ours next to them."""
    record = folder / f"{name}.json"
    with looking_at(folder, _ELSEWHERE):
        if folder.exists() and not folder.is_dir():
            raise BadOption("is not a folder", where=folder, way_out=_ELSEWHERE)
        taken = [
            path
            for suffix in (*suffixes, ".json")
            if (path := folder / f"{name}{suffix}").exists() or path.is_symlink()
        ]
    if taken and not is_record(record, form):
        cause = "exists and was not made by this command"
        raise BadOption(cause, where=taken[0], way_out=_ELSEWHERE)


def write_set(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name into `folder`, which is made if need be; each appears whole.

    All are written under another name first: nothing appears where one of them cannot be written.
    """
    with fresh_folder(folder, folder) as fresh:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        for name in files:
            os.replace(fresh / name, folder / name)


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """A record of how files were made, as JSON."""
    return (json.dumps(record, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()


def default_name(path: Path) -> str:
    """The file's name without its last suffix; of a folder or a member of an archive, its own."""
    if str(path) == "-":
        return "stdin"
    if is_remote(path):
        return short_name(path)
    _, _, member = str(path).partition("::")
    resolved = Path(member if member and not path.exists() else path).resolve()
    return (resolved.name if resolved.is_dir() else resolved.stem) or "analysis"


def result_name(path: Path) -> str:
    """The name of a saved analysis by its folder, else that of the checkpoint."""
    folder = saved_folder(path)
    if folder is None:
        return default_name(path)
    return folder.resolve().name.removesuffix(".embgeo") or "analysis"


def comparison_folder(paths: Sequence[Path], track: bool) -> Path:
    """``baseline-vs-other.embgeo`` here; a track is named by its first and last checkpoint."""
    names = [result_name(path)[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")
