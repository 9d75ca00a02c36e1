"""A Hugging Face model folder: configuration, weights, tokenizer."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from embgeo.core.errors import UnreadableFile, WayOut, argument
from embgeo.core.special import SpecialToken
from embgeo.files.guard import Damaged, cannot_read, list_short, refuse
from embgeo.files.maps import map_file
from embgeo.files.small_files import FOREIGN_LINK, is_foreign_link
from embgeo.io.formats.arrow import is_dataset, join_tables
from embgeo.io.formats.foreign import refuse_files, refuse_folder
from embgeo.io.formats.pieces import are_shards, open_pieces, refuse_slice
from embgeo.io.formats.sharded import read_weight_map
from embgeo.io.formats.torch_distributed import METADATA
from embgeo.io.labels.model_folder import vocabulary_of
from embgeo.io.labels.special_tokens import find_special
from embgeo.io.model.checkpoint import Checkpoint
from embgeo.io.model.facts import ModelFacts, read_facts
from embgeo.io.places.source_record import read_source

NAME = "model folder"
RECOGNIZED = (
    "a folder with model.safetensors, pytorch_model.bin, one other file that is read, or the "
    "Parquet files of one table"
)
READ = (
    "weights in their own format; quantized matrices are decoded; config.json and tokenizer "
    "files are read"
)
EXTRA = ""

#: Weights files by name in the order in which transformers looks for them.
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "model.weights.json",
    "model.weights.h5",
)

_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin", "adapters.safetensors")

#: Files of training programs that hold arrays but no model.
NOT_WEIGHTS = (
    "optim",
    "scheduler",
    "scaler",
    "rng_state",
    "training_args",
    "trainer_state",
    "random_states",
    "merges.txt",
    "mmproj",  # images, beside a model in GGUF
)
#: Part of the names of DeepSpeed's files of optimizer states.
_OF_OPTIMIZER = "optim_states"
#: Names of weights that adapters, DeepSpeed, Megatron and nanotron write.
_OF_TRAINERS = re.compile(
    r"adapter_model\.|mp_rank_|model_optim_rng|zero_pp_rank_|model_weights?_pp"
)
_LISTED = 6
#: Levels and folders that are searched for weights below a folder without any.
_DEEPEST, _MOST_FOLDERS = 6, 1000


def open_folder(
    folder: Path,
    open_file: Callable[[Path], Checkpoint],
    is_known: Callable[[Path], bool],
) -> Checkpoint:
    """Open the weights of a model folder, with its tokens and whether the model is tied.

    `is_known` tells whether `open_file` reads the format of a file.
    """
    files = _weights_files(folder, open_file, is_known)
    for file in files:
        if is_foreign_link(file):
            raise refuse(file, FOREIGN_LINK, "name that file instead of the folder")
    facts = read_facts(folder)
    weights = _open_weights(folder, files, facts, open_file)
    notes = list(_note_other_weights(files))
    if (source := read_source(folder)) is not None:
        notes.append(source.note)
    return describe_model(replace(weights, notes=(*weights.notes, *notes)), folder, facts)


def describe_model(weights: Checkpoint, folder: Path, facts: ModelFacts) -> Checkpoint:
    """Add what configuration and tokenizer in a folder say of the weights."""
    if facts == ModelFacts():
        facts = weights.facts
    # Vectors with counts have words: the vocab.txt of GloVe is not a list of tokens.
    vocabulary, left_out = None, tuple[str, ...]()
    special: tuple[SpecialToken, ...] = ()
    label_error = None
    try:
        if weights.counts is None:
            vocabulary, left_out = vocabulary_of(folder, facts.model_type)
        if vocabulary is not None:
            special = find_special(folder, vocabulary)
    except UnreadableFile as error:  # raised where its labels are wanted
        unlabeled = f"read no labels: {argument('tokens', 'none')}"
        vocabulary = None
        label_error = error.also(unlabeled, [WayOut(arguments={"tokens": "none"})])
        weights = replace(weights, tokens=None)
    notes = [*weights.notes, *left_out, *facts.notes]
    if vocabulary is not None:
        notes += vocabulary.notes
        weights = replace(
            weights,
            tokens=vocabulary.tokens,
            tokens_source=vocabulary.source,
            vocabularies=(),
            encoder=vocabulary.encoder,
            added=frozenset(vocabulary.added.values()),
            special=special,
        )
    return replace(
        weights,
        path=folder,
        format=f"{NAME} ({weights.format})",
        tied=facts.tied,
        facts=facts,
        label_error=label_error,
        notes=tuple(notes),
    )


def _open_weights(
    folder: Path, files: list[Path], facts: ModelFacts, open_file: Callable[[Path], Checkpoint]
) -> Checkpoint:
    if len(files) == 1:
        return open_pieces(files[0], facts, open_file) or open_file(files[0])
    return join_tables(folder, [open_file(file) for file in files])


def _note_other_weights(files: list[Path]) -> tuple[str, ...]:
    """Get notes on other weights beside those that are read, which transformers would not take."""
    read = files[0]
    if read.name not in WEIGHTS:
        return ()
    beside = [read.with_name(name) for name in WEIGHTS if name != read.name]
    beside += sorted(read.parent.glob("consolidated*"))[:1]
    notes = [
        f"{read.name} is read, as transformers does; {other.name} beside it is not"
        for other in beside
        if other.is_file() and not is_foreign_link(other) and not _is_index_of(other, read)
    ]
    if any(read.with_name(name).is_file() for name in _ADAPTERS):
        notes.append(f"{read.name} is read; the adapter beside it is not merged into it")
    return tuple(notes)


def _is_index_of(other: Path, read: Path) -> bool:
    """Tell whether `other` is an index that names the file that is read, and no other."""
    if not other.name.endswith(".index.json"):
        return False
    try:
        return {*read_weight_map(map_file(other)).values()} == {read.name}
    except (Damaged, UnreadableFile, ValueError):
        return False


def choose_weights(
    sizes: Mapping[str, int],
    is_known: Callable[[str], bool],
    shards_of: Callable[[str], set[str]],
) -> list[str]:
    """Choose the file with the weights, or the files of a table, among names with sizes.

    All that may hold the matrix if none is the one; `shards_of` reads an index.
    """
    for name in WEIGHTS:
        if name in sizes:
            return [name]
    if sizes.get(METADATA) and is_known(METADATA):
        return [METADATA]
    known = [
        name
        for name, size in sorted(sizes.items())
        if size
        and not name.startswith((".", *NOT_WEIGHTS))
        and _OF_OPTIMIZER not in name
        and is_known(name)
    ]
    # The only index, of a variant such as fp16, if it names all other files.
    indexes = [name for name in known if ".index." in name and name.endswith(".json")]
    if len(indexes) == 1 and {*known} - {*indexes} <= shards_of(indexes[0]):
        return indexes
    return known


def is_one(names: Sequence[str]) -> bool:
    """Tell whether files are one file, or those of one table."""
    return len(names) == 1 or is_dataset(list(names))


def _weights_files(
    folder: Path, open_file: Callable[[Path], Checkpoint], is_known: Callable[[Path], bool]
) -> list[Path]:
    """Return the file with the weights, or the files of a table."""
    try:
        entries = sorted(folder.iterdir())
        files = [entry for entry in entries if entry.is_file()]
        sizes = {file.name: file.stat().st_size for file in files}
    except OSError as error:
        raise cannot_read(folder, error) from error

    def shards_of(name: str) -> set[str]:
        return {*read_weight_map(map_file(folder / name)).values()}

    named = choose_weights(sizes, lambda name: is_known(folder / name), shards_of)
    known = [folder / name for name in named]
    if is_one(named):
        return known
    if are_shards(known):
        return known[:1]
    if known:
        for file in known:  # the way out names no slice
            refuse_slice(file)
        open_pieces(known[0], read_facts(folder), open_file)
        listing = list_short([file.name for file in known], _LISTED)
        raise refuse(
            folder,
            f"the folder holds several files that may hold the matrix: {listing}",
            f"name one of them: {known[0]}",
            [WayOut(str(file)) for file in known],
        )
    foreign = refuse_folder(folder, (entry.name for entry in entries))
    if foreign is not None:
        raise foreign
    if inner := _find_inner(folder):
        for file in _list_files(inner[-1]):  # the way out names no slice
            if _OF_OPTIMIZER not in file.name and is_known(file):
                open_pieces(file, read_facts(inner[-1]), open_file)
        listing = list_short([str(one.relative_to(folder)) for one in reversed(inner)], _LISTED)
        raise refuse(
            folder,
            f"no model weights in this folder, but in {listing}",
            f"name it: {inner[-1]}",
            [WayOut(str(inner[-1]))],
        )
    if (foreign := refuse_files(files)) is not None:
        raise foreign
    listing = list_short(list(sizes), _LISTED) or "no files"
    raise refuse(
        folder,
        f"no model weights in this folder (it holds {listing})",
        "name a checkpoint file, or a folder with model.safetensors or pytorch_model.bin",
    )


def _find_inner(folder: Path) -> list[Path]:
    """Find the folders below that hold weights: those of a pipeline, or of a trainer.

    The one to take is last.
    """
    held: list[Path] = []
    level = [folder]
    for _ in range(_DEEPEST):
        inner = [entry for one in level for entry in _list_folders(one)][:_MOST_FOLDERS]
        held += [entry for entry in inner if _holds_weights(entry)]
        level = [entry for entry in inner if entry not in held]
    # Of text encoders the first, of a trainer's checkpoints the last, of slices the first.
    return sorted(
        held,
        key=lambda entry: (
            entry.name in ("text_encoder", "pytorch_model_fsdp_0", "mp_rank_00", "token_embedding"),
            bool(re.match(r"pytorch_model|checkpoint|global_step|text_encoder|iter_", entry.name)),
            [int(number[:15]) for number in re.findall(r"\d+", str(entry.relative_to(folder)))],
        ),
    )


def _list_folders(folder: Path) -> list[Path]:
    try:
        return sorted(e for e in folder.iterdir() if e.is_dir() and not e.is_symlink())
    except OSError:
        return []


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_file())
    except OSError:
        return []


def _holds_weights(folder: Path) -> bool:
    known = (*WEIGHTS, METADATA)
    return any(
        file.name in known or _OF_TRAINERS.match(file.name) or file.suffix in (".onnx", ".gguf")
        for file in _list_files(folder)
    )
