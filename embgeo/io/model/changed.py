"""Weights that other tensors change: norms, mappings, adapters, codebooks.

Each reader returns the weight of a module, or None if the module is of another form.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import Tensor
from embgeo.io.model import forms
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import Module, cannot, decoded, matrix_shape


def _weight_norm(m: Module) -> Tensor | None:
    """``weight_g`` and ``weight_v``, or the two originals of the parametrization."""
    v = m.get("weight_v") or m.get("original1")
    g = m.get("weight_g") or m.get("original0")
    if v is None or g is None or len(v.shape) != 2:
        return None
    name = _unparametrized(m.prefix)
    n, d = v.shape
    if g.shape in ((n,), (n, 1)):
        form = "weight norm, g · v / ‖v‖ of the row"

        def rows_of(a: Array, b: Array, rows: slice) -> Array:
            return forms.weight_norm(a, b, None, rows)

    elif g.shape in ((), (1,), (1, 1), (1, d)):
        by_column = g.shape == (1, d) and d > 1
        form = f"weight norm, g · v / ‖v‖ of the {'column' if by_column else 'matrix'}"

        def rows_of(a: Array, b: Array, rows: slice) -> Array:
            norms = np.linalg.norm(forms.f32(b), axis=0 if by_column else None, keepdims=True)
            return forms.weight_norm(a, b, norms, rows)

    else:
        return cannot(name, v, "has a weight norm whose factors do not fit", g)
    return decoded(name, (n, d), form, (g, v), rows_of)


def _spectral_norm(m: Module) -> Tensor | None:
    weight = m.get("weight_orig") or m.get("original")
    assert weight is not None
    u = m.get("weight_u") or m.get("0._u")
    v = m.get("weight_v") or m.get("0._v")
    name = _unparametrized(m.prefix)
    if len(weight.shape) != 2:
        return None
    if u is None or v is None or u.shape != weight.shape[:1] or v.shape != weight.shape[1:]:
        note = f"{short(weight.name)} is read as it is stored, before its parametrization"
        return replace(weight, name=name, parts=(weight.name,), form="original", note=note)

    def rows_of(w: Array, a: Array, b: Array, rows: slice) -> Array:
        return forms.spectral_norm(w, float(forms.f32(a) @ (forms.f32(w) @ forms.f32(b))), rows)

    form = "spectral norm, V / (uᵀ V v)"
    return decoded(name, matrix_shape(weight), form, (weight, u, v), rows_of)


def _unparametrized(module: str) -> str:
    return module.removesuffix("parametrizations.weight.") + "weight"


def _static(m: Module) -> Tensor | None:
    """model2vec: vectors of clusters, the cluster of each token, the weight of each token."""
    vectors = m["embeddings"]
    mapping, weights = m.get("mapping"), m.get("weights")
    if len(vectors.shape) != 2 or (mapping is None and weights is None):
        return None
    lengths = {one.shape for one in (mapping, weights) if one is not None}
    if len(lengths) != 1 or len(shape := lengths.pop()) != 1:
        return None
    # Weights beside vectors may be anything, such as frequencies, in other models.
    if mapping is None and (m.facts.model_type != "model2vec" or shape != vectors.shape[:1]):
        return None
    form = "vectors" + "[mapping]" * bool(mapping) + " · weights" * bool(weights)

    def rows_of(e: Array, m: Array | None, w: Array | None, rows: slice) -> Array:
        ids = None if m is None else np.asarray(m, dtype=np.int64)
        if ids is not None and len(ids) and not 0 <= ids.min() <= ids.max() < len(e):
            raise Damaged("the mapping of tokens names vectors that are not in the file")
        return forms.mapped(e, ids, w, rows)

    parts = (vectors, mapping, weights)
    return decoded(vectors.name, (shape[0], vectors.shape[1]), form, parts, rows_of)


def _lora(m: Module) -> Tensor | None:
    """Return a weight with a low-rank change beside it: merged where its factor is known."""
    base = m["weight"]
    outer = m.prefix.removesuffix("base_layer.")
    found = _lora_pair(outer, m.by)
    if found is None or len(base.shape) != 2:
        return None
    name, (a, b, is_embedding) = f"{outer}weight", found
    left, right = (b, a) if not is_embedding else (a, b)
    rank = a.shape[0] if a.shape else 0
    alpha: Any = m.facts.adapter.get("lora_alpha")
    n, d = base.shape
    fits = {a.shape, b.shape} == (
        {(rank, n), (d, rank)} if is_embedding else {(rank, d), (n, rank)}
    )
    is_plain = type(alpha) in (int, float) and fits and not m.facts.adapter.get("use_dora")
    if not is_plain or m.facts.adapter.get("alpha_pattern") or m.facts.adapter.get("rank_pattern"):
        note = (
            f"{short(a.name)} and {short(b.name)} are not merged into it: "
            "adapter_config.json does not say their factor; peft's merge_and_unload does"
        )
        return replace(base, name=name, parts=(base.name, a.name, b.name), form="base", note=note)
    factor = alpha / (rank**0.5 if m.facts.adapter.get("use_rslora") else rank)

    def rows_of(w: Array, x: Array, y: Array, rows: slice) -> Array:
        if is_embedding:  # A is (r, N), B is (d, r)
            return forms.low_rank(w, x.T, y.T, factor, rows)
        return forms.low_rank(w, x, y, factor, rows)

    form = f"LoRA, base + {factor:g} · B A"
    return decoded(name, (n, d), form, (base, left, right), rows_of)


def _lora_pair(outer: str, by: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, bool] | None:
    for kind in ("lora_embedding_", "lora_"):
        for end in ("", ".default", ".weight", ".default.weight"):
            a, b = by.get(f"{outer}{kind}A{end}"), by.get(f"{outer}{kind}B{end}")
            if a is not None and b is not None:
                return a, b, kind == "lora_embedding_"
    return None


def _trainable_tokens(m: Module) -> Tensor | None:
    """Return rows of some tokens (PEFT): in place of those of the base, or alone with their ids."""
    new = next(part for end in _DELTAS if (part := m.get(end)) is not None)
    ids = _token_ids(m.facts)
    outer = m.prefix.removesuffix("token_adapter.")
    if len(new.shape) != 2 or ids is None or len(ids) != new.shape[0]:
        return None
    candidates = (m.name("base_layer.weight"), f"{outer}base_layer.weight", f"{outer}weight")
    base = next((m.by[name] for name in candidates if name in m.by), None)
    if base is None or len(base.shape) != 2 or base.shape[1] != new.shape[1]:
        return replace(new, row_ids=lambda: ids, form="rows of trainable tokens", parts=(new.name,))

    def rows_of(w: Array, x: Array, rows: slice) -> Array:
        return forms.replaced(w, x, ids, rows)

    form = f"base with {len(ids):,} trainable rows in place"
    return decoded(f"{outer}weight", matrix_shape(base), form, (base, new), rows_of)


_DELTAS = ("trainable_tokens_delta", "trainable_tokens_delta.default")


def _token_ids(facts: ModelFacts) -> Any:
    listed = facts.adapter.get("trainable_token_indices")
    if isinstance(listed, dict) and len(listed) == 1:
        listed = next(iter(listed.values()))
    if not isinstance(listed, list) or not all(type(one) is int and one >= 0 for one in listed):
        return None
    return np.array(listed, dtype=np.int64)


def _codebook(m: Module) -> Tensor | None:
    sums, usage = m["embed_sum"], m.get("cluster_usage")
    if usage is None or len(sums.shape) != 2 or usage.shape != sums.shape[:1]:
        return None
    form = "codebook, embed_sum / cluster_usage"
    return decoded(sums.name, matrix_shape(sums), form, (sums, usage), forms.codebook)


#: Readers by the last part of a stored name, in this order.
READERS: dict[str, tuple[Callable[[Module], Tensor | None], ...]] = {
    "weight": (_lora,),
    "weight_v": (_weight_norm,),
    "original1": (_weight_norm,),
    "weight_orig": (_spectral_norm,),
    "original": (_spectral_norm,),
    "embeddings": (_static,),
    "embed_sum": (_codebook,),
    "trainable_tokens_delta": (_trainable_tokens,),
}
