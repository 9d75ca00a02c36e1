"""Charts as files for papers: PDF, PGF, PNG and SVG at the widths of venues.

Text is set in STIX, which sits well next to the Times of the venues, and embedded as TrueType
(Type 42): submission systems refuse the bitmapped Type 3 that matplotlib writes by default.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts.render import drawing
from embgeo.charts.render.dots import MARGIN, draw_cloud, draw_maps
from embgeo.charts.specification import Specification
from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption, argument
from embgeo.core.text import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
#: Longer text of a user is cut.
LIMIT = 48
#: In place of a character that the fonts do not have.
MISSING = "□"
#: Narrowest panels in inches: of maps and of grids of curves, of two panels, of a single row, and
#: of a grid whose columns the chart gives; narrower ones stand in fewer columns.
LEAST_SMALL, LEAST_WIDE, LEAST_IN_ROW, LEAST_ACROSS = 1.5, 2.0, 1.35, 0.9
#: The least height of a panel with room for three ticks.
LEAST_HIGH = 1.5

#: Height of a panel of lines by that of a map in a grid of both, and room for titles above them.
FLAT, ABOVE = 0.55, 0.15

#: Our labels in mathematics; all other labels are text.
MATH = {
    "σ_k / σ_1": r"$\sigma_k / \sigma_1$",
    "σ_k / σ₁": r"$\sigma_k / \sigma_1$",
    "σ_k/σ₁": r"$\sigma_k / \sigma_1$",
    "index k": "index $k$",
    "index i": "index $i$",
    "θ_i (°)": r"$\theta_i$ (°)",
    "eigenvector k, strongest first": "eigenvector $k$, strongest first",
    "Z / mean Z": r"$Z(\pm v_k)\,/\,\bar{Z}$",
    "Z(v_k)": "$Z(v_k)$",
    "Z(−v_k)": "$Z(-v_k)$",
    "exponential c₁·exp(−c₂·k^γ)": r"exponential $c_1 e^{-c_2 k^\gamma}$",
    "polynomial c₁·k^(−γ)": r"polynomial $c_1 k^{-\gamma}$",
    "‖w‖": r"row norm $\Vert w\Vert$",
    **{
        name: rf"$\{name}$"
        for name in (
            "alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "mu", "rho", "sigma",
            "tau",
        )
    },
}  # fmt: skip


def settings(preamble: str = "") -> AbstractContextManager[None]:
    """Set what papers need; `preamble` is LaTeX that text in PGF needs."""
    return drawing.default_settings(
        {
            "font.family": list(FONTS),
            "mathtext.fontset": "stix",
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "svg.fonttype": "path",
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
            "legend.columnspacing": 1.2,
            "legend.borderpad": 0.1,
            "figure.constrained_layout.w_pad": 0.02,
            "figure.constrained_layout.h_pad": 0.04,
        }
    )


def arrange(spec: Specification, width: float) -> drawing.FigureLayout:
    """Return a figure of this width in inches, with panels as large as their number allows."""
    n = len(spec.panels)
    if spec.across and width / spec.across >= LEAST_ACROSS:
        side = width / spec.across
        maps = [spec.panels[i].is_map for i in range(0, n, spec.across)]
        rows = tuple(1.0 if is_map else FLAT for is_map in maps)
        return drawing.FigureLayout(width, sum(rows) * min(side, 2.3) + ABOVE, spec.across, rows)
    if spec.one_row:
        across, down = divide(width, n, LEAST_IN_ROW)
        return drawing.FigureLayout(width, down * min(2.3, width / across), across)
    if spec.panels[0].is_map:
        across, down = divide(width, n, LEAST_SMALL)
        # A map alone is as high as a usual cloud needs to fill its width.
        most = max(2.3, 0.8 * (width - MARGIN)) if n == 1 else 2.3
        return drawing.FigureLayout(
            width, down * (min(most, width / across - MARGIN) + MARGIN), across
        )
    across, down = divide(width, n, LEAST_WIDE if n == 2 else LEAST_SMALL)
    # Several rows of panels are flatter: a column would soon be higher than wide.
    shape = 0.62 if down == 1 else 0.45
    return drawing.FigureLayout(
        width, down * float(np.clip(shape * width / across, LEAST_HIGH, 2.3)), across
    )


def divide(width: float, count: int, least: float) -> tuple[int, int]:
    """Return panels across and down, in as few rows as panels of the `least` width allow."""
    across = max(1, min(count, int(width / least)))
    down = -(-count // across)
    return -(-count // down), down  # even rows: four panels as 2 + 2, not as 3 + 1


def write_power(mantissa: str, exponent: int) -> str:
    """Write ``1e-6`` in mathematics."""
    factor = "" if mantissa == "1" else rf"{mantissa}\cdot "
    return f"${factor}10^{{{exponent}}}$"


def output(width: float, write_name: Callable[[str], str]) -> drawing.OutputStyle:
    """Return the output of figures of this width in inches."""
    return drawing.OutputStyle(
        lambda spec: arrange(spec, width),
        write_name,
        lambda label: MATH.get(label) or (label and write_name(label)),
        write_power,
        draw_maps,
        draw_cloud,
        letters=True,
    )


def plain_text(text: str) -> str:
    """Return `text` for drawing letter by letter: no mathematics, □ for what has no glyph."""
    shown = "".join(c if is_drawable(c) else MISSING for c in shortened(text))
    return shown.replace("$", r"\$")


def is_drawable(character: str) -> bool:
    """Tell whether the fonts have it."""
    return character.isprintable() and ord(character) in _glyphs()


def explain_missing(spec: Specification) -> list[str]:
    """Write a note on names in the figure with characters that the fonts lack."""
    named = [point.name for panel in spec.panels if panel.cloud for point in panel.cloud.named]
    lacking = [name for name in (*spec.members, *named) if not all(map(is_drawable, name))]
    if not lacking:
        return []
    names = ", ".join(dict.fromkeys(visible(name) for name in lacking))
    return [f"{MISSING} is what the fonts of the figure do not have: {names}"]


def shortened(text: str) -> str:
    """Return `text` cut to a length that a legend can hold."""
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    """Return all characters of the fonts, which come with matplotlib."""
    drawing.import_matplotlib()
    from matplotlib.font_manager import findfont, get_font

    return frozenset().union(*(get_font(findfont(name)).get_charmap() for name in FONTS))


def render_paper(
    spec: Specification,
    form: str,
    width: float,
    creator: str,
    *,
    write_name: Callable[[str], str] = plain_text,
    preamble: str = "",
) -> RenderedFigure:
    """Render the chart as files of one format; equal charts give equal bytes.

    `form`: "pdf", "svg", "png", "pgf"; PGF comes with a PNG file for each rasterized part. `width`:
    in inches. `creator`: the program in the metadata of the file. `write_name`: makes untrusted
    text drawable; PGF needs another function than the default. `preamble`: LaTeX that text in PGF
    needs. Raises BadOption if LaTeX cannot set the text of a PGF file.
    """
    with settings(preamble):
        figure, notes = drawing.draw(spec, output(width, write_name))
        notes = (*notes, *(explain_missing(spec) if write_name is plain_text else ()))
        files = save(figure, spec.name, form, creator)
        across, down = (float(size) for size in figure.get_size_inches())
    return RenderedFigure(files, across, down, notes)


@dataclass(frozen=True, slots=True)
class RenderedFigure:
    """Files of one format by name, the size in inches, and notes on what is not shown."""

    files: dict[str, bytes]
    width: float
    height: float
    notes: tuple[str, ...]


FORMATS = ("pdf", "svg", "png", "pgf")


def check_format(form: str) -> None:
    """Refuse a format that is unknown, or that this machine cannot write."""
    if form not in FORMATS:
        raise refuse_name("format", form, FORMATS, argument("format"))
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if form == "pdf" and not re.fullmatch(r"\d{0,11}", epoch, re.ASCII):  # matplotlib reads it
        cause = f"{epoch!r:.40} is not a number of seconds"
        raise BadOption(cause, where="SOURCE_DATE_EPOCH", way_out="unset it")
    if form == "pgf" and shutil.which("pdflatex") is None:
        raise BadOption(
            "PGF needs LaTeX to measure text, and there is no pdflatex",
            where=f"{argument('format')} pgf",
            way_out="install TeX, or choose pdf",
        )


def save(figure: Figure, name: str, form: str, creator: str) -> dict[str, bytes]:
    """Return the figure as files of that format, by file name; call it within `settings`."""
    if form == "pgf":
        return save_pgf(figure, name)
    dates = {"pdf": "CreationDate", "svg": "Date"}
    described: dict[str, str | None] = {"Software" if form == "png" else "Creator": creator}
    described |= {dates[form]: None} if form in dates else {}
    # Of a file on a full disk, matplotlib hides what went wrong.
    stream = io.BytesIO()
    if form == "png":
        figure.savefig(stream, format=form, dpi=DPI, metadata=described)
    else:
        # `savefig` draws every dot twice, first for the layout, which the figure already has.
        backend = import_module(f"matplotlib.backends.backend_{form}")
        figure.set_dpi(DPI)
        getattr(backend.FigureCanvas(figure), f"print_{form}")(stream, metadata=described)
    return {f"{name}.{form}": stream.getvalue()}


def save_pgf(figure: Figure, name: str) -> dict[str, bytes]:
    """Return the figure as LaTeX source, and its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            figure.savefig(Path(folder) / f"{name}.pgf", format="pgf", dpi=DPI)
        except (RuntimeError, ValueError) as error:  # with TeX's log
            raise BadOption(
                f"LaTeX could not set the text: {' '.join(str(error).split())[:200]}",
                where=f"{argument('format')} pgf",
                way_out="install pgf (texlive-pictures), or choose pdf",
            ) from error
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
