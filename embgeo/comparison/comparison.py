"""The result of a comparison: analyses side by side, and numbers of two matrices.

It is saved as a folder with ``comparison.json`` (provenance, differences, numbers of two matrices),
``arrays.npz`` (matched rows, and arrays with one entry per shared token), one folder with the
analysis of each member (``0-baseline``, …), and, once rendered, ``report.html``. Reports and
figures need nothing else.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.suspects import SuspectChange
from embgeo.comparison.track import Track
from embgeo.core.arguments import as_path
from embgeo.core.errors import UnreadableFile
from embgeo.core.frames import import_pandas
from embgeo.core.quantities import QUANTITIES, suggest
from embgeo.core.text import drawable, visible, visible_text
from embgeo.core.values import Value
from embgeo.files.records import ARRAYS_NAME, Json, RecordFormat
from embgeo.result.analysis import Analysis, MissingValue, load_analysis
from embgeo.result.saved import check_provenance, check_shapes

if TYPE_CHECKING:
    import pandas as pd

#: Members and sentences that a `repr` shows.
MOST_SHOWN, MOST_SENTENCES = 4, 5
COMPARISON_NAME = "comparison.json"
#: Names of folders of members: place, hyphen, plain characters.
MEMBER_FOLDER = re.compile(r"\d{1,4}-[A-Za-z0-9._-]{0,60}")


@dataclass(frozen=True, slots=True)
class SavedMember:
    """A member without its analysis, which is in `folder`."""

    name: str
    given: str
    folder: str
    from_saved: bool
    matrix_absent: str
    step: float | None


@dataclass(frozen=True, slots=True)
class SavedComparison:
    """The content of ``comparison.json``; ``docs/diff.md`` describes every field."""

    provenance: dict[str, Any]
    members: tuple[SavedMember, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    pairs: tuple[Pair, ...]
    differences: tuple[Difference, ...]
    suspects: tuple[SuspectChange, ...]
    track: Track | None
    timing: dict[str, float]


def _check(saved: SavedComparison) -> None:
    """Raise ValueError unless places and lengths fit the members."""
    check_provenance(saved.provenance)
    check_folders([member.folder for member in saved.members])
    count = len(saved.members)
    for pair in saved.pairs:
        _check_pair(pair, count)
    places = [d.member for d in saved.differences] + [s.member for s in saved.suspects]
    if any(not 0 < place < count for place in places):
        raise ValueError("a difference of no member")
    curves = saved.track.curves if saved.track else ()
    lengths = {len(values) for c in curves for values in (c.values, c.standard_errors)}
    if saved.track and not lengths | {len(saved.track.steps)} <= {count}:
        raise ValueError(f"not every curve has {count} points")
    if saved.track:
        _check_duplicates(saved.track, count)


def _check_duplicates(track: Track, members: int) -> None:
    if len(track.same_as) not in (0, members) or any(
        same is not None and not 0 <= same < place for place, same in enumerate(track.same_as)
    ):
        raise ValueError("a duplicate of no member before it")
    if any(not 0 <= place < members for place in track.outliers):
        raise ValueError("an outlier that is not a member")
    if any(not 0 <= places.member < members for places in track.places):
        raise ValueError("places of no member")


def check_folders(folders: list[Any]) -> None:
    named = all(isinstance(name, str) and MEMBER_FOLDER.fullmatch(name) for name in folders)
    if not named or len(folders) < 2:
        raise ValueError("its list of members is damaged")


def _check_pair(pair: Pair, members: int) -> None:
    if not (0 <= pair.first < pair.second < members):
        raise ValueError("a pair of no members")
    check_shapes(pair.values())
    parts = (pair.matching.first, pair.matching.second)
    if {part.shape for part in parts} != {(pair.matching.shared,)}:
        raise ValueError(f"not everything has {pair.matching.shared:,} shared tokens")


FORMAT = RecordFormat(
    "embgeo.comparison",
    4,
    SavedComparison,
    COMPARISON_NAME,
    what="a comparison",
    again="compare again with: embgeo diff",
    check=_check,
)


@dataclass(frozen=True, slots=True)
class Member:
    """One of the compared matrices."""

    #: Short and unique; untrusted text, because it comes from a file name.
    name: str
    #: The path as given by the user.
    given: str
    analysis: Analysis
    #: Whether `given` was a saved analysis rather than a checkpoint.
    from_saved: bool = False
    #: Why the matrix was not available for numbers of two matrices; empty if it was.
    matrix_absent: str = ""
    #: Training step in a track.
    step: float | None = None

    def folder(self, place: int) -> str:
        """Name of the folder with the analysis of this member, which is at `place`."""
        plain = unicodedata.normalize("NFKD", self.name).encode("ascii", "ignore").decode()
        return f"{place}-{re.sub(r'[^A-Za-z0-9._-]+', '-', plain)[:60]}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Comparison:
    """Analyses side by side.

    Attributes
    ----------
    provenance : dict
        JSON-ready: command, seed, options, versions (``docs/diff.md`` lists the fields).
    members : tuple of Member
        The baseline first; at least two.
    pairs : tuple of Pair
        The baseline with each other member, in order; in a track, then each member with the next.
    differences : tuple of Difference
        The differences of every scalar, by quantity, then by member.
    suspects : tuple of SuspectChange
        Which suspects came, went and stayed, by member; of a track, by its last one.
    sentences : tuple of str
        What stands out, the most important first.
    notes : tuple of str
        What a reader should know (how rows were matched, which were left out).
    track : Track or None
    timing : dict of str to float
        Seconds by stage: the only part that differs between equal runs.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> W, names = np.eye(9), ["before", "after"]
    >>> compared = embgeo.diff(W, W + 1, names=names, sections="cosine", reference=False)
    >>> [member.name for member in compared.members], compared["cosine.mean"].quantity.title
    (['before', 'after'], 'Mean cosine')
    """

    provenance: dict[str, Any]
    members: tuple[Member, ...]
    pairs: tuple[Pair, ...] = ()
    differences: tuple[Difference, ...] = ()
    suspects: tuple[SuspectChange, ...] = ()
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    track: Track | None = None
    timing: dict[str, float] = field(default_factory=dict)

    @property
    def baseline(self) -> Member:
        return self.members[0]

    @property
    def others(self) -> tuple[Member, ...]:
        return self.members[1:]

    def pair(self, first: int, second: int) -> Pair | None:
        """Return the numbers of these two members, or None."""
        return next((p for p in self.pairs if (p.first, p.second) == (first, second)), None)

    def differences_of(self, member: int) -> tuple[Difference, ...]:
        """Return all differences of a member from the baseline."""
        return tuple(d for d in self.differences if d.member == member)

    def keys(self) -> tuple[str, ...]:
        """Return names of all numbers with a difference, then of the values of two matrices."""
        names = [d.name for d in self.differences]
        names += [value.name for pair in self.pairs for value in pair.values()]
        return tuple(dict.fromkeys(names))

    def __getitem__(self, name: str | tuple[str, int | str]) -> Difference | Value:
        """Return the difference of a number from the baseline, or a value of two matrices.

        Parameters
        ----------
        name : str, or (str, int or str)
            The name of the number, with the place or the name of a member unless it is the first
            one after the baseline: ``comparison["cosine.mean"]``, ``comparison["compare.cka", 2]``.

        Raises
        ------
        KeyError
            If nothing has this name; the message suggests similar names.
        """
        key, member = name if isinstance(name, tuple) else (name, 1)
        place = self._place(member)
        values: list[Difference | Value] = list(self.differences_of(place))
        pair = self.pair(0, place)
        values += [] if pair is None else pair.values()
        for value in values:
            if value.name == key:
                return value
        if key in QUANTITIES:
            raise MissingValue(f"{key} is missing: it was not compared")
        way_out = suggest(str(key), self.keys())
        raise MissingValue(f"no value is called {key!r}", way_out=way_out)

    def _place(self, member: int | str) -> int:
        names = [one.name for one in self.members]
        if isinstance(member, str) and member in names[1:]:
            return names.index(member, 1)
        if isinstance(member, int) and 0 < member < len(names):
            return member
        is_baseline = member == names[0]
        cause = f"{member!r} is the baseline" if is_baseline else f"no member is called {member!r}"
        raise MissingValue(cause, way_out=f"there are {', '.join(names[1:])}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __repr__(self) -> str:
        names = [visible(member.name) for member in self.members]
        verdicts = [visible_text(member.analysis.verdict.headline) for member in self.members]
        shown = [f"{name}: {text}" for name, text in zip(names, verdicts, strict=True)]
        more = [f"and {len(shown) - MOST_SHOWN} more"] if len(shown) > MOST_SHOWN else []
        sentences = [visible_text(sentence) for sentence in self.sentences[:MOST_SENTENCES]]
        kind = "Track" if self.track is not None else "Comparison"
        lines = [*shown[:MOST_SHOWN], *more, *sentences, f"{len(self.keys())} values, see .keys()>"]
        return "\n  ".join([f"<{kind} of {len(names)} matrices", *lines])

    def to_pandas(self) -> "pd.DataFrame":
        """Return a DataFrame with a row for each number and member after the baseline, by name.

        Numbers of two matrices (``compare.…``) have a value and the chance level as `baseline`.

        Raises
        ------
        EmbgeoError
            If pandas is not installed.
        """
        pandas = import_pandas()
        rows: list[dict[str, Any]] = []
        for d in self.differences:
            low, high = d.interval or (None, None)
            rows.append({
                "name": d.name, "member": self.members[d.member].name, "title": d.quantity.title,
                "baseline": d.baseline, "value": d.value, "difference": d.difference,
                "standard_error": d.standard_error, "low": low, "high": high,
                "p_value": d.p_value, "p_adjusted": d.p_adjusted, "change": d.change,
                "unit": d.quantity.unit, "undefined": d.undefined,
            })  # fmt: skip
        for place, member in enumerate(self.others, 1):
            pair = self.pair(0, place)
            rows += [
                {
                    "name": s.name, "member": member.name, "title": s.quantity.title,
                    "baseline": s.reference, "value": s.value, "unit": s.quantity.unit,
                    "change": "", "undefined": s.undefined,
                }
                for s in (pair.scalars if pair is not None else ())
            ]  # fmt: skip
        numbers = dict.fromkeys(
            ("baseline", "value", "difference", "standard_error", "low", "high", "p_value",
             "p_adjusted"),
            "float64",
        )  # fmt: skip
        frame: pd.DataFrame = pandas.DataFrame(rows).set_index("name").astype(numbers)
        return frame

    def to_dict(self) -> Json:
        """Return the content of ``comparison.json``; equal runs differ in ``timing`` only."""
        return FORMAT.to_json(self.to_saved())

    def save(self, folder: Path | str) -> None:
        """Write everything but the report; ``comparison.json`` comes last.

        Raises
        ------
        EmbgeoError
            If `folder` cannot be written to.
        """
        for place, member in enumerate(self.members):
            member.analysis.save(Path(folder) / member.folder(place))
        FORMAT.save(self.to_saved(), Path(folder))

    def to_saved(self) -> SavedComparison:
        """Return the part that is saved next to the analyses."""
        own = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        members = tuple(
            SavedMember(m.name, m.given, m.folder(place), m.from_saved, m.matrix_absent, m.step)
            for place, m in enumerate(self.members)
        )
        return SavedComparison(**own | {"members": members})


def load_comparison(folder: Path | str) -> Comparison:
    """Read a saved comparison, with its analyses.

    Parameters
    ----------
    folder : Path or str
        A folder that ``embgeo diff`` or :meth:`Comparison.save` wrote.

    Returns
    -------
    Comparison

    Raises
    ------
    UnreadableFile
        If there is no comparison, a damaged one, or one of a format version that this embgeo does
        not know.

    Examples
    --------
    >>> load_comparison("baseline-vs-cosreg.embgeo").sentences[0]  # doctest: +SKIP
    'Mean cosine fell from 0.467 to 0.00469.'
    """
    folder = as_path(folder, "folder")
    saved = FORMAT.load(folder)
    home = folder if folder.is_dir() else folder.parent
    analyses = [load_analysis(home / member.folder) for member in saved.members]
    members = tuple(
        Member(m.name, m.given, analysis, m.from_saved, m.matrix_absent, m.step)
        for m, analysis in zip(saved.members, analyses, strict=True)
    )
    for pair in saved.pairs:
        for place in ("first", "second"):
            at = getattr(pair.matching, place)
            rows = len(members[getattr(pair, place)].analysis.rows)
            if at.ndim != 1 or (len(at) and not (at.min() >= 0 and at.max() < rows)):
                raise UnreadableFile(
                    "damaged (row numbers beyond the matrix)",
                    where=home / ARRAYS_NAME,
                    way_out=FORMAT.again,
                )
    for places in () if saved.track is None else saved.track.places:
        if places.xy.shape != (len(members[places.member].analysis.rows), 2):
            raise UnreadableFile(
                "damaged (places of other rows)", where=home / ARRAYS_NAME, way_out=FORMAT.again
            )
    own = {entry.name: getattr(saved, entry.name) for entry in fields(saved)}
    return Comparison(**own | {"members": members})


#: Longest head of a column, in characters.
HEAD = 18


def distinguish_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Make equal names unique: by the ending of the file, then by its folders, else by a number.

    >>> distinguish_names(["model", "model"], [Path("a/run/model.pt"), Path("b/run/model.pt")])
    ['a/run/model', 'b/run/model']
    >>> distinguish_names(["model", "model"], [Path("model.pt"), Path("model.npy")])
    ['model.pt', 'model.npy']
    >>> distinguish_names(["model", "model"], [Path("run/model.pt"), Path("run/model.pt")])
    ['model (1)', 'model (2)']
    """
    out = list(names)
    for i in equal(names):
        twins = [j for j in equal(names) if names[j] == names[i] and j != i]
        if all(paths[i].name != paths[j].name for j in twins):
            out[i] = paths[i].name
    # The same file twice has the same folders: only a number distinguishes the two.
    folders = [
        [] if paths.count(path) > 1 else [p for p in path.parent.parts if p not in ("/", ".", "..")]
        for path in paths
    ]
    for depth in range(1, 1 + max(map(len, folders), default=0)):
        for i in equal(out):
            out[i] = "/".join([*folders[i][-depth:], names[i]])
    return [
        f"{name} ({out[: i + 1].count(name)})" if out.count(name) > 1 else name
        for i, name in enumerate(out)
    ]


def equal(names: Sequence[str]) -> list[int]:
    """Return places of names that occur several times."""
    return [i for i, name in enumerate(names) if names.count(name) > 1]


def name_of(member: Member, track: bool) -> str:
    """Return the name of a member in a legend."""
    if track and member.step is not None:
        return f"step {member.step:,.10g}"
    return drawable(member.name)


def member_name(comparison: Comparison, place: int) -> str:
    """Return the step in a track, else the name with hidden characters spelled out."""
    member = comparison.members[place]
    if comparison.track is not None and member.step is not None:
        return name_of(member, True)
    return visible(member.name)


def short_name(comparison: Comparison, place: int) -> str:
    """Return the name cut in the middle, so that it fits the head of a column."""
    name = member_name(comparison, place)
    if len(name) <= HEAD:
        return name
    return f"{name[: HEAD // 2]}…{name[HEAD // 2 + 1 - HEAD :]}"
