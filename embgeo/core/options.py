"""The options of measuring, each declared once.

``embgeo.analyze``, the options of commands, the keys of the settings file and the provenance are
derived from the fields of :class:`Options`, as those of loading are from
:class:`embgeo.core.source.Source`. The metadata of a field:

``help``
    One sentence for users; a field without it is for Python only.
``section``
    The sections of the analysis that the option affects.
``metavar``
    The notation of the value, if it has one of its own.
``choices``
    The allowed values.
``least``
    The smallest allowed number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias, get_args

from embgeo.core.arguments import as_texts, refuse_name, refuse_type
from embgeo.core.errors import BadOption, argument
from embgeo.core.fields import declare

#: Rows whose neighbors are searched.
Queries: TypeAlias = Literal["sample", "all"]
#: Precision of sums of products.
Precision: TypeAlias = Literal["float64", "float32"]
#: A token, and the tokens whose rank among its neighbors is reported.
ListedToken: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how.

    Attributes
    ----------
    seed : int
    min_norm : float or None
        Rows of a smaller norm are damaged; by default the gap between norms decides.
    pairs : int or None
        Pairs sampled for the cosine distribution; None (or "all") for every pair, 0 for none.
    popular_share : float
        Share of popular tokens, by falling frequency ([FRAGE] §3: 20 %).
    isotropy_rows, isotropy_runs
        Rows in a sample and number of samples of Wang's protocol, which needs `isotropy_rows`.
    random : bool
        Whether to measure Z over random directions.
    row_errors : bool
        Whether to estimate errors over tokens of the spectrum and of Z from single rows.
    neighbors : int
        k of every neighbor search.
    neighbors_of : {"sample", "all"}
        Rows whose neighbors are searched for hubs, rarity and the intrinsic dimension.
    precision : {"float64", "float32"}
        Precision of sums of products; float32 also for entries stored in float64.
    show_neighbors : tuple of (token, tuple of tokens)
        Tokens whose neighbors are listed, each with tokens whose rank is reported. A text such as
        ``"token"`` or ``"token=a,b"`` stands for one of them.

    Raises
    ------
    BadOption
        If a value is invalid.
    """

    seed: int = declare(0, "Seed of all random samples.", least=0)
    min_norm: float | None = declare(
        None,
        "Leave out rows of a norm below this; by default those below the largest gap between "
        "norms, if that is a factor of 10 and more.",
    )
    pairs: int | None = declare(
        100_000,
        "Pairs sampled for the cosine distribution; 0: none.",
        ("cosine",),
        metavar="N|all",
        least=0,
    )
    popular_share: float = declare(
        0.2, "Share of the tokens that is called popular.", ("frequency",)
    )
    isotropy_rows: int | None = declare(
        None, "Also compute I1/I2 on random samples of this many rows.", ("isotropy",), least=1
    )
    isotropy_runs: int = declare(10, "Number of these samples.", ("isotropy",), least=1)
    random: bool = True
    row_errors: bool = True
    neighbors: int = field(default=10, metadata={"least": 1})
    neighbors_of: Queries = declare(
        "sample",
        "Rows to search neighbors for: hubs, rarity and intrinsic dimension use them. All take "
        "as long as --pairs all.",
        ("tokens", "frequency"),
        choices=get_args(Queries),
    )
    precision: Precision = declare(
        "float64",
        "Precision of sums of products; float32 is faster (docs/scale.md).",
        choices=get_args(Precision),
    )
    show_neighbors: tuple[ListedToken, ...] = declare(
        (),
        "List the neighbors of TOKEN, and the ranks of A and B among them; repeatable.",
        ("frequency",),
        metavar="TOKEN[=A,B]",
    )

    def __post_init__(self) -> None:
        """Parse values given as text, and refuse invalid ones."""
        object.__setattr__(self, "pairs", _parse_pairs(self.pairs))
        listed: Any = self.show_neighbors
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            listed = (listed,)
        object.__setattr__(self, "show_neighbors", tuple(map(_parse_token, listed)))
        for one in fields(self):
            value = getattr(self, one.name)
            least, choices = one.metadata.get("least"), one.metadata.get("choices")
            if least is not None and value is not None:
                if not isinstance(value, Integral):
                    raise BadOption(f"{value!r} is not a whole number", where=argument(one.name))
                if value < least:
                    raise BadOption(f"{value} is less than {least}", where=argument(one.name))
                object.__setattr__(self, one.name, int(value))
            if choices is not None and value not in choices:
                raise refuse_name("choice", value, choices, argument(one.name))
        limit: Any = self.min_norm
        if limit is not None and not (isinstance(limit, Real) and 0.0 <= float(limit) < math.inf):
            raise BadOption(f"{limit} is not a norm", where=argument("min_norm"))
        share: Any = self.popular_share
        if not isinstance(share, Real) or not 0.0 < float(share) < 1.0:
            cause = f"{share} is not a share between 0 and 1"
            raise BadOption(cause, where=argument("popular_share"))

    @classmethod
    def of(cls, given: Mapping[str, Any], sections: Collection[str] | None = None) -> Self:
        """Options by the names that a user gave; BadOption for those without effect.

        `sections` are the measured sections, by default all of them.
        """
        made = cls(**given)
        if "isotropy_runs" in given and made.isotropy_rows is None:
            raise BadOption(
                "says how often, but not how many rows are sampled",
                where=argument("isotropy_runs"),
                way_out=f"give {argument('isotropy_rows')} too",
            )
        for one in fields(cls):
            about = one.metadata.get("section", ())
            if one.name in given and about and sections is not None and not {*about} & {*sections}:
                raise BadOption(
                    f"is about the section {about[0]}, which {argument('sections')} leaves out",
                    where=argument(one.name),
                    way_out=f"add {about[0]} to {argument('sections')}",
                )
        return made

    def for_tokens(self, tokens: Collection[str] | None) -> Self:
        """The same options for a vocabulary, which may have tokens that contain a ``=``."""
        if tokens is None or not self.show_neighbors:
            return self
        known = set(tokens)
        listed = tuple(
            (whole, ()) if (whole := f"{token}={','.join(others)}") in known else (token, others)
            for token, others in self.show_neighbors
        )
        return replace(self, show_neighbors=listed)


def _parse_pairs(pairs: Any) -> int | None:
    """A number of pairs from a number or text; None for all."""
    if pairs is None or pairs == "all":
        return None
    # Python refuses to convert thousands of digits.
    if isinstance(pairs, str) and not (pairs.isascii() and pairs.isdigit() and len(pairs) < 20):
        raise BadOption(
            f"{pairs!r:.60} is not a number of pairs",
            where=argument("pairs"),
            way_out="give N, 0 for none, or all",
        )
    return int(pairs) if isinstance(pairs, str) else pairs


def _parse_token(one: Any) -> ListedToken:
    """Split ``"token"`` or ``"token=a,b"``."""
    match one:
        case str():
            token, equals, others = one.partition("=")
            return (token, tuple(others.split(","))) if equals and others else (one, ())
        case (str(token), [*others]) if all(isinstance(other, str) for other in others):
            return token, tuple(others)
    raise refuse_type(one, "show_neighbors", 'a text such as "token=a,b", or (token, tokens)')


def choose_sections(sections: str | Collection[str] | None) -> tuple[str, ...] | None:
    """Names of sections from a text with commas, or from several texts.

    >>> choose_sections("cosine, tokens"), choose_sections(["cosine"]), choose_sections(None)
    (('cosine', 'tokens'), ('cosine',), None)
    """
    if isinstance(sections, str):
        return tuple(name.strip() for name in sections.split(","))
    return None if sections is None else as_texts(sections, "sections")
