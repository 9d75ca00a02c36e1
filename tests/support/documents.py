"""Markdown as tests read it: code blocks, commands with their output, links, tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| `([^`]+)`(?: \||<br>)", re.MULTILINE)
NUMBER = r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[+−-]?\d+)?"


@dataclass(frozen=True, slots=True)
class Command:
    """A line after ``$`` and what a document shows below it."""

    line: str
    output: str


def documents() -> list[Path]:
    """Every page that people read on the way through the repository."""
    names = (".", "docs", "docs/tutorials", "fixtures", "benchmarks")
    folders = [ROOT / name for name in names]
    return sorted(page for folder in folders for page in folder.glob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text("utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def commands(block: str) -> list[Command]:
    """The commands of a console block, each with its output."""
    assert block.startswith("$ "), f"a console block begins with a command: {block!r}"
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Command(*part.split("\n", 1)) for part in parts]


def agrees(shown: str, seen: str) -> bool:
    """Whether what was seen is what a document shows.

    Text and whole numbers have to be equal, but for runs of spaces. A number with a decimal point
    may be off by two units in the last digit of the longer one, which is what other
    linear-algebra libraries make of it. ``…`` stands for any text inside its line, and alone on a
    line for any lines.
    """
    expected = plain(shown)
    found = re.fullmatch(pattern(expected), plain(seen))
    if not found:
        return False
    numbers = re.findall(NUMBER, expected)
    return all(close(*pair) for pair in zip(numbers, found.groups(), strict=True))


def plain(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines()) + "\n"


def pattern(shown: str) -> str:
    lines = []
    for line in shown.splitlines():
        if line == "…":
            lines.append("(?:.*\n)*?")
            continue
        pieces = re.split(f"({NUMBER}|…)", line)
        lines.append("".join(map(piece_pattern, pieces)) + "\n")
    return "".join(lines)


def piece_pattern(piece: str) -> str:
    if piece == "…":
        return ".*"
    return f"({NUMBER})" if re.fullmatch(NUMBER, piece) else re.escape(piece)


def close(shown: str, seen: str) -> bool:
    if shown == seen:
        return True
    if "." not in shown or "." not in seen:
        return False
    unit = min(last_digit(shown), last_digit(seen))
    return abs(number(shown) - number(seen)) <= 2.001 * unit


def last_digit(text: str) -> float:
    """What a step of one in the last digit of a decimal number is worth."""
    mantissa, _, exponent = text.replace("−", "-").partition("e")
    return float(10.0 ** (int(exponent or "0") - len(mantissa.partition(".")[2])))


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def list_fields(text: str) -> list[str]:
    """Names in the first cells of tables; one that begins with a dot is of what the head names."""
    names, prefix = [], ""
    for line in text.splitlines():
        if head := re.match(r"\| in `([^`]+)` \|", line):
            prefix = head[1]
        elif line.startswith("| `"):
            found = re.findall("`([^`]+)`", line[1:].partition(" | ")[0])
            names += [f"{prefix}{name}" if name.startswith(".") else name for name in found]
    return names


def anchors(page: Path) -> set[str]:
    """What a link into a page may name: its headings, spelled as GitHub spells them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(page.read_text("utf-8"))
    }
