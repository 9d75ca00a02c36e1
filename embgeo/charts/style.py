"""How figures look, and how they become SVG that survives a server which strips styles.

Lines are told apart by color and by dashes. Every color is a key of `CLASSES`: in the SVG it is
a presentation attribute (what a bare page shows) with a class beside it (what a style sheet may
change, for a dark page).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Okabe and Ito's palette, told apart under every common color-vision deficiency.
INK = "#1b1b1f"
BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#007a5a"
GRAY = "#808088"
PURPLE = "#9b3f8f"
GOLD = "#8a6a00"
SKY = "#4aa3df"
LINES = (BLUE, ORANGE, GREEN)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)))

#: Density levels, few tokens to many: one hue, monotone in lightness.
DENSITY = ("#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
#: Share of rare tokens, none to all: blue over gray to orange.
MIXTURE = ("#0072b2", "#5b9bc4", "#a9b9c4", "#c9b6a4", "#d98d4f", "#d55e00")

CLASSES = {
    BLUE: "fig-blue",
    ORANGE: "fig-orange",
    GREEN: "fig-green",
    GRAY: "fig-gray",
    PURPLE: "fig-purple",
    GOLD: "fig-gold",
    SKY: "fig-sky",
    **{color: f"fig-density-{i}" for i, color in enumerate(DENSITY)},
    **{color: f"fig-mixture-{i}" for i, color in enumerate(MIXTURE) if color not in LINES},
}

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_KEEP = {
    "clip-path", "dominant-baseline", "fill", "fill-opacity", "fill-rule", "font-family",
    "font-size", "font-style", "font-weight", "opacity", "stroke", "stroke-dasharray",
    "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "text-anchor",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_UPRIGHT = re.compile(r"rotate\(-?0 [^)]*\)")
_SUBSCRIPTS = {"_k": "ₖ", "_i": "ᵢ", "_1": "₁"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's own defaults and ours, whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "embgeo"
        matplotlib.rcParams["svg.fonttype"] = "none"
        # A dollar sign in a label is a dollar sign.
        matplotlib.rcParams["text.parse_math"] = False
        yield


def axes(
    width: float = 5.6, height: float = 3.3, columns: int = 1, lines: int = 1
) -> tuple[Drawing, list[Axes]]:
    """An empty figure of this size in inches, with its axes line by line."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="tight")
    grid = [drawing.add_subplot(lines, columns, i + 1) for i in range(lines * columns)]
    for ax in grid:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["bottom", "left"]].set_color(GRAY)
        ax.tick_params(labelsize=8.5, length=3, colors=INK)
        ax.xaxis.label.set(size=9, color=INK)
        ax.yaxis.label.set(size=9, color=INK)
        ax.set_facecolor("none")
    drawing.patch.set_facecolor("none")
    return drawing, grid


def log_axis(axis: Any, values: npt.NDArray[np.float64]) -> None:
    """A logarithmic axis for `values`, labeled in plain Unicode: no mathematics fonts."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    positive = values[np.isfinite(values) & (values > 0)]
    span = math.log10(positive.max()) - math.log10(positive.min()) if len(positive) else 0.0
    if span < 0.5:
        return  # within a factor of three a linear axis shows the same and has more labels
    axis._set_axes_scale("log")
    subs = (1.0, 2.0, 5.0) if span < 1.5 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: power_of_ten(value)))
    axis.set_minor_formatter(NullFormatter())


def power_of_ten(value: float) -> str:
    """``0.001`` as 0.001, ``1e-6`` as 10⁻⁶."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def subscripts(label: str) -> str:
    """``σ_k / σ_1`` as σₖ / σ₁."""
    for plain, small in _SUBSCRIPTS.items():
        label = label.replace(plain, small)
    return label


def legend(ax: Axes, **options: Any) -> None:
    """A legend without a frame, in the place with the fewest points."""
    ax.legend(frameon=False, fontsize=8.5, labelcolor=INK, **options)


def svg(drawing: Drawing, name: str, alternative: str) -> str:
    """The figure as an ``<svg>`` element to stand inside a page; call it within `settings`.

    Equal figures give equal bytes; ids begin with `name`; there is no ``style`` attribute, no
    ``<style>`` element, no date and no reference to anything outside.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream = io.StringIO()
    canvas: Any = FigureCanvasSVG(drawing)
    canvas.print_svg(stream, metadata={"Date": None})
    root = ElementTree.fromstring(stream.getvalue())
    _strip(root)
    _attributes(root)
    _ids(root, name)
    width, height = (float(size) * 100 for size in drawing.get_size_inches())
    root.attrib |= {"width": f"{width:.0f}", "height": f"{height:.0f}", "role": "img"}
    root.attrib |= {"aria-label": alternative, "class": "figure", "fill": "currentColor"}
    root.attrib.pop("version", None)
    return _text(root)


def _strip(element: ElementTree.Element) -> None:
    """Take out metadata, style sheets and comments' leavings."""
    for child in list(element):
        if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
            element.remove(child)
        else:
            _strip(child)
            if child.tag == f"{{{_SVG}}}defs" and not len(child):
                element.remove(child)


def _attributes(root: ElementTree.Element) -> None:
    for element in root.iter():
        declared = dict(_declarations(element.attrib.pop("style", "")))
        for key, value in declared.items():
            if key in _KEEP:
                element.set(key, value)
        classes = []
        for key in ("fill", "stroke"):
            color = element.get(key, "").lower()
            if color in (INK, "#000000"):
                element.set(key, "currentColor")
            elif color in CLASSES:
                classes.append(f"{CLASSES[color]}-{key}")
        if classes:
            element.set("class", " ".join(classes))
        for key in ("d", "x", "y", "transform"):
            if key in element.attrib:
                element.set(key, _NUMBER.sub(_shorter, element.attrib[key]))
        if "d" in element.attrib:
            element.set("d", re.sub(r"\s*([MLQCz])\s*", r"\1", element.attrib["d"]).strip())
        if _UPRIGHT.fullmatch(element.get("transform", "")):
            del element.attrib["transform"]


def _declarations(style: str) -> list[tuple[str, str]]:
    out = []
    for part in style.split(";"):
        key, colon, value = part.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            continue
        if key == "font":
            # "8.5px 'DejaVu Sans', …": the shorthand is no presentation attribute.
            size = re.search(r"([\d.]+)px", value)
            out.append(("font-size", size[1] if size else "9"))
            out.append(("font-family", "system-ui, 'DejaVu Sans', sans-serif"))
        elif key == "font-family":
            out.append((key, "system-ui, 'DejaVu Sans', sans-serif"))
        else:
            out.append((key, value))
    return out


def _ids(root: ElementTree.Element, name: str) -> None:
    """Ids that stay unique among all figures of a page; those nobody refers to go."""
    used: set[str] = set()
    for element in root.iter():
        if _XLINK in element.attrib:
            element.set("href", element.attrib.pop(_XLINK))
        for value in element.attrib.values():
            used.update(re.findall(r"url\(#([^)]+)\)", value))
        used.add(element.get("href", "")[1:])
    for element in root.iter():
        identity = element.attrib.pop("id", None)
        if identity in used:
            element.set("id", f"{name}-{identity}")
        for key, value in element.attrib.items():
            if key == "href":
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))


def _shorter(match: re.Match[str]) -> str:
    # A tenth of a point is a seventh of a pixel at the size shown.
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _text(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text).replace(f' xmlns="{_SVG}"', "", 1)
