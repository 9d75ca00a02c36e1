"""``embgeo.repair``: a copy of a model in which suspects have new rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arguments import as_path, refuse_if, refuse_name
from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError, UnreadableFile, WayOut, argument, looking_at
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options, known_arguments
from embgeo.core.progress import Progress
from embgeo.core.settings import Natural, parse_value
from embgeo.core.source import Source
from embgeo.core.suspects import SERIOUS, Reason, Side, Suspects
from embgeo.core.version import VERSION
from embgeo.files.guard import refuse, short
from embgeo.files.links import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.files.saved import copy_file
from embgeo.io.load import open_checkpoint, read_matrix
from embgeo.io.model.checkpoint import Checkpoint
from embgeo.io.places.names import is_remote
from embgeo.measure.analyze import analyze
from embgeo.result.analysis import Analysis
from embgeo.row_repair.methods import METHODS, Method, make_rows, measure_living
from embgeo.row_repair.places import (
    Edit,
    Hashes,
    TensorPlace,
    choose_rows,
    find_places,
    write_edited,
)
from embgeo.row_repair.record import FORMAT, RepairedSide, RepairRecord, ReplacedRow, RewrittenFile
from embgeo.workflows.fetch import find_files
from embgeo.workflows.folders import (
    ELSEWHERE,
    find_nearest,
    is_occupied,
    refuse_place,
    write_whole,
)

#: Environment variables that name folders of the Hugging Face cache.
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
#: Edits by file.
Edits = dict[Path, list[Edit]]
#: Suffixes of files that may hold the same matrix in a format that is not rewritten.
_OTHER_WEIGHTS = {".bin", ".gguf", ".h5", ".msgpack", ".onnx", ".pt", ".pth", ".safetensors"}


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair.

    Attributes
    ----------
    record : RepairRecord or None
        Rows before and after; None if no row needs repair.
    folder : Path or None
        The new model; None if nothing was written.
    left : tuple of Suspects or None
        The serious suspects of the new model; None if nothing was written.
    notes : tuple of str
    """

    record: RepairRecord | None
    folder: Path | None = None
    left: tuple[Suspects, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Target:
    """A matrix to repair, where it is stored, its rows to replace and those that live."""

    side: Side
    matrix: Matrix
    places: list[TensorPlace]
    rows: dict[int, Reason | None]
    living: IntArray


@known_arguments
def repair(
    model: Path | str,
    out: Path | str | None = None,
    *,
    only: str | Sequence[str] = (),
    rows: Any = None,
    method: str = "draw",
    copy: str | None = None,
    seed: int = 0,
    dry_run: bool = False,
    tensor: str | None = None,
    output: str | None = None,
    max_download: str | None = None,
    min_norm: float | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Give serious suspects of a model new rows, in a copy.

    Input embedding and output matrix are repaired together.

    Parameters
    ----------
    model : Path or str
        A model folder with safetensors files, one such file, or a remote name. Of a remote model
        the reduced model folder is repaired.
    out : Path or str, optional
        Folder of the copy, which must not exist. Files without the matrices are linked into it.
    only : str or sequence of str
        Reasons, as in ``"zero,mean"``; all serious ones by default.
    rows : Path or sequence of int, optional
        In place of suspects: a file with a row number or a token on each line, or row numbers.
    method : {"draw", "mean", "copy"}
        ``"draw"``: from the mean and the covariance of the rows that live; ``"mean"``: along their
        mean with their median norm and some noise; ``"copy"``: a token's row with some noise.
    copy : str, optional
        The token that is copied, which implies the method.
    seed : int
        Of the random numbers.
    dry_run : bool
        Whether to write nothing.
    tensor, output : str, optional
        Names of the matrix to repair, and of the output matrix.
    max_download : str, optional
        The most bytes of a remote model to fetch, as in ``"2GB"``.
    min_norm : float, optional
        Rows of a smaller norm are damaged; by default the gap between the norms decides.
    progress : Progress, optional

    Returns
    -------
    Repair

    Raises
    ------
    BadOption
        If an argument has no meaning for this model, or `out` exists.
    UnreadableFile
        If the model cannot be read, or is not stored as safetensors.
    EmbgeoError
        If there is no room for the copy, or there are too few sound rows.

    Examples
    --------
    >>> import embgeo
    >>> embgeo.repair("fixtures/cosreg.safetensors", dry_run=True)  # no row needs repair
    Repair(record=None, folder=None, left=None, notes=())
    """
    given = as_path(model, "model")
    out = None if out is None else as_path(out, "out")
    cause = "is missing: a model is never changed in place"
    way_out = f"name a new folder, or look first with {argument('dry_run')}"
    refuse_if(out is None and not dry_run, argument("out"), cause, way_out)
    reasons, how = read_only(only), read_method(method, copy)
    seed = parse_value(seed, Natural, argument("seed"))
    place = find_files(Source(given, tensor=tensor, output=output, max_download=max_download))
    model = place.path
    if out is not None:
        check_target(out, model)
    source = Source(model, tensor=tensor, output=output, hash_file=False)
    options = Options(min_norm=min_norm)
    checkpoint, targets = open_targets(source, reasons, rows, options, progress)
    if not targets:
        return Repair(None)
    sides, edits = [], Edits()
    for target in targets:
        side, own = repair_side(target, how, copy, seed)
        sides.append(side)
        for file, some in own.items():
            edits.setdefault(file, []).extend(some)
    record = RepairRecord(place.given, how, copy, seed, VERSION, tuple(sides), ())
    notes = list_other_weights(model, checkpoint)
    if dry_run or out is None:
        return Repair(record, notes=notes)
    # Files of a cache are not linked: an edit of the copy would change them.
    places = [place for target in targets for place in target.places]
    record = write_repaired(model, places, out, record, edits, link=not is_remote(given))
    new = out / model.name if model.is_file() else out
    fresh = replace(source, path=new)
    _, left = find_targets_of(read_matrix(open_checkpoint(new), fresh), options, progress)
    return Repair(record, out, left, notes)


def read_only(only: str | Sequence[str]) -> tuple[Reason, ...]:
    """Read the reasons to repair, as in ``zero,mean``; all serious ones if there are none."""
    names = only.split(",") if isinstance(only, str) else only
    named = [name.strip().replace("-", "_") for name in names if name.strip()]
    for name in named:
        if name not in SERIOUS:
            raise refuse_name("reason", name, SERIOUS, argument("only"))
    return tuple(reason for reason in SERIOUS if not named or reason in named)


def read_method(method: str, copy: str | None) -> Method:
    for known in METHODS:
        if known == ("copy" if copy is not None and method == "draw" else method):
            cause = f"is about {argument('method', 'copy')}"
            refuse_if(copy is not None and known != "copy", argument("copy"), cause, "leave it out")
            cause, way_out = "names no token to copy", f"add {argument('copy', 'TOKEN')}"
            refuse_if(copy is None and known == "copy", argument("method"), cause, way_out)
            return known
    raise refuse_name("method", method, METHODS, argument("method"))


def find_targets_of(
    matrix: Matrix, options: Options, progress: Progress | None
) -> tuple[Analysis, tuple[Suspects, ...]]:
    """Measure what stands out, and return the serious suspects."""
    found = analyze(
        matrix, sections=("suspects",), options=options, reference=False, page=False,
        progress=progress,
    )  # fmt: skip
    serious = (own.take(own.serious) for own in found.suspects)
    return found, tuple(own for own in serious if len(own))


def open_targets(
    source: Source,
    reasons: Sequence[Reason],
    rows: Any,
    options: Options,
    progress: Progress | None,
) -> tuple[Checkpoint, list[_Target]]:
    """Find the matrices with rows to replace: the suspects of each, or the rows that are named."""
    model = Path(source.path)
    checkpoint = open_checkpoint(model)
    if model.is_file() and checkpoint.files != (model,):
        cause, way_out = "is one of several files of a model", f"name its folder {model.parent}"
        ways_out = [WayOut(str(model.parent))]
        raise UnreadableFile(cause, where=model, way_out=way_out, ways_out=ways_out)
    matrix = read_matrix(checkpoint, source)
    list_places(model, checkpoint, matrix)  # refuses other forms, whatever stands out
    chosen = None if rows is None else choose_rows(matrix, rows)
    found, serious = find_targets_of(matrix, options, progress)
    sides: list[tuple[Side, Matrix]] = [("input", matrix)]
    if matrix.output is not None:
        sides.append(("output", matrix.output))
    targets = []
    for side, own in sides:
        listed: dict[int, Reason | None] = {
            row: one.reason
            for one in serious
            if one.side == side and (chosen is not None or one.reason in reasons)
            for row in one.rows.tolist()
        }
        if chosen is not None:
            listed = {row: listed.get(row) for row in chosen.tolist()}
        if listed:
            odd = [one.rows for one in found.suspects if one.side == side and one.reason != "cone"]
            taken = np.concatenate([np.array([*listed]), *odd, *own.masked.values()])
            living = np.setdiff1d(np.arange(own.n), taken.astype(np.int64))
            places = list_places(model, checkpoint, own)
            targets.append(_Target(side, own, places, dict(sorted(listed.items())), living))
    return checkpoint, targets


def list_places(model: Path, checkpoint: Checkpoint, matrix: Matrix) -> list[TensorPlace]:
    chosen = next(t for t in checkpoint.tensors if t.name == matrix.origin.tensor)
    refuse_if(
        bool(chosen.form),
        str(model),
        f"{short(chosen.name)} is not stored as it is measured ({chosen.form}), and no new rows "
        "are written in this form",
        "repair the checkpoint that it was made of, and quantize or convert it again",
    )
    return find_places(checkpoint, chosen)


def repair_side(
    target: _Target, method: Method, copy: str | None, seed: int
) -> tuple[RepairedSide, Edits]:
    """Return what is replaced in one matrix, and where to write it."""
    matrix, place = target.matrix, target.places[0]
    rows = np.array([*target.rows], dtype=np.int64)
    named = None
    if copy is not None:
        at = [
            row for row in target.living.tolist() if (matrix.tokens or ())[row : row + 1] == (copy,)
        ]
        cause = f"there is no token {copy!r:.60} with a row that lives"
        refuse_if(not at, argument("copy"), cause, "write it as embgeo analyze shows it")
        named = matrix.take(np.array(at[:1]))[0]
    living = measure_living(replace(matrix, output=None), target.living)
    purpose = f"new rows of the {target.side}"
    stored = make_rows(living, len(rows), method, named, purpose, seed, matrix.data.dtype)
    before = np.linalg.norm(matrix.take(rows), axis=1)
    after = np.linalg.norm(stored.astype(np.float64), axis=1)
    side = RepairedSide(
        side=target.side,
        tensor=place.name,
        shape=place.shape,
        dtype=matrix.origin.dtype,
        sha256_before=place.hash_bytes(),
        sha256_after=place.hash_bytes(place.place_rows(rows, stored)),
        rows=tuple(
            ReplacedRow(
                row,
                None if matrix.tokens is None else matrix.tokens[row],
                reason,
                float(old) if np.isfinite(old) else None,
                float(new),
            )
            for (row, reason), old, new in zip(target.rows.items(), before, after, strict=True)
        ),
    )
    edits = Edits()
    for place in target.places:
        edits.setdefault(place.file, []).extend(place.place_rows(rows, stored))
    return side, edits


def list_other_weights(model: Path, checkpoint: Checkpoint) -> tuple[str, ...]:
    """List notes on files that may hold the old rows in another format."""
    if model.is_file():
        return ()
    read = {path.name for path in checkpoint.files}
    return tuple(
        f"{name} is unchanged: if it holds the same matrix, its rows are the old ones"
        for name in list_model_files(model)
        if name.suffix in _OTHER_WEIGHTS and str(name) not in read
    )


def write_repaired(
    model: Path,
    places: Sequence[TensorPlace],
    out: Path,
    record: RepairRecord,
    edits: Edits,
    *,
    link: bool,
) -> RepairRecord:
    """Write the new model with its record, whole or not at all; return the complete record."""
    tensors: dict[str, tuple[str, ...]] = {place.file.name: () for place in places}
    for place in places:
        tensors[place.file.name] += (place.name,)

    def finish(folder: Path, hashes: Mapping[Path, Hashes]) -> None:
        files = (RewrittenFile(str(n), tensors[n.name], *both) for n, both in hashes.items())
        FORMAT.save(replace(record, files=tuple(files)), folder)

    write_copy(model, out, edits, finish, link=link)
    return FORMAT.load(out)


# --- the copy -----------------------------------------------------------------------------------


def check_target(out: Path, model: Path) -> None:
    """Refuse, before anything is computed, a folder that must not be written to."""
    refuse_place(out, ELSEWHERE)
    with looking_at(out, ELSEWHERE):
        own, source = out.resolve(), model.resolve()
    cause = ""
    if source == own or source in own.parents:
        cause = "is the model itself, which is never changed in place"
    elif _is_in_cache(own):
        cause = "lies in the Hugging Face cache, whose files are those of the Hub"
    elif is_occupied(out):
        cause = "exists and is not empty"
    refuse_if(bool(cause), str(out), cause, ELSEWHERE)


def _is_in_cache(folder: Path) -> bool:
    named = [Path(value) for name in _CACHES if (value := os.environ.get(name))]
    caches = [*(path.resolve() for path in named), Path.home() / ".cache" / "huggingface"]
    parts = (folder, *folder.parents)
    return any(cache in parts for cache in caches) or any(
        part.name.startswith("models--") for part in parts
    )


def list_model_files(model: Path) -> list[Path]:
    """List the relative paths of the files of a model, without hidden ones."""
    if model.is_file():
        return [Path(model.name)]
    found = []
    for home, folders, names in os.walk(model):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(home) / name for name in names if not name.startswith(".")]
    files = sorted(path for path in found if path.is_file())
    for path in files:
        if is_foreign_link(path):
            raise refuse(path, FOREIGN_LINK, COPY_IT)
    return [path.relative_to(model) for path in files]


def write_copy(
    model: Path,
    out: Path,
    edits: Mapping[Path, Sequence[Edit]],
    finish: Callable[[Path, Mapping[Path, Hashes]], object],
    *,
    link: bool = True,
) -> None:
    """Make `out`, whole or not at all, from a model's folder or file.

    Files without `edits` are hard links if `link` is true and the file system allows it, else
    copies. ``finish(folder, hashes)`` adds further files, given the hashes of the edited ones.
    """
    root = model if model.is_dir() else model.parent
    files = list_model_files(model)

    written = {name for name in files if not link or root / name in edits}
    check_space(root, files, written, find_nearest(out.absolute().parent))

    def fill(fresh: Path) -> None:
        hashes = {}
        for name in files:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            if root / name in edits:
                hashes[name] = write_edited(root / name, fresh / name, edits[root / name])
            else:
                copy_file(root / name, fresh / name, link=link)
        finish(fresh, hashes)

    write_whole(out, fill)


def check_space(root: Path, files: Sequence[Path], written: Set[Path], home: Path) -> None:
    """Raise EmbgeoError if the disk has no room for the files that are written or copied."""
    device = home.stat().st_dev
    status = {name: (root / name).stat() for name in files}
    copied = [n for n in files if n in written or status[n].st_dev != device]
    needed = sum(status[name].st_size for name in copied)
    free = shutil.disk_usage(home).free
    if needed > free:
        raise EmbgeoError(
            f"needs {format_room(needed)}, and {format_room(free)} are free",
            where=home,
            way_out="free some space, or choose a folder on the file system of the model with "
            f"{argument('out')}, where files are linked",
        )


def format_room(size: int) -> str:
    """Format a size, less than a gigabyte in megabytes.

    >>> format_room(10**9), format_room(10**9 - 10**6)
    ('1.0 GB', '999.000 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.3f} MB"
