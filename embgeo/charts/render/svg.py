"""Charts as inline SVG, which also works on a server that strips styles.

Every color of the theme is a presentation attribute (which a bare page shows) and a class (which a
style sheet may change, for a dark page).
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from embgeo.charts import theme
from embgeo.charts.render.drawing import FigureLayout, OutputStyle, default_settings, draw
from embgeo.charts.render.marks import draw_maps
from embgeo.charts.specification import Specification
from embgeo.core.text import drawable, visible_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Maps and panels in one row; of more than four, and in more than four rows.
ACROSS, MANY = 2, 3
#: The widest figure in inches: on a sheet of A4 its letters have seven points.
WIDEST = 8.6
SETTINGS: Any = {
    "svg.fonttype": "none",
    # A dollar sign in a label is a dollar sign.
    "text.parse_math": False,
    "axes.edgecolor": theme.GRAY.light,
    "axes.facecolor": "none",
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "axes.titlecolor": theme.INK.light,
    "axes.titley": 1.0,
    "figure.facecolor": "none",
    "font.size": 9,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
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
_LETTERS = ("M", "L", "Q", "C", "z")
_UPRIGHT = re.compile(r"rotate\(-?0 [^)]*\)")
_SUBSCRIPTS = {"_k": "ₖ", "_i": "ᵢ", "_1": "₁"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def settings() -> AbstractContextManager[None]:
    return default_settings(SETTINGS)


def arrange(spec: Specification) -> FigureLayout:
    """Get sizes that a page shows without scaling: one panel, two next to each other, or a grid."""
    n = len(spec.panels)
    if spec.one_row:
        return FigureLayout(3.4 * n, 2.5, n)
    if spec.panels[0].is_map:
        across = MANY if n > ACROSS**2 else min(ACROSS, n)
        side = 6.0 if n == 1 else WIDEST / across
        return FigureLayout(side * across, 0.84 * side * -(-n // across), across)
    if n == 1:
        return FigureLayout(5.6, 3.3, 1)
    across = MANY if n > ACROSS * 4 else ACROSS
    high = 3.3 if n == 2 else 2.5 if across == ACROSS else 1.75
    return FigureLayout(WIDEST, high * -(-n // across), across)


def write_label(label: str) -> str:
    """Return ``σ_k / σ_1`` as σₖ / σ₁."""
    label = visible_text(label)
    for plain, small in _SUBSCRIPTS.items():
        label = label.replace(plain, small)
    return label


def write_power(mantissa: str, exponent: int) -> str:
    """Write ``1e-6`` as 10⁻⁶: plain Unicode, no mathematics fonts."""
    factor = "" if mantissa == "1" else f"{mantissa}·"
    return f"{factor}10{str(exponent).translate(_SUPERSCRIPTS)}"


MEDIUM = OutputStyle(arrange, drawable, write_label, write_power, draw_maps)


def render_svg(spec: Specification) -> str:
    """Render the chart as an inline ``<svg>`` element.

    Equal charts give equal bytes; ids begin with the chart's name; there is no ``style``
    attribute, no ``<style>`` element, no date and no reference to anything outside.
    """
    with settings():
        figure, _ = draw(spec, MEDIUM)
        return write_svg(figure, spec.name, spec.alternative)


def write_svg(figure: Figure, name: str, alternative: str) -> str:
    """Write a figure as an ``<svg>`` element; call it within `settings`."""
    from matplotlib.backends import backend_svg

    stream = io.StringIO()
    figure.dpi = 72
    width, height = figure.bbox.size
    module: Any = backend_svg
    renderer = module.RendererSVG(width, height, stream, metadata={"Date": None})
    renderer.get_text_width_height_descent = measure_text
    figure.draw(renderer)
    renderer.finalize()
    root = ElementTree.fromstring(stream.getvalue())
    strip_leavings(root)
    present_attributes(root)
    prefix_ids(root, name)
    unwrap_groups(root)
    root.attrib |= {"width": f"{width / 0.72:.0f}", "height": f"{height / 0.72:.0f}"}
    root.attrib |= {"role": "img"}
    root.attrib |= {"aria-label": alternative, "class": "figure", "fill": "currentColor"}
    root.attrib.pop("version", None)
    return serialize(root)


@lru_cache(4096)
def measure_text(text: str, font: Any, math: Any) -> tuple[float, float, float]:
    """Return width, height and descent as matplotlib measures them, once for all charts."""
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, font, math)


def strip_leavings(element: ElementTree.Element) -> None:
    """Remove metadata, style sheets and empty definitions."""
    for child in list(element):
        if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
            element.remove(child)
        else:
            strip_leavings(child)
            if child.tag == f"{{{_SVG}}}defs" and not len(child):
                element.remove(child)


def present_attributes(root: ElementTree.Element) -> None:
    """Turn styles into presentation attributes and classes."""
    for element in root.iter():
        declared = dict(split_style(element.attrib.pop("style", "")))
        for key, value in declared.items():
            if key in _KEEP:
                element.set(key, value)
        classes = []
        for key in ("fill", "stroke"):
            color = element.get(key, "").lower()
            if color in (theme.INK.light, "#000000"):
                element.set(key, "currentColor")
            elif color in theme.CLASSES:
                classes.append(f"{theme.CLASSES[color]}-{key}")
        if classes:
            element.set("class", " ".join(classes))
        for key in ("x", "y", "transform"):
            if key in element.attrib:
                element.set(key, _NUMBER.sub(shorten_number, element.attrib[key]))
        if "d" in element.attrib:
            element.set("d", shorten_path(element.attrib["d"]))
        if _UPRIGHT.fullmatch(element.get("transform", "")):
            del element.attrib["transform"]


def unwrap_groups(element: ElementTree.Element) -> None:
    """Replace groups without attributes by their content."""
    for child in list(element):
        unwrap_groups(child)
        if child.tag == f"{{{_SVG}}}g" and not child.attrib:
            place = list(element).index(child)
            element.remove(child)
            for i, inner in enumerate(list(child)):
                element.insert(place + i, inner)


def split_style(style: str) -> list[tuple[str, str]]:
    out = []
    for part in style.split(";"):
        key, colon, value = part.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            continue
        if key == "font":
            # "8.5px 'DejaVu Sans', …": the shorthand is not a presentation attribute.
            size = re.search(r"([\d.]+)px", value)
            out.append(("font-size", size[1] if size else "9"))
            out.append(("font-family", "system-ui, 'DejaVu Sans', sans-serif"))
        elif key == "font-family":
            out.append((key, "system-ui, 'DejaVu Sans', sans-serif"))
        else:
            out.append((key, value))
    return out


def prefix_ids(root: ElementTree.Element, name: str) -> None:
    """Make ids unique among all figures of a page; remove those without a reference."""
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


def shorten_number(match: re.Match[str]) -> str:
    # A tenth of a point is a seventh of a pixel at the size shown.
    return f"{float(match[0]):.1f}".removesuffix(".0")


def shorten_path(path: str) -> str:
    """Shorten all numbers of a path, and leave out blanks around its letters."""
    words = path.split()
    numbers = tuple(float(word) for word in words if word not in _LETTERS)
    form = " ".join([word if word in _LETTERS else "%.1f" for word in words])
    text = (form % numbers).replace(".0", "")
    for letter in _LETTERS:
        text = text.replace(f" {letter}", letter).replace(f"{letter} ", letter)
    return text


def serialize(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text).replace(f' xmlns="{_SVG}"', "", 1)
