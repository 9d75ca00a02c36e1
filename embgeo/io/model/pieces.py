"""Models in several files without an index: split GGUF files and tensor-parallel slices.

Slices are joined where the axis is proved: by the offsets that a file states, or by the sizes of
the configuration. Otherwise they are refused by name.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile
from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import Damaged, MissingPiece, refuse, short
from embgeo.io.bounded.maps import map_file
from embgeo.io.bounded.small_files import read_head
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.parts import Box, is_grid, put_together
from embgeo.io.mapped import safetensors
from embgeo.io.model.candidates import has_vocabulary
from embgeo.io.model.facts import ModelFacts

JOIN = "join the slices with the conversion script of the model and name the result"
#: torch.distributed.checkpoint in the Hub's format: JSON of offsets by tensor.
_SHARDING = "DCP_SHARDING_INFO"
#: Names of tensor-parallel slices: the number of the slice, and perhaps of all.
_SLICES = (
    r"^consolidated\.(\d{2,})",  # Llama
    r"^mp_rank_(\d{2,})",  # DeepSpeed, Megatron
    r"^model(\d+)-mp(\d+)\.",  # DeepSeek's convert.py
    r"^model-rank-(\d+)-part-\d+",  # vLLM
    r"(?:^|[-_.])tp[-_]rank[-_](\d+)(?:-of-(\d+))?",  # nanotron
    r"^layer_\d+-model_(\d+)-model_states",  # GPT-NeoX
    r"^rank[-_.]?(\d+)\.",  # TensorRT-LLM
    r"^shard-(\d+)-model-",  # torch.distributed.checkpoint in the Hub's format
)
_SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\.(?:gguf|safetensors|bin))$")
_LISTED = 3

OpenFile = Callable[[Path], Checkpoint]


@dataclass(frozen=True, slots=True)
class FilePiece:
    """What a file name says: the names of its siblings as a pattern, its number, and how many."""

    pattern: str
    number: int
    total: int | None = None
    is_slice: bool = True


def read_name(name: str) -> FilePiece | None:
    """What the name of a file says of it as a piece; None for other names."""
    for scheme in _SLICES:
        found = re.search(scheme, name)
        if found is not None:
            start, stop = found.span(1)
            pattern = rf"{re.escape(name[:start])}(\d{{{stop - start}}}){re.escape(name[stop:])}"
            if stop - start < 2:
                pattern = rf"{re.escape(name[:start])}(\d+){re.escape(name[stop:])}"
            total = found[2] if found.lastindex == 2 else None
            return FilePiece(pattern, int(found[1]), None if total is None else int(total))
    found = _SPLIT.match(name)
    if found is None or int(found[3]) < 2:
        return None
    pattern = rf"{re.escape(found[1])}-(\d{{5}})-of-{found[3]}{re.escape(found[4])}"
    return FilePiece(pattern, int(found[2]), int(found[3]), is_slice=False)


def find_siblings(path: Path, piece: FilePiece) -> list[Path]:
    """The files of all pieces in the order of their numbers, with the named one."""
    numbered = {
        int(found[1]): file
        for file in path.parent.iterdir()
        if (found := re.fullmatch(piece.pattern, file.name)) and file.is_file()
    }
    return [numbered[number] for number in sorted(numbered)]


def open_pieces(path: Path, facts: ModelFacts, open_file: OpenFile) -> Checkpoint | None:
    """The model that a named file is a piece of; None if it is whole."""
    _refuse_folder_of_slices(path)
    piece = read_name(path.name)
    if piece is None or not path.is_file():
        return None
    if not piece.is_slice and path.suffix != ".gguf":
        return None  # a shard of whole tensors that the user names is read alone
    files = find_siblings(path, piece)
    if len(files) == 1 and piece.number == 0 and (piece.total or 1) == 1:
        return None  # rank 0 of a model without tensor parallelism
    return join_files(files, facts, open_file)


def _refuse_folder_of_slices(path: Path) -> None:
    """Refuse a file in Megatron's ``mp_rank_01``; rank 0 may be whole."""
    found = re.match(r"mp_rank_(\d{2,})", path.parent.name)
    if found is None:
        return
    second = path.parent.with_name(path.parent.name.replace(found[1], f"{1:0{len(found[1])}}", 1))
    if int(found[1]) > 0 or second.exists():
        raise refuse(path, "holds one tensor-parallel slice of each matrix", JOIN)


def refuse_folders_of_slices(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder of Megatron's ``mp_rank_00``, ``mp_rank_01`` …"""
    slices = sorted(name for name in names if re.match(r"mp_rank_\d{2,}", name))
    if len(slices) > 1:
        cause = f"holds one tensor-parallel slice of each matrix in each of {', '.join(slices[:4])}"
        raise refuse(folder, cause, JOIN)


def group_pieces(files: Sequence[Path]) -> list[Path]:
    """All of `files` if they are the pieces of one model; else none."""
    pieces = [read_name(file.name) for file in files]
    patterns = {piece.pattern for piece in pieces if piece is not None}
    if len(files) < 2 or None in pieces or len(patterns) != 1:
        return []
    return find_siblings(files[0], pieces[0])  # type: ignore[arg-type]


def join_files(files: Sequence[Path], facts: ModelFacts, open_file: OpenFile) -> Checkpoint:
    """Join the pieces of a model, whose files are in their order."""
    piece = read_name(files[0].name)
    assert piece is not None
    _check_complete(files, piece)
    opened = [open_file(file) for file in files]
    whole = replace(opened[0], files=tuple(file for one in opened for file in one.files))
    if facts == ModelFacts():
        facts = opened[0].facts
    if not piece.is_slice:
        return replace(
            whole,
            tensors=_gather(opened, files),
            facts=facts,
            unread=tuple(pair for one in opened for pair in one.unread),
            notes=(*whole.notes, f"joined from {len(files)} files: {_listed(files)}"),
        )
    boxes = [_read_offsets(file) for file in files]
    kept: list[Tensor] = []
    # The embedding first: its sizes prove the axis of the output, which may be another one.
    for tensor in sorted(_every(opened), key=lambda t: names.input_rank(t.name) is None):
        pieces = [one for c in opened for one in c.tensors if one.name == tensor.name]
        offsets = [box[tensor.name] for box in boxes if tensor.name in box]
        joined = _join(tensor, pieces, offsets, len(files), facts)
        if joined is None:
            continue
        kept.append(joined)
        if joined.form and len(joined.shape) == 2 and names.input_rank(joined.name) is not None:
            n, d = joined.shape
            facts = replace(facts, vocabulary=facts.vocabulary or n, columns=facts.columns or d)
    if not any(t.form for t in kept):
        cause = f"holds one tensor-parallel slice of each matrix ({len(files)}: {_listed(files)})"
        raise refuse(files[0], cause, JOIN)
    note = f"joined from {len(files)} tensor-parallel slices: {_listed(files)}"
    return replace(whole, tensors=tuple(kept), facts=facts, notes=(*whole.notes, note))


def _listed(files: Sequence[Path]) -> str:
    more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
    return ", ".join(short(file.name) for file in files[:_LISTED]) + more


def _check_complete(files: Sequence[Path], piece: FilePiece) -> None:
    pieces = [read_name(file.name) for file in files]
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
    """The first tensor of each name."""
    found: dict[str, Tensor] = {}
    for checkpoint in opened:
        for tensor in checkpoint.tensors:
            found.setdefault(tensor.name, tensor)
    return list(found.values())


def _gather(opened: Sequence[Checkpoint], files: Sequence[Path]) -> tuple[Tensor, ...]:
    """The whole tensors of all files; no name may be in two of them."""
    tensors = _every(opened)
    if len(tensors) != sum(len(checkpoint.tensors) for checkpoint in opened):
        raise refuse(files[0], "and its siblings hold tensors of the same names", "name one file")
    return tuple(tensors)


def _read_offsets(file: Path) -> dict[str, tuple[int, ...]]:
    """Offsets of the pieces of a safetensors file of torch.distributed.checkpoint."""
    if not safetensors.sniff(read_head(file)):
        return {}
    try:
        metadata: Any = safetensors.read_header(map_file(file), file)[1].get(safetensors.METADATA)
        stated = json.loads(metadata[_SHARDING])
        return {name: tuple(map(int, one["saved_offsets"])) for name, one in stated.items()}
    except (Damaged, UnreadableFile, LookupError, TypeError, ValueError, AttributeError):
        return {}


def _join(
    tensor: Tensor,
    pieces: Sequence[Tensor],
    offsets: Sequence[tuple[int, ...]],
    total: int,
    facts: ModelFacts,
) -> Tensor | None:
    """The whole tensor; one with a problem if the axis is not proved; None if nothing needs it."""
    if len(offsets) == len(pieces):
        stated = list(zip(offsets, (one.shape for one in pieces), strict=True))
        return _put(tensor, pieces, stated) or _unproved(tensor, len(pieces))
    if len(tensor.shape) != 2:
        return tensor  # norms are the same in each slice
    ranks = (names.input_rank(tensor.name), names.output_rank(tensor.name))
    is_outer = names.layer_of(tensor.name) is None or ranks[0] is not None
    if tensor.name != "data" and (ranks == (None, None) or not is_outer):
        return None
    if len(pieces) != total or len({one.shape[1] for one in pieces}) != 1:
        return _unproved(tensor, total)
    if has_vocabulary(tensor, facts) and facts.columns == tensor.shape[1]:
        return replace(tensor, form="the same in each slice", parts=(tensor.name,))
    rows, columns = sum(one.shape[0] for one in pieces), sum(one.shape[1] for one in pieces)
    by_rows = replace(tensor, shape=(rows, tensor.shape[1]))
    fits_rows = has_vocabulary(by_rows, facts) and facts.columns in (None, tensor.shape[1])
    fits_columns = facts.columns == columns and facts.vocabulary in (None, tensor.shape[0])
    if fits_rows == fits_columns:
        return _unproved(tensor, total)
    axis, boxes, at = (0 if fits_rows else 1), [], 0
    for one in pieces:
        boxes.append(((at, 0) if axis == 0 else (0, at), one.shape))
        at += one.shape[axis]
    return _put(tensor, pieces, boxes) or _unproved(tensor, total)


def _put(tensor: Tensor, pieces: Sequence[Tensor], boxes: Sequence[Box]) -> Tensor | None:
    axes = range(len(tensor.shape))
    if any(len(first) != len(part) or len(part) != len(axes) for first, part in boxes):
        return None
    shape = tuple(max(first[axis] + part[axis] for first, part in boxes) for axis in axes)
    if not is_grid(boxes, shape) or len({one.dtype for one in pieces}) != 1:
        return None
    parts = [(box, one.open) for box, one in zip(boxes, pieces, strict=True)]
    opened = partial(put_together, parts, shape, tensor.dtype)
    form = f"joined from {len(pieces)} slices"
    return replace(tensor, shape=shape, open=opened, form=form, alias_of="", ranges=None)


def _unproved(tensor: Tensor, total: int) -> Tensor:
    problem = f"is in {total} tensor-parallel slices, and nothing proves how they are joined"
    return replace(tensor, problem=problem, way_out=JOIN)
