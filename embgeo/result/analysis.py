"""The result of an analysis: values and provenance, saved as a folder and read back.

A folder holds ``analysis.json`` (provenance, scalars, series, histograms, tables),
``arrays.npz`` (whatever has one entry a row: tokens, coordinates, norms, …) and, once rendered,
``report.html``. Report, figures, comparison and gate read nothing else.

Format history
--------------
1 : first version (embgeo 0.1).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.values import (
    Column,
    Histogram,
    Points,
    Scalar,
    Series,
    Table,
    Value,
    quantity_from_json,
    quantity_to_json,
    scalar_to_json,
)
from embgeo.io.bounded.saved import DAMAGE, AtomicFile, read_json, write_text

FORMAT = "embgeo.analysis"
FORMAT_VERSION = 1
_AGAIN = "make one with: embgeo analyze CHECKPOINT"
JSON_NAME = "analysis.json"
ARRAYS_NAME = "arrays.npz"
REPORT_NAME = "report.html"


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was measured on one matrix, and how it came about.

    Attributes
    ----------
    provenance : dict
        JSON-ready: file, tensor, sha256, dtype, shape, masked rows, versions, seed, command, …
        (``docs/analysis-json.md`` lists every field).
    scalars, series, histograms, points, columns, tables : tuple
        The values, in the order in which they are shown.
    absent : dict of str to str
        Families that were left out, and why.
    notes : tuple of str
        What a reader has to know about this matrix (masked rows, duplicates, …).
    rows : int array, shape (M,)
        Row numbers (in the matrix that was analyzed) of the kept rows.
    tokens : tuple of str or None
        Labels of the kept rows.
    counts : array of float64 or None
        Counts (or descending ranks, see ``provenance["frequency"]``) of the kept rows.
    popular : bool array or None
        Which kept rows are popular tokens.
    timing : dict of str to float
        Seconds by stage: the one part of the result that differs between equal runs.
    """

    provenance: dict[str, Any]
    scalars: tuple[Scalar, ...] = ()
    series: tuple[Series, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    points: tuple[Points, ...] = ()
    columns: tuple[Column, ...] = ()
    tables: tuple[Table, ...] = ()
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    tokens: tuple[str, ...] | None = None
    counts: npt.NDArray[np.float64] | None = None
    popular: npt.NDArray[np.bool_] | None = None
    timing: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Value:
        """The value called ``family.name``; KeyError if the analysis does not hold it."""
        for value in self.values():
            if value.name == name:
                return value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(value.name == name for value in self.values())

    def scalar(self, name: str) -> Scalar | None:
        """The scalar of that name, or None where its family was left out."""
        return next((s for s in self.scalars if s.name == name), None)

    def values(self) -> tuple[Value, ...]:
        return (
            *self.scalars,
            *self.series,
            *self.histograms,
            *self.points,
            *self.columns,
            *self.tables,
        )

    def to_json(self) -> dict[str, Any]:
        """The content of ``analysis.json``; equal runs differ in ``timing`` only."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "provenance": self.provenance,
            "notes": list(self.notes),
            "absent": dict(self.absent),
            "scalars": [scalar_to_json(s) for s in self.scalars],
            "series": [
                {
                    **quantity_to_json(s.quantity),
                    "x_label": s.x_label,
                    "y_label": s.y_label,
                    "log_x": s.log_x,
                    "log_y": s.log_y,
                    "note": s.note,
                    "x": _floats(s.x),
                    "y": {label: _floats(y) for label, y in s.y.items()},
                }
                for s in self.series
            ],
            "histograms": [
                {
                    **quantity_to_json(h.quantity),
                    "x_label": h.x_label,
                    "y_label": h.y_label,
                    "note": h.note,
                    "edges": _floats(h.edges),
                    "counts": _floats(h.counts),
                }
                for h in self.histograms
            ],
            "points": [
                {
                    **quantity_to_json(p.quantity),
                    "x_label": p.x_label,
                    "y_label": p.y_label,
                    "share": list(p.share),
                    "note": p.note,
                    "array": f"points/{p.name}",
                }
                for p in self.points
            ],
            "columns": [
                {**quantity_to_json(c.quantity), "label": c.label, "array": f"columns/{c.name}"}
                for c in self.columns
            ],
            "tables": [
                {
                    **quantity_to_json(t.quantity),
                    "columns": list(t.columns),
                    "rows": [list(row) for row in t.rows],
                    "note": t.note,
                }
                for t in self.tables
            ],
            "timing": dict(self.timing),
        }

    def save(self, folder: Path) -> None:
        """Write ``analysis.json`` and ``arrays.npz``; each appears whole or not at all.

        Raises
        ------
        EmbgeoError
            If `folder` cannot be written to.
        """
        arrays: dict[str, npt.NDArray[Any]] = {"rows": self.rows}
        if self.tokens is not None:
            arrays |= _pack_tokens(self.tokens)
        if self.counts is not None:
            arrays["counts"] = self.counts
        if self.popular is not None:
            arrays["popular"] = self.popular
        for p in self.points:
            arrays[f"points/{p.name}"] = p.xy
        for c in self.columns:
            arrays[f"columns/{c.name}"] = c.values
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with AtomicFile(folder / ARRAYS_NAME) as temporary, temporary.open("wb") as stream:
                np.savez_compressed(stream, allow_pickle=False, **arrays)
            write_text(folder / JSON_NAME, text)
        except OSError as error:
            raise EmbgeoError(
                f"cannot be written: {error.strerror or error}",
                where=folder,
                way_out="choose another folder with -o",
            ) from error


def load_analysis(folder: Path) -> Analysis:
    """Read a folder that :meth:`Analysis.save` wrote.

    Raises
    ------
    UnreadableFile
        If there is no analysis, or one of a format version that this embgeo does not know.
    """
    path = folder / JSON_NAME if folder.is_dir() else folder
    d = read_json(path, folder, (FORMAT, FORMAT_VERSION), "an analysis", _AGAIN)
    arrays_path = path.parent / ARRAYS_NAME
    try:
        # Opened here: np.load leaves its own file open where the archive turns out to be damaged.
        with arrays_path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        analysis = _from_json(d, arrays)
        _check_belongs_together(analysis)
        return analysis
    except DAMAGE as error:
        raise UnreadableFile(
            f"damaged, or does not belong to its {JSON_NAME} ({error})",
            where=arrays_path,
            way_out=_AGAIN,
        ) from error


def _check_belongs_together(analysis: Analysis) -> None:
    """ValueError unless whatever has an entry a row has one for each."""
    for part in (analysis.provenance, analysis.absent, analysis.timing):
        if not isinstance(part, dict):
            raise ValueError("a list of names and values is none")
    rows = len(analysis.rows)
    per_row: list[Any] = [analysis.tokens, analysis.counts, analysis.popular]
    per_row += [p.xy for p in analysis.points] + [c.values for c in analysis.columns]
    lengths = {len(part) for part in per_row if part is not None}
    if not lengths <= {rows} or analysis.provenance.get("kept", rows) != rows:
        raise ValueError(f"not everything has {rows:,} rows")


def _from_json(d: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Analysis:
    return Analysis(
        provenance=d["provenance"],
        scalars=tuple(
            Scalar(
                quantity_from_json(s),
                s["value"],
                standard_error=s["standard_error"],
                sample=s["sample"],
                convention=s["convention"],
                undefined=s["undefined"],
                reference=s["reference"],
                reference_note=s["reference_note"],
            )
            for s in d["scalars"]
        ),
        series=tuple(
            Series(
                quantity_from_json(s),
                np.asarray(s["x"], dtype=np.float64),
                {label: np.asarray(y, dtype=np.float64) for label, y in s["y"].items()},
                s["x_label"],
                s["y_label"],
                log_x=s["log_x"],
                log_y=s["log_y"],
                note=s["note"],
            )
            for s in d["series"]
        ),
        histograms=tuple(
            Histogram(
                quantity_from_json(h),
                np.asarray(h["edges"], dtype=np.float64),
                np.asarray(h["counts"], dtype=np.float64),
                h["x_label"],
                h["y_label"],
                note=h["note"],
            )
            for h in d["histograms"]
        ),
        points=tuple(
            Points(
                quantity_from_json(p),
                arrays[p["array"]],
                p["x_label"],
                p["y_label"],
                (p["share"][0], p["share"][1]),
                note=p["note"],
            )
            for p in d["points"]
        ),
        columns=tuple(
            Column(quantity_from_json(c), arrays[c["array"]], c["label"]) for c in d["columns"]
        ),
        tables=tuple(
            Table(
                quantity_from_json(t),
                tuple(t["columns"]),
                tuple(tuple(row) for row in t["rows"]),
                note=t["note"],
            )
            for t in d["tables"]
        ),
        absent=d["absent"],
        notes=tuple(d["notes"]),
        rows=arrays["rows"],
        tokens=_unpack_tokens(arrays),
        counts=arrays.get("counts"),
        popular=arrays.get("popular"),
        timing=d["timing"],
    )


def _floats(values: npt.NDArray[np.float64]) -> list[float]:
    out: list[float] = np.asarray(values, dtype=np.float64).tolist()
    return out


def _pack_tokens(tokens: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Tokens as UTF-8 bytes and offsets: any string survives, newlines and NULs included."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    ends = np.cumsum([len(b) for b in encoded], dtype=np.int64)
    return {
        "tokens_utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "tokens_end": ends,
    }


def _unpack_tokens(arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    if "tokens_utf8" not in arrays:
        return None
    raw = arrays["tokens_utf8"].tobytes()
    ends = arrays["tokens_end"].tolist()
    return tuple(
        raw[start:stop].decode("utf-8", "surrogatepass")
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
    )
