"""Suspects: the rows that stand out, each with the most serious reason (definitions, section 10).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((200, 32))
>>> W[3], W[4], W[5], W[6] = 0.0, 1e-17 * W[4], 0.5, W[7]
>>> W[8] = np.delete(W, [3, 4, 8], axis=0).mean(axis=0)
>>> found = embgeo.analyze(W, sections=["suspects"], reference=False)
>>> [(own.reason, own.rows.tolist()) for own in found.suspects][:3]
[('zero', [3]), ('damaged', [4]), ('constant', [5])]
>>> [(own.reason, own.rows.tolist()) for own in found.suspects][3:]
[('mean', [8]), ('duplicate', [7])]
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import suspects as q
from embgeo.core.special import classify_token
from embgeo.core.suspects import REASONS, Reason, Suspects, count_serious
from embgeo.core.values import Known, Scalar, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes, norms, row_sums
from embgeo.numerics import clumps
from embgeo.numerics.near_identical import (
    NearGroups,
    draw_axes,
    explain_ordinary,
    find_near_groups,
    unit,
)
from embgeo.numerics.row_norms import find_initial_rows, measure_log_norms, root_mean_square
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.scores import auc
from embgeo.numerics.spectra import average_cosine, compute_largest_p
from embgeo.stats import AngleAfterRemoval, UnitProjections
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

#: Largest standard deviation of a constant row's entries, as a share of its norm.
CONSTANT = 1e-8
#: Rows of which pairs of entries tell how many rows are constant by chance.
COMPARED = 300
#: Rows read at once.
STEP = 1024
#: Rows at the mean are nearer to it than this share of the median distance, where that is within
#: rounding, …
NEARER = 0.1
#: … or than both shares, of the median distance and of the length of the mean: transformers draws
#: new rows with 3e-5 of the distance. Groups of rows that equal each other may be farther.
NEAR, OF_ITS_LENGTH = 3e-3, 0.25
NEAR_AS_GROUP = 0.05
#: Rows of fewer dimensions come as near by chance.
LEAST_COLUMNS = 3
#: Rows that may be at the mean and are read, at most.
MOST_CANDIDATES = 100_000
#: Sample of the rows that may be an initialization: this many entries at most, within bounds.
SAMPLE_ENTRIES = 2**20
SAMPLE = (300, 2000)
#: Least number of rows below a gap of norms, and the chance of such a gap in one matrix.
FEWEST, GAP_CHANCE = 5, 1e-3
#: Least number of added rows, and of their columns: fewer have norms of any length by chance.
LEAST_ADDED, LEAST_WIDTH = 30, 16
#: How many standard errors their root mean square norm is from that of the others: rows drawn from
#: the others' covariance have the same.
OTHER_LENGTH = 6.0
#: Standard errors within which a mean cosine is chance, and the least chance of a top eigenvalue.
ERRORS, LEAST_P = 3.0, 0.01
#: Factor between norms from which rows are much longer or shorter than the others.
MUCH = 4.0
#: Tokens known to be unused that show where such rows lie, the share of them that may lie farther
#: out, and of all others that may lie among them, and how much farther a like row may lie.
LEAST_UNUSED, FEW_AMONG, WIDER = 10, 0.05, 1.25
#: Share of the unused tokens in a clump, or chance that other tokens are more frequent than its
#: own, from which training hardly touched it.
MOST_OF_UNUSED, RARER = 0.5, 0.9
#: The mean cosine of fewer rows is chance.
LEAST_OTHERS = 10
#: Mean cosine of a degenerate cone, and how many standard deviations nearer to the mean direction
#: than half of the rows those are that make it.
CONE, DEVIATIONS = 0.3, 5.0
IN_PARTS = "the rows lie in parts: near-identical rows are not searched"
#: Roles of tokens that prompts use, whatever their spelling.
IN_PROMPTS = frozenset(
    {"bos", "eos", "pad", "unk", "cls", "sep", "mask", "additional", "special", "template"}
)


def second(m: Measurement) -> list[Statistic]:
    facts, shared = m.facts, m.shared
    if not facts.m:
        return []
    requested = [*shared.request_mean_distances(), *shared.request_mean_angles()]
    if not explain_not_searched(m):
        requested.append(UnitProjections("near-identical rows", draw_axes(facts.d)))
    unused, mean = draw_unused(facts), shared.mean_direction
    if len(unused) and mean is not None:
        center = m.reader.take_unit(unused).sum(axis=0)
        center -= mean * (mean @ center)
        if (apart := float(np.linalg.norm(center))) > 1e-9 * len(unused):
            requested.append(AngleAfterRemoval("unused", center / apart, mean))
    return requested


def rows_read(m: Measurement) -> IntArray:
    """Return the rows that are read one by one, wherever the others lie."""
    facts = m.facts
    groups = group_equal_hashes(facts, m.shared)
    flat = np.union1d(facts.flat, draw_compared(m)) if len(facts.flat) else NO_ROWS
    read = [NO_ROWS, *groups, flat, draw_unused(facts)]
    read += [draw_sample(m, rows) for rows in (find_shorter_rows(m), find_added_rows(m))]
    return np.unique(np.concatenate(read))


def compute(m: Measurement) -> list[Value]:
    """Note the suspects, and return their numbers."""
    near = find_near_rows(m)
    m.shared.suspects = find_suspects(m, near)
    reason = explain_not_searched(m) if m.facts.m else ""
    counts = count_suspects(m.shared.suspects, reason, near.complete)
    return [*counts, measure_others(m, m.shared.suspects)]


def join_sides(
    input_side: list[Value], output_side: list[Value], suspects: Iterable[Suspects]
) -> list[Value]:
    """Count the suspects of both sides, given the numbers of each."""
    numbers = [one for one in (*input_side, *output_side) if isinstance(one, Scalar)]
    near = [one for one in numbers if one.quantity is q.NEAR_IDENTICAL]
    reason = next((one.undefined for one in near if one.undefined), "")
    complete = all(one.known == "exact" for one in near)
    counted = {one.name: one for one in count_suspects(suspects, reason, complete)}
    return [counted.get(one.name, one) for one in input_side]


@dataclass
class Found:
    """Rows by reason, as far as they are found: a row has the first one."""

    facts: Facts
    shared: SharedStatistics
    taken: Mask
    suspects: list[Suspects] = field(default_factory=list)

    @cached_property
    def roles(self) -> dict[int, frozenset[str]]:
        return {one.row: frozenset(one.roles) for one in self.facts.special if one.row is not None}

    @cached_property
    def every_norm(self) -> FloatArray:
        """Norms of all N rows; NaN where they are not finite, or rows are left out."""
        found = np.full(self.facts.n, np.nan)
        found[self.facts.kept] = self.shared.norms
        found[self.facts.zero] = 0.0
        found[self.facts.small] = self.facts.small_norms
        return found

    @property
    def left(self) -> Mask:
        """Kept rows without a reason yet, shape (M,)."""
        return ~self.taken[self.facts.kept]

    def add(
        self,
        reason: Reason,
        rows: IntArray,
        values: FloatArray | None = None,
        group: IntArray | None = None,
    ) -> None:
        """Add rows without a more serious reason; `values` and `group` belong to them."""
        own = ~self.taken[rows]
        if not own.any():
            return
        rows = rows[own]
        self.taken[rows] = True
        tokens = self.facts.tokens
        norms = None if reason in ("nonfinite", "no_token") else self.every_norm[rows]
        self.suspects.append(
            Suspects(
                reason,
                "input",
                rows,
                np.array([self.is_serious(reason, row) for row in rows.tolist()]),
                None if tokens is None else tuple(tokens[row] for row in rows.tolist()),
                norms,
                None if values is None else values[own],
                None if group is None else group[own],
            )
        )

    def is_serious(self, reason: Reason, row: int) -> bool:
        """Tell whether the reason is a fault of this row: not for tokens that nothing uses."""
        if not REASONS[reason].serious:
            return False
        roles = self.roles.get(row, frozenset())
        if roles & IN_PROMPTS:
            return True
        return not (roles & {"unused", "byte"} or self.kind(row) in ("unused", "byte"))

    def kind(self, row: int) -> str:
        return "" if self.facts.tokens is None else classify_token(self.facts.tokens[row])

    def share_of_median(self, rows: IntArray) -> FloatArray:
        """Divide norms by the median norm of the other rows."""
        others = self.shared.norms[~np.isin(self.facts.kept, rows)]
        return np.asarray(self.every_norm[rows] / (np.median(others) if len(others) else 1.0))


def find_suspects(m: Measurement, near: NearGroups) -> list[Suspects]:
    """Find the rows of one matrix that stand out, by reason, the most serious first."""
    facts, shared = m.facts, m.shared
    found = Found(facts, shared, np.zeros(facts.n, dtype=bool))
    padding = np.array([row for row in facts.zero.tolist() if facts.is_padding(row)], np.int64)
    found.add("nonfinite", facts.nonfinite)
    found.add("zero", np.setdiff1d(facts.zero, padding))
    if not facts.m:
        return found.suspects
    groups = find_equal_groups(m)
    at_mean, distances = find_mean_rows(m)
    initial = find_initial_rows(facts.small_norms, facts.d)
    untrained = facts.small[initial.rows & initial.is_certain]
    damaged = np.setdiff1d(facts.small, np.union1d(untrained, at_mean))
    found.add("damaged", damaged, found.share_of_median(damaged))
    constant, entries = find_constant_rows(m)
    found.add("constant", constant, entries)
    # Without rows of other faults, which have norms of their own.
    shorter = find_shorter_rows(m, np.concatenate([constant, at_mean, near.rows]))
    added = find_added_rows(m)
    for rows in (shorter if are_other_than_rest(m, shorter) else NO_ROWS, added):
        if looks_initial(m, draw_sample(m, rows)):
            untrained = np.union1d(untrained, rows)
    found.add("untrained", untrained, found.share_of_median(untrained))
    found.add("mean", at_mean, distances)
    copies = np.concatenate([NO_ROWS, *(group[1:] for group in groups)])
    first = np.concatenate([NO_ROWS, *(np.full(len(g) - 1, g[0]) for g in groups)])
    order = np.argsort(copies)
    found.add("duplicate", copies[order], group=first[order])
    if len(near.rows):
        leaders = find_leaders(near)
        cosines = measure_cosines(m.reader, near.rows, leaders)
        found.add("near_identical", near.rows, cosines, leaders)
    long, short = find_odd_norms(found, shorter)
    special = find_untrained_special(found, short)
    found.add("special", special, found.share_of_median(special))
    found.add("clump", *find_clump(found))
    found.add("long", long, found.share_of_median(long))
    found.add("short", short, found.share_of_median(short))
    found.add("no_token", np.union1d(padding, np.concatenate([NO_ROWS, *facts.masked.values()])))
    found.add("cone", *find_cone_rows(facts, shared))
    return found.suspects


# --- constant rows --------------------------------------------------------------------------------


def draw_compared(m: Measurement) -> IntArray:
    """Draw rows with a fixed seed, so that no suspect depends on that of the user."""
    return sample_rows(m.facts.kept, COMPARED, generator(0, "constant rows"))


def find_constant_rows(m: Measurement) -> tuple[IntArray, FloatArray]:
    """Find kept rows of equal entries, if they have more than one; none if chance explains them.

    Of entries of two values in ten columns, one row of 512 is constant.
    """
    facts, none = m.facts, (NO_ROWS, np.zeros(0))
    rows = np.intersect1d(facts.flat, facts.kept)
    if facts.d == 1 or not len(rows):
        return none
    found = [none]
    for start in range(0, len(rows), STEP):
        block = m.reader.take(rows[start : start + STEP])
        same = np.std(block, axis=1) < CONSTANT * np.linalg.norm(block, axis=1)
        found.append((rows[start : start + STEP][same], block[same, 0]))
    constant, entries = (np.concatenate(part) for part in zip(*found, strict=True))
    compared = m.reader.take(np.setdiff1d(draw_compared(m), constant))
    if not len(compared):
        return constant, entries
    alike = float(np.mean([np.equal.outer(*both).mean() for both in pairwise(compared.T)]))
    by_chance = facts.m * alike ** (facts.d - 1)
    return (constant, entries) if len(constant) > by_chance + 3.0 * by_chance**0.5 else none


# --- rows never trained: shorter or added ones, as an initialization leaves them ------------------


def find_shorter_rows(m: Measurement, without: IntArray = NO_ROWS) -> IntArray:
    """Find the rows of the shorter mode of norms, or below a gap; none if there are neither."""
    among = ~np.isin(m.facts.kept, without)
    distinct = find_distinct_logs(m.shared, among)
    if not len(distinct):
        return NO_ROWS
    logs = np.where(among, np.log(m.shared.norms), np.inf)
    modes = clumps.find_modes(distinct)
    if modes.excess >= clumps.find_critical_excess(len(distinct)):
        end = min(modes.valley, find_end(distinct[distinct <= modes.valley], m.facts.d))
        shorter = np.asarray(m.facts.kept[logs <= end])
        if len(shorter) >= clumps.LEAST:
            return shorter
    return np.asarray(m.facts.kept[logs <= find_gap(distinct, m.facts.d)])


def find_distinct_logs(shared: SharedStatistics, among: Mask) -> FloatArray:
    """Find the log norms of different rows; none where modes and gaps of them mean nothing.

    So it is for few rows, and where norms lie on a lattice: rows of rounded entries have squared
    norms that are multiples of one number, and far fewer different norms than there are rows.
    """
    logs = np.log(shared.norms[among][np.unique(shared.hashes[among], return_index=True)[1]])
    on_lattice = 2 * len(np.unique(np.round(logs, 9))) <= len(logs)
    return logs[:0] if on_lattice or len(logs) < clumps.LEAST else logs


def find_added_rows(m: Measurement) -> IntArray:
    """Find the last rows if they have one length and the others do not; none by chance.

    New tokens come last, and their norms may lie among those of the others. In a random order, the
    last k norms are within limits that hold a share q of the others with a chance of q^k. Norms
    that fall with the row, as those of words by frequency do, have no step where these rows begin.
    """
    norms, d = m.shared.norms, m.facts.d
    lengths = np.log(norms) - np.median(np.log(norms[-LEAST_ADDED:]))
    others = np.flatnonzero(np.abs(lengths) > find_end(0.0 * lengths, d))
    if d < LEAST_WIDTH or not len(others):
        return NO_ROWS
    count = len(norms) - 1 - int(others[-1])
    by_chance = (1.0 - len(others) / (len(norms) - count)) ** count
    if not LEAST_ADDED <= count <= len(norms) // 2 or by_chance > GAP_CHANCE:
        return NO_ROWS
    apart = np.log(root_mean_square(norms[-count:]) / root_mean_square(norms[:-count]))
    is_other = abs(apart) >= OTHER_LENGTH * np.sqrt(0.5 / (d * count))
    half = count // 2
    before, first, last = norms[-count - half : -count], norms[-count:-half], norms[-half:]
    step, inside = (
        abs(np.log(root_mean_square(one) / root_mean_square(first))) for one in (before, last)
    )
    begins = step >= ERRORS * max(inside, np.sqrt(1.0 / (d * half)))
    return np.asarray(m.facts.kept[-count:]) if is_other and begins else NO_ROWS


def find_end(shorter: FloatArray, d: int) -> float:
    """Find the largest log norm that an initialization with their median has by chance.

    Norms of d independent normal entries vary by 1/√(2d) of their mean, those of others less. The
    valley between two modes can lie beyond a few rows that belong to neither.

    Examples
    --------
    >>> round(float(np.exp(find_end(np.zeros(100), 288))), 3)
    1.2
    """
    chance = np.sqrt(2.0 * np.log(len(shorter) / GAP_CHANCE))
    return float(np.median(shorter) + np.log1p(chance * np.sqrt(0.5 / d)))


def find_gap(logs: FloatArray, d: int) -> float:
    """Find the largest log norm below a gap too wide for chance; −∞ if there is none.

    Where the lower quarter of M logarithms falls as exp(x/s) or faster, the k-th smallest is g
    below the next with a chance of exp(−g·k/s) at most, and any of them with M times that.

    Examples
    --------
    >>> logs = np.linspace(0.0, 1.0, 100)
    >>> find_gap(logs, 1000), round(find_gap(np.r_[logs[:8] - 2.0, logs], 1000), 2)
    (-inf, -1.93)
    """
    ordered = np.sort(logs)
    below = np.arange(FEWEST, len(ordered) // 4 + 1)
    gaps = np.diff(ordered)[below - 1]
    count = int(below[np.argmax(below * gaps)])
    spread = measure_log_norms(np.exp(ordered), d).spread
    least = spread * max(1.0, np.log(len(ordered) / GAP_CHANCE) / count)
    return float(ordered[count - 1]) if gaps[count - FEWEST] >= least else -np.inf


def draw_sample(m: Measurement, rows: IntArray) -> IntArray:
    """Draw a sample of rows that may be an initialization, whatever the seed."""
    size = int(np.clip(SAMPLE_ENTRIES // m.facts.d, *SAMPLE))
    return sample_rows(rows, size, generator(0, "untouched rows"))


def looks_initial(m: Measurement, rows: IntArray) -> bool:
    """Tell whether a sample of rows and their norms are those of independent entries."""
    if not len(rows):
        return False
    lengths, k, d = norms_of(m, rows), len(rows), m.facts.d
    most = np.sqrt(0.5 / d) * (1.0 + ERRORS / np.sqrt(2.0 * k))
    return bool(lengths.std() <= most * lengths.mean()) and are_unordered(m, rows)


def are_other_than_rest(m: Measurement, rows: IntArray) -> bool:
    """Tell whether the other rows have directions of their own, or are much longer or shorter.

    Else nothing but the norm says that these rows were never trained, and the others were.
    """
    if not len(rows):
        return False
    rest = np.setdiff1d(m.facts.kept, rows)
    sample = draw_sample(m, rest)
    if len(sample) < clumps.LEAST or not are_unordered(m, sample):
        return True
    apart = np.log(np.median(norms_of(m, rest)) / np.median(norms_of(m, rows)))
    return bool(abs(apart) >= np.log(MUCH))


def norms_of(m: Measurement, rows: IntArray) -> FloatArray:
    return m.shared.norms[np.searchsorted(m.facts.kept, rows)]


def are_unordered(m: Measurement, rows: IntArray) -> bool:
    """Tell whether the directions of a sample of rows are those of independent entries."""
    rows_of_unit = m.reader.take_unit(rows)
    k, d = rows_of_unit.shape
    if abs(average_cosine(rows_of_unit.sum(axis=0), k)) > ERRORS * np.sqrt(
        2.0 / (d * k * (k - 1.0))
    ):
        return False
    gram = rows_of_unit.T @ rows_of_unit if d <= k else rows_of_unit @ rows_of_unit.T
    return compute_largest_p(d * float(np.linalg.eigvalsh(gram)[-1]), k, d) >= LEAST_P


# --- rows at the mean -----------------------------------------------------------------------------


def find_mean_rows(m: Measurement) -> tuple[IntArray, FloatArray]:
    """Find rows at the mean of the others, and their distances to it in median distances.

    Where the mean is short, they are short themselves. Which rows lived when the mean was taken is
    not known: it is that of the kept rows, or of all finite ones, with or without the rows that
    are near it now.
    """
    facts, shared = m.facts, m.shared
    distances = shared.mean_distances
    median = float(np.median(distances))
    candidates = facts.kept[distances < NEARER * median]
    if facts.d < LEAST_COLUMNS or not 0 < len(candidates) + len(facts.small) <= MOST_CANDIDATES:
        return NO_ROWS, np.zeros(0)
    rows, small = m.reader.take(candidates), m.reader.take(facts.small)
    total, count = shared.sums.rows, facts.m
    left, finite = total - rows.sum(axis=0), count - len(rows)
    short = small.sum(axis=0)
    idle = len(facts.small) + len(facts.zero)
    means = [total / count, (total + short) / (count + idle)]
    means += [left / finite, (left + short) / (finite + idle)] if finite else []
    candidates, rows = np.r_[candidates, facts.small], np.concatenate([rows, small])
    apart = np.min([np.linalg.norm(rows - mean, axis=1) for mean in means], axis=0)
    length = min(float(np.linalg.norm(mean)) for mean in means)
    rounding = facts.rounding * root_mean_square(shared.norms)
    at_mean = (apart <= rounding) | (apart < min(NEAR * median, OF_ITS_LENGTH * length))
    as_group = np.flatnonzero(apart < min(NEAR_AS_GROUP * median, OF_ITS_LENGTH * length))
    at_mean[as_group[are_alike(rows[as_group])]] = True
    order = np.flatnonzero(at_mean)[np.argsort(candidates[at_mean])]
    return candidates[order], apart[order] / median


def are_alike(rows: FloatArray) -> Mask:
    """Tell which rows equal another one, or are near-identical to it."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    distinct, number, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    projected = (unit(distinct) @ draw_axes(rows.shape[1])).astype(np.float32)
    near = find_near_groups(lambda places: distinct[places], projected, rows.shape[1])
    return np.asarray((count[number] > 1) | np.isin(number, near.rows))


# --- equal rows -----------------------------------------------------------------------------------


def find_equal_groups(m: Measurement) -> list[IntArray]:
    """Return groups of two or more equal rows."""
    candidates = group_equal_hashes(m.facts, m.shared)
    return [group for rows in candidates for group in split_equal_rows(m.facts, m.reader, rows)]


def group_equal_hashes(facts: Facts, shared: SharedStatistics) -> list[IntArray]:
    """Return groups of two or more kept rows of equal hashes, ascending in each group."""
    order = np.argsort(shared.hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(shared.hashes[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    return [
        np.sort(facts.kept[order[start : start + size]])
        for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True)
    ]


def split_equal_rows(facts: Facts, reader: RowReader, rows: IntArray) -> list[IntArray]:
    """Return groups of two or more equal rows among rows of one hash."""
    step = max(1, 2**22 // facts.d)
    groups: list[IntArray] = []
    while len(rows) > 1:
        pattern = reader.take(rows[:1])
        same = np.concatenate(
            [
                (reader.take(rows[start : start + step]) == pattern).all(axis=1)
                for start in range(0, len(rows), step)
            ]
        )
        if same.sum() > 1:
            groups.append(rows[same])
        rows = rows[~same]
    return groups


# --- near-identical rows --------------------------------------------------------------------------


def explain_not_searched(m: Measurement) -> str:
    """Explain why near-identical rows are not searched; empty if they are."""
    if not m.reader.is_local:
        return IN_PARTS
    return explain_ordinary(average_cosine(m.shared.sums.unit, m.facts.m), m.facts.m, m.facts.d)


def find_near_rows(m: Measurement) -> NearGroups:
    """Find groups of near-identical rows; of equal ones, the first stands for all."""
    projected = m.shared.get(UnitProjections, "near-identical rows")
    if projected is None:
        return NearGroups(NO_ROWS, NO_ROWS, complete=True)
    distinct = np.sort(np.unique(m.shared.hashes, return_index=True)[1])
    kept = m.facts.kept[distinct]
    found = find_near_groups(
        lambda places: m.reader.take_stored(kept[places]), projected.values()[distinct], m.facts.d
    )
    return NearGroups(kept[found.rows], found.group, found.complete)


def find_leaders(near: NearGroups) -> IntArray:
    """Find the first row of the group of each row."""
    first = np.full(int(near.group.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, near.group, near.rows)
    return np.asarray(first[near.group])


def measure_cosines(reader: RowReader, rows: IntArray, others: IntArray) -> FloatArray:
    """Measure the cosines of pairs of rows."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), STEP):
        part = slice(start, start + STEP)
        u, v = (unit(reader.take(some[part])) for some in (rows, others))
        found[part] = 1.0 - 0.5 * np.square(u - v).sum(axis=1)
    return found


# --- special tokens that look untrained -----------------------------------------------------------


def find_untrained_special(found: Found, short: IntArray) -> IntArray:
    """Find special tokens with a short row, or one among those of unused tokens."""
    facts, shared = found.facts, found.shared
    special = np.array(
        [
            row
            for row, roles in found.roles.items()
            if roles & (IN_PROMPTS - {"pad"}) and found.kind(row) != "unused"
        ],
        dtype=np.int64,
    )
    special = np.intersect1d(special, facts.kept)
    looks = np.isin(special, short)
    angles = shared.get(AngleAfterRemoval, "unused")
    if angles is not None and len(special):
        unused = np.searchsorted(facts.kept, draw_unused(facts))
        ordinary = np.setdiff1d(np.arange(facts.m), unused)
        own, at = angles.values(), np.searchsorted(facts.kept, special)
        farthest = WIDER * float(np.quantile(own[unused], 1.0 - FEW_AMONG))
        low, high = shared.norms[unused].min() / WIDER, WIDER * shared.norms[unused].max()
        inside = (own[at] <= farthest) & (low <= shared.norms[at]) & (shared.norms[at] <= high)
        looks |= inside & bool((own[ordinary] <= farthest).mean() <= FEW_AMONG)
    return special[looks]


def draw_unused(facts: Facts) -> IntArray:
    """Draw some of them; none of few."""
    rows = find_unused(facts)
    rows = NO_ROWS if len(rows) < LEAST_UNUSED else rows
    return sample_rows(rows, SAMPLE[1], generator(0, "unused rows"))


def find_unused(facts: Facts) -> IntArray:
    """Find kept rows of tokens known to be unused by their spelling or type."""
    if facts.tokens is None:
        return NO_ROWS
    typed = {one.row for one in facts.special if "unused" in one.roles}
    used = {one.row for one in facts.special if IN_PROMPTS & set(one.roles)}
    rows = [
        row
        for row in facts.kept.tolist()
        if row in typed or (classify_token(facts.tokens[row]) == "unused" and row not in used)
    ]
    return np.array(rows, dtype=np.int64)


# --- much longer or shorter rows ------------------------------------------------------------------


def find_odd_norms(found: Found, shorter: IntArray) -> tuple[IntArray, IntArray]:
    """Find rows much longer, and much shorter than the others: a mode of their own, or a tail.

    The smaller of two modes is odd if its median norm is `MUCH` times larger or smaller than that
    of the others; so is a row that lognormal norms reach in one matrix of a thousand. Rows of more
    serious reasons do not take part.
    """
    facts, among = found.facts, found.left
    if not among.any():
        return NO_ROWS, NO_ROWS
    rows, lengths = facts.kept[among], found.shared.norms[among]
    of_norms, median = measure_log_norms(lengths, facts.d), float(np.median(lengths))
    long = of_norms.is_long & (lengths > MUCH * median)
    short = (of_norms.is_short | np.isin(rows, shorter)) & (MUCH * lengths < median)
    logs, distinct = np.log(lengths), find_distinct_logs(found.shared, among)
    if len(distinct):
        modes = clumps.find_modes(distinct)
        below = logs <= modes.valley
        are_two = modes.excess >= clumps.find_critical_excess(len(distinct))
        if are_two and np.median(logs[~below]) - np.median(logs[below]) >= np.log(MUCH):
            few = 2 * int(below.sum()) <= len(logs)
            long, short = (long, short | below) if few else (long | ~below, short)
    return rows[long], rows[short]


# --- clumps, and rows that make a cone ------------------------------------------------------------


def find_clump(found: Found) -> tuple[IntArray, FloatArray]:
    """Find rows around the mean direction with norms of their own, or around the unused tokens.

    Rows that training hardly touches keep moving along one common direction (Gao et al. 2019, §4),
    and form a second mode both of angles and of norms. So do rows of a script or of numbers: only
    where most tokens known to be unused are among them, or other tokens are more frequent, they are
    hardly trained. Angles are in degrees.
    """
    facts, shared, among = found.facts, found.shared, found.left
    none = NO_ROWS, np.zeros(0)
    if shared.mean_angles is None or not len(find_distinct_logs(shared, among)):
        return none
    rows, angles = facts.kept[among], shared.mean_angles[among]
    inside = clumps.find_gathered(angles, shared.norms[among], shared.hashes[among])
    if not inside.any() and (around := shared.get(AngleAfterRemoval, "unused")) is not None:
        inside = clumps.find_near_mode(around.values()[among], shared.hashes[among])
    if not inside.any():
        return none
    unused = np.isin(rows, find_unused(facts))
    missed = unused.sum() >= LEAST_UNUSED and inside[unused].mean() >= MOST_OF_UNUSED
    if not missed and facts.frequency is not None and min(inside.sum(), (~inside).sum()) > 1:
        missed = auc(facts.frequency.counts[rows], ~inside)[0] >= RARER
    return (rows[inside], np.degrees(angles[inside])) if missed else none


def find_cone_rows(facts: Facts, shared: SharedStatistics) -> tuple[IntArray, FloatArray]:
    """Find the rows far nearer to the mean direction than half of the rows are, in degrees."""
    if shared.mean_angles is None or average_cosine(shared.sums.unit, facts.m) < CONE:
        return NO_ROWS, np.zeros(0)
    degrees = np.degrees(shared.mean_angles)
    low, median = np.quantile(degrees, (0.25, 0.5))
    near = degrees < median - DEVIATIONS * (median - low) / 0.6745
    return facts.kept[near], degrees[near]


# --- numbers of the list --------------------------------------------------------------------------


def count_suspects(suspects: Iterable[Suspects], not_searched: str, complete: bool) -> list[Scalar]:
    """Count the tokens with serious suspects by reason.

    `not_searched`: why near-identical rows are not searched; empty if they are. `complete`: whether
    all of them were met.
    """
    suspects = list(suspects)
    counts = []
    for reason, quantity in q.COUNTS.items():
        count = count_serious(suspects, reason)
        known: Known = "exact"
        if reason == "near_identical" and not complete:
            known = "at_least"
        if reason == "near_identical" and not_searched and not count:
            counts.append(quantity.undefined(not_searched))
        else:
            counts.append(quantity.measured(count, known=known))
    return counts


def measure_others(m: Measurement, suspects: Iterable[Suspects]) -> Scalar:
    """Measure the mean cosine of the kept rows that are no suspects; of a group, one row stays."""
    facts, total, count = m.facts, m.shared.sums.unit, m.facts.m
    if not m.reader.is_local:
        return q.MEAN_COSINE_OTHERS.undefined(IN_PARTS)
    rows = np.concatenate([NO_ROWS, *map(list_left_out, suspects)])
    rows = np.intersect1d(rows, facts.kept)
    if not len(rows):
        return q.MEAN_COSINE_OTHERS.undefined("no rows are suspects")
    if count - len(rows) < LEAST_OTHERS:
        return q.MEAN_COSINE_OTHERS.undefined("no ten rows are left without suspects")
    for start in range(0, len(rows), STEP):
        total = total - m.reader.take_unit(rows[start : start + STEP]).sum(axis=0)
    return q.MEAN_COSINE_OTHERS.measured(average_cosine(total, count - len(rows)))


def list_left_out(own: Suspects) -> IntArray:
    """List the rows of suspects without the first of each group, which stands for it."""
    if own.reason in ("no_token", "clump", "cone", "long"):
        return NO_ROWS
    return own.rows if own.group is None else own.rows[own.rows != own.group]


FAMILY = Family(
    "suspects", compute, first=(norms, hashes, row_sums), second=second, rows_read=rows_read
)
