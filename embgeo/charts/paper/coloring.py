"""What the colors of points mean: rare and popular, frequency, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts.paper import style
from embgeo.charts.paper.style import Page
from embgeo.charts.paper.vocabulary import alike, frequencies
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure as Drawing

#: Colors of the scale of frequencies.
STEPS = 12
#: Height in inches of a color bar with its labels.
BAR = 0.4


@dataclass(frozen=True, slots=True)
class Coloring:
    """Colors of points, and how they are explained.

    Attributes
    ----------
    of : callable
        From an analysis to one color, or to an array with a color for each kept row.
    explain : callable
        Adds a legend or a color bar to a drawing with these axes.
    caption : str
        What a caption says; empty where there is nothing to say.
    """

    of: Callable[[Analysis], Any]
    explain: Callable[[Drawing, Page, Sequence[Axes]], None]
    caption: str


def coloring(analyses: Sequence[Analysis], kind: str) -> Coloring:
    """The coloring of this kind for points of all `analyses` alike."""
    if kind == "frequency":
        return by_frequency(analyses)
    if kind == "class" and any(a.popular is not None for a in analyses):
        return by_class(analyses)
    return Coloring(lambda _: style.POPULAR, lambda *_: None, "")


def by_class(analyses: Sequence[Analysis]) -> Coloring:
    from matplotlib.colors import to_rgba_array
    from matplotlib.lines import Line2D

    colors = to_rgba_array([style.RARE, style.POPULAR, style.GRAY])
    unknown = any(a.popular is None for a in analyses)

    def of(analysis: Analysis) -> Any:
        return style.GRAY if analysis.popular is None else colors[analysis.popular.astype(int)]

    def explain(drawing: Drawing, page: Page, _axes: Sequence[Axes]) -> None:
        shown = [("popular tokens", style.POPULAR), ("rare tokens", style.RARE)]
        shown += [("frequency not known", style.GRAY)] if unknown else []
        handles = [Line2D([], [], ls="", marker="o", ms=4, mew=0, color=c) for _, c in shown]
        style.legend(drawing, page, handles, [label for label, _ in shown], dots=True)

    shares = {
        a.provenance["frequency"]["popular_share"]
        for a in analyses
        if isinstance(a.provenance.get("frequency"), dict)
    }
    said = " and ".join(f"{100 * share:g} %" for share in sorted(shares))
    caption = f"Popular: the {said} most frequent tokens; rare: the others." if said else ""
    return Coloring(of, explain, caption)


def by_frequency(analyses: Sequence[Analysis]) -> Coloring:
    """One scale for all analyses, which all have frequencies: logarithmic for counts."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    known = alike([f for f in map(frequencies, analyses) if f is not None])
    values = np.concatenate([f.positive for f in known])
    by_count = known[0].kind == "count"
    scale = ScalarMappable(
        (LogNorm if by_count else Normalize)(float(values.min()), float(values.max())),
        # Ranks fall where counts rise: the light end stands for frequent tokens in both.
        steps(falling=not by_count),
    )
    colors = {id(a): scale.to_rgba(f.positive) for a, f in zip(analyses, known, strict=True)}

    def explain(drawing: Drawing, _page: Page, axes: Sequence[Axes]) -> None:
        drawing.set_figheight(drawing.get_figheight() + BAR)
        bar = drawing.colorbar(
            scale, ax=list(axes), location="top", shrink=0.6, aspect=30, pad=0.03
        )
        bar.set_label(known[0].positive_label)
        bar.outline.set_linewidth(0.4)

    return Coloring(lambda a: colors[id(a)], explain, "Color: token frequency.")


def steps(*, falling: bool) -> ListedColormap:
    """A scale of few colors, which keeps pictures small; told apart under every color vision.

    Its light end is left out: it could not be seen on paper.
    """
    import matplotlib
    from matplotlib.colors import ListedColormap

    colors = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.88, STEPS))
    return ListedColormap(colors[::-1] if falling else colors)
