"""Histograms of one or several matrices: cosines, angles and norms."""

from dataclasses import replace
from functools import partial

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.lookup import Lookup, find_histogram
from embgeo.charts.panels import compute_density, overlay, tabulate
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import cosine, tokens

#: Peaks further apart than this need a logarithmic axis, or the lower ones cannot be seen.
WIDE = 6.0
#: Heights below this share of the peak count as empty.
NEGLIGIBLE = 1e-3
#: Bins of the densities of isotropic rows: finer than the hump in thousands of dimensions.
BINS = 400

_COSINES = Lookup(
    partial(find_histogram, name=cosine.HISTOGRAM.name), "its analysis holds no cosines of pairs"
)
_ANGLES = Lookup(
    partial(find_histogram, name=cosine.CONE_ANGLES.name),
    "its analysis left out the section cosine",
)
_NORMS = Lookup(
    partial(find_histogram, name=tokens.NORMS.name), "its analysis left out the section tokens"
)


def isotropic_cosines(items: spec.StyledItems) -> tuple[spec.HistogramSteps, ...]:
    """Return the density of the cosine of two random directions; none if dimensions differ."""
    edges = np.linspace(-1.0, 1.0, BINS + 1)
    return tuple(make_steps(edges, share_below(edges, d)) for d in find_dimensions(items) if d > 1)


def isotropic_angles(items: spec.StyledItems) -> tuple[spec.HistogramSteps, ...]:
    """Return the density per degree of the angle between two random directions."""
    edges = np.linspace(0.0, 180.0, BINS + 1)
    below = np.cos(np.radians(edges))
    return tuple(
        make_steps(edges, 1.0 - share_below(below, d)) for d in find_dimensions(items) if d > 1
    )


def find_dimensions(items: spec.StyledItems) -> tuple[int, ...]:
    """Find the number of columns, if all members have the same."""
    found = {s.analysis.provenance.get("d", 0) for s, _ in items if s.analysis is not None}
    return tuple(found) if len(found) == 1 else ()


def share_below(cosines: FloatArray, d: int) -> FloatArray:
    """Return the share of pairs of random directions in d dimensions with a smaller cosine.

    The square of the cosine has the beta distribution with 1/2 and (d − 1)/2.
    """
    from scipy.special import betainc

    return np.asarray(0.5 + 0.5 * np.sign(cosines) * betainc(0.5, (d - 1) / 2.0, cosines**2))


def make_steps(edges: FloatArray, below: FloatArray) -> spec.HistogramSteps:
    return spec.HistogramSteps(
        edges, np.diff(below) / np.diff(edges), spec.MemberStyle("guide"), part="isotropic rows"
    )


def build_cosines(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    histograms = _COSINES.collect(items)
    isotropic = isotropic_cosines(items)
    # Matrices of several dimensions have no hump of isotropic rows in common, but its middle.
    guides = () if isotropic else (spec.Guide(0.0, "isotropic rows"),)
    panel = overlay(items, histograms, guides=guides, isotropic=isotropic)
    table = tabulate(items, histograms, isotropic)
    one = (
        "Cosines between pairs of rows. Isotropic rows give a peak at 0 (dotted), the narrower "
        "the more dimensions there are. A peak to the right of it is a cone; two peaks near −1 "
        "and 1 are a collapse on both sides."
    )
    several = (
        "Cosines between pairs of rows of each matrix. Isotropic rows give a peak at 0 "
        "(dotted); the further to the right it lies, the narrower the cone."
    )
    return spec.Specification(
        (fit_limits(panel),),
        one if len(items) == 1 else several,
        "Cosines between pairs of rows of the embedding matrix. Isotropic rows lie around 0 "
        "(dotted).",
        cosine.HISTOGRAM.name,
        table=replace(table, columns=("analysis", "from", "to", "pairs", "density")),
    )


def fit_limits(panel: spec.Panel) -> spec.Panel:
    """Return the occupied part of −1 … 1 with the 0, on an axis that shows every peak."""
    low, high = 0.0, 0.0
    peaks = []
    for steps in panel.lines:
        assert isinstance(steps, spec.HistogramSteps)
        occupied = np.flatnonzero(steps.heights > NEGLIGIBLE * steps.heights.max())
        low = min(low, float(steps.edges[occupied[0]]))
        high = max(high, float(steps.edges[occupied[-1] + 1]))
        peaks.append(float(steps.heights.max()))
    margin = 0.03 * (high - low)
    x = replace(panel.x, low=max(-1.0, low - margin), high=min(1.0, high + margin))
    y = panel.y
    if max(peaks) > WIDE * min(peaks):
        y = replace(y, log=True, low=0.01 * min(peaks), high=2.0 * max(peaks))
    return replace(panel, x=x, y=y)


def build_cone(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    histograms = _ANGLES.collect(items)
    isotropic = isotropic_angles(items)
    panel = overlay(
        items,
        histograms,
        guides=() if isotropic else (spec.Guide(90.0, "isotropic rows"),),
        limits=(0.0, 180.0),
        ticks=tuple(range(0, 181, 30)),
        isotropic=isotropic,
    )
    whose = "the mean direction" if len(items) == 1 else "the mean direction of its own matrix"
    return spec.Specification(
        (panel,),
        f"Angle between each row and {whose}. Isotropic rows lie near 90° "
        "(dotted); rows in a cone lie well below.",
        quantity=cosine.CONE_ANGLES.name,
        table=tabulate(items, histograms, isotropic),
    )


def build_norms(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    histograms = _NORMS.collect(items)
    several = (
        "Norms of the rows of each matrix. Where they shrank, I1 as stored rises without any "
        "change of shape: compare it at mean norm 1."
    )
    panel = overlay(items, histograms)
    low, high = min(h.edges[0] for h in histograms), max(h.edges[-1] for h in histograms)
    if 0.0 < 100.0 * low <= high:
        # Densities fall as widths grow: only a logarithm shows the few long rows.
        heights = np.concatenate([compute_density(h) for h in histograms])
        y = replace(panel.y, log=True, low=0.5 * heights[heights > 0].min())
        panel = replace(panel, x=replace(panel.x, log=True), y=y)
    return spec.Specification(
        (panel,),
        "Norms of the rows." if len(items) == 1 else several,
        quantity=tokens.NORMS.name,
        table=tabulate(items, histograms),
    )


COSINES = spec.Chart(
    "cosines",
    "Histogram of the cosines between pairs of rows",
    _COSINES.refuse,
    build_cosines,
    section="cosine",
)
CONE = spec.Chart(
    "cone",
    "Histogram of the angles between rows and the mean direction",
    _ANGLES.refuse,
    build_cone,
    section="cosine",
)
NORMS = spec.Chart(
    "norms", "Histogram of the row norms", _NORMS.refuse, build_norms, section="tokens"
)
