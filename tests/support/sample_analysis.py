"""A complete analysis of a small made-up matrix, for tests of whatever reads a saved result."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.result.analysis import Analysis

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
def sample(shape: Shape = "cone", **how: Any) -> Analysis:
    """An analysis that holds every value there is, of a matrix as `sample_matrix` makes it."""
    made = sample_matrix(shape, **how)
    asked = tuple((token, ()) for token in (made.tokens or ())[:2] if made.frequency is not None)
    options = Options(pairs=20_000, show_neighbors=asked)
    return analyze(made, options=options, command="embgeo analyze runs/baseline.pt")


@cache
def sample_matrix(
    shape: Shape = "cone",
    *,
    n: int = 600,
    d: int = 16,
    hostile: bool = False,
    counts: bool = True,
    untied: bool = True,
    seed: int = 0,
) -> Matrix:
    """A matrix of the given shape; another `seed` has other tokens in its last ten rows."""
    rng = np.random.default_rng(seed)
    # A row beyond the vocabulary is masked.
    w = np.concatenate([matrix(shape, n, d, rng), np.zeros((1, d))])
    occurrences = np.maximum(0.0, np.floor(60.0 * n / (1.0 + np.arange(n + 1)) ** 1.05))
    words = vocabulary(n, hostile)
    if seed:
        words = (*words[:-10], *(f"{word}'" for word in words[-10:]))
    return Matrix(
        w.astype(np.float32),
        name="baseline",
        tokens=(*words, "<pad>"),
        frequency=Frequency("counts", occurrences, "counts.tsv") if counts else None,
        masked={"padding beyond the vocabulary": np.array([n])},
        output=Matrix(rng.standard_normal((n + 1, d)), name="output") if untied else None,
        origin=Origin(
            "runs/baseline.pt", "torch (zip)", "encoder.weight", (n + 1, d), "float32", "0" * 64
        ),
    )


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
        treated=(),
        treated_places=None,
    )


def with_scalar(analysis: Analysis, name: str, **changes: Any) -> Analysis:
    """The analysis with fields of one scalar replaced."""
    return replace(
        analysis,
        scalars=tuple(replace(s, **changes) if s.name == name else s for s in analysis.scalars),
    )
