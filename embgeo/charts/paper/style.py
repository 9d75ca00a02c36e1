"""How figures for papers look: widths of venues, fonts, lines that survive a black-and-white print.

Text is set in STIX, which sits well beside the Times of the venues, and embedded as TrueType
(Type 42): submission systems refuse the bitmapped Type 3 that matplotlib writes by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True, slots=True)
class Venue:
    """Widths in inches, as the venue's style file sets them."""

    column: float
    text: float


#: ICLR and NeurIPS: one column of 5.5 in. ICML: 6.75 in with 0.25 in between the columns. ACL (also
#: EMNLP, NAACL, EACL): A4 with margins of 2.5 cm and 0.6 cm between the columns.
VENUES = {
    "iclr": Venue(5.5, 5.5),
    "neurips": Venue(5.5, 5.5),
    "icml": Venue(3.25, 6.75),
    "acl": Venue(3.03, 6.30),
}

FONTS = ("STIXGeneral", "DejaVu Sans")
#: Resolution of rasterized points; without smoothed edges they need more than a screen does.
DPI = 400
#: Longest text of a user that is drawn whole.
LIMIT = 48

#: Height in inches of one line of a legend.
LEGEND_LINE = 0.14

INK = "#1b1b1f"
GRAY = "#808088"
# Okabe and Ito's palette without its yellow, which is too pale for a line.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
#: The two classes of tokens differ in lightness too.
POPULAR, RARE = "#0072b2", "#e69f00"
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True, slots=True)
class Page:
    """Where a figure goes.

    Attributes
    ----------
    width : float
        Of the figure, in inches.
    text : callable
        From hostile text to what the output draws as that text.
    """

    width: float
    text: Callable[[str], str]


@contextmanager
def settings(preamble: str = "") -> Iterator[None]:
    """Matplotlib's own defaults and those of papers, whatever the user's matplotlibrc says.

    Parameters
    ----------
    preamble : str
        LaTeX that text in PGF needs.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": list(FONTS),
                "mathtext.fontset": "stix",
                "pdf.fonttype": 42,
                "ps.fonttype": 42,
                "svg.fonttype": "path",
                "svg.hashsalt": "embgeo",
                "pgf.texsystem": "pdflatex",
                "pgf.rcfonts": False,
                "pgf.preamble": preamble,
                "font.size": 8,
                "axes.labelsize": 8,
                "axes.titlesize": 8,
                "xtick.labelsize": 7,
                "ytick.labelsize": 7,
                "legend.fontsize": 7,
                "axes.linewidth": 0.6,
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
                "xtick.minor.width": 0.4,
                "ytick.minor.width": 0.4,
                "xtick.major.size": 2.5,
                "ytick.major.size": 2.5,
                "xtick.minor.size": 1.5,
                "ytick.minor.size": 1.5,
                "xtick.major.pad": 2,
                "ytick.major.pad": 2,
                "axes.labelpad": 2,
                "axes.titlepad": 3,
                "lines.linewidth": 1.1,
                "lines.markersize": 3,
                "text.color": INK,
                "axes.labelcolor": INK,
                "xtick.color": INK,
                "ytick.color": INK,
                "legend.frameon": False,
                "legend.columnspacing": 1.2,
                "legend.borderpad": 0.1,
                "figure.constrained_layout.w_pad": 0.02,
                "figure.constrained_layout.h_pad": 0.02,
            }
        )
        yield


def grid(page: Page, count: int, least: float) -> tuple[int, int]:
    """Panels across and down, in as few rows as panels of the `least` width in inches allow."""
    across = max(1, min(count, int(page.width / least)))
    down = -(-count // across)
    return -(-count // down), down  # even rows: four panels as 2 + 2, not as 3 + 1


def panels(page: Page, count: int, across: int, height: float) -> tuple[Drawing, list[Axes]]:
    """An empty figure of this height in inches, with `count` panels, `across` of them in a row."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(page.width, height), layout="constrained")
    down = -(-count // across)
    axes = [drawing.add_subplot(down, across, i + 1) for i in range(count)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def line(place: int, points: int) -> dict[str, Any]:
    """Color, dash and (where there are few points) marker of the line at `place` of a legend."""
    # Colors repeat after seven lines, dashes after four: no pair comes twice before 28.
    return {
        "color": COLORS[place % len(COLORS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)] if points <= 20 else "",
    }


def legend(
    drawing: Drawing,
    page: Page,
    handles: Sequence[Any],
    labels: Sequence[str],
    *,
    dots: bool = False,
) -> None:
    """A legend above all panels, in as few lines as the width allows; the figure grows by them."""
    longest = max(len(label) for label in labels)
    # A letter of 7 points is about 0.05 inches wide.
    across = max(1, min(len(labels), int(page.width / (0.5 + 0.05 * longest))))
    down = -(-len(labels) // across)
    drawing.set_figheight(drawing.get_figheight() + LEGEND_LINE * down)
    made = drawing.legend(
        handles,
        # Labels that begin with an underscore would be left out: they are put in afterwards.
        ["label"] * len(labels),
        loc="outside upper center",
        ncols=-(-len(labels) // down),  # even rows
        handlelength=0.7 if dots else 2.4,
    )
    for text, label in zip(made.get_texts(), labels, strict=True):
        text.set_text(label)


def is_wide(values: npt.NDArray[np.float64], ratio: float) -> bool:
    """Whether all of `values` are positive and span more than `ratio`: a case for a log axis."""
    return (
        bool(len(values)) and bool(values.min() > 0) and bool(values.max() > ratio * values.min())
    )


def log_ticks(axis: Any) -> None:
    """A logarithmic axis; within two decades 2 and 5 are labeled too."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axis.set_major_formatter(LogFormatterMathtext())
    axis.set_minor_formatter(NullFormatter())


def plain_text(text: str) -> str:
    """`text` as matplotlib draws it letter by letter: no mathematics, no letter without a glyph."""
    known = _glyphs()
    shown = "".join(
        c if c.isprintable() and ord(c) in known else f"‹U+{ord(c):04X}›" for c in shortened(text)
    )
    return shown.replace("$", r"\$")


def shortened(text: str) -> str:
    """`text` cut to a length that a legend can hold."""
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    """Every character that one of the fonts can draw; they come with matplotlib."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset().union(*(get_font(findfont(name)).get_charmap() for name in FONTS))
