"""A parameter: what stored tensors of one module make together."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

import numpy as np

from embgeo.files.compressed import MAX_RATIO, RATIO_FREE_BYTES
from embgeo.files.guard import Damaged, short
from embgeo.files.maps import Array
from embgeo.files.scratch import fill_rows
from embgeo.io.model.checkpoint import Tensor, unreadable
from embgeo.io.model.facts import ModelFacts

BEFORE = "use the checkpoint before quantization"
# A block of the widest models, 16,384 columns, decodes to 64 MiB.
_BLOCK_ROWS = 1024
#: Last parts of names, in lower case, of tensors that belong to a weight and are not matrices.
PARTS = frozenset({
    "weight_scale", "weight_scale_inv", "scale_weight", "weights_scaling_factor", "weight_scale_2",
    "weight_global_scale", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_format",
    "scb", "qzeros", "scales", "biases", "g_idx", "absmax", "quant_map", "nested_absmax",
    "nested_quant_map", "weight_scales", "q_scale", "q_scale_max", "q_groups", "q_invperm", "suh",
    "svh", "input_scale", "k_scale", "v_scale", "output_scale", "zeros", "cluster_usage",
    "cluster_size", "d2t", "t2d", "weight_qdata", "_weight_qdata", "_weight_scale",
    "input_global_scale", "pre_quant_scale",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """The stored tensors below a prefix, which ends in a dot or is empty."""

    prefix: str
    by: MutableMapping[str, Tensor]
    #: Names of the stored tensors in order.
    names: Sequence[str]
    facts: ModelFacts
    #: Tensors of adapters by the beginning of their names: of LoRA the module that they change,
    #: else with ``trainable_tokens_delta`` or ``modules_to_save.`` behind it.
    adapters: Mapping[str, list[Tensor]] = field(default_factory=dict)

    def name(self, end: str) -> str:
        return self.prefix + end

    def below(self) -> list[Tensor]:
        """Return the tensors whose names begin with the prefix."""
        first = bisect_left(self.names, self.prefix)
        names = takewhile(
            lambda name: name.startswith(self.prefix), islice(self.names, first, None)
        )
        return [self.by[name] for name in names]

    def __getitem__(self, end: str) -> Tensor:
        return self.by[self.prefix + end]

    def get(self, *ends: str) -> Tensor | None:
        """Return the first of these that is stored."""
        for end in ends:
            if (found := self.by.get(self.prefix + end)) is not None:
                return found
        return None


Reader = Callable[[Module], Tensor | None]


def decoded(
    name: str,
    shape: tuple[int, int],
    form: str,
    parts: tuple[Tensor | None, ...],
    rows_of: Callable[..., Array],
) -> Tensor:
    """Return a parameter of float32 whose rows ``rows_of(*arrays, rows=slice)`` gives."""

    def decode() -> Array:
        arrays: list[Any] = [None if part is None else part.open() for part in parts]
        slices = (
            slice(start, min(start + _BLOCK_ROWS, shape[0]))
            for start in range(0, shape[0], _BLOCK_ROWS)
        )
        # Hostile scales give infinities, which the analysis masks.
        with np.errstate(all="ignore"):
            return fill_rows((rows_of(*arrays, rows=rows) for rows in slices), shape)

    stored = sum(part.nbytes for part in parts if part is not None)
    if 4 * shape[0] * shape[1] > max(RATIO_FREE_BYTES, MAX_RATIO * stored):
        raise Damaged(f"{short(name)} would grow from {stored:,} bytes into an absurd size")
    names = tuple(part.name for part in parts if part is not None)
    return Tensor(name, shape, "float32", decode, parts=names, form=form)


def cannot(name: str, codes: Tensor, problem: str, *parts: Tensor | None) -> Tensor:
    """Return the weight of `codes`, which cannot be read."""
    others = (part for part in parts if part is not None)
    return unreadable(name, codes.shape, codes.dtype, problem, BEFORE, codes, *others)


def matrix_shape(tensor: Tensor) -> tuple[int, int]:
    return tensor.shape[0], tensor.shape[1]
