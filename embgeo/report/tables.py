"""Tables, provenance and lists of quantities as the templates print them."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeVar

from embgeo.comparison.pair import Difference
from embgeo.core.quantities import (
    QUANTITIES,
    cosine,
    frequency,
    isotropy,
    spectrum,
    subspace,
    tokens,
)
from embgeo.core.text import capital, visible
from embgeo.core.values import Caveat, Cell, Quantity, Scalar, Table, Value, format_number
from embgeo.result.analysis import Analysis

T = TypeVar("T")

#: The choices of ``--sections``.
SECTIONS = tuple(dict.fromkeys(quantity.family for quantity in QUANTITIES.values()))
#: Rows of the headline table, at most.
MOST = 10


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell ready to print; `mark` follows the text."""

    text: str
    kind: Literal["token", "text", "num"]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ColumnView:
    title: str
    number: bool


@dataclass(frozen=True, slots=True)
class TableView:
    """A table ready to print."""

    name: str
    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[CellView, ...], ...]


#: The columns that order tables of tokens: they are shown first, and the row number last.
ORDERED_BY = {
    tokens.SMALLEST_NORMS.name: "‖w‖",
    tokens.LARGEST_NORMS.name: "‖w‖",
    tokens.NEAREST_TO_MEAN.name: "angle (°)",
    tokens.HUBS.name: "neighbor of",
}


def table_view(table: Table) -> TableView:
    """Get `table` with formatted numbers and every string made visible, without empty columns."""
    table = order_columns(table)
    rare = frozenset(table.rare)
    formats = [column_format([row[j] for row in table.rows]) for j in range(len(table.columns))]
    rows = tuple(
        tuple(
            _cell(column, cell, (i, j) in rare, formats[j])
            for j, (column, cell) in enumerate(zip(table.columns, row, strict=True))
        )
        for i, row in enumerate(table.rows)
    )
    columns = tuple(
        ColumnView(visible(title), bool(rows) and any(row[j].kind == "num" for row in rows))
        for j, title in enumerate(table.columns)
    )
    return TableView(table.name, table.quantity.title, table.note, columns, rows)


def column_format(cells: Iterable[Cell]) -> Callable[[float], str]:
    """Write the numbers of a column with as many decimals as give the largest four digits.

    Each with digits of its own, where one would be printed as 0 or 1 that is not.

    >>> [*map(column_format([24.7, 8.125]), (24.7, 8.125))], column_format([2.0, 1e-9])(1e-9)
    (['24.70', '8.12'], '1e-09')
    """
    values = [float(cell) for cell in cells if isinstance(cell, int | float)]
    largest = max(map(abs, values), default=0.0)
    if not 1e-3 <= largest < 1e6 or all(value.is_integer() for value in values):
        return format_number
    digits = max(0, 3 - math.floor(math.log10(largest)))
    if any(round(value, digits) in (0.0, 1.0, -1.0) and value != round(value) for value in values):
        return format_number
    return lambda value: f"{value:,.{digits}f}".replace("-", "−")


def order_columns(table: Table) -> Table:
    """Return the columns that hold something.

    The one that orders the table first, row numbers last.
    """
    held = [
        j for j in range(len(table.columns)) if any(row[j] not in (None, "") for row in table.rows)
    ]
    key = ORDERED_BY.get(table.name)
    if key is not None:
        ranks = {key: 0, "row": 2}
        held.sort(key=lambda j: ranks.get(table.columns[j], 1))
    places = {j: at for at, j in enumerate(held)}
    return replace(
        table,
        columns=tuple(table.columns[j] for j in held),
        rows=tuple(tuple(row[j] for j in held) for row in table.rows),
        rare=tuple((i, places[j]) for i, j in table.rare if j in places),
    )


def _cell(column: str, cell: Cell, is_rare: bool, write: Callable[[float], str]) -> CellView:
    if cell is None:
        return CellView("–", "num")
    if isinstance(cell, int | float):
        return CellView(write(float(cell)), "num")
    if column.startswith(("token", "neighbor")):
        return CellView(visible(cell), "token", "\u00a0*" if is_rare else "")
    return CellView(visible(cell) if cell else "", "text")


def facts(analysis: Analysis) -> list[str]:
    """Return the line under the title."""
    p = analysis.provenance
    out = [f"tensor {p['tensor']}"] if p.get("tensor") else []
    kept, d = p.get("kept", len(analysis.rows)), p.get("d", 0)
    out.append(f"{kept:,} tokens × {d:,} dimensions")
    if p.get("dtype"):
        out.append(str(p["dtype"]))
    if p.get("format"):
        out.append(str(p["format"]))
    cut = _range_of_rows(p)
    if cut:
        out.append(cut)
    masked = p.get("masked") or {}
    left_out = sum(int(count) for count in masked.values())
    if left_out:
        reasons = ", ".join(f"{int(c):,} {r}" for r, c in masked.items() if c)
        out.append(f"rows left out: {reasons}")
    else:
        out.append("none of these rows left out" if cut else "no rows left out")
    return out


def _range_of_rows(provenance: dict[str, Any]) -> str:
    """Return ``rows 0–499 of 5,000`` if part of the matrix was requested, else empty."""
    if not provenance.get("row_range"):
        return ""
    first, end = provenance["row_range"]
    shape = provenance.get("stored_shape") or []
    rows = shape[-1 if provenance.get("transposed") else 0] if shape else None
    return f"rows {first:,}–{end - 1:,}" + (f" of {rows:,}" if rows else "")


def list_absences(analysis: Analysis) -> dict[str, str]:
    """List families without numbers, and why; also sections that were not requested."""
    asked = analysis.provenance.get("sections")
    found = {value.quantity.family for value in analysis.values()}
    skipped = () if asked is None else (f for f in SECTIONS if f not in asked and f not in found)
    return dict.fromkeys(skipped, "skipped with --sections") | analysis.absent


def start_sentence(text: str) -> str:
    """Get `text` with a capital letter; a symbol at its start (``d``, ``c₂``) stays unchanged."""
    word = text.partition(" ")[0].rstrip(",;:")
    return capital(text) if len(word) > 2 and word.isalpha() else text


def provenance_rows(provenance: dict[str, Any]) -> list[tuple[str, str]]:
    """Return every field in the stored order, nested ones as ``outer: inner``."""
    rows: list[tuple[str, str]] = []
    for key, value in provenance.items():
        if isinstance(value, dict) and value:
            rows += [(f"{key}: {k}", format_value(k, v)) for k, v in value.items()]
        else:
            rows.append((key, format_value(key, value)))
    return rows


def format_value(key: str, value: Any) -> str:
    if value is None or value == [] or value == {} or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, list):
        marks = {"row_range": ":", "stored_shape": " × "}
        return marks.get(key, ", ").join(str(v) for v in value)
    return value if isinstance(value, str) else json.dumps(value)


def list_quantities(*groups: Iterable[Value | Difference]) -> list[Quantity]:
    """List each quantity of these values once, in the order of first appearance."""
    found: dict[str, Quantity] = {}
    for value in chain(*groups):
        found.setdefault(value.name, value.quantity)
    return list(found.values())


#: Caveats about the error over tokens, in words.
ERROR_CAVEATS: dict[Caveat, str] = {
    "dominant_row": "one row holds more than 30% of an eigenvalue: the error may be too small",
    "few_rows": "no error over tokens: fewer than six rows for each dimension, or 160 stems",
    "size_dependent": "no error over tokens: halves of the tokens show another number",
    "turning": "no error over tokens: other tokens could turn the eigenvectors that make it",
}


@dataclass(frozen=True, slots=True)
class NumberTable:
    """Scalars, with what all of them share in `common`."""

    caption: str
    common: str
    rows: tuple[tuple[Scalar, str, str], ...]


def number_table(caption: str, scalars: list[Scalar]) -> NumberTable:
    """Get rows of (scalar, reference note, how it was taken), without the contents of `common`."""
    said = [_pieces(s) for s in scalars if s.value is not None]
    shared = [p for p in (said[0] if len(said) > 2 else []) if all(p in other for other in said)]
    notes = [s.reference_note for s in scalars if s.reference_note]
    usual = max(set(notes), key=lambda n: (notes.count(n), n)) if len(notes) > 2 else ""
    common = [*([f"reference, unless another is named: {usual}"] if usual else []), *shared]
    rows = tuple(
        (
            s,
            "" if s.reference_note == usual else s.reference_note,
            "; ".join(p for p in _pieces(s) if p not in shared),
        )
        for s in scalars
    )
    return NumberTable(caption, "; ".join(common), rows)


def _pieces(scalar: Scalar) -> list[str]:
    said = [p for text in (scalar.sample, scalar.convention) for p in text.split("; ") if p]
    return said + [ERROR_CAVEATS[caveat] for caveat in scalar.caveats if caveat in ERROR_CAVEATS]


def group_by_family(items: Iterable[T], family: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    """Return `items` by family, in the order of first appearance."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(family(item), []).append(item)
    return list(groups.items())


#: The numbers of the first screen, the most important first, and how to read them.
HEADLINES: tuple[tuple[Quantity, str], ...] = (
    (cosine.MEAN, "0: no common direction; 1: all parallel"),
    (cosine.CONE_HALF_ANGLE_MEDIAN, "90°: no cone; small: a narrow cone"),
    (spectrum.TOP_SHARE, "1: one direction carries everything"),
    (spectrum.EFFECTIVE_RANK, "d: all directions; 1: a single one"),
    (isotropy.I1_UNIT_ROWS, "1: isotropic; 0: all to one side"),
    (isotropy.ISOSCORE, "1: even variance; 0: one axis"),
    (frequency.PROBE_AUC, "0.5: chance; near 1 is usual, no fault"),
    (frequency.NEIGHBOR_RARITY_RARE, "chance: frequency has no effect"),
    (frequency.NORM_RATIO, "1: frequency has no effect"),
    (subspace.DISTANCE, "0: the same space; 1: orthogonal"),
    (spectrum.ENERGY_90, "few: collapsed spectrum"),
    (cosine.POSITIVE_SHARE, "0.5: balanced; 1: a cone"),
)


def headline_rows(analysis: Analysis) -> list[tuple[Quantity, str, Scalar]]:
    """Return the headline numbers that the analysis holds, and how to read them."""
    rows = [
        (quantity, text, scalar)
        for quantity, text in HEADLINES
        if (scalar := analysis.find_scalar(quantity.name)) is not None
    ]
    return rows[:MOST]
