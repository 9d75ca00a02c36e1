"""The colors, dashes and markers of every chart, on pages and in papers.

A color has one meaning: blue and orange are frequent and rare tokens, the other hues are members.
Each has a contrast of 2.7:1 on white and a counterpart for dark pages. Members also differ in
dashes, rare and frequent tokens in lightness, for any color vision and black-and-white prints.
"""

from typing import Any, NamedTuple

from embgeo.charts.specification import MemberStyle


class ThemeColor(NamedTuple):
    """A color: its name in style sheets, its values on light and on dark pages."""

    name: str
    light: str
    dark: str


INK = ThemeColor("ink", "#1b1b1f", "#e8e8ec")
GRAY = ThemeColor("gray", "#808088", "#8d8d99")
POPULAR = ThemeColor("blue", "#0072b2", "#56b4e9")
RARE = ThemeColor("rare", "#e07b00", "#f5923e")
#: Verdicts, as on pages.
TONES = {"healthy": "#12613a", "mild": "#b07a00", "degenerate": "#a11a1a", "undecided": "#575763"}
#: The pale dots behind a line.
PALE = ThemeColor("pale", "#b9c4d0", "#4a5663")

#: Members next to each other: no member has a color of the classes of tokens, which maps show.
LINES = (
    INK,
    ThemeColor("green", "#00805f", "#37c99b"),
    ThemeColor("purple", "#9b3f8f", "#d58fd0"),
    ThemeColor("gold", "#8a6a00", "#d6b04a"),
    ThemeColor("rose", "#e0699a", "#f78fb3"),
    ThemeColor("teal", "#3a9aa6", "#8fdbe3"),
    ThemeColor("brown", "#7a4a2b", "#c9977a"),
    GRAY,
)
#: Lines of one run, from its beginning to its end: viridis, monotone in lightness.
AGES = (
    ThemeColor("age-0", "#7ad151", "#355f8d"),
    ThemeColor("age-1", "#44bf70", "#2b748e"),
    ThemeColor("age-2", "#23a983", "#23898e"),
    ThemeColor("age-3", "#20928c", "#1f9e89"),
    ThemeColor("age-4", "#297a8e", "#2cb17e"),
    ThemeColor("age-5", "#33638d", "#50c46a"),
    ThemeColor("age-6", "#3f4889", "#81d34d"),
    ThemeColor("age-7", "#472a7a", "#bade28"),
    ThemeColor("age-8", "#46085c", "#f1e51d"),
)

#: Three dashes and eight colors: no pair occurs twice among 24 lines.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHED: Any = (0, (4, 3))
#: What isotropic rows give, in every figure.
DOTTED: Any = (0, (1, 1))

#: Colors of drawings that a dark page changes, and their classes by the value on light pages.
DRAWN = (*LINES, *AGES, RARE, POPULAR, PALE)
CLASSES = {color.light: f"fig-{color.name}" for color in DRAWN}


def color_of(style: MemberStyle) -> str:
    """Return the color of a line on paper and on light pages."""
    scales = {"line": LINES, "age": AGES, "guide": (GRAY,)}
    scale = scales[style.scale]
    color = scale[style.index % len(scale)].light
    if style.shade == 1.0:
        return color
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * style.shade):02x}" for part in parts)


def dash_of(style: MemberStyle) -> Any:
    """Return the dashes of a line for matplotlib; lines of one run differ by shade alone."""
    if style.scale == "guide":
        return DOTTED
    return DASHES[dash_index(style)]


def dash_index(style: MemberStyle) -> int:
    """Return the place of a line's dashes among `DASHES`."""
    return style.index % len(DASHES) if style.scale == "line" else 0


def marker_of(style: MemberStyle) -> str:
    """Return the marker of a line's points."""
    return MARKERS[style.index % len(MARKERS)]


def stylesheet() -> str:
    """Return the theme for pages: variables, and the dark colors of figures."""
    names = {
        "--rare": RARE,
        "--popular": POPULAR,
        **{f"--line-{i}": color for i, color in enumerate(LINES)},
        **{f"--age-{i}": color for i, color in enumerate(AGES)},
        "--guide": GRAY,
    }
    light = " ".join(f"{name}: {color.light};" for name, color in names.items())
    dark = " ".join(f"{name}: {color.dark};" for name, color in names.items())
    figures = "\n".join(
        f"  .fig-{color.name}-{key} {{ {key}: {color.dark}; }}"
        for color in dict.fromkeys(DRAWN)
        if color.light != color.dark and color is not INK
        for key in ("fill", "stroke")
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{\n  :root {{ {dark} }}\n{figures}\n}}\n"
    )
