"""Weights that other tensors change: mappings, adapters, codebooks.

Each reader returns the weight of a module, or None if the module is of another form.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.files.guard import Damaged, list_short, short
from embgeo.files.maps import Array
from embgeo.io.model import forms
from embgeo.io.model.checkpoint import Tensor
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import Module, decoded, matrix_shape

#: Factors of LoRA, with the name of the adapter.
_LOW_RANK = re.compile(r"\.?lora_(?:embedding_)?[AB](?:\.[^.]+)*$")
#: Patterns times modules, each pair of which is compared.
_MOST_FACTORS = 10_000_000
_SAVED = re.compile(r"(.*\.|)modules_to_save\.[^.]+\.")


def read_static(m: Module) -> Tensor | None:
    """Read a matrix of model2vec: vectors of clusters, the cluster and the weight of each token."""
    vectors = m.get("embeddings") or m["weight"]
    outer = "" if m.prefix in ("embedding.", "embeddings.") else m.prefix
    mapping, weights = m.by.get(f"{outer}mapping"), m.by.get(f"{outer}weights")
    is_static = m.facts.model_type == "model2vec" or m.facts.architecture == "StaticModel"
    if len(vectors.shape) != 2 or (vectors.name.endswith("weight") and mapping is None):
        return None
    if mapping is None and not is_static:
        if weights is None or weights.shape != vectors.shape[:1]:
            return None
        # Weights beside vectors may be anything, such as frequencies, in other models.
        note = "weights beside the vectors are not applied, as config.json names no model2vec"
        return replace(vectors, note=note)
    shapes = {one.shape for one in (mapping, weights) if one is not None} or {vectors.shape[:1]}
    shape = shapes.pop()
    if shapes or len(shape) != 1 or (mapping is None and shape != vectors.shape[:1]):
        return None
    is_plain = mapping is None and weights is None
    if is_plain and vectors.dtype != "int8":
        return None
    form = "vectors" + "[mapping]" * bool(mapping) + " · weights" * bool(weights)
    if is_plain:
        form = "INT8 of model2vec, which stores no scale"

    def rows_of(e: Array, m: Array | None, w: Array | None, rows: slice) -> Array:
        ids = None if m is None else np.asarray(m, dtype=np.int64)
        if ids is not None and len(ids) and not 0 <= ids.min() <= ids.max() < len(e):
            raise Damaged("the mapping of tokens names vectors that are not in the file")
        return forms.mapped(e, ids, w, rows)

    parts = (vectors, mapping, weights)
    return decoded(vectors.name, (shape[0], vectors.shape[1]), form, parts, rows_of)


def read_lora(m: Module) -> Tensor | None:
    """Return a weight with a low-rank change beside it: merged where its factor is known."""
    base = m["weight"]
    outer = m.prefix.removesuffix("base_layer.")
    beside = m.adapters.get(outer, [])
    if not beside or len(base.shape) != 2:
        return None
    name, factors = f"{outer}weight", [t for t in beside if _LOW_RANK.search(t.name)]
    pair = sorted(factors, key=lambda t: t.name.rpartition("lora_")[2].removeprefix("embedding_"))
    problem = _find_problem(m, outer, base, pair)
    if problem:
        listed = list_short([t.name.removeprefix(outer) for t in beside])
        note = f"{listed} of {short(name)} are not merged into it: {problem}; "
        note += "peft's merge_and_unload does"
        parts = (base.name, *(t.name for t in beside))
        return replace(base, name=name, parts=parts, form="base", note=note)
    a, b = pair
    rank = a.shape[0] ** 0.5 if m.facts.adapter.get("use_rslora") else a.shape[0]
    factor = float(_find_alpha(m, outer)) / rank

    def rows_of(w: Array, x: Array, y: Array, rows: slice) -> Array:
        # Of an embedding A is (r, N) and B is (d, r).
        left, right = (x.T, y.T) if "lora_embedding_" in a.name else (y, x)
        return forms.low_rank(w, left, right, factor, rows)

    form = f"LoRA, base + {factor:g} · B A"
    return decoded(name, matrix_shape(base), form, (base, a, b), rows_of)


def _find_problem(m: Module, outer: str, base: Tensor, pair: list[Tensor]) -> str:
    """Explain why an adapter cannot be merged; empty if it can."""
    (n, d), adapter = base.shape, m.facts.adapter
    if len(pair) != 2:
        return "there are several adapters" if len(pair) > 2 else "a part of it is missing"
    a, b = pair
    rank = a.shape[0] if a.shape else 0
    is_embedding = "lora_embedding_" in a.name
    expected = ((rank, n), (d, rank)) if is_embedding else ((rank, d), (n, rank))
    if (a.shape, b.shape) != expected or not rank:
        return "their shapes do not fit"
    if len(m.adapters[outer]) > len(pair) or adapter.get("use_dora"):
        return "the adapter changes lengths, too (DoRA)"
    if type(_find_alpha(m, outer)) not in (int, float):
        return "adapter_config.json does not say their factor"
    return ""


def _find_alpha(m: Module, outer: str) -> Any:
    """Find ``lora_alpha`` of a module; PEFT's patterns are read as ends of its name."""
    patterns = m.facts.adapter.get("alpha_pattern")
    patterns = patterns if isinstance(patterns, dict) else {}
    if len(patterns) * len(m.adapters) > _MOST_FACTORS:
        return None
    module = outer.rstrip(".")
    for key, alpha in patterns.items():
        if not re.fullmatch(r"[\w.]+", key):
            return None  # a regular expression
        if module == key or module.endswith(f".{key}"):
            return alpha
    return m.facts.adapter.get("lora_alpha")


def read_trained_copy(m: Module) -> Tensor | None:
    """Read ``modules_to_save`` of PEFT: the trained copy in place of the original beside it."""
    found = _SAVED.fullmatch(m.prefix)
    if found is None:
        return None
    outer, original = found[1], m.by.get(f"{found[1]}original_module.weight")
    if original is None or len(m.adapters.get(f"{outer}modules_to_save.", ())) != 1:
        return None
    copy = m["weight"]
    note = f"{short(copy.name)} is read, as PEFT does, and not original_module beside it"
    parts = (copy.name, original.name)
    return replace(copy, name=f"{outer}weight", parts=parts, form="modules_to_save", note=note)


def read_trainable_tokens(m: Module) -> Tensor | None:
    """Read rows of some tokens (PEFT), in place of those of the base or alone with their ids."""
    new = next(iter(m.adapters.get(m.name("trainable_tokens_delta"), ())), None)
    outer = m.prefix.removesuffix("token_adapter.")
    ids = _token_ids(m.facts, outer)
    if new is None or len(new.shape) != 2 or ids is None or len(ids) != new.shape[0]:
        return None
    candidates = (m.name("base_layer.weight"), f"{outer}base_layer.weight", f"{outer}weight")
    base = next((m.by[name] for name in candidates if name in m.by), None)
    if base is None or len(base.shape) != 2 or base.shape[1] != new.shape[1]:
        form = "rows of trainable tokens"
        parts = (new.name,)
        return replace(new, name=f"{outer}weight", row_ids=lambda: ids, form=form, parts=parts)

    def rows_of(w: Array, x: Array, rows: slice) -> Array:
        return forms.replaced(w, x, ids, rows)

    form = f"base with {len(ids):,} trainable rows in place"
    return decoded(f"{outer}weight", matrix_shape(base), form, (base, new), rows_of)


def _token_ids(facts: ModelFacts, outer: str) -> Any:
    """Return the ids of the trained rows of a module; the configuration may name several."""
    listed = facts.adapter.get("trainable_token_indices", facts.adapter.get("token_indices"))
    if isinstance(listed, dict):
        module = outer.rstrip(".")
        own = [ids for key, ids in listed.items() if module.endswith(key)]
        listed = own[0] if len(own) == 1 else next(iter(listed.values())) if len(listed) == 1 else 0
    if not isinstance(listed, list) or not all(type(one) is int and one >= 0 for one in listed):
        return None
    return np.array(listed, dtype=np.int64)


def read_codebook(m: Module) -> Tensor | None:
    sums, usage = m["embed_sum"], m.get("cluster_usage")
    if usage is None or len(sums.shape) != 2 or usage.shape != sums.shape[:1]:
        return None
    form = "codebook, embed_sum / cluster_usage"
    return decoded(sums.name, matrix_shape(sums), form, (sums, usage), forms.codebook)
