"""The data block of a report: what its scripts need of every token, packed."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.render.view import fit_cloud, fit_view
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.numbers import format_optional
from embgeo.core.quantities import cosine, isotropy, projection, spectrum, tokens
from embgeo.core.suspects import REASONS
from embgeo.core.text import ACCENTS, HIDDEN, LIMIT, NAMED
from embgeo.core.treated import (
    MOST_ASKED_PRODUCTS,
    TREATMENTS,
    UNIT_AFTER,
    Treated,
    TreatedPlaces,
    base_of,
    count_neighbor_products,
    find_unit_axes,
    place_treated,
    write_code,
)
from embgeo.core.values import Column, Points, Quantity
from embgeo.diagnosis.finding import find_scalar
from embgeo.report.token_states import find_states, has_counts, list_findings, list_left_out
from embgeo.result.analysis import Analysis

#: Rows that a page holds; beyond it the rows are thinned by frequency.
MOST_ROWS = 300_000

STRATA = 10

#: Products of entries that a search of all neighbors takes in a minute of one core.
PRODUCTS_A_MINUTE = 1.4e12

#: The rules by which the scripts and the tables make tokens visible.
SPELLING: dict[str, Any] = {
    "hidden": [list(pair) for pair in HIDDEN],
    "accents": [list(pair) for pair in ACCENTS],
    "named": dict(NAMED),
    "limit": LIMIT,
}

#: UTF-16 code units of a token that a page holds.
MOST_UNITS = 1000


@dataclass(frozen=True, slots=True)
class Payload:
    """The block (base64 of gzip), what the script needs to read it, and the kept rows in it."""

    meta: dict[str, Any]
    block: str
    rows: IntArray


def build(analysis: Analysis, most: int = MOST_ROWS) -> Payload | None:
    """Build the block of an analysis, or None if it has no projection of its rows."""
    if not analysis.points or not len(analysis.rows):
        return None
    rows = thin(analysis.counts, len(analysis.rows), most)
    block = DataBlock()
    meta: dict[str, Any] = {
        "rows": len(rows),
        "total": analysis.kept,
        "views": pack_views(analysis, analysis.points, rows, block),
        "columns": pack_columns(analysis.columns, rows, block),
        "nearest": pack_nearest(analysis, rows, block),
        "search": explain_search(analysis),
        "listed": list_findings(analysis, rows),
        "states": pack_states(analysis, rows, block),
        "left_out": list_left_out(analysis),
        "first": find_places(analysis, rows, list_serious(analysis)),
        "suspects": pack_suspects(analysis, block),
        "number": block.add(analysis.rows[rows].astype(np.uint32)),
        "tokens": pack_tokens(analysis.tokens, rows, block),
        "count": pack_counts(analysis, rows, block),
        "popular": pack_classes(analysis, rows, block),
        "treatments": pack_treatments(analysis, rows, block),
        **SPELLING,
    }
    return Payload(meta, block.text(), rows)


def list_serious(analysis: Analysis) -> list[int]:
    """List the serious suspects, which the table of tokens begins with."""
    own = [one.rows[one.serious] for one in analysis.suspects if one.side == "input"]
    return [row for rows in own for row in rows.tolist()]


def find_places(analysis: Analysis, rows: IntArray, numbers: Sequence[int]) -> list[int]:
    """Find the places on the page of rows with these numbers, without those that are not on it."""
    place = {int(analysis.rows[row]): at for at, row in enumerate(rows)}
    return [place[number] for number in numbers if number in place]


def thin(counts: FloatArray | None, n: int, most: int) -> IntArray:
    """Return at most `most` of `n` rows, the same number from each of ten strata of frequency.

    Rows are taken at even distances within a stratum, so the choice needs no random numbers; a
    plain cut at the first rows would lose the rare tokens of a vocabulary sorted by frequency.
    """
    everything = np.arange(n, dtype=np.int64)
    if n <= most:
        return everything
    order = everything if counts is None else np.argsort(-counts, kind="stable")
    chosen = []
    for i, stratum in enumerate(np.array_split(order, STRATA)):
        quota = most // STRATA + (i < most % STRATA)
        pick = (np.arange(quota) * len(stratum)) // quota
        chosen.append(np.sort(stratum)[pick])
    return np.sort(np.concatenate(chosen))


def pack_views(
    analysis: Analysis, planes: Iterable[Points], rows: IntArray, block: DataBlock
) -> list[dict[str, Any]]:
    """Return the places of these rows in each plane, on equal scales."""
    out = []
    for p in planes:
        xy = p.xy[rows]
        # One span for both axes: the map has equal scales, so equal steps.
        # Rows that t-SNE left out have no place.
        known = np.isfinite(xy).all(axis=1)
        if not known.any():
            continue
        low = xy[known].min(axis=0)
        span = float(np.max(xy[known].max(axis=0) - low))
        placed = p.xy[np.isfinite(p.xy).all(axis=1)]
        cloud = fit_cloud(placed)
        out.append(
            {
                "key": p.name,
                "title": p.quantity.title,
                "x": block.add_floats(xy[:, 0], float(low[0]), float(low[0]) + span),
                "y": block.add_floats(xy[:, 1], float(low[1]), float(low[1]) + span),
                "labels": [p.x_label, p.y_label],
                "box": list(fit_view(placed).box),
                "cloud": None if cloud is None else list(cloud.box),
                "caption": caption(p),
                **pack_reference(analysis, p),
            }
        )
    return out


def caption(points: Points) -> str:
    """Return what a reader of a map of this plane should know; empty for most planes."""
    if points.name != projection.TSNE.name:
        return ""
    shown = f"{points.note}. " if points.note else ""
    return f"{shown}t-SNE: sizes of groups and distances between groups mean nothing."


def pack_reference(analysis: Analysis, points: Points) -> dict[str, Any]:
    """Get the mean row in the plane of the SVD, and how far about 95% of isotropic rows reach."""
    rms = find_scalar(analysis, tokens.NORM_RMS)
    if points.name != projection.SVD2.name or rms is None:
        return {}
    # Two of d coordinates of an isotropic row: its squared length in the plane is exponential.
    radius = float(rms) * float(np.sqrt(2.0 * np.log(20.0) / analysis.provenance["d"]))
    return {"mean": points.xy.mean(axis=0).tolist(), "isotropic": radius}


def pack_columns(
    columns: Iterable[Column], rows: IntArray, block: DataBlock
) -> list[dict[str, Any]]:
    """Return the columns without those that have no finite value."""
    out = []
    for c in columns:
        values = c.values[rows]
        finite = values[np.isfinite(values)]
        if not len(finite):
            continue
        low, high = float(finite.min()), float(finite.max())
        out.append(
            {
                "key": c.name,
                "label": c.label,
                "title": c.quantity.title,
                "unit": "" if c.quantity.unit in c.label else c.quantity.unit,
                "values": block.add_floats(values, low, high),
            }
        )
    return out


def explain_search(analysis: Analysis) -> dict[str, str]:
    """Explain why a token has no neighbors, as stored and after a treatment, and the way out."""
    n, d = analysis.kept, int(analysis.provenance["d"])
    asked = analysis.provenance.get("options", {}).get("neighbors_of") == "all"
    way = "; embgeo analyze --neighbors-of all does it"
    if asked or count_neighbor_products(n, d) > MOST_ASKED_PRODUCTS:
        way = " of so large a matrix"
    return {
        "time": tell_minutes(n * n * d // 2),
        "way": "embgeo analyze --neighbors-of page does it, --show-neighbors TOKEN for one.",
        "treated": f"not searched after a treatment{way}",
        "first": "not searched for unit rows",
    }


def tell_minutes(products: int) -> str:
    """Tell how long a search takes, by its products of entries.

    >>> tell_minutes(10**9), tell_minutes(10**12), tell_minutes(8 * 10**12)
    ('less than a minute', 'about a minute', 'about 6 minutes')
    """
    minutes = round(products / PRODUCTS_A_MINUTE)
    if minutes < 2:
        return "about a minute" if minutes else "less than a minute"
    return f"about {minutes:,} minutes"


def pack_nearest(analysis: Analysis, rows: IntArray, block: DataBlock) -> dict[str, Any] | None:
    """Pack the nearest rows by cosine, as places on the page; without `rows` those of all rows."""
    nearest = analysis.nearest
    if nearest is None:
        return None
    asked, near, shown = find_near(nearest.rows, nearest.neighbors, rows)
    return {
        "k": nearest.neighbors.shape[1],
        "rows": None if len(asked) == len(rows) else block.add(asked.astype(np.uint32)),
        "near": block.add_bits(near, (len(rows) - 1).bit_length()),
        "cosines": block.add_floats(nearest.cosines[shown].ravel().astype(np.float64), -1.0, 1.0),
    }


def find_near(
    asked: IntArray, near: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Find the places on the page of some rows and of their neighbors, and which rows are on it.

    A neighbor that is not on the page has the place of the row itself.
    """
    place = np.full(1 + max(asked.max(initial=0), near.max(initial=0), rows[-1]), -1)
    place[rows] = np.arange(len(rows))
    shown = place[asked] >= 0
    own, places = place[asked[shown]], place[near[shown]]
    return own, np.where(places < 0, own[:, None], places), shown


def pack_states(analysis: Analysis, rows: IntArray, block: DataBlock) -> list[dict[str, Any]]:
    """Return the states of tokens: a word, and the places of the tokens in that state."""
    return [
        {"word": word, "rows": block.add(places.astype(np.uint32))}
        for word, places in find_states(analysis, rows).items()
    ]


def pack_counts(analysis: Analysis, rows: IntArray, block: DataBlock) -> dict[str, Any] | None:
    """Pack how often the tokens of these rows occur, if that was counted."""
    if analysis.counts is None or not has_counts(analysis):
        return None
    counts = analysis.counts[rows]
    whole = bool(np.all((counts >= 0) & (counts < 2**32) & (counts == np.floor(counts))))
    return block.add(counts.astype(np.uint32) if whole else counts)


def pack_classes(analysis: Analysis, rows: IntArray, block: DataBlock) -> dict[str, Any] | None:
    """Pack which of these rows are frequent tokens."""
    popular = analysis.popular
    return None if popular is None else block.add(popular[rows].astype(np.uint8))


def pack_tokens(
    tokens: tuple[str, ...] | None, rows: IntArray, block: DataBlock
) -> dict[str, Any] | None:
    """Return the tokens of these rows: lengths and code units, and the full length of cut ones."""
    if tokens is None:
        return None
    chosen = [tokens[i] for i in rows]
    encoded = [t.encode("utf-16-le", "surrogatepass")[: 2 * MOST_UNITS] for t in chosen]
    lengths = np.array([len(units) // 2 for units in encoded], dtype=np.uint16)
    units = np.frombuffer(b"".join(encoded), dtype="<u2").astype(np.uint16)
    cut = {i: len(t) for i, t in enumerate(chosen) if lengths[i] == MOST_UNITS}
    return {"lengths": block.add(lengths), "units": block.add(units), "true_length": cut}


def pack_suspects(analysis: Analysis, block: DataBlock) -> list[dict[str, Any]]:
    """Pack all suspects, with the columns of `embgeo export --to csv`."""
    return [
        {
            "reason": own.reason,
            "side": own.side,
            "measure": REASONS[own.reason].measure,
            "help": REASONS[own.reason].help,
            "rows": block.add(own.rows.astype(np.uint32)),
            "serious": block.add(own.serious.astype(np.uint8)),
            "norms": None if own.norms is None else block.add(own.norms),
            "values": None if own.values is None else block.add(own.values),
            "group": None if own.group is None else block.add(own.group.astype(np.uint32)),
            "tokens": pack_tokens(own.tokens, np.arange(len(own)), block),
        }
        for own in analysis.suspects
    ]


#: The numbers that a treatment changes, in the order of the page.
NUMBERS = (
    (cosine.MEAN, "mean_cosine"),
    (spectrum.EFFECTIVE_RANK, "effective_rank"),
    (spectrum.TOP_SHARE, "top_share"),
    (isotropy.I1_UNIT_ROWS, "i1"),
)


def list_numbers(analysis: Analysis) -> list[tuple[Quantity, str]]:
    """List the numbers of the matrix as it is stored; empty if no treatment was measured."""
    if not analysis.treated:
        return []
    stored = analysis.treated[0]
    return [(q, format_optional(getattr(stored, field), 3)) for q, field in NUMBERS]


def pack_treatments(analysis: Analysis, rows: IntArray, block: DataBlock) -> dict[str, Any] | None:
    """Pack every treatment, and what its map is made of; None if none was measured."""
    places = analysis.treated_places
    if places is None:
        return None
    unit = find_unit_axes(places)
    columns = [*places.xs[rows].T.astype(np.float64), *places.norms[rows].T.astype(np.float64)]
    return {
        "sampled": places.sampled,
        "columns": [block.add_floats(c, float(c.min()), float(c.max())) for c in columns],
        "mean": places.mean.tolist(),
        "deviations": places.deviations.tolist(),
        "unit": {name: getattr(unit, name).tolist() for name in ("turn", "shift", "deviations")},
        "list": [pack_treatment(analysis, places, one, rows, block) for one in analysis.treated],
    }


def pack_treatment(
    analysis: Analysis, places: TreatedPlaces, treated: Treated, rows: IntArray, block: DataBlock
) -> dict[str, Any]:
    """Pack the numbers of a treatment, and the part of its plane that the map shows."""
    name, near = treated.name, None
    if treated.neighbors.size:
        _, found, _ = find_near(rows, treated.neighbors[rows], rows)
        near = block.add_bits(found, (len(rows) - 1).bit_length())
    if base_of(name) == "none":
        xy = analysis.points[0].xy / (1.0 if name == "none" else places.norms[:, :1])
    else:
        xy = place_treated(places, name)
    return {
        "name": name,
        "title": TREATMENTS[base_of(name)],
        "code": write_code(name),
        "numbers": [tell_number(treated, field) for _, field in NUMBERS],
        "cosines": treated.cosines.tolist(),
        "box": list(fit_view(xy).box),
        "mean": xy.mean(axis=0).tolist(),
        "near": near,
        "k": treated.neighbors.shape[1],
    }


def tell_number(treated: Treated, field: str) -> str:
    """Tell a number after a treatment, with a sign if it is estimated, or why there is none."""
    value = getattr(treated, field)
    if value is not None:
        return "≈ " * (field in treated.sampled) + format_optional(value, 3)
    if treated.name.endswith(UNIT_AFTER) or (treated.sampled and base_of(treated.name) != "whiten"):
        return "not estimated"
    return "none: no direction differs"


#: A column whose extremes lie further out than this many times its bulk keeps 32 bits.
HEAVY_TAIL = 64.0
#: Numbers whose bits are packed at a time; a multiple of 8.
BITS_AT_ONCE = 2**18


class DataBlock:
    """Consecutive columns, each aligned to 8 bytes, compressed into one text.

    Coordinates, norms and angles are quantized to 16 bits (a 65,535th of their span: finer than a
    pixel until the map is magnified a hundred times); tokens are stored as UTF-16 code units with
    their lengths, which preserves any string, NULs and lone surrogates included.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, array: npt.NDArray[Any]) -> dict[str, Any]:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        raw = little.tobytes()
        at = self.size
        padding = -len(raw) % 8
        self.parts += [raw, b"\0" * padding]
        self.size += len(raw) + padding
        return {"at": at, "length": len(array), "type": array.dtype.name}

    def add_bits(self, values: IntArray, bits: int) -> dict[str, Any]:
        """Add whole numbers of `bits` bits each, the highest bit first."""
        packed = []
        flat, shifts = values.ravel(), np.arange(bits - 1, -1, -1)
        for at in range(0, len(flat), BITS_AT_ONCE):
            part = (flat[at : at + BITS_AT_ONCE, None] >> shifts) & 1
            packed.append(np.packbits(part.astype(np.uint8).ravel()))
        described = self.add(np.concatenate([np.zeros(0, np.uint8), *packed]))
        return {**described, "bits": bits, "count": len(flat)}

    def add_floats(self, values: FloatArray, low: float, high: float) -> dict[str, Any]:
        """Add numbers in 16 bits from `low` to `high`, or in 32 where a heavy tail needs them."""
        with np.errstate(over="ignore"):  # norms of the largest entries of float32
            single = values.astype(np.float32)
        if not np.isfinite(values).all():
            return self.add(single)
        bulk = float(np.subtract(*np.quantile(values, [0.995, 0.005]))) if len(values) else 0.0
        if not high > low or high - low > HEAVY_TAIL * bulk:
            return self.add(single)
        steps = np.rint((values - low) / (high - low) * 65535.0)
        return {**self.add(steps.astype(np.uint16)), "low": low, "high": high}

    def text(self) -> str:
        packed = gzip.compress(b"".join(self.parts), 4, mtime=0)
        return base64.b64encode(packed).decode("ascii")
