"""The content of ``analysis.json`` and ``arrays.npz``, and earlier versions of it.

Format history
--------------
1 : first version (embgeo 0.1), with scalars as a list, notes as plain text, bounds and samples in
    the convention of a number, stars behind rare tokens, and British labels of series and tables.
2 : typed facts of scalars (``known``, ``error_kind``, ``caveats``, ``reference_kind``, …), scalars
    by name, notes with a code, rare cells of tables, influences of rows, and the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.nearest_rows import NearestRows
from embgeo.core.quantities import QUANTITIES, frequency, isotropy, tokens
from embgeo.core.values import Column, Histogram, Influence, Note, Points, Scalar, Series, Table
from embgeo.io.bounded.records import Json, RecordFormat

JSON_NAME = "analysis.json"


@dataclass(frozen=True, slots=True)
class SavedAnalysis:
    """The content of ``analysis.json``; ``docs/analysis-json.md`` describes every field."""

    provenance: dict[str, Any]
    notes: tuple[Note, ...]
    absent: dict[str, str]
    #: For other programs; embgeo decides anew from the numbers.
    verdict: dict[str, Any]
    scalars: dict[str, Scalar]
    series: tuple[Series, ...]
    histograms: tuple[Histogram, ...]
    points: tuple[Points, ...]
    columns: tuple[Column, ...]
    tables: tuple[Table, ...]
    influences: tuple[Influence, ...]
    timing: dict[str, float]


def _check(saved: SavedAnalysis) -> None:
    for name, scalar in saved.scalars.items():
        if name != scalar.name:
            raise ValueError(f"the scalar {name!r} calls itself {scalar.name!r}")


# --- version 1 ------------------------------------------------------------------------------

_KINDS = ("scalars", "series", "histograms", "points", "columns", "tables")
_SPELLING = (("neighbour", "neighbor"), ("uncentred", "uncentered"), ("centred", "centered"))
#: Quantities whose standard error was about other tokens, not about a sample of the run.
_OVER_TOKENS = {
    q.name
    for q in (
        frequency.PROBE_AUC,
        frequency.PROBE_ACCURACY,
        frequency.PROBE_LOSS,
        frequency.FREQUENCY_R2,
    )
}

#: Tables with stars behind rare tokens, and the first column with stars.
_STARRED = {frequency.NEIGHBORS.name: 3, frequency.NEIGHBOR_RANKS.name: 0}


def _american(label: str) -> str:
    for british, american in _SPELLING:
        label = label.replace(british, american)
    return label


def upgrade_1(content: Json) -> Json:
    """Version 1 as version 2: the only place that reads facts out of prose."""
    found = dict(content)
    for kind in _KINDS:
        found[kind] = [_with_own_facts(value) for value in content[kind]]
    found["scalars"] = {s["name"]: s | read_typed_facts(s) for s in found["scalars"]}
    for series in found["series"]:
        series["y"] = {_american(label): line for label, line in series["y"].items()}
    for table in found["tables"]:
        table["columns"] = [_american(column) for column in table["columns"]]
        table |= read_stars(table["rows"], _STARRED.get(table["name"]))
    found["notes"] = [
        {"code": "tied" if text.startswith("tied") else "loading", "text": text}
        for text in content["notes"]
    ]
    return found | {"verdict": {}, "influences": []}


def read_stars(rows: list[list[Any]], first: int | None) -> Json:
    """Rows without the stars behind rare tokens, which may occur from column `first` on."""
    if first is None:
        return {"rare": []}
    rare = [
        [i, j]
        for i, row in enumerate(rows)
        for j, cell in enumerate(row)
        if j >= first and isinstance(cell, str) and cell.endswith(" *")
    ]
    plain = [list(row) for row in rows]
    for i, j in rare:
        plain[i][j] = plain[i][j].removesuffix(" *")
    return {"rows": plain, "rare": rare}


def _with_own_facts(value: Json) -> Json:
    """The current title, meaning, … of the quantity; names have not changed."""
    q = QUANTITIES.get(value["name"])
    if q is None:
        return {"unit": "", "better": None, **value}
    facts = ("title", "meaning", "formula", "source", "unit", "better")
    return value | {fact: getattr(q, fact) for fact in facts}


def read_typed_facts(scalar: Json) -> Json:
    """Typed facts of a scalar of version 1, from its standard error and its conventions."""
    convention, reference_note = scalar["convention"], scalar["reference_note"]
    known = "exact"
    if scalar["standard_error"] is not None:
        known = "sampled"
    elif scalar["sample"]:
        bounds = {"a lower bound": "at_least", "an upper bound": "at_most"}
        matches = (bounds[words] for words in bounds if convention.startswith(words))
        known = next(matches, "sampled")
    if scalar["name"] == isotropy.I_SPHERE.name and scalar["value"] is not None:
        known = "at_most"
    kind = None
    if scalar["standard_error"] is not None:
        every = scalar["name"] == tokens.INTRINSIC_DIMENSION.name and scalar["sample"][:3] == "all"
        over_tokens = every or scalar["name"] in _OVER_TOKENS
        kind = "population" if over_tokens else "monte_carlo"
    caveats = []
    if "basis-dependent: " in convention:
        caveats.append("basis_dependent")
    if "did not settle" in convention:
        caveats.append("not_converged")
    reference_kind = "none"
    if scalar["reference"] is not None:
        reference_kind = "isotropic" if reference_note.startswith("isotropic") else "chance"
    return {
        "known": known,
        "error_kind": kind,
        "population_error": scalar["standard_error"] if kind == "population" else None,
        "freedom": None,
        "size": None,
        "caveats": caveats,
        "reference_kind": reference_kind,
    }


FORMAT = RecordFormat(
    "embgeo.analysis",
    2,
    SavedAnalysis,
    JSON_NAME,
    "an analysis",
    "make one with: embgeo analyze CHECKPOINT",
    check=_check,
    upgrades={1: upgrade_1},
)


# --- tokens in the archive ------------------------------------------------------------------


def pack_tokens(tokens: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Tokens as UTF-8 bytes and offsets, which hold any string, newlines and NULs included."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    return {
        "tokens_utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "tokens_end": np.cumsum([len(b) for b in encoded], dtype=np.int64),
    }


def unpack_tokens(arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    if "tokens_utf8" not in arrays:
        return None
    raw = arrays["tokens_utf8"].tobytes()
    ends = arrays["tokens_end"].tolist()
    return tuple(
        raw[start:stop].decode("utf-8", "surrogatepass")
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
    )


# --- nearest rows in the archive ------------------------------------------------------------


def pack_nearest(nearest: NearestRows) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the archive, with 32 bits per entry."""
    return {
        "nearest/rows": nearest.rows.astype(np.int32),
        "nearest/neighbors": nearest.neighbors.astype(np.int32),
        "nearest/cosines": nearest.cosines,
    }


def unpack_nearest(arrays: dict[str, npt.NDArray[Any]]) -> NearestRows | None:
    """None if there are none, as in earlier files."""
    if "nearest/rows" not in arrays:
        return None
    rows, near = (arrays[f"nearest/{part}"].astype(np.int64) for part in ("rows", "neighbors"))
    return NearestRows(rows, near, arrays["nearest/cosines"].astype(np.float32))


def check_nearest(nearest: NearestRows, rows: int) -> None:
    """Raise ValueError unless shapes fit, and all row numbers are below `rows`."""
    near, asked = nearest.neighbors, nearest.rows
    if near.shape != nearest.cosines.shape or near.shape[:-1] != asked.shape or near.ndim != 2:
        raise ValueError("the nearest rows and their cosines have different shapes")
    for places in (near, asked):
        if places.size and not 0 <= places.min() <= places.max() < rows:
            raise ValueError("the nearest rows are not rows of the analysis")
