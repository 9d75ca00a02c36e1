"""Which file of a model folder holds the weights, and which folders below it do."""

import re
from collections.abc import Callable, Iterator

from embgeo.files.guard import Damaged
from embgeo.io.formats.format import Folder
from embgeo.io.formats.sharded import read_weight_map
from embgeo.io.formats.torch_distributed import METADATA

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
#: Saved results of embgeo, whose arrays are no weights.
RESULTS = ("analysis.json", "comparison.json")
#: Part of the names of DeepSpeed's files of optimizer states.
OF_OPTIMIZER = "optim_states"
#: Names of weights that adapters, DeepSpeed, Megatron and nanotron write.
_OF_TRAINERS = re.compile(
    r"adapter_model\.|mp_rank_|model_optim_rng|zero_pp_rank_|model_weights?_pp"
)


def choose_weights(folder: Folder, is_known: Callable[[str], bool]) -> list[str]:
    """Choose the file with the weights, or the files of a table.

    All that may hold the matrix if none is the one; `is_known` tells whether a file is of a format.
    """
    sizes = folder.sizes
    for name in WEIGHTS:
        if name in sizes:
            return [name]
    if sizes.get(METADATA) and is_known(METADATA):
        return [METADATA]
    own = ("arrays.npz",) if any(name in sizes for name in RESULTS) else ()
    known = [
        name
        for name, size in sorted(sizes.items())
        if size
        and not name.startswith((".", *NOT_WEIGHTS, *own))
        and OF_OPTIMIZER not in name
        and is_known(name)
    ]
    # The only index, of a variant such as fp16, if it names all other files.
    indexes = [name for name in known if ".index." in name and name.endswith(".json")]
    if len(indexes) == 1:
        shards = {*read_weight_map(folder.open(indexes[0])).values()}
        return indexes if {*known} - {*indexes} <= shards else known
    return known


def note_other_weights(folder: Folder, read: str) -> Iterator[str]:
    """Yield notes on weights beside the file that is read, which transformers would not take."""
    if read not in WEIGHTS:
        return
    others = [name for name in WEIGHTS if name != read and name in folder.sizes]
    others += [name for name in sorted(folder.sizes) if name.startswith("consolidated")][:1]
    for name in others:
        if not _is_index_of(folder, name, read):
            yield f"{read} is read, as transformers does; {name} beside it is not"
    if any(name in folder.sizes for name in _ADAPTERS):
        yield f"{read} is read; the adapter beside it is not merged into it"


def _is_index_of(folder: Folder, other: str, read: str) -> bool:
    """Tell whether a file is an index that names the file that is read, and no other."""
    if not other.endswith(".index.json"):
        return False
    try:
        return {*read_weight_map(folder.open_named(other, "index")).values()} == {read}
    except (Damaged, ValueError):
        return False


def holds_weights(name: str) -> bool:
    """Tell whether a file of this name makes a folder one of a model."""
    known = (*WEIGHTS, METADATA)
    return name in known or _OF_TRAINERS.match(name) is not None or name.endswith(_MODELS)


_MODELS = (".onnx", ".gguf")


def order_folders(name: str) -> tuple[bool, bool, list[int]]:
    """Order the folders below one without weights; the one to take is last.

    Those of a pipeline, or of a trainer: of text encoders the first, of a trainer's checkpoints the
    last, of slices the first.
    """
    own = name.rpartition("/")[2]
    return (
        own in ("text_encoder", "pytorch_model_fsdp_0", "mp_rank_00", "token_embedding"),
        bool(re.match(r"pytorch_model|checkpoint|global_step|text_encoder|iter_", own)),
        [int(number[:15]) for number in re.findall(r"\d+", name)],
    )
