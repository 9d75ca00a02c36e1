"""Texts for readers: hidden characters made visible, enumerations, Markdown, colored lines.

The reports' script has the same rules for hidden characters (``static/visible.js``) and takes
ranges and names from here, so that a tooltip and a printed table agree.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Self

#: Longest token shown whole, in characters.
LIMIT = 80

#: Characters with a picture of their own.
NAMED = {"\n": "⏎", "\r": "‹CR›", "\t": "⇥"}

#: Code points that are invisible or change their neighbors: controls, unusual blanks, joiners,
#: direction marks, fillers, variation selectors, lone surrogates, private use. Ranges instead of
#: Unicode categories, because Python and browsers have different versions of Unicode.
HIDDEN: tuple[tuple[int, int], ...] = (
    (0x0000, 0x001F),
    (0x007F, 0x00A0),
    (0x00AD, 0x00AD),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),
    (0xE000, 0xF8FF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0x10FFFF),
)

#: Combining marks, which would join the character in front of the token.
ACCENTS: tuple[tuple[int, int], ...] = (
    (0x0300, 0x036F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
)

#: Blanks of prose: no-break and thin ones.
_BLANKS = "\u00a0\u2009\u202f"

_HIDDEN = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in HIDDEN) + "]")


def visible(token: str) -> str:
    """Return `token` with every hidden character spelled out, e.g. ``"␣the"`` or ``"‹U+202E›abc"``.

    Blanks at either end become ␣, a combining mark at the start gets a dotted circle, and a token
    of more than `LIMIT` characters is cut and ends with its length.
    """
    if not token:
        return "‹empty›"
    length = len(token)
    head = token[:LIMIT]
    shown = _HIDDEN.sub(lambda m: _spell(m[0]), head)
    left = len(shown) - len(shown.lstrip(" "))
    right = len(shown) - len(shown.rstrip(" ")) if length <= LIMIT and left < len(shown) else 0
    shown = "␣" * left + shown[left : len(shown) - right] + "␣" * right
    if any(a <= ord(head[0]) <= b for a, b in ACCENTS):
        shown = "◌" + shown
    if length > LIMIT:
        shown += f"… ({length:,} characters)"
    return shown


#: Longest token inside a sentence, in characters.
LONGEST = 24


def show_token(token: object, row: object) -> str:
    """Return a token inside a sentence with its row number, or that alone where it is not known.

    >>> show_token("the", 1200), show_token(None, 5), show_token("a,b", None)
    ('the (row 1,200)', 'row 5', '“a,b”')
    """
    number = f"row {row:,}" if isinstance(row, int) else f"row {row}"
    if not isinstance(token, str):
        return number
    shown = visible(token)
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - 1] + "…"
    # A comma would read as the end of a token.
    shown = f"“{shown}”" if "," in shown else shown
    return shown if row is None else f"{shown} ({number})"


def visible_text(text: str) -> str:
    """Return a path, a note or a reason with hidden characters spelled out, except blanks."""
    return _HIDDEN.sub(lambda m: m[0] if m[0] in _BLANKS else _spell(m[0]), text)


def _spell(character: str) -> str:
    return NAMED.get(character, f"‹U+{ord(character):04X}›")


#: Longest name in a legend, in characters.
LONGEST = 26


def drawable(text: str) -> str:
    """Return `text` without characters that SVG forbids, shortened in the middle if it is long."""
    shown = "".join(c if c.isprintable() else "�" for c in text)
    if len(shown) > LONGEST:
        head = LONGEST // 2
        shown = f"{shown[:head]}…{shown[head + 1 - LONGEST :]}"
    # Matplotlib leaves labels that begin with an underscore out of its legends.
    return f"\u2009{shown}" if shown.startswith("_") else shown


def printable(text: str) -> str:
    """Return the text without control characters, which a hostile file name may contain."""
    return "".join(c if c.isprintable() or c == "\xa0" else repr(c)[1:-1] for c in text)


def defuse(text: str) -> str:
    """Return the text or JSON that GitHub's runner cannot mistake for a workflow command.

    These are ``::name::`` at the beginning of a line, and the older ``##[name]`` anywhere.
    """
    broken = text.replace("##[", "#\\u0023[")
    return re.sub(r"^(\s*):(?=:)", r"\1\\u003a", broken, flags=re.MULTILINE)


def capital(text: str) -> str:
    """Return `text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


#: Names that keep their capital inside a sentence.
PEOPLE = frozenset({"Procrustes"})


def lower_title(title: str) -> str:
    """Write a title as it stands in a sentence: names and symbols keep their capitals.

    >>> lower_title("Mean cosine"), lower_title("IsoScore"), lower_title("I1 as stored")
    ('mean cosine', 'IsoScore', 'I1 as stored')
    """
    first = title.partition(" ")[0]
    is_word = first[1:].islower() and first not in PEOPLE
    return title[:1].lower() + title[1:] if is_word else title


def join_words(words: Sequence[str], last: str = "and", *, comma: bool = False) -> str:
    """Return an enumeration with `last` in front of the last word; empty without words.

    `comma`: whether a comma also stands in front of `last`, for long clauses.

    >>> join_words(["adamw", "adam", "sgd"], "or")
    'adamw, adam or sgd'
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])}{',' if comma and len(words) > 2 else ''} {last} {words[-1]}"


def escape_markdown(text: str) -> str:
    """Return text in which neither Markdown nor HTML nor a table finds markup, mentions or links.

    All three show character references literally. A sign stays where it cannot begin markup, so
    that a plain log can be read.

    >>> escape_markdown("| @team *"), escape_markdown("0.1 ± 0.02 (tokens)")
    ('&#124; &#64;team &#42;', '0.1 ± 0.02 (tokens)')
    >>> escape_markdown("+3.1%, + item")
    '+3.1%, &#43; item'
    >>> escape_markdown("www.example.com, GH-12")
    'www&#46;example.com, GH&#45;12'
    >>> escape_markdown("failed: p <= 0.1 = a / b's"), escape_markdown("<b>, http://x")
    ("failed: p <= 0.1 = a / b's", '&#60;b&#62;, http&#58;&#47;&#47;x')
    >>> escape_markdown("i ≠ j; (M − 1)/M"), escape_markdown("</b")
    ('i ≠ j; (M − 1)/M', '&#60;&#47;b')
    """
    return _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", printable(text))


#: Signs but those that are plain wherever they stand, and those that are plain where they stand.
_MARKUP = re.compile(
    r"(?![\w .;,()−±≥≤≠≈×·√∞→‖…°%–+-]|:(?= |$)|(?<= )[<>]=?(?= )|(?<= [<>])=(?= )|(?<= )[=/](?= )"
    r"|(?<=\w)'(?=\w)|(?<=[\w)])/(?=\w))[\s\S]|\+(?![0-9])|_|(?<=[wW]{3})\.|(?<=GH)-"
)
#: Text that a code span shows as it is, also in a table.
_PLAIN_CODE = re.compile(r"(?! )(?:[^`|\\@*<]|<(?=[ =]))+(?<! )")


def as_code(text: str) -> str:
    """Return the text in a fixed-width font: a code span, or HTML where that would hide a sign."""
    shown = printable(text)
    if _PLAIN_CODE.fullmatch(shown):
        return f"`{shown}`"
    return f"<code>{escape_markdown(text)}</code>" if text else ""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield lines of a table with the first column aligned left and the others right."""
    yield f"| {' | '.join(map(escape_markdown, heads))} |"
    yield f"|---|{'--:|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_markdown, row))} |"


Tone = Literal["good", "warning", "bad"]


class ColoredLine(str):
    """A line of text with an optional tone.

    >>> line = ColoredLine.of("gate failed: 1 of 3 checks", "bad")
    >>> line.tone, line.with_text("other").tone
    ('bad', 'bad')
    """

    __slots__ = ("tone",)
    tone: Tone | None

    @classmethod
    def of(cls, text: str, tone: Tone | None) -> Self:
        line = cls(text)
        line.tone = tone
        return line

    def with_text(self, text: str) -> Self:
        return self.of(text, self.tone)


#: Cells are padded to at most this many characters.
_WIDEST = 400


def align(rows: Sequence[Sequence[str]], left: frozenset[int] = frozenset({0})) -> list[str]:
    """Return a line for each row: columns of `left` flush left, the others flush right.

    Examples
    --------
    >>> align([["mean", "0.5"], ["count", "10"]])
    ['mean   0.5', 'count   10']
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    # One very long cell does not pad all others of its column.
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
