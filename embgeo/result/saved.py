"""The content of ``analysis.json`` and ``arrays.npz``."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Required, TypedDict

import numpy as np
import numpy.typing as npt

from embgeo.core import values as v
from embgeo.core.rows import NearestRows
from embgeo.core.suspects import Suspects
from embgeo.core.treated import TREATMENTS, Treated, TreatedPlaces, base_of
from embgeo.files.records import RecordFormat
from embgeo.numerics.halves import HALVES

JSON_NAME = "analysis.json"


class _Frequency(TypedDict):
    kind: str
    source: str
    sha256: str | None
    popular_share: float | None
    n_popular: int
    n_rare: int


class _Options(TypedDict, total=False):
    pairs: int | None
    precision: str


class _OfMatrix(TypedDict, total=False):
    file: str | None
    tensor: str | None
    stored_shape: list[int] | None
    dtype: str | None
    states: int
    note: str


class _Provenance(TypedDict, total=False):
    """Facts that readers use, in types that they take; there are others."""

    file: str | None
    format: str | None
    tensor: str | None
    dtype: str | None
    sha256: str | None
    command: str | None
    stored_shape: list[int] | None
    row_range: tuple[int, int] | None
    listed: int
    masked: dict[str, int]
    zero_entries: float | None
    frequency: _Frequency | None
    output: _OfMatrix | None
    hidden: _OfMatrix | None
    reference: _OfMatrix | None
    parts: list[_OfMatrix] | None
    seed: int | None
    sections: list[str]
    conventions: dict[str, str]
    versions: dict[str, str | None]


class _OfAnalysis(_Provenance, total=False):
    n: Required[int]
    d: Required[int]
    kept: Required[int]
    options: Required[_Options]


def check_provenance(facts: dict[str, Any], kind: type = _Provenance) -> None:
    """Raise ValueError for a fact that is missing, or of another type than it has."""
    import msgspec

    msgspec.convert(facts, kind)


@dataclass(frozen=True, slots=True)
class SavedAnalysis:
    """The content of ``analysis.json``; ``docs/analysis-json.md`` describes every field."""

    provenance: dict[str, Any]
    notes: tuple[v.Note, ...]
    absent: dict[str, str]
    #: For other programs; embgeo decides anew from the numbers.
    verdict: dict[str, Any]
    scalars: dict[str, v.Scalar]
    series: tuple[v.Series, ...]
    histograms: tuple[v.Histogram, ...]
    points: tuple[v.Points, ...]
    columns: tuple[v.Column, ...]
    tables: tuple[v.Table, ...]
    halves: tuple[v.Halves, ...]
    suspects: tuple[Suspects, ...]
    timing: dict[str, float]
    #: The matrix after each treatment, and what its map is made of.
    treated: tuple[Treated, ...]
    treated_places: TreatedPlaces | None


def _check(saved: SavedAnalysis) -> None:
    check_provenance(saved.provenance, _OfAnalysis)
    for name, scalar in saved.scalars.items():
        if name != scalar.name:
            raise ValueError(f"the scalar {name!r} calls itself {scalar.name!r}")


FORMAT = RecordFormat(
    "embgeo.analysis",
    3,
    SavedAnalysis,
    JSON_NAME,
    "an analysis",
    "make one with: embgeo analyze CHECKPOINT",
    check=_check,
)


# --- shapes of arrays ----------------------------------------------------------------------------


def check_shapes(values: Iterable[v.Value]) -> None:
    """Raise ValueError for saved values whose arrays do not fit together.

    Arrays with an entry per row have one dimension here, or two columns; the number of rows is
    compared by the caller.
    """
    for value in values:
        fits = True
        match value:
            case v.Series():
                fits = value.x.ndim == 1 and all(y.shape == value.x.shape for y in value.y.values())
            case v.Histogram():
                fits = value.counts.ndim == 1 and value.edges.shape == (len(value.counts) + 1,)
            case v.Points():
                fits = value.xy.ndim == 2 and value.xy.shape[1] == 2 and _are_lengths(value.xy)
            case v.Column():
                fits = value.values.ndim == 1
            case v.Halves():
                fits = value.values.shape == (len(HALVES),)
        if not fits:
            raise ValueError(f"the arrays of {value.name} do not have the shapes of one")


def _are_lengths(*arrays: npt.NDArray[Any]) -> bool:
    """Tell whether all numbers, and their squares, are finite."""
    with np.errstate(over="ignore"):
        return all(bool(np.isfinite(np.square(array, dtype=np.float64)).all()) for array in arrays)


def check_treated(treated: tuple[Treated, ...], places: TreatedPlaces | None, rows: int) -> None:
    """Raise ValueError unless these are known treatments, with arrays of `rows` rows."""
    fits = not treated or places is not None
    for one in treated:
        near = one.neighbors
        fits = fits and base_of(one.name) in TREATMENTS and one.cosines.ndim == 1
        fits = fits and _are_lengths(one.cosines)
        fits = fits and near.ndim == 2 and len(near) in (0, rows)
        fits = fits and (not near.size or 0 <= near.min() <= near.max() < rows)
    if places is not None:
        axes = len(places.mean)
        fits = fits and places.xs.shape == (rows, axes) and places.deviations.shape == (axes - 2,)
        fits = fits and places.norms.shape == (rows, 4) and _are_lengths(places.xs, places.norms)
        fits = fits and bool((places.norms[:, 0] > 0).all() and (places.norms >= 0).all())
    if not fits:
        raise ValueError("the numbers after a treatment do not belong to these rows")


# --- tokens in the archive ------------------------------------------------------------------


def pack_tokens(tokens: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Get tokens as UTF-8 bytes and offsets, which hold any string, newlines and NULs included."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    return {
        "tokens_utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "tokens_end": np.cumsum([len(b) for b in encoded], dtype=np.int64),
    }


def unpack_tokens(arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    if "tokens_utf8" not in arrays:
        return None
    packed, ends = arrays["tokens_utf8"], [0, *arrays["tokens_end"].tolist()]
    raw = packed.tobytes()
    if packed.shape != (len(raw),) or ends != sorted(ends) or ends[-1] != len(raw):
        raise ValueError("the tokens are cut")
    return tuple(raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(ends))


# --- nearest rows in the archive ------------------------------------------------------------


def pack_nearest(nearest: NearestRows) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the archive, with 32 bits per entry."""
    return {
        "nearest/rows": nearest.rows.astype(np.int32),
        "nearest/neighbors": nearest.neighbors.astype(np.int32),
        "nearest/cosines": nearest.cosines,
        "nearest/recall": np.array([nearest.recall]),
    }


def unpack_nearest(arrays: dict[str, npt.NDArray[Any]]) -> NearestRows | None:
    """Unpack the nearest rows; none if the file has none, as earlier ones."""
    if "nearest/rows" not in arrays:
        return None
    rows, near = (arrays[f"nearest/{part}"].astype(np.int64) for part in ("rows", "neighbors"))
    recall = arrays["nearest/recall"]
    if recall.shape != (1,):
        raise ValueError("the recall of the nearest rows is not one number")
    cosines = arrays["nearest/cosines"].astype(np.float32)
    return NearestRows(rows, near, cosines, float(recall[0]))


def check_nearest(nearest: NearestRows, rows: int) -> None:
    """Raise ValueError unless shapes fit, and all row numbers are below `rows`."""
    near, asked = nearest.neighbors, nearest.rows
    if not 0.0 <= nearest.recall <= 1.0:
        raise ValueError("the recall of the nearest rows is not a share")
    if near.shape != nearest.cosines.shape or near.shape[:-1] != asked.shape or near.ndim != 2:
        raise ValueError("the nearest rows and their cosines have different shapes")
    for places in (near, asked):
        if places.size and not 0 <= places.min() <= places.max() < rows:
            raise ValueError("the nearest rows are not rows of the analysis")
