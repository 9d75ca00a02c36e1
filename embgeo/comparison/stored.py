"""The parts of a comparison as JSON and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.comparison import Bend, Curve, Difference, LeftOut, Matching, Pair, Track
from embgeo.core.values import (
    Column,
    Histogram,
    Quantity,
    Scalar,
    Series,
    Table,
)
from embgeo.result.saved import typed_facts

Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]


def pair_to_json(pair: Pair) -> Json:
    m = pair.matching
    prefix = array_prefix(pair.first, pair.second)
    return {
        "first": pair.first,
        "second": pair.second,
        "matching": {
            "by": m.by,
            "reason": m.reason,
            "shared": m.shared,
            "left_out": [left_out_to_json(part) for part in m.left_out],
            "arrays": [f"{prefix}/first", f"{prefix}/second"],
        },
        "scalars": [scalar_to_json(s) for s in pair.scalars],
        "series": [series_to_json(s) for s in pair.series],
        "histograms": [histogram_to_json(h) for h in pair.histograms],
        "columns": [
            {**quantity_to_json(c.quantity), "label": c.label, "array": f"{prefix}/{c.name}"}
            for c in pair.columns
        ],
        "tables": [table_to_json(t) for t in pair.tables],
    }


def pair_from_json(d: Json, arrays: Arrays) -> Pair:
    m = d["matching"]
    first, second = (arrays[name] for name in m["arrays"])
    one, other = (left_out_from_json(part) for part in m["left_out"])
    return Pair(
        first=d["first"],
        second=d["second"],
        matching=Matching(m["by"], m["reason"], first, second, (one, other)),
        scalars=tuple(map(scalar_from_json, d["scalars"])),
        series=tuple(map(series_from_json, d["series"])),
        histograms=tuple(map(histogram_from_json, d["histograms"])),
        columns=tuple(
            Column(quantity_from_json(c), arrays[c["array"]], c["label"]) for c in d["columns"]
        ),
        tables=tuple(map(table_from_json, d["tables"])),
    )


def pair_arrays(pair: Pair) -> Arrays:
    """What a pair keeps in ``arrays.npz``."""
    prefix = array_prefix(pair.first, pair.second)
    arrays: Arrays = {
        f"{prefix}/first": pair.matching.first,
        f"{prefix}/second": pair.matching.second,
    }
    return arrays | {f"{prefix}/{c.name}": c.values for c in pair.columns}


def array_prefix(first: int, second: int) -> str:
    return f"pairs/{first}-{second}"


def left_out_to_json(part: LeftOut) -> Json:
    return {
        "missing": part.missing,
        "examples": list(part.examples),
        "ambiguous": part.ambiguous,
        "ambiguous_examples": list(part.ambiguous_examples),
    }


def left_out_from_json(d: Json) -> LeftOut:
    return LeftOut(
        d["missing"], tuple(d["examples"]), d["ambiguous"], tuple(d["ambiguous_examples"])
    )


def difference_to_json(difference: Difference) -> Json:
    interval = difference.interval
    return {
        **quantity_to_json(difference.quantity),
        "better": difference.quantity.better,
        "member": difference.member,
        "baseline": difference.baseline,
        "value": difference.value,
        "difference": difference.difference,
        "standard_error": difference.standard_error,
        "interval": None if interval is None else list(interval),
        "error_note": difference.error_note,
        "change": difference.change,
        "direction": difference.direction,
        "undefined": difference.undefined,
        "note": difference.note,
    }


def difference_from_json(d: Json) -> Difference:
    interval = d["interval"]
    return Difference(
        quantity_from_json(d),
        d["member"],
        d["baseline"],
        d["value"],
        d["difference"],
        standard_error=d["standard_error"],
        interval=None if interval is None else (interval[0], interval[1]),
        error_note=d["error_note"],
        change=d["change"],
        direction=d["direction"],
        undefined=d["undefined"],
        note=d["note"],
    )


def track_to_json(track: Track) -> Json:
    return {
        "steps": list(track.steps),
        "source": track.source,
        "curves": [
            {
                **quantity_to_json(c.quantity),
                "better": c.quantity.better,
                "against": c.against,
                "values": list(c.values),
                "standard_errors": list(c.standard_errors),
                "bend": None if c.bend is None else bend_to_json(c.bend),
                "no_bend": c.no_bend,
            }
            for c in track.curves
        ],
    }


def track_from_json(d: Json) -> Track:
    return Track(
        tuple(d["steps"]),
        d["source"],
        tuple(
            Curve(
                quantity_from_json(c),
                c["against"],
                tuple(c["values"]),
                tuple(c["standard_errors"]),
                None if c["bend"] is None else Bend(**c["bend"]),
                c["no_bend"],
            )
            for c in d["curves"]
        ),
    )


def bend_to_json(bend: Bend) -> Json:
    return {
        "step": bend.step,
        "slope_before": bend.slope_before,
        "slope_after": bend.slope_after,
        "left": bend.left,
    }


def scalar_from_json(d: Json) -> Scalar:
    facts = d if "known" in d else typed_facts(d)
    return Scalar(
        quantity_from_json(d),
        d["value"],
        known=facts["known"],
        error_kind=facts["error_kind"],
        caveats=tuple(facts["caveats"]),
        reference_kind=facts["reference_kind"],
        standard_error=d["standard_error"],
        sample=d["sample"],
        convention=d["convention"],
        undefined=d["undefined"],
        reference=d["reference"],
        reference_note=d["reference_note"],
    )


def series_to_json(series: Series) -> Json:
    return {
        **quantity_to_json(series.quantity),
        "x_label": series.x_label,
        "y_label": series.y_label,
        "log_x": series.log_x,
        "log_y": series.log_y,
        "note": series.note,
        "x": series.x.tolist(),
        "y": {label: y.tolist() for label, y in series.y.items()},
    }


def series_from_json(d: Json) -> Series:
    return Series(
        quantity_from_json(d),
        np.asarray(d["x"], dtype=np.float64),
        {label: np.asarray(y, dtype=np.float64) for label, y in d["y"].items()},
        d["x_label"],
        d["y_label"],
        log_x=d["log_x"],
        log_y=d["log_y"],
        note=d["note"],
    )


def histogram_to_json(histogram: Histogram) -> Json:
    return {
        **quantity_to_json(histogram.quantity),
        "x_label": histogram.x_label,
        "y_label": histogram.y_label,
        "note": histogram.note,
        "edges": histogram.edges.tolist(),
        "counts": histogram.counts.tolist(),
    }


def histogram_from_json(d: Json) -> Histogram:
    return Histogram(
        quantity_from_json(d),
        np.asarray(d["edges"], dtype=np.float64),
        np.asarray(d["counts"], dtype=np.float64),
        d["x_label"],
        d["y_label"],
        note=d["note"],
    )


def table_to_json(table: Table) -> Json:
    return {
        **quantity_to_json(table.quantity),
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "note": table.note,
    }


def table_from_json(d: Json) -> Table:
    return Table(
        quantity_from_json(d),
        tuple(d["columns"]),
        tuple(tuple(row) for row in d["rows"]),
        note=d["note"],
    )


def scalar_to_json(scalar: Scalar) -> Json:
    """Every field, the quantity's facts included, so that a saved result explains itself."""
    q = scalar.quantity
    return {
        "name": q.name,
        "title": q.title,
        "value": scalar.value,
        "undefined": scalar.undefined,
        "known": scalar.known,
        "standard_error": scalar.standard_error,
        "error_kind": scalar.error_kind,
        "sample": scalar.sample,
        "convention": scalar.convention,
        "caveats": list(scalar.caveats),
        "reference": scalar.reference,
        "reference_kind": scalar.reference_kind,
        "reference_note": scalar.reference_note,
        "unit": q.unit,
        "better": q.better,
        "meaning": q.meaning,
        "formula": q.formula,
        "source": q.source,
    }


def quantity_to_json(q: Quantity) -> Json:
    return {
        "name": q.name,
        "title": q.title,
        "meaning": q.meaning,
        "formula": q.formula,
        "source": q.source,
        "unit": q.unit,
    }


def quantity_from_json(d: Json) -> Quantity:
    return Quantity(
        name=d["name"],
        title=d["title"],
        meaning=d["meaning"],
        formula=d["formula"],
        source=d["source"],
        unit=d.get("unit", ""),
        better=d.get("better"),
    )
