"""Whether 95% intervals over tokens hold what they claim: how often, and how wide they are.

    python benchmarks/coverage.py [tokens | pairs | flags] [--population NAME …] [--rows N]
        [--draws N] [--first SEED]

`tokens`: matrices drawn from one population; the truth is the mean over the draws. `pairs`: two
matrices with noise of their own over vocabularies that share four fifths of their tokens.
`flags`: comparisons that call anything significant, of two draws of a population and of one matrix
measured with two seeds. A line says in how many of 100 draws value ± 2.13 errors hold the truth,
how wide the intervals are (1: 1.96 standard deviations of the values), and how many of 100 draws
have the error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import numpy as np
import numpy.typing as npt

import embgeo
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import differences
from embgeo.comparison.matching import match_rows
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.numbers import Z_95, student_z
from embgeo.core.options import Options
from embgeo.core.values import FREEDOM
from embgeo.measure import passes
from embgeo.metrics import (
    FAMILIES,
    cosine,
    dimension,
    frequency,
    isotropy,
    neighbors,
    probe,
    spectrum,
)
from embgeo.result.analysis import Analysis

Rows = npt.NDArray[np.float64]
Population = Callable[[np.random.Generator, Rows], Rows]
COLUMNS = 24
#: Families whose numbers have errors over tokens.
MEASURED = (spectrum, cosine, isotropy, frequency, probe, neighbors, dimension)
BASIS = np.linalg.qr(np.random.default_rng(24).standard_normal((COLUMNS, COLUMNS)))[0]
FALLING = np.arange(1.0, COLUMNS + 1)


def isotropic(rng: np.random.Generator, log_counts: Rows) -> Rows:
    return rng.standard_normal((len(log_counts), COLUMNS)) / 2


def cone(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Rows of unlike lengths around a common direction, rare tokens farther along it."""
    found = isotropic(rng, log_counts)
    found[:, 0] += 1.0 - 0.2 * log_counts
    return found * np.exp(0.3 * rng.standard_normal((len(found), 1)))


def language_model(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """A cone with a rogue coordinate, and rare tokens short and aside."""
    n = len(log_counts)
    found = rng.standard_normal((n, COLUMNS)) * FALLING**-0.4 * rng.gamma(10, 0.1, (n, 1))
    found[:, 0] += 2.0 - 0.15 * log_counts
    found[:, 9] *= 3.5
    found[:, 5] += 0.3 * np.minimum(log_counts, 4.0)
    rare = rng.random(n) < np.where(log_counts < 0.5, 0.4, 0.01)
    found[rare] = 0.08 * found[rare] + 1.1 * np.eye(COLUMNS)[7] + 0.5 * np.eye(COLUMNS)[0]
    return found @ BASIS


def heavy(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """A falling spectrum and a cone, norms over a decade, frequent tokens shifted and shorter."""
    found = rng.standard_normal((len(log_counts), COLUMNS)) * FALLING**-0.3
    found[:, 2] += 1.0
    found[:, 5] += 0.15 * log_counts
    norms = np.exp(0.6 * rng.standard_normal(len(found)) - 0.05 * log_counts)
    return found * norms[:, None] @ BASIS


def near_equal(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Spikes whose eigenvalues nearly coincide by two and three, with tails of Student's t."""
    spread = np.r_[2.0, 1.98, 1.2, 1.19, 1.18, 0.6 * np.ones(COLUMNS - 5)]
    found = rng.standard_t(6.0, (len(log_counts), COLUMNS)) * spread
    found[:, 0] += 0.2 * (log_counts - 2.0)
    return found @ BASIS


def groups(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Four tight groups of unlike sizes in one cone, one of them of frequent tokens."""
    member = rng.choice(4, len(log_counts), p=(0.45, 0.3, 0.15, 0.1))
    member = np.where((log_counts > 3.0) & (rng.random(len(member)) < 0.7), 3, member)
    found = 0.06 * rng.standard_normal((len(log_counts), COLUMNS))
    found[np.arange(len(found)), member] += 1.0
    found[:, 4] += 0.5
    return found * np.exp(0.4 * rng.standard_normal((len(found), 1))) @ BASIS


def mixture(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """A tenth of the rows close to one direction, half as long, rare tokens; the others spread."""
    found = rng.standard_normal((len(log_counts), COLUMNS)) * FALLING**-0.5
    apart = rng.random(len(found)) < np.where(log_counts < 0.4, 0.5, 0.01)
    found[apart] = 0.05 * found[apart] + 0.4 * np.eye(COLUMNS)[7]
    return found @ BASIS


def codebook(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Each row next to one of 150 centers of rank five and noise: many near-duplicates."""
    fixed = np.random.default_rng(77)
    centers = fixed.standard_normal((150, 5)) @ fixed.standard_normal((5, COLUMNS))
    centers += 0.5 * fixed.standard_normal(centers.shape)
    member = rng.integers(0, np.where(log_counts > 3.0, 40, 150))
    return centers[member] + 0.02 * rng.standard_normal((len(log_counts), COLUMNS))


def laplace(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Laplace entries of falling scales in a faint cone, longer rows for frequent tokens."""
    found = rng.laplace(size=(len(log_counts), COLUMNS)) * FALLING**-0.3
    found[:, 2] += 0.6
    return found * np.exp(0.08 * log_counts)[:, None] @ BASIS


def hierarchy(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Kinds, subkinds of Zipf's sizes, and rows around these; frequent tokens in the large."""
    fixed = np.random.default_rng(31)
    kinds = fixed.standard_normal((9, COLUMNS))
    centers = kinds[fixed.integers(0, 9, 60)] + 0.5 * fixed.standard_normal((60, COLUMNS))
    sizes = np.arange(1.0, 61) ** -1.1
    member = rng.choice(60, len(log_counts), p=sizes / sizes.sum())
    member = np.where(log_counts > 4.0, member // 4, member)
    spread = fixed.uniform(0.2, 0.6, 60)[member, None]
    return centers[member] + spread * rng.standard_normal((len(log_counts), COLUMNS))


def recommender(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Seven factors and noise; popular items are longer, along one direction, and less noisy."""
    factors = rng.standard_normal((len(log_counts), 7)) * np.arange(1.0, 8) ** -0.5
    factors[:, 0] += 0.25 * log_counts
    noise = 0.25 * rng.standard_normal((len(log_counts), COLUMNS))
    noise /= np.sqrt(1.0 + log_counts)[:, None]
    return (factors @ BASIS[:7] + noise) * (0.6 + 0.1 * log_counts)[:, None]


def skewed(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Gamma entries times a strength of the row; a band of columns that rare tokens lack."""
    strength = rng.gamma(6.0, 1.0 / 6.0, len(log_counts))
    found = (rng.gamma(3.0, 1.0, (len(log_counts), COLUMNS)) - 2.4) * FALLING**-0.25
    found[:, 6:10] *= np.minimum(log_counts, 3.0)[:, None] / 2.0
    found[:, 1] -= 0.3 * log_counts
    return found * np.sqrt(strength)[:, None] @ BASIS


def tails(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Entries of Student's t with three degrees: the longest rows decide."""
    return rng.standard_t(3.0, (len(log_counts), COLUMNS)) * FALLING**-0.4


def families(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """One to five near variants of one stem, with counts near each other."""
    member = draw_stems(rng, len(log_counts))
    scales = FALLING**-0.35
    found = (rng.standard_normal((len(member), COLUMNS)) * scales)[member]
    found += 0.35 * rng.standard_normal((len(member), COLUMNS)) * scales
    found[:, 3] += 0.8
    log_counts[:] = 0.8 * log_counts[member] + 0.2 * log_counts
    norms = np.exp(0.25 * rng.standard_normal(len(member))[member])
    return found * norms[:, None] @ BASIS


POPULATIONS = {
    population.__name__: population
    for population in (
        isotropic, cone, language_model, heavy, near_equal, groups, mixture, codebook, laplace,
        hierarchy, recommender, skewed, tails, families,
    )
}  # fmt: skip


def draw_stems(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(count), rng.integers(1, 6, count))[:count]


def draw_rows(name: str, seed: int, count: int) -> tuple[Rows, Rows, list[str]]:
    """Rows, logarithms of counts, and tokens, whose stems are the families where there are some."""
    rng = np.random.default_rng([seed, 0xC0])
    log_counts = rng.exponential(2.0, size=count)
    drawn = np.random.default_rng([seed, 0xC0, 1])
    stems = draw_stems(np.random.default_rng([seed, 0xC0, 1]), count)
    found = POPULATIONS[name](drawn, log_counts)
    # Tokens of draws are others: so are their halves.
    names = rng.permutation(10**5)[:count]
    of = stems if name == "families" else np.arange(count)
    letters = str.maketrans("0123456789", "abcdefghij")
    tokens = [f"{names[stem]:05d}{place:05d}".translate(letters) for place, stem in enumerate(of)]
    return found, log_counts, tokens


def measure(found: Rows, log_counts: Rows, tokens: Sequence[str], seed: int) -> Analysis:
    counts = Frequency("counts", np.round(10.0 * np.exp(log_counts)), "drawn")
    matrix = Matrix(found, tokens=tuple(tokens), frequency=counts)
    chosen = tuple(family for family in FAMILIES if family in {m.FAMILY for m in MEASURED})
    with mock.patch.object(passes, "FAMILIES", chosen):
        options = Options(seed=seed)
        sections = sorted({family.section for family in chosen})
        return embgeo.analyze(matrix, sections=sections, options=options, reference=False)


def show(name: str, values: Rows, errors: Rows) -> None:
    """Show the share of intervals that hold the mean, their width, and the share of draws."""
    known = np.isfinite(errors)
    if not known.any():
        return
    reach = student_z(Z_95, FREEDOM) * errors
    held = np.abs(values - np.nanmean(values))[known] <= reach[known]
    width = reach[known].mean() / Z_95 / np.nanstd(values, ddof=1)
    mark = "" if 92.0 <= 100 * held.mean() <= 98.0 else "  <--"
    line = f"{100 * held.mean():7.1f}{width:7.2f}{100 * known.mean():7.0f}{mark}"
    print(f"  {name:<44}{line}", flush=True)


def collect(rows_of: Sequence[dict[str, tuple[float | None, float | None]]]) -> Iterator[str]:
    for name in dict.fromkeys(name for one in rows_of for name in one):
        found = [one.get(name, (None, None)) for one in rows_of]
        values, errors = (
            np.array([np.nan if x is None else x for x in side])
            for side in zip(*found, strict=True)
        )
        show(name, values, errors)
        yield name


def show_tokens(name: str, count: int, draws: int, first: int) -> None:
    print(f"{name}: {draws} matrices of {count:,} × {COLUMNS}", flush=True)
    found = [measure(*draw_rows(name, first + s, count), 0) for s in range(draws)]
    numbers = [{s.name: (s.value, s.population_error) for s in a.scalars} for a in found]
    list(collect(numbers))


def draw_pair(name: str, seed: int, count: int) -> tuple[Analysis, Analysis]:
    """Two noisy copies of rows, of which each has some that the other has not."""
    found, log_counts, tokens = draw_rows(name, seed, count)
    rng = np.random.default_rng([seed, 0xD1])
    noise = 0.2 * found.std() * rng.standard_normal((2, *found.shape))
    noise[1] += 0.05 * found.std()
    kept = rng.permutation(count)
    tenth = count // 9
    sides = np.sort(kept[tenth:]), np.sort(kept[:-tenth])
    first, second = (
        measure((found + part)[at], log_counts[at], [tokens[i] for i in at], 0)
        for part, at in zip(noise, sides, strict=True)
    )
    return first, second


def compare(first: Analysis, second: Analysis) -> dict[str, tuple[float | None, float | None]]:
    members = [Member("a", "a", first), Member("b", "b", second)]
    found = differences(members, {1: match_rows(first, second)})
    return {
        one.name: (one.difference, one.standard_error if one.error_kind == "population" else None)
        for one in found
    }


def show_pairs(name: str, count: int, draws: int, first: int) -> None:
    print(f"{name}: differences of {draws} pairs of {count * 8 // 9:,} × {COLUMNS}", flush=True)
    list(collect([compare(*draw_pair(name, first + s, count)) for s in range(draws)]))


def show_flags(name: str, count: int, draws: int, first: int) -> None:
    def is_flagged(one: Analysis, other: Analysis) -> bool:
        members = [Member("a", "a", one), Member("b", "b", other)]
        found = differences(members, {1: match_rows(one, other)})
        return any(row.change == "significant" for row in found)

    seeds = range(first, first + draws)
    drawn = [draw_rows(name, seed, count) for seed in seeds]
    once = [measure(*one, 0) for one in drawn]
    again = [measure(*one, 1) for one in drawn]
    others = [measure(*draw_rows(name, seed + 10**6, count), 0) for seed in seeds]
    for title, pairs in (("two draws", others), ("two seeds of one matrix", again)):
        share = np.mean([is_flagged(a, b) for a, b in zip(once, pairs, strict=True)])
        print(f"{name}: {title}: {100 * share:.1f}% call anything significant", flush=True)


TABLES = {"tokens": show_tokens, "pairs": show_pairs, "flags": show_flags}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", nargs="?", choices=TABLES, default="tokens")
    parser.add_argument("--population", nargs="*", choices=POPULATIONS, default=[*POPULATIONS])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=500_000, help="first seed of the matrices")
    options = parser.parse_args()
    for name in options.population:
        TABLES[options.table](name, options.rows, options.draws, options.first)


if __name__ == "__main__":
    main()
