"""``embgeo.repair``: a copy of a model whose damaged rows have new values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import as_path, refuse_if
from embgeo.core.errors import EmbgeoError, UnreadableFile, argument
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.core.version import VERSION
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.loading import read_matrix
from embgeo.io.opening import open_checkpoint
from embgeo.io.remote.names import is_remote
from embgeo.io.remote.places import find_place
from embgeo.row_repair.methods import RowSource, choose_method, list_replaced, make_rows
from embgeo.row_repair.places import Edit, TensorPlace, find_places
from embgeo.row_repair.record import FORMAT, RepairRecord, RewrittenFile
from embgeo.row_repair.rows import DAMAGED, choose_rows, survey
from embgeo.workflows.repaired_folder import (
    Hashes,
    check_target,
    list_model_files,
    write_copy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from embgeo.comparison.comparison import Comparison
    from embgeo.core.matrix import Matrix

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
        Rows before and after; None if no row is damaged.
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
    place = find_place(Source(given, tensor=tensor, output=output, max_download=max_download))
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
        way_out = f"compare them with: embgeo diff {given} {out} --sections {COMPARED}"
        raise EmbgeoError(cause, where=out, way_out=way_out) from stopped
    return Repair(record, out, compared, notes)


def open_target(source: Source) -> _Target:
    model = Path(source.path)
    checkpoint = open_checkpoint(model)
    if model.is_file() and checkpoint.files != (model,):
        way_out = f"name its folder {model.parent}"
        raise UnreadableFile("is the index of a model", where=model, way_out=way_out)
    matrix = read_matrix(checkpoint, source)
    chosen = next(t for t in checkpoint.tensors if t.name == matrix.origin.tensor)
    return _Target(model, checkpoint, matrix, find_places(checkpoint, chosen))


def repair_rows(
    target: _Target,
    rows: Any,
    method: str | None,
    max_rows: int,
    min_norm: float | None,
    progress: Progress | None,
) -> tuple[RepairRecord, Edits] | None:
    """The record of new rows and where to write them; None if there is nothing to replace."""
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
    """Notes on files that may hold the old rows in another format."""
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
