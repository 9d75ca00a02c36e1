"""Norms, extreme rows, and the fit with the tokenizer (definitions, sections 8 and 10).

Examples
--------
>>> import embgeo
>>> W = np.array([[3.0, 4.0], [0.0, 0.0], [3.0, 4.0], [np.nan, 1.0], [1.0, 0.0]])
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> found["tokens.norm"].values.tolist()
[5.0, 5.0, 1.0]
>>> found["tokens.norm_median"].value
3.0
"""

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Column, Histogram, Quantity, Scalar, Table, Value
from embgeo.metrics.by_half import ByHalf, add_errors
from embgeo.metrics.cosine import round_range
from embgeo.metrics.facts import Facts, note_shown
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import norms, row_sums
from embgeo.numerics.halves import HALVES
from embgeo.numerics.row_norms import find_norm_gap, measure_log_norms, root_mean_square
from embgeo.stats.statistic import Statistic

SHOWN = 10
SHOWN_UNREACHABLE = 30
WITH_ERRORS = (q.NORM_MEDIAN, q.NORM_RMS)
FEW_ROWS = "fewer than 20 rows: 5% of them is less than one row"


def second(m: Measurement) -> list[Statistic]:
    return m.shared.request_mean_angles()


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    lengths = shared.norms
    shortest, longest = float(lengths.min()), float(lengths.max())
    if 0.0 < 100.0 * shortest <= longest:
        # One long row would leave all others in one bin.
        ends = round_range(np.log10(shortest), np.log10(longest), -np.inf, np.inf)
        bins = np.logspace(*ends, 61)
    else:
        bins = np.linspace(*round_range(shortest, longest, 0.0, np.inf), 61)
    # A rounded logarithm may leave a norm outside.
    counts, edges = np.histogram(np.clip(lengths, bins[0], bins[-1]), bins=bins)
    values: list[Value] = [
        *compare_tokenizer(facts, shared.norms),
        *add_errors(m, describe_norms(facts, lengths), WITH_ERRORS, lambda: measure_halves(m)),
        *measure_long_rows(lengths, facts.d),
        Column(q.NORM, facts.take_listed(lengths), "‖w‖"),
        Histogram(q.NORMS, edges, counts.astype(np.float64), "‖w‖", "tokens"),
        tabulate_extremes(facts, q.SMALLEST_NORMS, lengths, "‖w‖"),
        tabulate_extremes(facts, q.LARGEST_NORMS, -lengths, "‖w‖"),
    ]
    if shared.mean_angles is not None:
        angles = np.degrees(shared.mean_angles)
        values.append(tabulate_extremes(facts, q.NEAREST_TO_MEAN, angles, "angle (°)"))
    return values


def compare_tokenizer(facts: Facts, lengths: FloatArray) -> list[Value]:
    """Compare the matrix with its tokenizer: missing rows, tying, unreachable tokens."""
    values: list[Value] = []
    if facts.vocabulary_size is not None:
        values.append(q.MISSING_ROWS.measured(max(0, facts.vocabulary_size - facts.n)))
    if facts.tied_as_configured is not None:
        values.append(q.TIED_AS_CONFIGURED.measured(float(facts.tied_as_configured)))
    return [*values, *list_unreachable(facts, lengths)]


def list_unreachable(facts: Facts, lengths: FloatArray) -> list[Value]:
    """List tokens that no text is encoded to, by a round trip through the tokenizer."""
    if facts.unreachable is None:
        return []
    if isinstance(facts.unreachable, str):
        return [q.UNREACHABLE_ROWS.undefined(facts.unreachable)]
    rows = np.array(facts.unreachable, dtype=np.int64)
    counted = q.UNREACHABLE_ROWS.measured(int(np.isin(rows, facts.vocabulary).sum()))
    at = np.flatnonzero(np.isin(facts.kept, rows))
    at = at[np.argsort(-lengths[at], kind="stable")][:SHOWN_UNREACHABLE]
    if not len(at):
        return [counted]
    lines = facts.list_rows(at, lengths[at].tolist())
    columns = ("row", "token", "count", "‖w‖")
    note = note_shown(len(rows), "tokens", SHOWN_UNREACHABLE)
    return [counted, Table(q.UNREACHABLE, columns, lines, note=note)]


def describe_norms(facts: Facts, lengths: FloatArray) -> list[Scalar]:
    """Describe the norms of the rows of the vocabulary; `lengths`: of kept rows."""
    known = np.concatenate([lengths, facts.small_norms, np.zeros(len(facts.zero))])
    return [
        q.NORM_MEDIAN.measured(float(np.median(known))),
        q.NORM_RMS.measured(root_mean_square(lengths)),
        q.NORM_VARIATION.measured(measure_variation(lengths)),
        measure_gap(facts, lengths),
    ]


def measure_gap(facts: Facts, lengths: FloatArray) -> Scalar:
    """Measure the decades between damaged and other norms, or the widest gap without any.

    Zero norms, infinitely many decades away, do not count.
    """
    if len(facts.small_norms):
        decades = float(np.log10(lengths.min()) - np.log10(facts.small_norms.max()))
        return q.DAMAGED_GAP.measured(decades)
    gap = find_norm_gap(lengths)
    return q.DAMAGED_GAP.undefined(FEW_ROWS) if gap is None else q.DAMAGED_GAP.measured(gap.decades)


def measure_halves(m: Measurement) -> ByHalf:
    """Measure the norms of each half, of kept rows."""
    groups, lengths = m.facts.kept_groups, m.shared.norms
    if groups is None:
        return {}
    parts = [lengths[half[groups]] for half in HALVES]
    return {
        q.NORM_MEDIAN: np.array([*map(np.median, parts)]),
        q.NORM_RMS: np.array([*map(root_mean_square, parts)]),
    }


def measure_variation(lengths: FloatArray) -> float:
    """Measure the standard deviation over the mean."""
    relative = lengths / lengths.max()
    return float(relative.std() / relative.mean())


def measure_long_rows(lengths: FloatArray, d: int) -> list[Scalar]:
    """Count how many rows are longer than lognormal norms would be, and what they hold."""
    is_long = measure_log_norms(lengths, d).is_long
    energy = np.square(lengths / lengths.max())
    return [
        q.LONG_ROWS.measured(int(is_long.sum())),
        q.LONG_ROWS_ENERGY.measured(float(energy[is_long].sum() / energy.sum())),
    ]


def tabulate_extremes(facts: Facts, quantity: Quantity, keys: FloatArray, label: str) -> Table:
    """Return the rows of smallest key; negated keys give the largest first."""
    at = np.argsort(keys, kind="stable")[:SHOWN]
    rows = facts.list_rows(at, np.abs(keys[at]).tolist())
    return Table(quantity, ("row", "token", "count", label), rows)


FAMILY = Family("tokens", compute, first=(norms, row_sums), second=second)
