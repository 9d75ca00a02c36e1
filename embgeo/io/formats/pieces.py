"""Models in several files: shards of whole tensors are read together, slices are refused.

A slice holds a part of the rows or of the columns of each matrix. The name of its file says so by
the scheme of the program that wrote it, or its siblings do: files whose names differ in one number
and that hold tensors of the same names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.files.guard import MissingPiece, list_short, reading, refuse, short
from embgeo.files.small_files import HEAD_BYTES
from embgeo.io.formats import gguf, safetensors
from embgeo.io.formats.format import Beside, Folder
from embgeo.io.model import names
from embgeo.io.model.candidates import count_slices
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.facts import ModelFacts

OpenFile = Callable[[Beside], Checkpoint]


@dataclass(frozen=True, slots=True)
class Scheme:
    """Names of the slices that a program writes, and what joins them."""

    names: str
    way_out: str
    #: Whether a file is a slice even without siblings.
    is_alone: bool = False


#: `rank` is the number of the slice, `total` that of all; ``{folder}`` is the folder of the file.
SCHEMES = (
    Scheme(
        r"^model_world_size_(?P<total>\d+)_rank_(?P<rank>\d+)\.",
        "join the ranks with verl: python -m verl.model_merger merge --backend fsdp "
        "--local_dir {folder} --target_dir whole",
    ),
    Scheme(
        r"^(?:bf16_|fp16_)?zero_pp_rank_(?P<rank>\d+)_mp_rank_\d+_",
        "join the pieces of DeepSpeed's ZeRO: python {above}/zero_to_fp32.py {above} {above}/whole",
        is_alone=True,
    ),
    Scheme(
        r"^mp_rank_(?P<rank>\d{2,})(?=[_.]|$)",
        "join them with the program that wrote them, such as Megatron-LM's "
        "tools/checkpoint/convert.py --target-tensor-parallel-size 1",
    ),
    Scheme(
        r"^layer_\d+-model_(?P<rank>\d+)-model_states",
        "join them with GPT-NeoX's tools/ckpts/convert_neox_to_hf.py",
    ),
    Scheme(
        r"^consolidated\.(?P<rank>\d{2,})\.",
        "join them with convert_llama_weights_to_hf.py of transformers",
    ),
    Scheme(
        r"\.tp(?P<rank>\d{2,})(?=[._])",
        "join them with PaddleNLP's llm/tools/merge_tp_and_pp_params.py",
        is_alone=True,
    ),
    Scheme(
        r"^model(?P<rank>\d+)-mp(?P<total>\d+)\.",
        "use the checkpoint that DeepSeek's convert.py was given",
    ),
    Scheme(
        r"^model-rank-(?P<rank>\d+)-part-\d+",
        "use the checkpoint that vLLM's save_sharded_state.py was given",
    ),
    Scheme(
        r"(?:^|[-_.])tp[-_]rank[-_](?P<rank>\d+)(?:-of-(?P<total>\d+))?",
        "join them with nanotron's examples/llama/convert_nanotron_to_hf.py",
    ),
)
JOIN = "join them with the program that wrote them, and name the result"
_NOT_SLICES = "if they are no slices, move one to a folder of its own"
#: Words before the number of a slice, in names of no known scheme.
_LIKELY = re.compile(
    r"(?:^|[-_.])(?:tp|mp|rank|shard|slice|partition|part)[-_.]?(\d+)(?=[-_.])", re.IGNORECASE
)
#: Words before a number that counts states of one model, or models.
_STEPS = re.compile(
    r"(?:step|epoch|iter|iteration|ckpt|checkpoint|seed|run|fold|version|v|e)[-_.=]?(\d+)",
    re.IGNORECASE,
)
#: Formats whose siblings are opened to compare names, which takes no time.
_COMPARED = (
    ".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npz", ".npy", ".h5", ".hdf5", ".pdparams",
    ".pkl", ".pickle",
)  # fmt: skip
_SHARD = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\.(?:gguf|safetensors|bin))$")
#: What torch.distributed.checkpoint writes into the metadata of pieces for the Hub.
_OFFSETS = "DCP_SHARDING_INFO"
_CONSOLIDATE = (
    "join them with consolidate_safetensors_files of "
    "torch.distributed.checkpoint._consolidate_hf_safetensors"
)
# More siblings are steps of a run: each is opened. Patterns take time with the length of a name.
_MOST_SLICES, _MOST_FILES, _LONGEST_NAME = 64, 1024, 200
# Copies share all rows, slices none, and steps of a run those of tokens that were not seen.
_COMPARED_ROWS, _COMPARED_NORMS = 64, 4


def open_pieces(file: Beside, facts: ModelFacts, open_file: OpenFile) -> Checkpoint | None:
    """Open the model that a named file is a shard of; None if it is whole. Refuse a slice."""
    if file.name not in _names(file.folder):
        return None
    refuse_slice(file)
    if (shard := _SHARD.match(file.name)) is not None and int(shard[3]) > 1:
        return _open_shards(file, shard, facts, open_file)
    return _open_numbered(file, facts, open_file)


def refuse_slice(file: Beside) -> None:
    """Refuse a file whose name, or whose folder's name, is that of one slice of several.

    Or whose metadata state where its pieces lie, as torch.distributed.checkpoint writes them for
    the Hub.
    """
    folder = file.folder.path
    for name in (file.name, folder.absolute().name):
        for scheme in SCHEMES:
            found = re.search(scheme.names, name)
            if found is None:
                continue
            total = int(found.groupdict().get("total") or 0)
            others = _names(file.folder) if name is file.name else file.folder.siblings()
            siblings = _siblings(name, others, found.span("rank"))
            is_first = int(found["rank"]) == 0 and not scheme.is_alone
            if total == 1 or (not total and is_first and len(siblings) < 2):
                continue  # the only one
            many = max(total, len(siblings))
            which = f"is one of {many if many > 1 else 'several'} slices of a model"
            raise refuse(
                file.path,
                f"{which}, each with a part of every matrix",
                scheme.way_out.format(folder=folder, above=folder.parent),
            )

    if _is_piece(file):
        cause = f"holds one piece of each matrix, perhaps all of it ({_OFFSETS})"
        raise refuse(file.path, cause, _CONSOLIDATE)


def _names(folder: Folder) -> Iterable[str]:
    """Return the names of the files in a folder; none if it may not be listed."""
    try:
        return folder.sizes
    except UnreadableFile:
        return ()


def _siblings(name: str, names: Iterable[str], span: tuple[int, int]) -> dict[int, str]:
    """Find the names that differ from `name` in one number, by this number."""
    start, stop = span
    pattern = re.compile(rf"{re.escape(name[:start])}(\d+){re.escape(name[stop:])}")
    found = {int(m[1]): one for one in names if (m := pattern.fullmatch(one))}
    return dict(sorted(found.items()))


def are_shards(names: Sequence[str]) -> bool:
    """Tell whether files are all shards of one model."""
    found = [_SHARD.match(name) for name in names]
    stems = {(m[1], m[3], m[4]) if m else None for m in found}
    return len(stems) == 1 and None not in stems


def _open_shards(
    file: Beside, shard: re.Match[str], facts: ModelFacts, open_file: OpenFile
) -> Checkpoint:
    """Open all shards of whole tensors, named ``NAME-00001-of-00002``; of some formats a lone one.

    A lone shard of safetensors or torch is read, as the tensors in it are whole; a GGUF file has
    its metadata in the first one.
    """
    total, siblings = int(shard[3]), _siblings(file.name, file.folder.sizes, shard.span(2))
    names, files = list(siblings.values()), [Beside(file.folder, n) for n in siblings.values()]
    if list(siblings) != list(range(1, total + 1)):
        missing = next((n for n in range(1, total + 1) if n not in siblings), total)
        if file.name.endswith(".gguf"):
            raise MissingPiece(
                f"piece {missing} of {total} is missing",
                where=files[0].path,
                way_out="fetch all of them with hf download",
            )
        alone = open_file(file)
        note = f"{short(file.name)} is one of {total} shards, and others are missing"
        return replace(
            alone,
            facts=replace(_known(facts, alone.facts), pieces=total),
            notes=(*alone.notes, note),
        )
    first = _metadata_only(files[0])
    opened = [open_file(one) for one in (files if first is None else files[1:])]
    tensors = [tensor for one in opened for tensor in one.tensors]
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise refuse(files[0].path, "and its siblings hold tensors of the same names", JOIN)
    head = first or opened[0]
    return replace(
        head,
        tensors=tuple(tensors),
        files=tuple(path for one in ([first] if first else []) + opened for path in one.files),
        facts=replace(_known(facts, head.facts), pieces=1),
        notes=(
            *dict.fromkeys(note for one in opened for note in one.notes),
            f"read from {total} files: {list_short(names)}",
        ),
    )


def _metadata_only(file: Beside) -> Checkpoint | None:
    """Return a GGUF file without tensors, as ``--no-tensor-first-split`` of llama.cpp writes it."""
    if not file.name.endswith(".gguf"):
        return None
    with reading(file.path, gguf.NAME):
        data = file.folder.open(file.name)
        found = gguf.read(data) if gguf.sniff(data[:HEAD_BYTES].tobytes()) else None
    is_empty = found is not None and not found.tensors
    return replace(found, path=file.path, files=(file.path,)) if found and is_empty else None


def _open_numbered(file: Beside, facts: ModelFacts, open_file: OpenFile) -> Checkpoint | None:
    """Compare a file with those whose names differ from its own in one number.

    Slices are refused; of steps of a run, or of copies, the named file is read with a note. None if
    there are no such files.
    """
    for name, found in _numbers_of(file):
        is_file = name is file.name
        others = file.folder.sizes if is_file else file.folder.siblings()
        siblings = _siblings(name, others, found.span())
        numbers = list(siblings)
        files = [
            Beside(file.folder, one) if is_file else Beside(file.folder.siblings()[one], file.name)
            for one in siblings.values()
        ]
        if len(files) < 2 or numbers[0] > 1:
            continue
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            continue  # steps of a run, for instance
        if not all(one.name in _names(one.folder) for one in files):
            continue
        is_step = any(m.span(1) == found.span() for m in _STEPS.finditer(name))
        is_likely = _is_likely(name, found)
        own = list(siblings.values()).index(name)
        shown = [one if is_file else f"{one}/{file.name}" for one in siblings.values()]
        note = f"{short(shown[0 if own else 1])} beside it"
        if not file.name.endswith(_COMPARED) or len(files) > _MOST_SLICES:
            if not is_likely or is_step:
                continue
            alone = open_file(file)
            return replace(alone, notes=(*alone.notes, f"{note} is not read"))
        try:
            opened = [open_file(one) for one in files]
        except EmbgeoError:
            continue  # the named file is opened again, and says why
        if len({frozenset(t.name for t in one.tensors) for one in opened}) != 1:
            continue
        # Of remote files the matrices would be fetched to compare them.
        is_slice = _are_slices(opened, facts, is_likely) if file.folder.is_here else is_likely
        if is_slice and not is_step:
            cause = f"holds a slice of each matrix, as {list_short(shown)} do"
            raise refuse(file.path, cause, f"{JOIN}; {_NOT_SLICES}")
        tensors = opened[0].tensors
        is_named = any(names.input_rank(t.name) is not None for t in tensors)
        if not is_named and len([t for t in tensors if len(t.shape) == 2]) != 1:
            continue
        return replace(
            opened[own],
            notes=(*opened[own].notes, f"{note} holds tensors of the same names and is not read"),
            facts=_known(facts, opened[own].facts),
        )
    return None


def _numbers_of(file: Beside) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the numbers in the name of a file, and in that of its folder if it is like a slice."""
    for found in re.finditer(r"\d{1,6}", file.name[:_LONGEST_NAME]):
        yield file.name, found
    folder = file.folder.path.absolute().name
    for found in re.finditer(r"\d{1,6}", folder[:_LONGEST_NAME]):
        if _is_likely(folder, found):
            yield folder, found


def _is_likely(name: str, number: re.Match[str]) -> bool:
    """Tell whether the word before a number is one for slices."""
    return any(m.span(1) == number.span() for m in _LIKELY.finditer(f"{name}."))


def _are_slices(opened: Sequence[Checkpoint], facts: ModelFacts, is_likely: bool) -> bool:
    """Tell whether checkpoints of the same names are slices: by the configuration, else by content.

    Slices hold the same norms and share no row of the embedding, which steps of a run do. A word
    such as rank says so if the matrices are not the same.
    """
    tensors = opened[0].tensors
    inputs = [t for t in tensors if len(t.shape) == 2 and names.input_rank(t.name) is not None]
    if any(count_slices(t, tensors, facts) == len(opened) for t in inputs):
        return True
    by = [{t.name: t for t in one.tensors} for one in opened]
    norms = [t for t in tensors if len(t.shape) == 1 and t.shape[0] > 1 and not t.problem]
    held = [(t, np.asarray(t.open())) for t in norms[:_COMPARED_NORMS]]
    held = [(t, values) for t, values in held if len(np.unique(values)) > 1]
    are_equal = all(
        np.asarray(one[t.name].open()).tobytes() == values.tobytes()
        for one in by[1:]
        for t, values in held
    )
    matrices = inputs or [t for t in tensors if len(t.shape) == 2 and not t.problem][:1]
    if is_likely and (are_equal or not held):
        return not matrices or not all(_share_rows(by, t, any_row=False) for t in matrices)
    return are_equal and bool(held) and any(not _share_rows(by, t) for t in inputs)


def _share_rows(by: Sequence[dict[str, Tensor]], tensor: Tensor, *, any_row: bool = True) -> bool:
    """Tell whether all checkpoints hold some of the same first rows, or all of them."""
    parts = [np.asarray(one[tensor.name].open()[:_COMPARED_ROWS]) for one in by]
    if any(part.shape != parts[0].shape for part in parts):
        return False
    same = [(part == parts[0]).all(axis=1) for part in parts[1:]]
    return all(bool(rows.any() if any_row else rows.all()) for rows in same)


def _known(facts: ModelFacts, own: ModelFacts) -> ModelFacts:
    """Return what the configuration beside a file says, else what the file itself says."""
    return own if facts == ModelFacts() else facts


def _is_piece(file: Beside) -> bool:
    """Tell whether the header of a file states where its tensors lie in larger ones."""
    if not file.name.endswith(".safetensors"):
        return False
    with reading(file.path, safetensors.NAME):
        data, start = file.folder.open(file.name), safetensors.LENGTH_BYTES
        length = int.from_bytes(data[:start].tobytes(), "little")
        end = start + min(length, safetensors.LONGEST_HEADER)
        return _OFFSETS.encode() in data[start:end].tobytes()
