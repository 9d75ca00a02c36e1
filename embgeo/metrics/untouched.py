"""Rows that training never touched, among others that it made longer.

Where norms have two modes, or a gap too wide for chance, the shorter rows are tested as an
initialization: a mean cosine and a top eigenvalue within chance, and norms that vary no more than
those of independent normal entries. A hash table of which few buckets are used looks like that, and
so do the thirteen bytes that no text has.

Examples
--------
>>> import embgeo
>>> rng = np.random.default_rng(0)
>>> W = rng.uniform(-0.1, 0.1, (1000, 64))
>>> W[:200] *= rng.uniform(2.0, 4.0, (200, 1))
>>> embgeo.analyze(W, sections=["tokens"], reference=False)["tokens.untouched_rows"].value
800.0
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Value
from embgeo.metrics.facts import NO_ROWS
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import norms
from embgeo.numerics import clumps
from embgeo.numerics.row_norms import measure_log_norms
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.spectra import compute_largest_p

#: Sample of the shorter rows: this many entries at most, within bounds.
SAMPLE_ENTRIES = 2**20
SAMPLE = (300, 2000)
#: Least number of rows below a gap, and the chance of such a gap in one matrix.
FEWEST, GAP_CHANCE = 5, 1e-3
#: Standard errors within which a mean cosine is chance, and the least chance of a top eigenvalue.
ERRORS, LEAST_P = 3.0, 0.01


def find_shorter_rows(m: Measurement) -> IntArray:
    """Find the rows of the shorter mode of norms, or below a gap; none if there are neither."""
    lengths = m.shared.norms
    if len(lengths) < clumps.LEAST:
        return NO_ROWS
    logs = np.log(lengths)
    modes = clumps.find_modes(logs)
    if modes.excess >= clumps.find_critical_excess(len(logs)):
        end = min(modes.valley, find_end(logs[logs <= modes.valley], m.facts.d))
        shorter = np.asarray(m.facts.kept[logs <= end])
        if len(shorter) >= clumps.LEAST:
            return shorter
    return np.asarray(m.facts.kept[logs <= find_gap(logs, m.facts.d)])


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


def rows_read(m: Measurement) -> IntArray:
    """Draw a sample of these rows, whatever the seed, so that no state depends on it."""
    size = int(np.clip(SAMPLE_ENTRIES // m.facts.d, *SAMPLE))
    return sample_rows(find_shorter_rows(m), size, generator(0, "untouched rows"))


def compute(m: Measurement) -> list[Value]:
    facts, sample = m.facts, rows_read(m)
    if facts.m < clumps.LEAST:
        reason = f"fewer than {clumps.LEAST} rows"
        return [q.UNTOUCHED_ROWS.undefined(reason)]
    found = 0
    if len(sample):
        lengths = m.shared.norms[np.searchsorted(facts.kept, sample)]
        if looks_initial(m.reader.take_unit(sample), lengths):
            found = len(find_shorter_rows(m))
    return [q.UNTOUCHED_ROWS.measured(found)]


def looks_initial(unit: FloatArray, lengths: FloatArray) -> bool:
    """Tell whether unit rows and their norms are those of independent entries.

    `unit`: shape (k, d). `lengths`: shape (k,); the norms that the rows were divided by.
    """
    k, d = unit.shape
    total = unit.sum(axis=0)
    mean = (float(total @ total) - k) / (k * (k - 1.0))
    if abs(mean) > ERRORS * np.sqrt(2.0 / (d * k * (k - 1.0))):
        return False
    most = np.sqrt(0.5 / d) * (1.0 + ERRORS / np.sqrt(2.0 * k))
    if lengths.std() > most * lengths.mean():
        return False
    gram = unit.T @ unit if d <= k else unit @ unit.T
    return compute_largest_p(d * float(np.linalg.eigvalsh(gram)[-1]), k, d) >= LEAST_P


FAMILY = Family("tokens", compute, first=(norms,), rows_read=rows_read)
