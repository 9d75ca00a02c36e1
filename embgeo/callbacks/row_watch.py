"""The cheap tier: norms of rows and rows that never change, on the device of the weight."""

from typing import Any

import numpy as np

from embgeo.core.errors import BadOption
from embgeo.core.quantities import live as q
from embgeo.io.memory.objects import embedding_layer, is_tensor

#: Checks in which each row is read once.
CHECKS = 32
#: Matrices of at most this many entries are read whole at each check.
SMALL = 2**18
#: Integers that rows may be viewed as, by bytes, widest first.
_INTEGERS = {8: "int64", 4: "int32", 2: "int16", 1: "uint8"}


class RowWatch:
    """Norms and changes of all rows, a part of which is read again at each check.

    The weight is not copied; its device keeps a norm and a hash for each row, both at most `CHECKS`
    checks old.

    Parameters
    ----------
    counts : array of N numbers, optional
        Number of occurrences of each token, for norms by frequency.
    """

    def __init__(self, counts: Any = None) -> None:
        self.counts = counts
        self._next = 0
        self._norms: Any = None
        self._order: Any = None

    def check_rows(self, weight: Any) -> dict[str, float]:
        """Read the next rows of a weight of shape (N, d), and return the scalars by name.

        All processes check a DTensor whose rows are sharded.
        """
        weight = weight.detach()
        rows = weight
        if hasattr(weight, "to_local"):
            if not all(getattr(place, "dim", 0) == 0 for place in weight.placements):
                raise BadOption("its columns are sharded", way_out="leave out rows_every")
            rows = weight.to_local()
        self._read(rows)
        norms, changed = self._norms, self._changed
        if rows is not weight:
            norms, changed = _gather(norms, weight), _gather(changed.to(norms.dtype), weight) > 0
        return self._summarize(norms, changed)

    def _read(self, rows: Any) -> None:
        """Read the norms and hashes of the next rows, or of all rows at the first check."""
        n, d = rows.shape
        if self._norms is None or len(self._norms) != n:
            self._norms, self._hashes, self._changed = _start(rows)
            self._next, self._passes = 0, 0
            return
        step = n if n * d <= SMALL else -(-n // CHECKS)
        part = slice(self._next, min(self._next + step, n))
        self._norms[part] = _measure_norms(rows[part])
        self._changed[part] |= _hash(rows[part]) != self._hashes[part]
        self._next = 0 if part.stop == n else part.stop
        self._passes += part.stop == n

    def _summarize(self, norms: Any, changed: Any) -> dict[str, float]:
        import torch

        finite = torch.isfinite(norms)
        alive = norms[finite & (norms > 0)]
        found = {q.ZERO_ROWS.name: (norms == 0).sum(), q.NONFINITE_ROWS.name: (~finite).sum()}
        if len(alive):
            named = (q.NORM_MIN, q.NORM_MEDIAN, q.NORM_MAX)
            values = (alive.min(), alive.median(), alive.max())
            found |= {quantity.name: value for quantity, value in zip(named, values, strict=True)}
        if self._passes:
            found[q.UNCHANGED_ROWS.name] = (~changed).sum()
        found |= self._by_frequency(norms)
        # One transfer from the device.
        plain = torch.stack([value.to(torch.float64) for value in found.values()]).tolist()
        return dict(zip(found, plain, strict=True))

    def _by_frequency(self, norms: Any) -> dict[str, Any]:
        """Return the median norms of ten groups of tokens, the rarest first."""
        import torch

        if self.counts is None:
            return {}
        if len(self.counts) != len(norms):
            cause = f"{len(self.counts):,} counts for {len(norms):,} rows"
            raise BadOption(cause, way_out="give one count for each row")
        if self._order is None or self._order.device != norms.device:
            order = np.argsort(np.asarray(self.counts), kind="stable")
            self._order = torch.from_numpy(order).to(norms.device)
        groups = torch.tensor_split(norms[self._order], len(q.DECILES))
        named = zip(q.DECILES, groups, strict=True)
        return {quantity.name: group.median() for quantity, group in named if len(group)}


def find_weight(model: Any) -> Any:
    """Find the weight of a model's input embedding, or the tensor itself."""
    import torch

    if is_tensor(model):
        return model
    if not isinstance(model, torch.nn.Module):
        raise BadOption("the cheap tier is for torch models", way_out="leave out rows_every")
    weight = embedding_layer(model)[0].weight
    if weight.dim() != 2 or weight.untyped_storage().nbytes() == 0:
        raise BadOption("the embedding is sharded by FSDP 1", way_out="leave out rows_every")
    return weight


def _start(rows: Any) -> tuple[Any, Any, Any]:
    """Return the norms and hashes of all rows, none of which has changed yet."""
    import torch

    norms = _measure_norms(rows)
    return norms, _hash(rows), torch.zeros_like(norms, dtype=torch.bool)


def _measure_norms(rows: Any) -> Any:
    import torch

    wide = torch.float64 if rows.dtype == torch.float64 else torch.float32
    return torch.linalg.vector_norm(rows, dim=1, dtype=wide)


def _hash(rows: Any) -> Any:
    """Return one integer for each row; a change of a single entry always changes it.

    The sum over the bits of the row as integers, times odd numbers, modulo 2⁶⁴.
    """
    import torch

    width = next(w for w in _INTEGERS if rows.shape[1] * rows.element_size() % w == 0)
    bits = rows.contiguous().view(torch.uint8).view(getattr(torch, _INTEGERS[width]))
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, bits.shape[1:], generator=generator) * 2 + 1
    return (bits * factors.to(rows.device)).sum(dim=1)


def _gather(values: Any, weight: Any) -> Any:
    """Gather a number for each row of a sharded weight, from all processes."""
    shape = (weight.shape[0],)
    kind = type(weight)
    return kind.from_local(
        values, weight.device_mesh, weight.placements, shape=shape, stride=(1,), run_check=False
    ).full_tensor()
