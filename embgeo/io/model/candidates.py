"""The matrices that could be the embedding, with the evidence: names, shapes, architectures."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from embgeo.files.guard import short
from embgeo.io.model import names
from embgeo.io.model.checkpoint import Tensor
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import BEFORE, PARTS

#: An embedding may have this many rows more than the vocabulary, or this share of it: padding.
PADDING_ROWS, PADDING_SHARE = 1024, 0.05
#: An embedding of a pruned vocabulary has at least this share of its ids.
_FEWEST = 0.75
#: Numbers of slices that programs cut matrices into.
_SLICES = (2, 3, 4, 6, 8, 16, 32, 64)
EvidenceKind = Literal["name", "rows", "columns", "place", "ids", "form", "layer"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A reason for a matrix, or against it."""

    kind: EvidenceKind
    speaks_for: bool
    text: str


@dataclass(slots=True)
class CandidateGroup:
    """Tensors in the same storage."""

    members: list[Tensor] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def is_readable(self) -> bool:
        return not self.members[0].problem

    @property
    def copy_kind(self) -> int:
        """0 for the model's own matrices, 1 for averaged copies, 2 for the optimizer's."""
        return min(names.copy_kind(t.name) for t in self.members)

    def best(self, rank_of: Callable[[str], int | None]) -> tuple[int, Tensor] | None:
        """Rank and tensor of the surest name; None if no name fits."""
        ranked = (
            (rank, t)
            for t in self.members
            if (rank := rank_of(t.name)) is not None
            and not names.is_other_embedding(t.name)
            and names.copy_kind(t.name) == self.copy_kind
        )
        return min(ranked, key=lambda pair: pair[0], default=None)


def is_real(dtype: str) -> bool:
    """Tell whether a type of numpy or ml_dtypes holds floating-point numbers."""
    if dtype.startswith(("float", "bfloat")):
        return True
    try:
        return bool(dtype) and np.dtype(dtype).kind == "f"
    except TypeError:
        return False


def group_matrices(tensors: tuple[Tensor, ...], named: Tensor | None) -> list[CandidateGroup]:
    """Group the matrices by storage, without those of adapters and without parts of weights.

    Parameters whose form cannot be read are groups, too: their names may be the embedding's.
    """
    by_root: dict[str, CandidateGroup] = {}
    for t in tensors:
        if t is not named and (names.is_adapter(t.name) or _is_part(t.name)):
            continue
        if t.problem or (len(t.shape) == 2 and is_real(t.dtype)):
            by_root.setdefault(t.alias_of or t.name, CandidateGroup()).members.append(t)
    for group in by_root.values():
        # The optimizer's parameters may precede the model; their names come last.
        if len(group.members) > 1:
            group.members.sort(key=lambda t: names.copy_kind(t.name))
    return list(by_root.values())


def _is_part(name: str) -> bool:
    module, _, leaf = name.rpartition(".")
    return bool(module) and leaf.lower() in PARTS


def input_rank(tensor: Tensor, facts: ModelFacts) -> int | None:
    """Rank of a tensor as an input embedding by its name.

    A name that only contains "embed" counts if the matrix has the rows of the vocabulary.
    """
    rank = names.input_rank(tensor.name)
    is_like = "embed" in tensor.name.lower() and tensor.shape[1:] > (1,)  # no scales of rows
    if rank is None and is_like and has_vocabulary(tensor, facts):
        return 1 if names.output_rank(tensor.name) is None else None
    return rank


def has_vocabulary(tensor: Tensor, facts: ModelFacts) -> bool:
    """Tell whether a matrix has the rows of the vocabulary of text, perhaps padded."""
    known = facts.vocabulary
    return known is not None and len(tensor.shape) == 2 and is_padded(tensor.shape[0], known)


def is_padded(rows: int, known: int) -> bool:
    """Tell whether a matrix has the rows of `known` ids, perhaps with padding."""
    # Padding of a tiny vocabulary is no more than its tokens: else it is another matrix.
    return 0 <= rows - known <= max(min(PADDING_ROWS, known), int(PADDING_SHARE * known))


def contradicts(tensor: Tensor, facts: ModelFacts, *, transposed: bool = False) -> bool:
    """Tell whether a matrix has fewer rows than the vocabulary, and no mapping of ids."""
    known = facts.vocabulary
    if known is None or tensor.row_ids is not None or len(tensor.shape) != 2:
        return False
    n, d = tensor.shape[::-1] if transposed else tensor.shape
    return n < known and d < known and n not in facts.others.values()


def is_lone_output(tensor: Tensor, facts: ModelFacts) -> bool:
    """Tell whether a matrix is an output matrix, and another one than the missing embedding.

    A tied one is the embedding, and one with ids of its rows, a draft head, is asked for.
    """
    if names.output_rank(tensor.name) != 0 or tensor.row_ids is not None:
        return False
    is_draft = bool(tensor.shape) and tensor.shape[0] in facts.others.values()
    is_untied = facts.tied is False or (facts.tied is None and bool(facts.architecture))
    return is_untied and not is_draft


def lacks_rows(tensor: Tensor, facts: ModelFacts) -> bool:
    """Tell whether a matrix has so few rows that not only padding of the vocabulary is missing."""
    known = facts.vocabulary
    return known is not None and contradicts(tensor, facts) and tensor.shape[0] < _FEWEST * known


def count_slices(tensor: Tensor, others: tuple[Tensor, ...], facts: ModelFacts) -> int:
    """Count how many such matrices would have the sizes of the configuration.

    1 if it is not a slice.
    """
    known, columns = facts.vocabulary, facts.columns
    if not known or tensor.row_ids is not None or len(tensor.shape) != 2 or 0 in tensor.shape:
        return 1
    n, d = tensor.shape
    if n == columns and has_vocabulary(replace(tensor, shape=(d, n)), facts):
        return 1  # tokens are columns
    if 1 < n < known:
        for pieces in _SLICES:
            # Megatron pads the vocabulary to a multiple of 128 for each rank.
            padded = n * pieces - known
            if 0 <= padded < 128 * pieces and padded < known / 4:
                return pieces
    if not has_vocabulary(tensor, facts) or not columns or columns % d:
        return 1
    if columns // d not in _SLICES:
        return 1
    # A factorized embedding has a matrix beside it that leads to the hidden size.
    projections = {(columns, d), (d, columns)}
    return 1 if any(t.shape in projections for t in others) else columns // d


def collect_evidence(tensor: Tensor, facts: ModelFacts) -> tuple[Evidence, ...]:
    """Return what speaks for a matrix as the embedding, and what against it."""
    found: list[Evidence] = []

    def add(kind: EvidenceKind, speaks_for: bool, text: str) -> None:
        found.append(Evidence(kind, speaks_for, text))

    rank = input_rank(tensor, facts)
    if rank is None and facts.pieces > 1:
        add("place", False, f"it lies in a shard, and the others of {facts.pieces} are missing")
    if is_named_by(facts.architecture, tensor.name):
        whose = short(facts.architecture)
        add("name", True, f"name matches the token embedding of {whose}")
    elif rank is not None and not names.is_other_embedding(tensor.name):
        add("name", True, "name matches a token embedding")
    elif names.output_rank(tensor.name) is not None:
        add("name", False, "name matches an output matrix")
    if names.is_layer_kernel(tensor.name):
        add("layer", False, "it is the kernel of a layer")
    if len(tensor.shape) == 2:
        _compare_sizes(tensor, facts, add)
    if names.is_prediction_copy(tensor.name, facts.layers):
        add("place", False, "it lies in a module for multi-token prediction")
    elif names.layer_of(tensor.name) is not None:
        add("place", False, "it lies in one layer of a stack")
    if kind := names.kind_of(tensor.name):
        add("ids", False, f"its rows are {kind}")
    if tensor.problem:
        add("form", False, f"it {tensor.problem}")
    return tuple(found)


def _compare_sizes(
    tensor: Tensor, facts: ModelFacts, add: Callable[[EvidenceKind, bool, str], None]
) -> None:
    n, d = tensor.shape
    if (known := facts.vocabulary) is not None and not tensor.problem:
        if has_vocabulary(tensor, facts):
            more = f", {n - known:,} more than" if n > known else ", as many as"
            add("rows", True, f"{n:,} rows{more} vocab_size")
        else:
            add("rows", False, f"{n:,} rows, and vocab_size is {known:,}")
    if facts.columns is not None and not tensor.problem:
        word = "as" if d == facts.columns else "and"
        text = f"{d:,} columns, {word} hidden_size {'says' if word == 'as' else 'is '}"
        add("columns", d == facts.columns, text + ("" if word == "as" else f"{facts.columns:,}"))


def find_fault(tensor: Tensor) -> tuple[str, str]:
    """Explain why a tensor is no matrix of real numbers, and what to do."""
    if tensor.problem:
        return tensor.problem, tensor.way_out
    if tensor.dtype.startswith("complex"):
        return f"holds complex numbers ({tensor.dtype})", "save its real and imaginary parts"
    if not is_real(tensor.dtype):
        problem = f"holds whole numbers ({tensor.dtype}), and no scales of them are in the file"
        return problem, BEFORE
    if 0 in tensor.shape:
        problem = "is empty: DeepSpeed's ZeRO stage 3 keeps its numbers in other files"
        return problem, "join them with DeepSpeed's zero_to_fp32.py"
    sizes = "×".join(f"{size:,}" for size in tensor.shape) or "one number"
    way_out = "save the matrix alone with numpy.save"
    return f"is stored as {sizes}, not as a matrix", way_out


def describe(tensor: Tensor) -> str:
    """Name, shape and type, and what the rows are if they are not tokens of text."""
    kind = names.kind_of(tensor.name)
    shape = shape_text(tensor.shape, tensor.dtype)
    return f"{short(tensor.name)} ({shape}{f', {kind}' if kind else ''})"


def shape_text(shape: tuple[int, ...], dtype: str) -> str:
    """Format shape and type: ``50,257×768 float32``."""
    if not dtype:
        return "unknown form"
    return f"{'×'.join(f'{size:,}' for size in shape) or 'scalar'} {dtype}"


#: Patterns of ``architectures`` in config.json, or of GGUF's ``general.architecture``, and the last
#: part of the name of the embedding's module; the first that fits counts.
_EMBEDDINGS = (
    (r"Csm", "embed_text_tokens"),
    (r"GPTNeoX", "embed_in"),
    (r"GPT2|GPTBigCode|GPTJ|GPTNeo|CodeGen|MPT|Dbrx|QWenLM|OLMoFor|Molmo|Exaone|Jais", "wte"),
    (r"Bloom|Falcon|RWFor|ChatGLM|Electra|Albert|MPNet|Nomic", "word_embeddings"),
    (r"ModernBert|InternLM2", "tok_embeddings"),
    (r"^(Bert|DistilBert|MobileBert|Roberta|XLMRoberta|Camembert|Deberta|Longformer|Esm)",
     "word_embeddings"),
    (r"Mamba|Rwkv|RWKV|NemotronH", "embeddings"),
    (r"(^|[A-Za-z])(M?T5|Bart|M2M100|Marian|Pegasus|Switch|LED)(For|Model|Encoder)", "shared"),
    (r"Whisper|Speech2Text|MoshiFor|OPTFor", "embed_tokens"),
    (r"^(Llama|Mistral|Mixtral|Ministral|Qwen\d|Gemma|Phi|Deepseek|Glm4|Olmo|GptOss|Cohere|"
     r"Granite|StableLm|Starcoder2|Smol|Kimi|Minimax|MiniMax|Hunyuan|Ernie4|Llava|Paligemma|"
     r"PaliGemma|Idefics|Mllama|Jamba|Bamba|Lfm2|Apertus|Arcee|Seed|Voxtral|Internvl|InternVL)",
     "embed_tokens"),
    (r"^[a-z0-9_-]+$", "token_embd"),
)  # fmt: skip


def embedding_module(architecture: str) -> str:
    """Return the last part of the name of the embedding's module; empty if it is not known."""
    found = (name for pattern, name in _EMBEDDINGS if re.search(pattern, architecture[:100]))
    return next(found, "") if architecture else ""


def is_named_by(architecture: str, name: str) -> bool:
    """Tell whether a name is that of the token embedding of an architecture."""
    module = embedding_module(architecture)
    parts = [part for part in re.split(r"[./:]", name) if part not in ("weight", "base_layer")]
    return bool(module) and bool(parts) and parts[-1] == module
