"""Whether 95% intervals hold what they claim in 92 to 98% of draws.

    python benchmarks/coverage.py [--draws N] [--first SEED] [--only TABLE]

Errors over tokens, over matrices drawn from one population; the same over populations that no
error was tuned on, wider and with heavier tails, in four parts; of spectra, over populations
around the heaviest tail that an error holds for; sampling errors, over seeds of one matrix; and
differences, between matrices of one population, between seeds of one matrix, and between two noisy
copies of the same rows. The last column is the mean standard error over the spread that was seen: 1
is right. Errors with the caveat ``conservative_error`` may be too large, which "+" says. "of 14%":
of the draws, which alone have the error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

import embgeo
from embgeo.comparison.compare import compare
from embgeo.comparison.comparison import Comparison, Member
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.numbers import Z_95, student_z
from embgeo.core.options import Options
from embgeo.core.quantities import cosine, frequency, tokens
from embgeo.core.values import ErrorKind, Quantity
from embgeo.result.analysis import Analysis

Rows = npt.NDArray[np.float64]
Population = Callable[[np.random.Generator, Rows], Rows]

ROWS, COLUMNS = 500, 16
#: Of the fixed matrix whose sampling errors are looked at: more rows than are asked.
MANY_ROWS = 3_000
PAIRS = 10_000
SECTIONS = ("spectrum", "cosine", "isotropy", "frequency", "tokens")
LOWEST, HIGHEST = 0.92, 0.98


def draw_log_counts(rng: np.random.Generator, rows: int) -> Rows:
    """Of counts by a Zipf-like law."""
    return rng.exponential(2.0, size=rows)


def isotropic(rng: np.random.Generator, log_counts: Rows) -> Rows:
    return rng.standard_normal((len(log_counts), COLUMNS)) / 2


def cone(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Rows of unlike lengths around a common direction, rare tokens farther along it."""
    rows = isotropic(rng, log_counts)
    rows[:, 0] += 1.0 - 0.2 * log_counts
    return rows * np.exp(0.3 * rng.standard_normal((len(rows), 1)))


def clusters(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Ten clusters of unlike sizes, each with a frequency of its own."""
    centers = np.random.default_rng(10).standard_normal((10, COLUMNS))
    member = np.minimum(rng.geometric(0.25, size=len(log_counts)) - 1, 9)
    member = np.where(rng.random(len(member)) < 0.5, member, np.minimum(log_counts.astype(int), 9))
    return centers[member] / 2 + isotropic(rng, log_counts)


POPULATIONS = (isotropic, cone, clusters)

#: Columns of the populations that no error was tuned on.
WIDE = 24


def turn(rows: Rows) -> Rows:
    """In a fixed basis, so that no direction is a coordinate."""
    basis = np.linalg.qr(np.random.default_rng(24).standard_normal((WIDE, WIDE)))[0]
    return rows @ basis


def heavy(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """A falling spectrum and a cone, norms over a decade, frequent tokens shifted and shorter."""
    rows = rng.standard_normal((len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.3
    rows[:, 2] += 1.0
    rows[:, 5] += 0.15 * log_counts
    norms = np.exp(0.6 * rng.standard_normal(len(rows)) - 0.05 * log_counts)
    return turn(rows * norms[:, None])


def near_equal(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Spikes whose eigenvalues nearly coincide by two and three, with tails of Student's t."""
    spread = np.r_[2.0, 1.98, 1.2, 1.19, 1.18, 0.6 * np.ones(WIDE - 5)]
    rows = rng.standard_t(6.0, (len(log_counts), WIDE)) * spread
    rows[:, 0] += 0.2 * (log_counts - 2.0)
    return turn(rows)


def groups_in_a_cone(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Four tight groups of unlike sizes in one cone, one of them of frequent tokens."""
    member = rng.choice(4, len(log_counts), p=(0.45, 0.3, 0.15, 0.1))
    member = np.where((log_counts > 3.0) & (rng.random(len(member)) < 0.7), 3, member)
    rows = 0.06 * rng.standard_normal((len(log_counts), WIDE))
    rows[np.arange(len(rows)), member] += 1.0
    rows[:, 4] += 0.5
    return turn(rows * np.exp(0.4 * rng.standard_normal((len(rows), 1))))


def mixture(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """A tenth of the rows close to one direction, half as long, rare tokens; the others spread."""
    rows = rng.standard_normal((len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.5
    apart = rng.random(len(rows)) < np.where(log_counts < 0.4, 0.5, 0.01)
    rows[apart] = 0.05 * rows[apart] + 0.4 * np.eye(WIDE)[7]
    return turn(rows)


def two_bands(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Directions of heavy tails; a frequent band, shorter and apart, in a faint cone."""
    rows = rng.standard_t(3.0, (len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.2
    frequent = log_counts > 2.0
    rows[frequent] *= 0.5
    rows[frequent, 1] += 1.2
    rows[frequent, 3] -= 0.8
    rows[:, 8] += 0.5
    return turn(rows)


def codebook(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Few rows, each next to one of 150 centers of rank five and noise: many near-duplicates."""
    fixed = np.random.default_rng(77)
    centers = fixed.standard_normal((150, 5)) @ fixed.standard_normal((5, WIDE))
    centers += 0.5 * fixed.standard_normal(centers.shape)
    member = rng.integers(0, np.where(log_counts > 3.0, 40, 150))
    return centers[member] + 0.02 * rng.standard_normal((len(log_counts), WIDE))


def laplace(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Laplace entries of falling scales in a faint cone, longer rows for frequent tokens."""
    rows = rng.laplace(size=(len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.3
    rows[:, 2] += 0.6
    return turn(rows * np.exp(0.08 * log_counts)[:, None])


def rectified(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Six topics without negative entries, three of them of frequent tokens."""
    topics = np.random.default_rng(5).exponential(size=(6, WIDE))
    kind = rng.integers(0, np.where(log_counts > 2.0, 3, 6))
    rows = topics[kind] + 0.9 * rng.standard_normal((len(log_counts), WIDE))
    return np.maximum(rows - 0.4, 0.0)


def hierarchy(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Kinds, subkinds of Zipf's sizes, and rows around these; frequent tokens in the large."""
    fixed = np.random.default_rng(31)
    kinds = fixed.standard_normal((9, WIDE))
    centers = kinds[fixed.integers(0, 9, 60)] + 0.5 * fixed.standard_normal((60, WIDE))
    sizes = np.arange(1.0, 61) ** -1.1
    member = rng.choice(60, len(log_counts), p=sizes / sizes.sum())
    member = np.where(log_counts > 4.0, member // 4, member)
    spread = fixed.uniform(0.2, 0.6, 60)[member, None]
    return centers[member] + spread * rng.standard_normal((len(log_counts), WIDE))


def recommender(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Seven factors and noise; popular items are longer, along one direction, and less noisy."""
    factors = rng.standard_normal((len(log_counts), 7)) * np.arange(1.0, 8) ** -0.5
    factors[:, 0] += 0.25 * log_counts
    basis = np.linalg.qr(np.random.default_rng(32).standard_normal((WIDE, 7)))[0]
    noise = 0.25 * rng.standard_normal((len(log_counts), WIDE)) / np.sqrt(1.0 + log_counts)[:, None]
    return (factors @ basis.T + noise) * (0.6 + 0.1 * log_counts)[:, None]


def pieces(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Sums of one to six of 90 shared pieces of falling lengths; frequent tokens have fewer."""
    fixed = np.random.default_rng(51)
    parts = fixed.standard_normal((90, WIDE)) * np.linspace(1.4, 0.5, 90)[:, None]
    number = 1 + rng.binomial(5, 1.0 / (1.0 + np.exp(log_counts - 1.5)))
    chosen = np.minimum(rng.exponential(25.0, (len(log_counts), 6)).astype(int), 89)
    used = np.arange(6) < number[:, None]
    rows = np.einsum("rk,rkd->rd", used, parts[chosen]) / np.sqrt(number)[:, None]
    return np.asarray(rows + 0.15 * rng.standard_normal(rows.shape))


def skewed(rng: np.random.Generator, log_counts: Rows) -> Rows:
    """Gamma entries times a strength of the row; a band of columns that rare tokens lack."""
    strength = rng.gamma(6.0, 1.0 / 6.0, len(log_counts))
    scales = np.arange(1.0, WIDE + 1) ** -0.25
    rows = (rng.gamma(3.0, 1.0, (len(log_counts), WIDE)) - 2.4) * scales
    rows[:, 6:10] *= np.minimum(log_counts, 3.0)[:, None] / 2.0
    rows[:, 1] -= 0.3 * log_counts
    return turn(rows * np.sqrt(strength)[:, None])


#: Of these no limit and no factor was chosen.
UNSEEN = (heavy, near_equal, groups_in_a_cone, mixture)
#: Nor of these, which were written after the errors held on the others: first two, then two.
LATER = (two_bands, codebook, laplace, rectified)
#: And of these two, which were written after the errors held on all others.
LAST = (hierarchy, recommender)
#: Two more, after the errors of spectra, of dimensions and of an AUC near 1 had been changed.
FRESH = (pieces, skewed)
#: Rows of a population, where they are not `ROWS`.
SIZES: dict[Population, int] = {
    codebook: 200, laplace: 800, rectified: 800, hierarchy: 600, recommender: 700,
    pieces: 600, skewed: 700}  # fmt: skip


def student(degrees: float, decay: float) -> Population:
    """Entries of Student's t, with falling scales; the spectrum is flat without a decay."""

    def draw(rng: np.random.Generator, log_counts: Rows) -> Rows:
        scales = np.arange(1.0, WIDE + 1) ** -decay
        return rng.standard_t(degrees, (len(log_counts), WIDE)) * scales

    draw.__name__ = f"t({degrees:g}){', falling' if decay else ''}"
    return draw


def elliptical(degrees: float) -> Population:
    """Rows of Student's t: one chi-square for each row."""

    def draw(rng: np.random.Generator, log_counts: Rows) -> Rows:
        rows = rng.standard_normal((len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.3
        return rows * np.sqrt(degrees / rng.chisquare(degrees, (len(rows), 1)))

    draw.__name__ = f"rows of t({degrees:g})"
    return draw


def lognormal(spread: float) -> Population:
    """Gaussian rows with lognormal factors."""

    def draw(rng: np.random.Generator, log_counts: Rows) -> Rows:
        rows = rng.standard_normal((len(log_counts), WIDE)) * np.arange(1.0, WIDE + 1) ** -0.3
        return rows * np.exp(spread * rng.standard_normal((len(rows), 1)))

    draw.__name__ = f"lognormal({spread:g})"
    return draw


#: Around the limits of errors of spectra, which were chosen on such populations.
TAILS = (
    *(student(degrees, decay) for degrees in (3.0, 4.0, 5.0) for decay in (0.0, 0.4)),
    elliptical(4.0),
    elliptical(6.0),
    lognormal(0.4),
    lognormal(0.5),
)


def draw_matrix(population: Population, seed: int, rows: int = 0) -> Matrix:
    rng = np.random.default_rng([seed, 0xC0])
    log_counts = draw_log_counts(rng, rows or SIZES.get(population, ROWS))
    counts = Frequency("counts", np.round(10.0 * np.exp(log_counts)), "drawn")
    return Matrix(population(rng, log_counts), frequency=counts)


def measure(
    matrix: Matrix, seed: int, sections: Sequence[str] = SECTIONS, **more: object
) -> Analysis:
    options = Options(**{"seed": seed, "pairs": PAIRS} | more)  # type: ignore[arg-type]
    return embgeo.analyze(matrix, sections=sections, options=options, reference=False)


def cover(
    analyses: Sequence[Analysis], kind: ErrorKind, truth: dict[str, float]
) -> Iterator[tuple[str, float, float, float]]:
    """Of each number with such an error: share of intervals that hold the truth, error/spread, and
    share of the draws that have one.

    Where no truth is known it is the mean over the draws. A number that has no error in some draws
    is judged by those that have one.
    """
    for scalar in analyses[0].scalars:
        found = [s for a in analyses if (s := a.scalar(scalar.name)) is not None]
        values = np.array([np.nan if s.value is None else s.value for s in found])
        errors = np.array([s.errors.get(kind, np.nan) for s in found])
        known = np.isfinite(errors)
        if not known.any():
            continue
        freedom = next((s.freedom for s in found if s.freedom is not None), None)
        reach = student_z(Z_95, freedom if kind == "monte_carlo" else None)
        middle = truth.get(scalar.name, float(np.nanmean(values)))
        held = float(np.mean(np.abs(values - middle)[known] <= reach * errors[known]))
        ratio = float(errors[known].mean() / np.nanstd(values, ddof=1))
        yield scalar.name, held, ratio, float(known.mean())


def show(
    title: str,
    name: str,
    held: float,
    ratio: float,
    share: float = 1.0,
    *,
    conservative: bool = False,
) -> None:
    highest = 1.0 if conservative else HIGHEST
    mark = ("  +" if conservative else "") + ("" if LOWEST <= held <= highest else "  <--")
    mark = (f"  of {100 * share:.0f}%" if share < 1.0 else "") + mark
    print(f"  {title:<18}{name:<44}{100 * held:7.1f}%{ratio:8.2f}{mark}", flush=True)


def is_conservative(analyses: Sequence[Analysis], name: str) -> bool:
    """Whether most of them that have an error of a number say so."""
    found = [s for a in analyses if (s := a.scalar(name)) is not None]
    stated = ["conservative_error" in s.caveats for s in found if s.errors.get("population")]
    return 2 * sum(stated) > len(stated)


def show_unseen_populations(draws: int, first: int = 0) -> None:
    """Without all pairs, whose errors the tests compare with the literal jackknife."""
    show_population_errors(draws, first, UNSEEN, WIDE, all_pairs=False)


def show_later_populations(draws: int, first: int = 0) -> None:
    show_population_errors(draws, first, LATER, WIDE)


def show_last_populations(draws: int, first: int = 0) -> None:
    show_population_errors(draws, first, LAST, WIDE)


def show_fresh_populations(draws: int, first: int = 0) -> None:
    show_population_errors(draws, first, FRESH, WIDE, all_pairs=False)


def show_tails(draws: int, first: int = 0) -> None:
    sections = ("spectrum", "isotropy")
    show_population_errors(draws, first, TAILS, WIDE, all_pairs=False, sections=sections)


def show_population_errors(
    draws: int,
    first: int = 0,
    populations: Sequence[Population] | None = None,
    columns: int = COLUMNS,
    all_pairs: bool = True,
    sections: Sequence[str] = SECTIONS,
) -> None:
    for population in populations or POPULATIONS:
        rows = SIZES.get(population, ROWS)
        print(f"errors over tokens: {draws} matrices of {rows} × {columns}")
        matrices = [draw_matrix(population, first + s) for s in range(draws)]
        found = [measure(matrix, s, sections) for s, matrix in enumerate(matrices)]
        tables = {"": found}
        if all_pairs:
            every = [measure(matrix, 0, ("cosine",), pairs=None) for matrix in matrices]
            tables["all pairs: "] = every
        for title, analyses in tables.items():
            for name, held, ratio, share in cover(analyses, "population", {}):
                conservative = is_conservative(analyses, name)
                of = population.__name__
                show(of, title + name, held, ratio, share, conservative=conservative)


def find_truth(matrix: Matrix) -> dict[str, float]:
    """What the sampled numbers of a matrix are estimates of, from everything there is."""
    every = measure(matrix, 0, pairs=None, neighbors_of="all")
    sampled: tuple[Quantity, ...] = (
        cosine.POSITIVE_SHARE,
        cosine.UNIFORMITY,
        frequency.NEIGHBOR_RARITY_RARE,
        frequency.NEIGHBOR_RARITY_POPULAR,
        tokens.INTRINSIC_DIMENSION,
        tokens.HUBNESS,
    )
    return {q.name: float(s) for q in sampled if (s := every.scalar(q)) is not None}


def show_sampling_errors(draws: int, first: int = 0) -> None:
    print(f"sampling errors: {draws} seeds of a matrix of {MANY_ROWS} × {COLUMNS}")
    for population in POPULATIONS:
        matrix = draw_matrix(population, first, MANY_ROWS)
        found = [measure(matrix, s, isotropy_rows=300) for s in range(draws)]
        for name, held, ratio, share in cover(found, "monte_carlo", find_truth(matrix)):
            show(population.__name__, name, held, ratio, share)


def compare_matrices(matrices: tuple[Matrix, Matrix], seeds: tuple[int, int]) -> Comparison:
    inputs = [
        (Member(name, name, measure(matrix, seed)), matrix)
        for name, matrix, seed in zip("ab", matrices, seeds, strict=True)
    ]
    return compare(inputs, queries=0)


def is_flagged(found: Comparison) -> bool:
    return any(row.change == "significant" for row in found.differences)


def show_differences(draws: int, first: int = 0) -> None:
    print(f"differences: {draws} comparisons; share that calls anything significant")
    for population in POPULATIONS:
        two = (
            compare_matrices(
                (draw_matrix(population, s), draw_matrix(population, s + draws)), (0, 0)
            )
            for s in range(first, first + draws)
        )
        flagged = float(np.mean([is_flagged(found) for found in two]))
        print(f"  {population.__name__:<12}two draws of the population{100 * flagged:10.1f}%")
        drawn = (draw_matrix(population, first + s) for s in range(draws))
        same = (compare_matrices((m, m), (0, 1)) for m in drawn)
        flagged = float(np.mean([is_flagged(found) for found in same]))
        print(f"  {population.__name__:<12}two seeds of one matrix{100 * flagged:14.1f}%")


def copy_twice(matrix: Matrix, seed: int) -> tuple[Matrix, Matrix]:
    """The same rows with noise of two kinds: differences that are not 0."""
    rng = np.random.default_rng([seed, 0xD1])
    rows = matrix.take(np.arange(matrix.n))
    noise = 0.2 * rng.standard_normal((2, *rows.shape))
    noise[1] += 0.05
    one, two = (Matrix(rows + part, frequency=matrix.frequency) for part in noise)
    return one, two


def show_paired_differences(draws: int, first: int = 0) -> None:
    print(f"paired differences: two noisy copies of the rows of {draws} matrices")
    for population in POPULATIONS:
        seeds = range(first, first + draws)
        made = [compare_matrices(copy_twice(draw_matrix(population, s), s), (0, 0)) for s in seeds]
        for place, one in enumerate(made[0].differences):
            rows = [found.differences[place] for found in made]
            if any(row.p_value is None for row in rows):
                continue
            values = np.array([row.difference for row in rows], dtype=float)
            errors = np.array([row.standard_error for row in rows], dtype=float)
            held = float(np.mean(np.abs(values - values.mean()) <= Z_95 * errors))
            ratio = float(errors.mean() / values.std(ddof=1))
            members = [member.analysis for found in made for member in found.members]
            conservative = is_conservative(members, one.name)
            show(population.__name__, one.name, held, ratio, conservative=conservative)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=500_000, help="first seed of the matrices")
    tables = {
        "tokens": show_population_errors,
        "unseen": show_unseen_populations,
        "later": show_later_populations,
        "last": show_last_populations,
        "fresh": show_fresh_populations,
        "tails": show_tails,
        "sampling": show_sampling_errors,
        "differences": show_differences,
        "paired": show_paired_differences,
    }
    parser.add_argument("--only", choices=tables)
    options = parser.parse_args()
    for name, table in tables.items():
        if options.only in (None, name):
            table(options.draws, options.first)


if __name__ == "__main__":
    main()
