"""The result of an analysis: values and provenance, saved in a folder.

The folder holds ``analysis.json`` (provenance, verdict, scalars, series, histograms, tables),
``arrays.npz`` (arrays with one entry per row: tokens, coordinates, norms, …) and, once rendered,
``report.html``. Reports, figures, comparisons and gates read nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embgeo.core import values as v
from embgeo.core.arguments import as_path
from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.quantities import (
    QUANTITIES,
    cosine,
    frequency,
    is_own,
    isotropy,
    spectrum,
    subspace,
    suggest,
)
from embgeo.core.rows import NearestRows
from embgeo.core.suspects import Suspects
from embgeo.core.text import visible
from embgeo.core.treated import Treated, TreatedPlaces
from embgeo.diagnosis.verdict import Verdict, judge
from embgeo.files.records import ARRAYS_NAME, read_arrays
from embgeo.files.saved import DAMAGE
from embgeo.result.saved import (
    FORMAT,
    JSON_NAME,
    SavedAnalysis,
    check_nearest,
    check_shapes,
    check_treated,
    pack_nearest,
    pack_tokens,
    unpack_nearest,
    unpack_tokens,
)

V = TypeVar("V", bound=v.Value)

REPORT_NAME = "report.html"

#: The numbers of a short summary.
HEADLINE: tuple[v.Quantity, ...] = (
    spectrum.EFFECTIVE_RANK,
    spectrum.TOP_SHARE,
    cosine.MEAN,
    isotropy.I1_UNIT_ROWS,
    frequency.PROBE_AUC,
    frequency.NEIGHBOR_RARITY_RARE,
    subspace.DISTANCE,
)


class MissingValue(EmbgeoError, KeyError):
    """A value is not in an analysis; the message says why, or suggests similar names."""

    __str__ = Exception.__str__


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Analysis:
    """Everything measured on one matrix, and how it was made.

    Attributes
    ----------
    provenance : dict
        JSON-ready: file, tensor, sha256, dtype, shape, masked rows, versions, seed, command, …
        (``docs/analysis-json.md`` lists every field).
    scalars, series, histograms, points, columns, tables : tuple
        The values, in the order of reports.
    halves : tuple of Halves
        Numbers of 30 halves of the tokens, for errors of differences; not among the values.
    nearest : NearestRows or None
        The nearest rows of some or all rows by cosine; not among the values.
    absent : dict of str to str
        Families without values, and why.
    notes : tuple of Note
        What a reader should know about this matrix (masked rows, duplicates, …).
    rows : int array, shape (M,)
        Row numbers (in the analyzed matrix) of the kept rows. Of more than four million rows, about
        one million are listed, here and in all arrays with one entry per row; numbers are over all
        rows.
    tokens : tuple of str or None
        Labels of the kept rows.
    counts : array of float64 or None
        Counts (or descending ranks, see ``provenance["frequency"]``) of the kept rows.
    popular : bool array or None
        Which kept rows are frequent tokens.
    timing : dict of str to float
        Seconds by stage: the only part of the result that differs between equal runs.
    treated : tuple of Treated
        The matrix after each treatment of the literature; not among the values, and empty where
        rows are too few.
    treated_places : TreatedPlaces or None
        What the map after every treatment is made of.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> analysis = embgeo.analyze(np.eye(9), sections="cosine", reference=False)
    >>> analysis["cosine.mean"].value, analysis.keys()[:2]
    (0.0, ('cosine.mean', 'cosine.std'))
    """

    provenance: dict[str, Any]
    scalars: tuple[v.Scalar, ...] = ()
    series: tuple[v.Series, ...] = ()
    histograms: tuple[v.Histogram, ...] = ()
    points: tuple[v.Points, ...] = ()
    columns: tuple[v.Column, ...] = ()
    tables: tuple[v.Table, ...] = ()
    halves: tuple[v.Halves, ...] = ()
    suspects: tuple[Suspects, ...] = ()
    nearest: NearestRows | None = None
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[v.Note, ...] = ()
    rows: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    tokens: tuple[str, ...] | None = None
    counts: FloatArray | None = None
    popular: Mask | None = None
    timing: dict[str, float] = field(default_factory=dict)
    treated: tuple[Treated, ...] = ()
    treated_places: TreatedPlaces | None = None

    def __getitem__(self, name: v.Quantity | str) -> v.Value:
        """Return the value of a quantity, or with a name.

        Raises
        ------
        MissingValue
            A `KeyError`, if the analysis does not have it; the message says why, or suggests
            similar names.
        """
        value = self._find(self.values(), name)
        if value is None:
            raise self._missing(name_of(name))
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return any(name in (value.name, value.quantity) for value in self.values())

    def scalar(self, name: v.Quantity | str) -> v.Scalar:
        """Return a single number, which a type checker knows to be one.

        Raises
        ------
        MissingValue
            A `KeyError`, as of ``analysis[name]``; also if the value is a curve, a table or another
            value that is not a number.
        """
        value = self[name]
        if not isinstance(value, v.Scalar):
            raise MissingValue(f"{name_of(name)} is not a single number")
        return value

    def find_scalar(self, quantity: v.Quantity | str) -> v.Scalar | None:
        """Return the scalar of a quantity, or with a name; None if it was left out.

        Raises
        ------
        MissingValue
            A `KeyError`, if no analysis can have a value with this name.
        """
        scalar = self._find(self.scalars, quantity)
        if scalar is None and name_of(quantity) not in QUANTITIES:
            raise self._missing(name_of(quantity))
        return scalar

    def by_half(self, name: str) -> FloatArray | None:
        """Return the numbers of 30 halves of the tokens, shape (30,), of a scalar with an error."""
        return next((one.values for one in self.halves if one.name == name), None)

    def values(self) -> tuple[v.Value, ...]:
        return (
            *self.scalars,
            *self.series,
            *self.histograms,
            *self.points,
            *self.columns,
            *self.tables,
        )

    def keys(self) -> tuple[str, ...]:
        """Return the names of all values, in the order of reports."""
        return tuple(value.name for value in self.values())

    @property
    def kept(self) -> int:
        """M, the number of measured rows; `rows` lists all or some of them."""
        return int(self.provenance.get("kept", len(self.rows)))

    @property
    def verdict(self) -> Verdict:
        """A headline, the state of the geometry, and the findings."""
        return judge(self)

    def __repr__(self) -> str:
        p = self.provenance
        shape = f": {p['n']:,} × {p['d']:,} {p.get('dtype', '')}" if {"n", "d"} <= p.keys() else ""
        shown = [s for q in HEADLINE if (s := self.find_scalar(q)) is not None]
        width = max((len(s.name) for s in shown), default=0)
        return "\n".join(
            [
                f"<Analysis of {visible(str(p.get('file') or p.get('tensor') or 'W'))}{shape}",
                f"  {self.verdict.headline}",
                *(f"  {s.name:<{width}}  {s.text}" for s in shown),
                f"  {len(self.values())} values, see .keys()>",
            ]
        )

    @staticmethod
    def _find(values: tuple[V, ...], name: v.Quantity | str) -> V | None:
        key = name_of(name)
        return next((value for value in values if value.name == key), None)

    def _missing(self, name: str) -> MissingValue:
        if name not in QUANTITIES:
            names = QUANTITIES.keys() | set(self.keys())
            return MissingValue(f"no value is called {name!r}", way_out=suggest(name, names))
        family = QUANTITIES[name].family
        if family in self.absent:
            return MissingValue(f"{name} is missing: {family} was skipped: {self.absent[family]}")
        if family not in self.provenance.get("sections", (family,)):
            return MissingValue(f"{name} is missing: the section {family} was not measured")
        return MissingValue(f"{name} is missing: it was not measured with these files and options")

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``analysis.json``; equal runs differ in ``timing`` only."""
        return FORMAT.to_json(self._saved())

    def _saved(self) -> SavedAnalysis:
        own = {name: getattr(self, name) for name in _SAVED_ALIKE}
        scalars = {scalar.name: scalar for scalar in self.scalars}
        return SavedAnalysis(verdict=self.verdict.to_dict(), scalars=scalars, **own)

    def save(self, folder: Path | str) -> None:
        """Write ``analysis.json`` and ``arrays.npz``, each completely or not at all.

        Raises
        ------
        EmbgeoError
            If `folder` is not writable.
        """
        arrays: dict[str, npt.NDArray[Any]] = {"rows": self.rows}
        if self.tokens is not None:
            arrays |= pack_tokens(self.tokens)
        if self.counts is not None:
            arrays["counts"] = self.counts
        if self.popular is not None:
            arrays["popular"] = self.popular
        if self.nearest is not None:
            arrays |= pack_nearest(self.nearest)
        FORMAT.save(self._saved(), as_path(folder, "folder"), arrays)


#: Fields that an analysis and its saved form share.
_SAVED_ALIKE = tuple(
    entry.name for entry in fields(SavedAnalysis) if entry.name not in ("verdict", "scalars")
)


def name_of(name: v.Quantity | str) -> str:
    return name.name if isinstance(name, v.Quantity) else str(name)


def load_analysis(folder: Path) -> Analysis:
    """Read a folder that :meth:`Analysis.save` wrote.

    Raises
    ------
    UnreadableFile
        If there is no analysis, or one with an unknown format version or an unknown value.
    """
    path = folder / JSON_NAME if folder.is_dir() else folder
    content = FORMAT.read(path, folder)
    arrays_path = path.parent / ARRAYS_NAME
    try:
        arrays = read_arrays(arrays_path, content)
        saved = FORMAT.from_json(content, arrays)
        analysis = Analysis(
            scalars=tuple(saved.scalars.values()),
            nearest=unpack_nearest(arrays),
            rows=arrays["rows"],
            tokens=unpack_tokens(arrays),
            counts=arrays.get("counts"),
            popular=arrays.get("popular"),
            **{name: getattr(saved, name) for name in _SAVED_ALIKE},
        )
        _check_rows(analysis)
    except DAMAGE as error:
        raise UnreadableFile(
            f"damaged, or does not belong to its {JSON_NAME} ({error})",
            where=arrays_path,
            way_out=FORMAT.again,
        ) from error
    for value in analysis.values():
        if (name := value.name) not in QUANTITIES and not is_own(name):
            raise UnreadableFile(
                f"this embgeo does not know the value {visible(name)!r}",
                where=path,
                way_out=suggest(name, QUANTITIES),
            )
    return analysis


def _check_rows(analysis: Analysis) -> None:
    """Raise ValueError unless all arrays have one entry per row, and the kinds of their numbers."""
    check_shapes(analysis.values())
    check_shapes(analysis.halves)
    rows, total = analysis.rows, analysis.provenance.get("n")
    for name, array, kinds in (
        ("rows", rows, "iu"),
        ("counts", analysis.counts, "f"),
        ("popular", analysis.popular, "b"),
    ):
        if array is not None and (array.ndim != 1 or array.dtype.kind not in kinds):
            raise ValueError(f"{name} is of shape {array.shape} and type {array.dtype}")
    if len(rows) and not (rows.min() >= 0 and (total is None or rows.max() < total)):
        raise ValueError("the rows are not rows of the matrix")
    counts = analysis.counts
    if counts is not None and not ((counts >= 0) & (counts < 2.0**63)).all():
        raise ValueError("the counts are not from 0 to 2^63")
    count = len(rows)
    per_row: list[Any] = [analysis.tokens, analysis.counts, analysis.popular]
    per_row += [p.xy for p in analysis.points] + [c.values for c in analysis.columns]
    lengths = {len(part) for part in per_row if part is not None}
    if analysis.nearest is not None:
        check_nearest(analysis.nearest, count)
    check_treated(analysis.treated, analysis.treated_places, count)
    if not lengths <= {count} or analysis.provenance.get("listed", analysis.kept) != count:
        raise ValueError(f"not everything has {count:,} rows")
