"""Names of the parameters of language models, across architectures.

A name is a path whose parts are separated by dots, slashes or colons. It is matched in lower case,
without endings such as ``.weight``, ``:0`` or ``/vars/0``, by which a layer stores its matrix.
"""

import re
from functools import lru_cache, partial

#: Longer names are cut to their end: patterns may take time quadratic in the length.
_LONGEST = 1000
_SEPARATORS = re.compile(r"[./:]+")
#: Endings of variables of TensorFlow and Keras 3.
_VARIABLE_ENDING = re.compile(r":\d+$|[./]vars[./]\d+$")
_STORAGE_ENDINGS = frozenset({"weight", "w", "kernel", "data", "table", "embedding_weight"})
#: A further variable of a layer of Keras: its scales, or the output that it holds, too.
_FURTHER = re.compile(r"[./]vars[./][1-9]\d*$")
#: What PEFT, torch.compile and FSDP put between a layer and its weight.
_WRAPPERS = frozenset({
    "base_layer", "original_module", "modules_to_save", "default", "orig_mod",
    "fsdp_wrapped_module", "checkpoint_wrapped_module",
})  # fmt: skip
_INNER_LAYERS = frozenset({"proj", "linear", "matmul"})

#: Input embeddings, the surest names first; each tuple is one rank.
INPUT_RANKS: tuple[tuple[str, ...], ...] = (
    # The matrix that encoder, decoder and output of T5 and BART share.
    (r"shared",),
    (
        r"wte|tok_embeddings?|tok_embed|tok_emb|token_embd|token_embeddings?|token_embed|token_emb",
        r"embed_tokens|embed_in|input_embeddings?|word_embeddings?|word_embed|word_embs?|wemb",
        r"word_?vecs?|word_?vectors?|w_e|syn0|emb_luts|embedding_table|lookup_table|word_lut",
        r"word_encoder|embed_words|w_in|lut|emb_layers|embedding-token|token_embedder\w*|item_emb(?:edding)?s?|"
        r"vocab_embeddings?|embed_text_tokens|text_embed_tokens|text_emb(?:edding)?s?|tok_emb",
    ),
    (r"encoder",),
    (r"embeddings?|embedder|embed|embs?|embedding_layer|lookup|vectors?",),
)

#: Output matrices (softmax weights), the surest names first.
OUTPUT_RANKS: tuple[tuple[str, ...], ...] = (
    (
        r"lm_head|output_projection|embed_out|generator|unembed(?:ding)?|w_u|softmax_?w?|softmax_weights?",
        r"vocab_projector|lm_loss|output_layer|to_logits|output_embeddings?|syn1neg|syn1|logits",
        r"generator_lm_head|lm_head_linear|w_out|out_layers|ff_out|output_embedding|nsoftmax|"
        r"final_linear|text_linear",
    ),
    (r"decoder",),
    (r"output|out|out_proj|proj_out|head|fc|fc_out|linear|proj|affine|h2o|classifier|hidden2tag",),
)

_START = r"(^|[./:_])("
_END = r")($|[./:_])"

#: Embeddings of other things than tokens, and copies for a forward pass.
_OTHER = re.compile(
    _START
    + r"wpe|pos|position|positions|positional|embed_positions|position_ids|pos_?embed\w*|pos_?emb|"
    r"token_type\w*|type_embeddings?|segment\w*|seg_emb|relative\w*|rel_\w+|rotary\w*|inv_freq|"
    r"langs?(?!_)|lang_embeddings|task_type\w*|entity_embeddings|time_?step\w*|patch_embed\w*|"
    r"visual_?\w*embed\w*|per_layer|encoder_dp|embedding-segment|embedding-position"
    + _END
    + r"|(^|[./])ngram_embeddings($|[./:]weight$)"
)
#: nanotron's module of tokens, whose name holds another one.
_OF_TOKENS = re.compile(r"token_position_embeddings")

#: State of an optimizer, in the shape of the parameter.
_OPTIMIZER = re.compile(
    _START + r"optimizers?|optimizer_states?|optim|last_optimizer_state|opt_states?|"
    r"adam|adam_\d+|exp_avg\w*|max_exp_avg\w*|momentum\w*|square_avg|acc_delta|grads?|gradients?|grad_scaler"
    + _END
)

#: Averages of the weights over training steps.
_AVERAGED = re.compile(
    _START + r"ema|ema_\w+|model_ema|averaged|average_model|swa|swa_\w+|shadow_params" + _END
)

#: Adapters of PEFT, such as LoRA.
_ADAPTER = re.compile(_START + r"lora_\w+|hada_\w+|lokr_\w+|vera_\w+|adalora_\w+" + _END)

#: Kernels of layers that are no embedding, as Keras and torch name them.
_KERNEL = re.compile(
    r"(^|[./_])(lstm|gru|rnn|simple_rnn|bidirectional|dense|conv\w*)(_?\d+)?([./].*)?"
    r"(kernel(:\d+)?|[./]vars[./]\d+|weight_[ih]h\w*)$|"
    r"(^|[./])(recurrent_)?kernel(:\d+)?$|(^|[./])weight_[ih]h_l\d+"
)

#: Copies for multi-token prediction, outside of the numbered layers.
_COPY = re.compile(r"(^|[./_])(mtp\w*|nextn|shared_head|multi_token\w*)[./]")
_LAYER = re.compile(r"(^|[./])(layers?|blk|h|blocks?|groups?)[./](\d+)[./]")

#: Other ids than those of text, by a whole part of the name.
_KINDS = (
    (
        "audio codes",
        r"audio\w*|codec\w*|codebooks?|speech\w*|talker|code_predictor|"
        r"depth_decoder|depformer\w*|token2wav|embed_audio_tokens",
    ),
    ("image patches", r"visual\w*|vision\w*|image\w*|pixel\w*|vit"),
    ("tokens of a text encoder", r"text_encoders?|text_encoder_\d+|conditioner|cond_stage_model"),
    ("tokens, for one layer each", r"\w*per_layer\w*"),
    ("codes of a quantizer", r"quantize|quantizer|vq\w*|codes?_emb\w*"),
    ("class labels", r"y_embedder|label_emb\w*|class_(?:labels_)?embed\w*"),
    ("virtual tokens of a prompt", r"prompt_embeddings|prompt_encoder|soft_prompts?"),
    ("hashes", r"hashbucketcodebook_\d+|\w*hash_\w*emb\w*|\w*engram\w*|\w*ngram_\w*emb\w*"),
)
#: The same by a word of a part that speaks of embeddings, codes or tokens: ``ar_audio_embedding``.
_WORDS = (
    ("audio codes", r"audio|speech|mel|acoustic|semantic|codec|coarse"),
    ("speakers", r"speakers?|spk|spkr"),
    ("pitches", r"pitch|f0"),
    ("users", r"users?"),
    ("items", r"items?"),
    ("entities", r"entity|entities"),
    ("relations", r"relations?"),
    ("hashes", r"hash|hashes|bucket|buckets"),
    ("image tiles", r"tiles?"),
)
_KIND = (
    *((kind, re.compile(rf"(^|[./])({words})($|[./])")) for kind, words in _KINDS),
    *(
        (
            kind,
            re.compile(
                rf"(^|[./])(?=[^./]*(?:emb|code|token))([^./]*_)?({words})(_[^./]*)?($|[./])"
            ),
        )
        for kind, words in _WORDS
    ),
)

_TEXT = re.compile(r"(^|_)text_(emb|tokens)|embed_text")
_ENCODER = re.compile(r"(^|[./:_])(encoder|enc|src_embed|source|src)([./:_]|$)")
_DECODER = re.compile(r"(^|[./:_])(decoder|dec|tgt_embed|target|tgt|trg)([./:_]|$)")


#: Numbers between separators: the layers of a stack, and experts, have the same names but for them.
_NUMBER = re.compile(r"(?<=[./:])\d+(?=[./:])")


@lru_cache(maxsize=64)  # several questions are asked of one name
def _without_numbers(name: str) -> str:
    return _NUMBER.sub("0", name)


def _matches(pattern: re.Pattern[str], name: str) -> bool:
    return _is_found(pattern, _without_numbers(name[-_LONGEST:]))


@lru_cache(maxsize=2**14)
def _is_found(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.search(name.lower()) is not None


is_optimizer_state = partial(_matches, _OPTIMIZER)
is_averaged_copy = partial(_matches, _AVERAGED)
is_adapter = partial(_matches, _ADAPTER)
is_layer_kernel = partial(_matches, _KERNEL)


def copy_kind(name: str) -> int:
    """Return 0 for the model's own tensors, 1 for averaged copies, 2 for the optimizer's."""
    return 2 if is_optimizer_state(name) else int(is_averaged_copy(name))


def is_other_embedding(name: str) -> bool:
    """Tell whether a name is that of an embedding of other things than tokens."""
    return _matches(_OTHER, _OF_TOKENS.sub("", name))


def kind_of(name: str) -> str:
    """Return what the rows of a matrix stand for, by its name; empty for tokens of text."""
    parts = _parts(name)
    if any(_TEXT.search(part) for part in parts[-2:]):
        return ""
    return next((kind for kind, words in _KIND if _matches(words, name)), "")


def layer_of(name: str) -> int | None:
    """Number of the layer of a stack that a name lies in."""
    found = _LAYER.search(name[-_LONGEST:].lower())
    return int(found[3]) if found and len(found[3]) < 9 else None


def is_prediction_copy(name: str, layers: int | None) -> bool:
    """Tell whether a name lies in a module for multi-token prediction, which repeats the embedding.

    Such modules are layers beyond the `layers` of the model (DeepSeek V3, GLM 4.5).
    """
    layer = layer_of(name)
    beyond = layers is not None and layer is not None and layer >= layers
    return beyond or _matches(_COPY, name)


def input_rank(name: str) -> int | None:
    """Rank of a name as an input embedding: 0 is surest, None is no embedding."""
    return _input_rank(_without_numbers(name))


def output_rank(name: str) -> int | None:
    """Rank of a name as an output matrix: 0 is surest, None is none."""
    return _output_rank(_without_numbers(name))


@lru_cache(maxsize=2**12)
def _input_rank(name: str) -> int | None:
    return None if _FURTHER.search(name) else _rank(name, INPUT_RANKS, sure=2)


@lru_cache(maxsize=2**12)
def _output_rank(name: str) -> int | None:
    if _FURTHER.search(name):  # ReversibleEmbedding of Keras
        return None if _rank(name, INPUT_RANKS, sure=2) is None else 0
    return _rank(name, OUTPUT_RANKS, sure=1)


def is_sought(name: str) -> bool:
    """Tell whether a name is that of an embedding or, surely, of an output matrix."""
    return input_rank(name) is not None or output_rank(name) == 0


def module_of(name: str, *, sure: bool = True) -> str:
    """Find the outermost module on the path of a name that surely is an embedding or an output.

    If not `sure`, modules called by a plain word such as ``embedding`` count, too.
    """
    ends = (at for at, sign in enumerate(name[:_LONGEST]) if sign in ".:/")
    found = (name[:end] for end in ends)
    ranks = (0, 1) if sure else (0, 1, 3)  # not an encoder
    return next((one for one in found if input_rank(one) in ranks or output_rank(one) == 0), "")


def is_numbered(name: str) -> bool:
    """Tell whether a name is only an index in a list (``"0"``, ``"arr_0"``)."""
    if input_rank(name) is not None or output_rank(name) is not None:
        return False
    return bool(re.fullmatch(r"(.*[./:])?(arr_)?\d+", name))


def side(name: str) -> str:
    """Return ``"encoder"`` or ``"decoder"`` if the path to the layer says so, else ``""``.

    The layer's own name does not count: ``encoder.weight`` is an input embedding.
    """
    parts = _parts(name)
    if parts and parts[-1] in _STORAGE_ENDINGS:
        parts.pop()
    path = "/".join(parts[:-1])
    if _DECODER.search(path):
        return "decoder"
    return "encoder" if _ENCODER.search(path) else ""


def _parts(name: str) -> list[str]:
    """Split a name into its parts, without leading underscores, as in Keras's ``_embeddings``."""
    parts = _SEPARATORS.split(_VARIABLE_ENDING.sub("", name.lower()))
    return [plain for part in parts if (plain := part.lstrip("_")) and plain not in _WRAPPERS]


def _rank(name: str, ranks: tuple[tuple[str, ...], ...], sure: int) -> int | None:
    """Find the first rank that fits a layer's name, or of the first `sure` ranks its wrapper's.

    ``generator.0.weight`` and ``lm_head.linear.weight`` are wrapped output matrices, but
    ``encoder.0.weight`` may be any layer of an autoencoder.
    """
    parts = _parts(name)
    if len(parts) > 1 and parts[-1] in _STORAGE_ENDINGS:
        parts.pop()
    if not parts:
        return None
    layer = parts[-1]
    if layer.isdigit() or layer in _INNER_LAYERS:
        wrapper = next((part for part in reversed(parts[:-1]) if not part.isdigit()), "")
        rank = _first_match(wrapper, ranks[:sure])
        if rank is not None or layer.isdigit():
            return rank
    return _first_match(layer, ranks)


@lru_cache(maxsize=4096)  # the layers of a stack have the same names
def _first_match(layer: str, ranks: tuple[tuple[str, ...], ...]) -> int | None:
    for rank, patterns in enumerate(ranks):
        if any(re.fullmatch(pattern, layer) for pattern in patterns):
            return rank
    return None
