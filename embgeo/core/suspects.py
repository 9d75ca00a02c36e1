"""Suspects: rows that stand out, each for one reason, in the order of how serious it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.numbers import format_number
from embgeo.core.special import classify_token

Reason = Literal[
    "nonfinite", "zero", "damaged", "constant", "untrained", "mean", "duplicate", "near_identical",
    "special", "clump", "long", "short", "no_token", "cone",
]  # fmt: skip
Side = Literal["input", "output"]


class Meaning(NamedTuple):
    """What a reason says about rows."""

    #: One row and several of them, after their number.
    one: str
    several: str
    #: The number that decided, as a column calls it; empty without one.
    measure: str
    #: Whether such a row misleads a model; not for tokens that no text uses.
    serious: bool
    help: str


_REPAIR = "embgeo repair draws a new row from the others; then train it"
#: Every reason, the most serious first.
REASONS: dict[Reason, Meaning] = {
    "nonfinite": Meaning("row not finite", "rows not finite", "", True, _REPAIR),
    "zero": Meaning("zero row", "zero rows", "", True, _REPAIR),
    "damaged": Meaning("damaged row", "damaged rows", "share of the median norm", True, _REPAIR),
    "constant": Meaning("constant row", "constant rows", "entry", True, _REPAIR),
    "untrained": Meaning(
        "row never trained",
        "rows never trained",
        "share of the median norm",
        True,
        "train these tokens, or draw their rows from the others with embgeo repair",
    ),
    "mean": Meaning(
        "row at the mean",
        "rows at the mean",
        "distance to the mean, in median distances",
        True,
        "train these tokens, or draw their rows from the others with embgeo repair: rows that "
        "resize_token_embeddings adds differ by a thousandth of a percent",
    ),
    "duplicate": Meaning(
        "duplicate",
        "duplicates",
        "",
        True,
        "no model can distinguish equal rows: train them, or make them differ with embgeo repair",
    ),
    "near_identical": Meaning(
        "near-identical row",
        "near-identical rows",
        "cosine to the first of its group",
        True,
        "no model can distinguish them: train them, or make them differ with embgeo repair",
    ),
    "special": Meaning(
        "special token that looks untrained",
        "special tokens that look untrained",
        "share of the median norm",
        True,
        "prompts will use it: train it, or copy a token of the same use with embgeo repair --copy",
    ),
    "clump": Meaning(
        "row in a clump of hardly trained tokens",
        "rows in a clump of hardly trained tokens",
        "angle to the mean direction (°)",
        False,
        "unused ones can stay: train those that prompts contain",
    ),
    "long": Meaning(
        "row much longer than the others",
        "rows much longer than the others",
        "multiple of the median norm",
        False,
        "look whether few tokens are meant to attract the others; dot products follow them",
    ),
    "short": Meaning(
        "row much shorter than the others",
        "rows much shorter than the others",
        "share of the median norm",
        False,
        "training may hardly have touched them: count how often they occur",
    ),
    "no_token": Meaning(
        "row of no token", "rows of no token", "", False, "nothing reads them: leave them"
    ),
    "cone": Meaning(
        "row along the mean direction",
        "rows along the mean direction",
        "angle to the mean direction (°)",
        False,
        "they make the cone: see whether training hardly saw them",
    ),
}
SERIOUS: tuple[Reason, ...] = tuple(reason for reason, own in REASONS.items() if own.serious)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Suspects:
    """The rows that stand out for one reason, on one side of a model.

    Attributes
    ----------
    reason : Reason
    side : {"input", "output"}
    rows : int array
        Ascending.
    serious : bool array
        False for rows that nothing uses or that are expected, such as those of reserved tokens.
    tokens : tuple of str or None
        None if the rows have no tokens.
    norms : float array or None
        None if rows are not finite.
    values : float array or None
        The number that decided, see `Meaning.measure`.
    group : int array or None
        The first row of the group of equal or near-identical rows.
    """

    reason: Reason
    side: Side
    rows: IntArray = field(metadata={"archive": "rows", "key": "rows"})
    serious: Mask = field(metadata={"archive": "serious", "key": "serious"})
    tokens: tuple[str, ...] | None = None
    norms: FloatArray | None = field(default=None, metadata={"archive": "norms", "key": "norms"})
    values: FloatArray | None = field(default=None, metadata={"archive": "values", "key": "values"})
    group: IntArray | None = field(default=None, metadata={"archive": "group", "key": "group"})

    @property
    def name(self) -> str:
        return f"{self.reason}.{self.side}"

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Suspects {self.name}: {describe(self.reason, len(self))}>"

    def take(self, chosen: Mask) -> Self:
        """Return some of the rows."""
        tokens = self.tokens
        if tokens is not None:
            tokens = tuple(tokens[at] for at in np.flatnonzero(chosen).tolist())
        return replace(
            self,
            rows=self.rows[chosen],
            serious=self.serious[chosen],
            tokens=tokens,
            norms=None if self.norms is None else self.norms[chosen],
            values=None if self.values is None else self.values[chosen],
            group=None if self.group is None else self.group[chosen],
        )


def describe(reason: Reason, count: int) -> str:
    """Return ``5 zero rows``."""
    meaning = REASONS[reason]
    return f"{count:,} {meaning.one if count == 1 else meaning.several}"


def describe_group(reason: Reason, suspects: Iterable[Suspects]) -> str:
    """Return ``20 duplicates of 9 tokens``, or ``3 zero rows (2 of the output matrix)``.

    >>> values = np.array([1286.4])
    >>> own = Suspects("long", "input", np.array([7]), np.array([False]), values=values)
    >>> describe_group("long", [own])
    '1 row is about 1,286 times longer than the others'
    """
    suspects = list(suspects)
    count = sum(map(len, suspects))
    text = describe(reason, count)
    groups = sum(len(np.unique(one.group)) for one in suspects if one.group is not None)
    if groups:
        word = "token" if reason == "duplicate" else "group"
        text += f" {'of' if reason == 'duplicate' else 'in'} {groups:,} {word}"
        text += "" if groups == 1 else "s"
    known = [one.values for one in suspects if one.values is not None]
    if reason in ("long", "short") and known:
        values = np.concatenate(known)
        times = float(np.median(values if reason == "long" else 1.0 / values))
        word = "longer" if reason == "long" else "shorter"
        verb = "row is" if count == 1 else "rows are"
        text = f"{count:,} {verb} about {format_number(times, 2)} times {word} than the others"
    of_output = sum(len(one) for one in suspects if one.side == "output")
    if of_output:
        text += " of the output matrix" if of_output == count else f" ({of_output:,} of the output)"
    return text


def list_rows(suspects: Iterable[Suspects]) -> list[tuple[Side, int, str | None]]:
    """List side, row and token of suspects; tokens spelled like special ones come first."""
    rows = [
        (own.side, row, None if own.tokens is None else own.tokens[at])
        for own in suspects
        for at, row in enumerate(own.rows.tolist())
    ]
    return sorted(rows, key=lambda one: one[2] is None or classify_token(one[2]) != "special")


def count_serious(suspects: Iterable[Suspects], reason: Reason) -> int:
    """Count the tokens with a serious row of this reason on either side."""
    rows = [own.rows[own.serious] for own in suspects if own.reason == reason]
    return len(np.unique(np.concatenate(rows))) if rows else 0
