"""What names of files, and offsets in them, say of pieces of a model."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.guard import Damaged, refuse
from embgeo.io.bounded.maps import map_file
from embgeo.io.bounded.small_files import read_head
from embgeo.io.mapped import safetensors

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
#: Further words before the number of a slice, in names of checkpoints.
_LIKELY = re.compile(
    r"(?:^|[-_.])(?:tp|mp|rank|shard|slice|partition|part)[-_]?(\d+)(?:[-_]of[-_](\d+))?(?=[-_.])"
)
OF_CHECKPOINTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
_SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\.(?:gguf|safetensors|bin))$")
#: The file in each of the folders of Megatron.
_MEGATRON = "model_optim_rng.pt"
_LISTED = 3
#: More files are not pieces of one model.
_MOST_FILES = 1024


@dataclass(frozen=True, slots=True)
class FilePiece:
    """What a file name says: the names of its siblings as a pattern, its number, and how many."""

    pattern: str
    number: int
    total: int | None = None
    is_slice: bool = True
    #: Whether the name is that of a scheme, and not only like one.
    is_sure: bool = True
    #: Whether the folders of the files are numbered, and not the files.
    of_folder: bool = False


def read_name(name: str) -> FilePiece | None:
    """Return what the name of a file says of it as a piece; None for other names."""
    split = _SPLIT.match(name)
    found = next((match for scheme in _SLICES if (match := re.search(scheme, name))), None)
    is_sure = found is not None
    if found is None and split is None and name.endswith(OF_CHECKPOINTS):
        found = _LIKELY.search(name)
    if found is not None:
        start, stop = found.span(1)
        digits = r"\d+" if stop - start < 2 else rf"\d{{{stop - start}}}"
        pattern = rf"{re.escape(name[:start])}({digits}){re.escape(name[stop:])}"
        total = found[2] if found.lastindex == 2 else None
        return FilePiece(
            pattern, int(found[1]), None if total is None else int(total), is_sure=is_sure
        )
    if split is None or int(split[3]) < 2:
        return None
    pattern = rf"{re.escape(split[1])}-(\d{{5}})-of-{split[3]}{re.escape(split[4])}"
    return FilePiece(pattern, int(split[2]), int(split[3]), is_slice=False)


def read_piece(path: Path) -> FilePiece | None:
    """Return what the name of a file says of it as a piece, else that of its folder."""
    if (piece := read_name(path.name)) is not None or path.suffix not in OF_CHECKPOINTS:
        return piece
    piece = read_name(f"{path.parent.name}{path.suffix}")  # Megatron's ``mp_rank_00``
    if piece is None or not piece.is_slice:
        return None
    pattern = piece.pattern.removesuffix(re.escape(path.suffix))
    is_sure = piece.is_sure and not path.parent.name.startswith("rank")  # of LoRA, perhaps
    return replace(piece, pattern=pattern, is_sure=is_sure, of_folder=True)


def find_siblings(path: Path, piece: FilePiece) -> list[Path]:
    """Find the files of all pieces in the order of their numbers, with the named one."""
    named = path.parent if piece.of_folder else path
    numbered = {
        int(found[1]): entry / path.name if piece.of_folder else entry
        for entry in named.parent.iterdir()
        if (found := re.fullmatch(piece.pattern, entry.name))
    }
    return [numbered[number] for number in sorted(numbered) if numbered[number].is_file()]


def is_range(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


def are_consecutive(files: Sequence[Path]) -> bool:
    """Tell whether files are numbered 0, 1, … or 1, 2, …, and are several."""
    pieces = [piece for file in files if (piece := read_piece(file)) is not None]
    numbers = [piece.number for piece in pieces]
    return len(numbers) > 1 and numbers[0] < 2 and is_range(numbers)


def with_offsets(path: Path) -> list[Path]:
    """List the safetensors files of a folder that state offsets of pieces, if `path` is one."""
    offsets = read_offsets(path) if path.suffix == ".safetensors" else {}
    if not offsets:
        return []
    others = sorted(path.parent.glob("*.safetensors"))[:_MOST_FILES]
    files = [file for file in others if file == path or read_offsets(file)]
    if len(files) > 1:
        return files
    if any(any(first) for first in offsets.values()):
        cause = f"holds one piece of each matrix ({_SHARDING}), and the others are missing"
        raise refuse(path, cause, "put all pieces of the model into one folder")
    return []


def refuse_zero(path: Path) -> None:
    """Refuse the pieces of ZeRO stage 3, which cuts matrices anywhere."""
    if re.match(r"zero_pp_rank_\d+_mp_rank_\d+_model_states", path.name):
        folder = path.parent
        way_out = f"python {folder.parent}/zero_to_fp32.py {folder.parent} {folder.parent}/whole"
        raise refuse(path, "is one of the pieces that DeepSpeed's ZeRO stage 3 writes", way_out)


def find_in_folders(folder: Path, names: Sequence[str]) -> list[Path]:
    """Find the files of slices that lie in a folder each: Megatron's ``mp_rank_00`` …."""
    slices = [folder / name for name in sorted(names) if re.match(r"mp_rank_\d{2,}", name)]
    return [file for one in slices if (file := one / _MEGATRON).is_file()]


def group_pieces(files: Sequence[Path]) -> list[list[Path]]:
    """Group `files` if they are the pieces of one model; no groups otherwise.

    A group are the slices of one file: GPT-NeoX writes one for each layer, vLLM several parts.
    """
    layers = [file for file in files if file.name.startswith("layer_")]
    kept = [file for file in files if not file.name.startswith("mp_rank_")] if layers else files
    if all(file.suffix == ".safetensors" and read_offsets(file) for file in kept):
        return [list(kept)] if len(kept) > 1 else []
    groups: dict[str, list[Path]] = {}
    for file in kept:
        piece = read_piece(file)
        if piece is None:
            return []
        groups.setdefault(piece.pattern, []).append(file)
        if not piece.is_sure and not are_consecutive(find_siblings(file, piece)):
            return []
    if len(files) < 2 or len({len(group) for group in groups.values()}) != 1:
        return []
    return [find_siblings(group[0], read_piece(group[0])) for group in groups.values()]  # type: ignore[arg-type]


def read_offsets(file: Path) -> dict[str, tuple[int, ...]]:
    """Read the offsets of the pieces of a safetensors file of torch.distributed.checkpoint."""
    head = read_head(file)
    if not safetensors.sniff(head):
        return {}
    length = int.from_bytes(head[: safetensors.LENGTH_BYTES], "little")
    try:
        data = map_file(file)
        if _SHARDING.encode() not in data[: min(length, safetensors.LONGEST_HEADER)].tobytes():
            return {}  # most files; headers of large models take seconds to parse
        metadata: Any = safetensors.read_header(data, file)[1].get(safetensors.METADATA)
        stated = json.loads(metadata[_SHARDING])
        return {name: tuple(map(int, one["saved_offsets"])) for name, one in stated.items()}
    except (Damaged, UnreadableFile, LookupError, TypeError, ValueError, AttributeError):
        return {}
