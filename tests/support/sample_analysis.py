"""A complete analysis of a small made-up matrix, for tests of whatever reads a saved result.

The numbers are computed here, in the plainest way, so that report and figures can be tested
without the parts that compute them for real.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.rows import NearestRows
from embgeo.core.values import (
    Column,
    Histogram,
    Note,
    Points,
    Scalar,
    Series,
    Table,
    Value,
)
from embgeo.result.analysis import Analysis
from tests.support.sample_values import (
    GAUSSIAN,
    cosine,
    frequency,
    isotropy,
    projection,
    spectrum,
    subspace,
    tokens_family,
)

Shape = Literal["cone", "isotropic", "two-sided"]
Array = npt.NDArray[np.float64]

#: Tokens that try to break out of whatever they are printed in.
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    "<b>bold</b>",
    "&amp;&lt;&#60;",
    '"><svg onload=window.pwned=3>',
    "' onmouseover='window.pwned=4",
    "line\nbreak",
    "tab\there",
    "carriage\rreturn",
    "\x00nul\x00",
    "\x1b[31mred",
    "\u202eevil\u202c",
    "\u200bzero width\u200d",
    "\u2028separator\u2029",
    " leading",
    "trailing ",
    "   ",
    "",
    "\u0301combining",
    "\ud800lone",
    "😀 emoji ‍joined",
    "עברית",
    "العربية",
    "{{ 7*7 }}",
    "{% raw %}",
    "]]>",
    "<!--",
    "-->",
    "javascript:alert(1)",
    "\\u003c\\",
    "x" * 5000,
    "Ġthe",
    "日本語",
    "$\\sigma$",
)

#: Characters of every kind, for any text: without a list of all, which takes seconds to make.
CHARACTERS = "".join(
    map(chr, [*range(0x180), 0x301, 0x5D0, 0x200B, 0x2028, 0x202E, 0xD800, 0xFEFF, 0x1F600])
)


@cache
def sample(
    shape: Shape = "cone",
    *,
    n: int = 600,
    d: int = 16,
    hostile: bool = False,
    counts: bool = True,
    untied: bool = True,
    seed: int = 0,
) -> Analysis:
    """An analysis that holds every value there is, for a matrix of the given shape."""
    rng = np.random.default_rng(seed)
    w = matrix(shape, n, d, rng)
    tokens = vocabulary(n, hostile)
    frequencies = np.maximum(0.0, np.floor(60.0 * n / (1.0 + np.arange(n)) ** 1.05))
    popular = np.arange(n) < n // 5
    norms = np.linalg.norm(w, axis=1)
    unit = w / norms[:, None]
    values: list[Value] = []
    values += spectrum(w)
    values += cosine(unit, rng)
    values += isotropy(w)
    values += projection(w)
    values += tokens_family(w, tokens, frequencies if counts else None)
    absent = {}
    if counts:
        values += frequency(w, unit, tokens, frequencies, popular, rng)
    else:
        absent["frequency"] = "no counts were given; use --counts, --corpus or --rank-order"
    if untied:
        values += subspace(n, d)
    else:
        absent["subspace"] = "the model is tied: it has no output matrix of its own"
    return Analysis(
        provenance=provenance(n, d, counts, untied),
        scalars=tuple(v for v in values if isinstance(v, Scalar)),
        series=tuple(v for v in values if isinstance(v, Series)),
        histograms=tuple(v for v in values if isinstance(v, Histogram)),
        points=tuple(v for v in values if isinstance(v, Points)),
        columns=tuple(v for v in values if isinstance(v, Column)),
        tables=tuple(v for v in values if isinstance(v, Table)),
        absent=absent,
        notes=(Note("masked", "1 row of padding beyond the vocabulary was masked."),),
        nearest=nearest_of_even_rows(unit),
        rows=np.arange(n, dtype=np.int64),
        tokens=tokens,
        counts=frequencies if counts else None,
        popular=popular if counts else None,
        timing={"pass 1": 0.1},
    )


def nearest_of_even_rows(unit: Array) -> NearestRows:
    """Ten of each among the first 2,000, as if a sample of the rows had been searched."""
    even = np.arange(0, min(len(unit), 2000), 2)
    cosines = unit[even] @ unit.T
    cosines[np.arange(len(even)), even] = -np.inf
    near = np.argpartition(-cosines, 10, axis=1)[:, :10]
    order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1)
    near = np.take_along_axis(near, order, axis=1)
    found = np.take_along_axis(cosines, near, axis=1).astype(np.float32)
    return NearestRows(even, near, found)


def matrix(shape: Shape, n: int, d: int, rng: np.random.Generator) -> Array:
    w = rng.standard_normal((n, d))
    direction = np.ones(d) / np.sqrt(d)
    if shape == "cone":
        # Rare rows sit deeper in the cone and have smaller norms, as in trained models.
        depth = np.linspace(3.0, 9.0, n)[:, None]
        return np.asarray((w + depth * direction) * np.linspace(1.4, 0.7, n)[:, None])
    if shape == "two-sided":
        return np.asarray(w * 0.05 + rng.choice([-1.0, 1.0], n)[:, None] * direction)
    return w


def vocabulary(n: int, hostile: bool) -> tuple[str, ...]:
    words = [f"tok{i}" for i in range(n)]
    if hostile:
        words[: len(HOSTILE)] = HOSTILE[:n]
    return tuple(words)


def without(
    analysis: Analysis, *families: str, reason: str = "skipped with --sections"
) -> Analysis:
    """The analysis as it is when whole families were not asked for."""

    def kept(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(v for v in values if v.quantity.family not in families)

    return replace(
        analysis,
        scalars=kept(analysis.scalars),
        series=kept(analysis.series),
        histograms=kept(analysis.histograms),
        points=kept(analysis.points),
        columns=kept(analysis.columns),
        tables=kept(analysis.tables),
        absent={**analysis.absent, **dict.fromkeys(families, reason)},
    )


def with_scalar(analysis: Analysis, name: str, **changes: Any) -> Analysis:
    """The analysis with fields of one scalar replaced."""
    return replace(
        analysis,
        scalars=tuple(replace(s, **changes) if s.name == name else s for s in analysis.scalars),
    )


def provenance(n: int, d: int, counts: bool, untied: bool) -> dict[str, Any]:
    return {
        "file": "runs/baseline.pt",
        "format": "torch (zip)",
        "tensor": "encoder.weight",
        "stored_shape": [n + 1, d],
        "dtype": "float32",
        "transposed": False,
        "row_range": None,
        "sha256": "0" * 64,
        "n": n + 1,
        "d": d,
        "kept": n,
        "masked": {"padding beyond the vocabulary": 1},
        "seed": 0,
        "command": "embgeo analyze runs/baseline.pt --counts counts.tsv",
        "conventions": {"signs": "each right singular vector has ⟨mean row, v⟩ ≥ 0"},
        "frequency": {
            "kind": "counts", "source": "counts.tsv", "popular_share": 0.2,
            "n_popular": n // 5, "n_rare": n - n // 5, "sha256": "c" * 64,
        } if counts else None,
        "output": {
            "tensor": "decoder.weight", "stored_shape": [n + 1, d], "dtype": "float32",
            "transposed": False,
        } if untied else None,
        "versions": {"embgeo": "0.1.0", "python": "3.11", "numpy": "2.0"},
        "sections": ["spectrum", "projection", "cosine", "isotropy", "frequency", "subspace"],
        "reference": {"rows": n, "note": GAUSSIAN},
        "neighbors_asked": [],
    }  # fmt: skip
