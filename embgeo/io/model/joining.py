"""Join the pieces of models in several files: split GGUF files and tensor-parallel slices.

Slices are joined where the axis is proved: by the offsets that a file states, or by the sizes of
the configuration. Otherwise they are refused by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import MissingPiece, reading, refuse, short
from embgeo.io.bounded.small_files import read_head
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.format import Box, is_grid, join_grid
from embgeo.io.mapped import gguf
from embgeo.io.model.candidates import count_slices, has_vocabulary
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.pieces import (
    JOIN,
    OF_CHECKPOINTS,
    FilePiece,
    are_consecutive,
    find_siblings,
    is_range,
    read_offsets,
    read_piece,
    refuse_zero,
    with_offsets,
)

_NAME_ONE = "move one of them to a folder of its own and name it there"
_NAME_ALONE = "or, if they are not slices, move the file to a folder of its own"
#: Norms over the width of the model, not over that of a head.
_NORM = re.compile(r"^(?!.*[qk]_(?:layer)?norm).*(?:norm|(?:^|[._])ln_)")
_LISTED = 3
_COMPARED_ROWS, _COMPARED_NORMS = 64, 4
_MOST_SLICES, _LONGEST_NAME = 64, 200

OpenFile = Callable[[Path], Checkpoint]


def open_pieces(path: Path, facts: ModelFacts, open_file: OpenFile) -> Checkpoint | None:
    """Open the model that a named file is a piece of; None if it is whole, or cannot be joined."""
    refuse_zero(path)
    if not path.is_file():
        return None
    piece = read_piece(path)
    if piece is None:
        files = with_offsets(path)
        if files:
            return join_files(files, facts, open_file)
        return _open_numbered(path, facts, open_file)
    files = find_siblings(path, piece)
    if piece.of_folder and not piece.is_sure:  # a run or a rank of LoRA, perhaps
        return _open_alike(path, files, facts, open_file) if are_consecutive(files) else None
    if not piece.is_sure and not are_consecutive(files):
        return None  # steps of a run, for instance
    if len(files) == 1 and piece.number == 0 and (piece.total or 1) == 1:
        return None  # rank 0 of a model without tensor parallelism
    if not piece.is_slice and path.suffix != ".gguf" and len(files) != piece.total:
        # A shard of whole tensors is read alone; another one may hold the embedding.
        alone = open_file(path)
        note = f"{short(path.name)} is one of {piece.total} shards, and others are missing"
        of_many = replace(_known(facts, alone.facts), pieces=piece.total or 1)
        return replace(alone, facts=of_many, notes=(*alone.notes, note))
    return join_files(files, facts, open_file)


def _open_numbered(path: Path, facts: ModelFacts, open_file: OpenFile) -> Checkpoint | None:
    """Open the model of slices whose names differ in one number.

    None if nothing says that they are.
    """
    if not path.name.endswith(OF_CHECKPOINTS):
        return None
    for found in re.finditer(r"\d+", path.name[:_LONGEST_NAME]):
        start, stop = found.span()
        pattern = rf"{re.escape(path.name[:start])}(\d+){re.escape(path.name[stop:])}"
        piece = FilePiece(pattern, int(found[0]), is_sure=False)
        files = find_siblings(path, piece)
        numbers = [int(re.fullmatch(pattern, file.name)[1]) for file in files]  # type: ignore[index]
        if not 1 < len(files) <= _MOST_SLICES or numbers[0] > 1 or not is_range(numbers):
            continue
        if (found_alike := _open_alike(path, files, facts, open_file)) is not None:
            return found_alike
    return None


def _open_alike(
    path: Path, files: list[Path], facts: ModelFacts, open_file: OpenFile
) -> Checkpoint | None:
    """Open files of tensors of the same names: as slices, if their numbers say so, else alone."""
    opened = [open_file(file) for file in files]
    if len({frozenset(t.name for t in one.tensors) for one in opened}) != 1:
        return None
    inputs = [t for t in opened[0].tensors if names.input_rank(t.name) is not None]
    if any(count_slices(t, opened[0].tensors, facts) == len(files) for t in inputs) or any(
        _are_slices(opened, t) for t in inputs
    ):
        return join_files(files, facts, open_file)
    if not inputs:
        return None
    alone = opened[files.index(path)]
    beside = next(file for file in files if file != path)
    shown = beside.name if beside.parent == path.parent else f"{beside.parent.name}/{beside.name}"
    note = f"{short(shown)} beside it holds tensors of the same names and is not read"
    return replace(alone, notes=(*alone.notes, note), facts=_known(facts, alone.facts))


def _known(facts: ModelFacts, own: ModelFacts) -> ModelFacts:
    """Return what the configuration beside a file says, else what the file itself says."""
    return own if facts == ModelFacts() else facts


def _are_slices(opened: Sequence[Checkpoint], embedding: Tensor) -> bool:
    """Tell whether norms are equal in all files, and no row of the embedding is.

    Steps share rows.
    """
    if len(embedding.shape) != 2 or names.input_rank(embedding.name) is None:
        return False
    by = [{t.name: t for t in one.tensors} for one in opened]
    norms = [t for t in opened[0].tensors if len(t.shape) == 1 and t.shape[0] > 1]
    first = [np.asarray(t.open()) for t in norms[:_COMPARED_NORMS]]
    distinct = [(t, a) for t, a in zip(norms, first, strict=False) if len(np.unique(a)) > 1]
    if not distinct or any(t.name not in one for one in by for t in (embedding, *norms)):
        return False
    rows = np.asarray(embedding.open()[:_COMPARED_ROWS])
    for others in by[1:]:
        if any(np.asarray(others[t.name].open()).tobytes() != a.tobytes() for t, a in distinct):
            return False
        beside = np.asarray(others[embedding.name].open()[:_COMPARED_ROWS])
        if rows.shape != beside.shape or bool((rows == beside).all(axis=1).any()):
            return False
    return True


def join_groups(
    groups: Sequence[Sequence[Path]], facts: ModelFacts, open_file: OpenFile
) -> Checkpoint:
    """Join the pieces of each group; layers of one name in several groups are left out."""
    joined = []
    for files in groups:
        whole = len(files) == 1
        joined.append(
            open_file(files[0])
            if whole
            else join_files(files, facts, open_file, is_required=len(groups) == 1)
        )
    if len(joined) == 1:
        return joined[0]
    tensors = [tensor for checkpoint in joined for tensor in checkpoint.tensors]
    counted = Counter(tensor.name for tensor in tensors)
    for tensor in tensors:
        if counted[tensor.name] > 1 and names.input_rank(tensor.name) is not None:
            raise refuse(groups[0][0], "and its siblings hold tensors of the same names", _NAME_ONE)
    notes = dict.fromkeys(note for checkpoint in joined for note in checkpoint.notes)
    return replace(
        joined[0],
        tensors=tuple(tensor for tensor in tensors if counted[tensor.name] == 1),
        files=tuple(file for checkpoint in joined for file in checkpoint.files),
        unread=tuple(pair for checkpoint in joined for pair in checkpoint.unread),
        notes=tuple(notes),
    )


def join_files(
    files: Sequence[Path], facts: ModelFacts, open_file: OpenFile, *, is_required: bool = True
) -> Checkpoint:
    """Join the pieces of a model, whose files are in their order.

    `is_required` says whether one of them has to be an embedding or output that can be joined.
    """
    piece = read_piece(files[0]) or FilePiece("", 0, len(files), is_sure=False)
    boxes = [read_offsets(file) for file in files]
    if piece.pattern:
        _check_complete(files, piece)
    opened = _open_all(files, open_file)
    whole = replace(opened[0], files=tuple(file for one in opened for file in one.files))
    facts = _known(facts, opened[0].facts)
    every = _every(opened)
    are_disjoint = len(every) == sum(len(one.tensors) for one in opened)
    if not piece.is_slice or (are_disjoint and not any(boxes)):
        if not are_disjoint:
            raise refuse(files[0], "and its siblings hold tensors of the same names", _NAME_ONE)
        return replace(
            whole,
            tensors=tuple(every),
            facts=replace(facts, pieces=1),
            unread=tuple(pair for one in opened for pair in one.unread),
            notes=(*whole.notes, f"joined from {len(files)} files: {_listed(files)}"),
        )
    # Codes are decoded in each slice, by the scales that lie there.
    opened = [read_parameters(replace(one, facts=facts)) for one in opened]
    every, kept, sizes = _every(opened), list[Tensor](), facts
    if facts.columns is None and (
        piece.is_sure or any(_are_slices(opened, t) for t in opened[0].tensors)
    ):
        sizes = replace(facts, columns=_find_columns(opened))
    # The embedding first: its sizes prove the axis of the output, which may be another one.
    for tensor in sorted(every, key=lambda t: names.input_rank(t.name) is None):
        pieces = [one for c in opened for one in c.tensors if one.name == tensor.name]
        offsets = [box[tensor.name] for box in boxes if tensor.name in box]
        joined = _join(tensor, pieces, offsets, len(files), sizes)
        if joined is None:
            continue
        kept.append(joined)
        if joined.form and len(joined.shape) == 2 and names.input_rank(joined.name) is not None:
            n, d = joined.shape
            sizes = replace(sizes, vocabulary=sizes.vocabulary or n, columns=sizes.columns or d)
    if is_required and not any(t.form for t in kept):
        cause = f"holds one tensor-parallel slice of each matrix ({len(files)}: {_listed(files)})"
        raise refuse(files[0], cause, JOIN if piece.is_sure else f"{JOIN}; {_NAME_ALONE}")
    note = f"joined from {len(files)} tensor-parallel slices: {_listed(files)}"
    return replace(whole, tensors=tuple(kept), facts=facts, notes=(*whole.notes, note))


def _find_columns(opened: Sequence[Checkpoint]) -> int | None:
    """Find the width of the model by its norms, which each slice holds whole; None if unsure."""
    tensors = opened[0].tensors
    norms = [t for t in tensors if len(t.shape) == 1 and _NORM.search(t.name.lower())]
    lengths = {t.shape[0] for t in norms}
    embedding = next((t for t in tensors if len(t.shape) == 2 and names.is_sought(t.name)), None)
    if embedding is None:
        return None
    widths = {embedding.shape[1], embedding.shape[1] * len(opened)} & lengths
    return widths.pop() if len(widths) == 1 else None


def _open_all(files: Sequence[Path], open_file: OpenFile) -> list[Checkpoint]:
    """Open the files; the first of a split GGUF may hold metadata alone."""
    opened: list[Checkpoint] = []
    first: Checkpoint | None = None
    for number, file in enumerate(files):
        if number == 0 and (first := _metadata_only(file)) is not None:
            continue
        opened.append(open_file(file))
    if first is None:
        return opened
    tensors, notes = opened[0].tensors, opened[0].notes
    return [replace(first, tensors=tensors, files=(*first.files, *opened[0].files), notes=notes),
            *opened[1:]]  # fmt: skip


def _metadata_only(file: Path) -> Checkpoint | None:
    """Return a GGUF file without tensors, as ``--no-tensor-first-split`` of llama.cpp writes it."""
    if file.suffix != ".gguf" or not gguf.sniff(read_head(file)):
        return None
    with reading(file, gguf.NAME):
        found = gguf.open_checkpoint(file)
    return None if found.tensors else found


def _listed(files: Sequence[Path]) -> str:
    more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
    is_below = len({file.name for file in files}) < len(files)
    shown = [f"{file.parent.name}/{file.name}" if is_below else file.name for file in files]
    return ", ".join(map(short, shown[:_LISTED])) + more


def _check_complete(files: Sequence[Path], piece: FilePiece) -> None:
    pieces = [read_piece(file) for file in files]
    numbers = [one.number for one in pieces if one is not None]
    first = 0 if piece.is_slice and numbers[0] == 0 else 1
    expected = list(range(first, first + (piece.total or len(numbers))))
    if numbers != expected:
        missing = next((number for number in expected if number not in numbers), expected[-1])
        raise MissingPiece(
            f"piece {missing} of {piece.total or 'several'} is missing",
            where=files[0],
            way_out="put all pieces of the model into one folder",
        )
    if piece.is_slice and len(files) == 1:
        raise refuse(files[0], "holds one tensor-parallel slice of each matrix", JOIN)


def _every(opened: Sequence[Checkpoint]) -> list[Tensor]:
    """Return the first tensor of each name."""
    found: dict[str, Tensor] = {}
    for checkpoint in opened:
        for tensor in checkpoint.tensors:
            found.setdefault(tensor.name, tensor)
    return list(found.values())


def _join(
    tensor: Tensor,
    pieces: Sequence[Tensor],
    offsets: Sequence[tuple[int, ...]],
    total: int,
    facts: ModelFacts,
) -> Tensor | None:
    """Return the whole tensor.

    One with a problem if the axis is not proved; None if nothing needs it.
    """
    unread = next((one for one in pieces if one.problem), None)
    if unread is not None:
        return unread
    if len(offsets) == len(pieces):
        stated = list(zip(offsets, (one.shape for one in pieces), strict=True))
        return _put(tensor, pieces, stated) or _unproved(tensor, len(pieces))
    if len(tensor.shape) != 2:
        return tensor  # norms are the same in each slice
    ranks = (names.input_rank(tensor.name), names.output_rank(tensor.name))
    is_outer = names.layer_of(tensor.name) is None or ranks[0] is not None
    if tensor.name != "data" and (ranks == (None, None) or not is_outer):
        return None
    if len(pieces) == 1 and has_vocabulary(tensor, facts) and facts.columns == tensor.shape[1]:
        return replace(tensor, form="whole in one of the pieces")  # parallel by layers
    if len(pieces) != total or len({one.shape[1] for one in pieces}) != 1:
        return _unproved(tensor, total)
    if has_vocabulary(tensor, facts) and facts.columns == tensor.shape[1]:
        return replace(tensor, form="the same in each slice")
    rows, columns = sum(one.shape[0] for one in pieces), sum(one.shape[1] for one in pieces)
    by_rows = replace(tensor, shape=(rows, tensor.shape[1]))
    fits_rows = has_vocabulary(by_rows, facts) and facts.columns in (None, tensor.shape[1])
    if facts.vocabulary is None and facts.columns == tensor.shape[1]:
        if _are_equal(pieces):
            return replace(tensor, form="the same in each slice")
        fits_rows = True
    fits_columns = facts.columns == columns and facts.vocabulary in (None, tensor.shape[0])
    if fits_rows == fits_columns:
        return _unproved(tensor, total)
    axis, boxes, at = (0 if fits_rows else 1), [], 0
    for one in pieces:
        boxes.append(((at, 0) if axis == 0 else (0, at), one.shape))
        at += one.shape[axis]
    return _put(tensor, pieces, boxes) or _unproved(tensor, total)


def _are_equal(pieces: Sequence[Tensor]) -> bool:
    """Tell whether all slices hold the same first rows, that is, the whole matrix each."""
    first = [np.asarray(one.open()[:_COMPARED_ROWS]) for one in pieces]
    return all(one.tobytes() == first[0].tobytes() for one in first[1:])


def _put(tensor: Tensor, pieces: Sequence[Tensor], boxes: Sequence[Box]) -> Tensor | None:
    axes = range(len(tensor.shape))
    if any(len(first) != len(part) or len(part) != len(axes) for first, part in boxes):
        return None
    shape = tuple(max(first[axis] + part[axis] for first, part in boxes) for axis in axes)
    if not is_grid(boxes, shape) or len({one.dtype for one in pieces}) != 1:
        return None
    parts = [(box, one.open) for box, one in zip(boxes, pieces, strict=True)]
    opened = partial(join_grid, parts, shape, tensor.dtype)
    form = f"joined from {len(pieces)} slices"
    form = f"{tensor.form}; {form}" if tensor.form else form
    return replace(tensor, shape=shape, open=opened, form=form, alias_of="", ranges=None)


def _unproved(tensor: Tensor, total: int) -> Tensor:
    problem = f"is in {total} tensor-parallel slices, and nothing proves how they are joined"
    return replace(tensor, problem=problem, way_out=JOIN)
