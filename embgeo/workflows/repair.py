"""``embgeo.repair``: a copy of a model whose damaged rows have new values."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embgeo.comparison.comparison import Comparison
from embgeo.core.arguments import as_path, refuse_if
from embgeo.core.errors import EmbgeoError, UnreadableFile, WayOut, argument, looking_at
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.core.version import VERSION
from embgeo.io.bounded.guard import refuse, short
from embgeo.io.bounded.small_files import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.loading import read_matrix
from embgeo.io.opening import open_checkpoint
from embgeo.io.remote.exporting import find_files
from embgeo.io.remote.names import is_remote
from embgeo.row_repair.methods import (
    RowSource,
    check_method,
    choose_method,
    list_replaced,
    make_rows,
)
from embgeo.row_repair.places import (
    DAMAGED,
    Edit,
    Hashes,
    TensorPlace,
    choose_rows,
    find_places,
    link_or_copy,
    survey,
    write_edited,
)
from embgeo.row_repair.record import FORMAT, RepairRecord, RewrittenFile
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
#: Default limit of the rows to replace.
MAX_ROWS = 256
#: The section that old and new model are compared by.
COMPARED = "tokens"
#: Suffixes of files that may hold the same matrix in a format that is not rewritten.
_OTHER_WEIGHTS = {".bin", ".gguf", ".h5", ".msgpack", ".onnx", ".pt", ".pth", ".safetensors"}


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair.

    Attributes
    ----------
    record : RepairRecord or None
        Rows before and after; None if no rows are damaged.
    folder : Path or None
        The new model; None if nothing was written.
    comparison : Comparison or None
        The new model compared with the old one.
    notes : tuple of str
    """

    record: RepairRecord | None
    folder: Path | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Target:
    """The matrix to repair, and each place where it is stored."""

    model: Path
    checkpoint: Checkpoint
    matrix: Matrix
    places: list[TensorPlace]


def repair(
    model: Path | str,
    out: Path | str | None = None,
    *,
    rows: Any = DAMAGED,
    method: str | None = None,
    max_rows: int = MAX_ROWS,
    dry_run: bool = False,
    diff: bool = True,
    tensor: str | None = None,
    output: str | None = None,
    max_download: str | None = None,
    min_norm: float | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Give damaged rows of a model new values, in a copy.

    Parameters
    ----------
    model : Path or str
        A model folder with safetensors files, one such file, or a remote name. Of a remote model
        the reduced model folder is repaired.
    out : Path or str, optional
        Folder of the copy, which must not exist. Files without the matrix are linked into it.
    rows : str, Path or sequence of int
        ``"damaged"``; ``"special"`` for the damaged rows of special tokens; a file with a row
        number or a token on each line; or row numbers.
    method : str, optional
        ``"output"``: direction of the output row; ``"subwords"``: mean of the pieces of the token's
        text; ``"mean"``: mean of the healthy rows. By default ``"output"`` for untied models, else
        ``"mean"``. New rows have the root mean square norm of the healthy ones.
    max_rows : int
        The most rows to replace.
    dry_run : bool
        Whether to write nothing.
    diff : bool
        Whether to compare the new model with the old one.
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
        If the method has no source for a row, there are too many rows, or `out` exists.
    UnreadableFile
        If the model cannot be read, or is not stored as safetensors.
    EmbgeoError
        If there is no room for the copy, or the comparison of the finished copy is interrupted.
    """
    given = as_path(model, "model")
    out = None if out is None else as_path(out, "out")
    cause = "is missing: a model is never changed in place"
    way_out = f"name a new folder, or look first with {argument('dry_run')}"
    refuse_if(out is None and not dry_run, argument("out"), cause, way_out)
    check_method(method)
    place = find_files(Source(given, tensor=tensor, output=output, max_download=max_download))
    model = place.path
    if out is not None:
        check_target(out, model)
    source = Source(model, tensor=tensor, output=output, hash_file=False)
    target = open_target(source)
    made = repair_rows(target, rows, method, max_rows, min_norm, progress)
    if made is None:
        return Repair(None)
    record, edits = replace(made[0], source=place.given), made[1]
    notes = list_other_weights(target)
    if dry_run or out is None:
        return Repair(record, notes=notes)
    # Files of a cache are not linked: an edit of the copy would change them.
    record = write_repaired(target, out, record, edits, link=not is_remote(given))
    try:
        compared = compare_models(model, out, source, min_norm, progress) if diff else None
    except KeyboardInterrupt as stopped:
        cause = "interrupted while both models were compared; the repaired model is complete"
        way_out = f"compare them with: embgeo diff {given} {out}"
        raise EmbgeoError(cause, where=out, way_out=way_out) from stopped
    return Repair(record, out, compared, notes)


def open_target(source: Source) -> _Target:
    model = Path(source.path)
    checkpoint = open_checkpoint(model)
    if model.is_file() and checkpoint.files != (model,):
        cause, way_out = "is one of several files of a model", f"name its folder {model.parent}"
        ways_out = [WayOut(str(model.parent))]
        raise UnreadableFile(cause, where=model, way_out=way_out, ways_out=ways_out)
    matrix = read_matrix(checkpoint, source)
    chosen = next(t for t in checkpoint.tensors if t.name == matrix.origin.tensor)
    refuse_if(
        bool(chosen.form),
        str(model),
        f"{short(chosen.name)} is not stored as it is measured ({chosen.form}), and no new rows "
        "are written in this form",
        "repair the checkpoint that it was made of, and quantize or convert it again",
    )
    return _Target(model, checkpoint, matrix, find_places(checkpoint, chosen))


def repair_rows(
    target: _Target,
    rows: Any,
    method: str | None,
    max_rows: int,
    min_norm: float | None,
    progress: Progress | None,
) -> tuple[RepairRecord, Edits] | None:
    """Get the record of new rows and where to write them; None if there is nothing to replace."""
    matrix, projection = target.matrix, target.matrix.output
    found = survey(matrix, min_norm, progress)
    chosen = choose_rows(found, rows)
    if not len(chosen):
        return None
    cause = f"{len(chosen):,} rows are to be replaced, more than {max_rows:,}"
    allow = argument("max_rows", str(len(chosen)))
    way_out = f"allow it with {allow}, or choose fewer with {argument('rows')}"
    refuse_if(len(chosen) > max_rows, str(target.model), cause, way_out)
    source = RowSource(
        found,
        None if projection is None else survey(projection, min_norm, progress),
        matrix.origin.tied,
        target.checkpoint.encoder,
        len(target.checkpoint.tokens or ()),
    )
    how, place = choose_method(method, source), target.places[0]
    stored = make_rows(source, chosen, how)
    record = RepairRecord(
        source=str(target.model),
        tensor=place.name,
        shape=place.shape,
        dtype=matrix.origin.dtype,
        sha256_before=place.hash_bytes(),
        sha256_after=place.hash_bytes(place.place_rows(chosen, stored)),
        method=how,
        norm=found.root_mean_square,
        version=VERSION,
        rows=list_replaced(found, chosen, stored),
        files=(),
    )
    edits: Edits = {}
    for place in target.places:
        edits.setdefault(place.file, []).extend(place.place_rows(chosen, stored))
    return record, edits


def list_other_weights(target: _Target) -> tuple[str, ...]:
    """List notes on files that may hold the old rows in another format."""
    if target.model.is_file():
        return ()
    read = {path.name for path in target.checkpoint.files}
    return tuple(
        f"{name} is unchanged: if it holds the same matrix, its rows are the old ones"
        for name in list_model_files(target.model)
        if name.suffix in _OTHER_WEIGHTS and str(name) not in read
    )


def write_repaired(
    target: _Target, out: Path, record: RepairRecord, edits: Edits, *, link: bool
) -> RepairRecord:
    """Write the new model with its record, whole or not at all; return the complete record."""
    tensors: dict[str, tuple[str, ...]] = {place.file.name: () for place in target.places}
    for place in target.places:
        tensors[place.file.name] += (place.name,)

    def finish(folder: Path, hashes: Mapping[Path, Hashes]) -> None:
        files = (RewrittenFile(str(n), tensors[n.name], *both) for n, both in hashes.items())
        FORMAT.save(replace(record, files=tuple(files)), folder)

    write_copy(target.model, out, edits, finish, link=link)
    return FORMAT.load(out)


def compare_models(
    model: Path, out: Path, source: Source, min_norm: float | None, progress: Progress | None
) -> Comparison:
    from embgeo.workflows.diff import diff

    new = out / model.name if model.is_file() else out
    named = {name: value for name, value in source.collect_changes().items() if name != "hash_file"}
    if min_norm is not None:
        named["min_norm"] = min_norm
    return diff(
        model,
        new,
        names=("old", "new"),
        sections=COMPARED,
        reference=False,
        queries=0,
        progress=progress,
        **named,
    )


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
            elif link:
                link_or_copy(root / name, fresh / name)
            else:
                shutil.copyfile(root / name, fresh / name)
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
    """Format a size: ``"7.5 GB"``, and less than one in MB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.3f} MB"
