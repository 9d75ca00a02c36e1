"""The options of measuring."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import CO_VARKEYWORDS
from typing import Annotated, Any, Literal, ParamSpec, Self, TypeAlias, TypeVar

from msgspec import Meta

from embgeo.core.arguments import as_texts, find_nearest, refuse_type
from embgeo.core.errors import BadOption, argument
from embgeo.core.settings import Natural, Positive, parse_fields, type_hints
from embgeo.core.source import FREQUENCIES, Source

P = ParamSpec("P")
T = TypeVar("T")

#: Rows whose neighbors are searched.
Queries: TypeAlias = Literal["sample", "page", "all"]
#: A further plane of the map.
Plane: TypeAlias = Literal["none", "tsne"]
#: Precision of sums of products.
Precision: TypeAlias = Literal["float64", "float32"]
#: A token, and the tokens whose rank among its neighbors is reported.
ListedToken: TypeAlias = tuple[str, tuple[str, ...]]

#: The sections that an option is about; others are about all.
_SECTIONS = {
    "pairs": ("cosine",),
    "popular_share": ("frequency",),
    "isotropy_rows": ("isotropy",),
    "isotropy_runs": ("isotropy",),
    "neighbors_of": ("tokens", "frequency"),
    "plane": ("projection",),
    "show_neighbors": ("frequency",),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how.

    Attributes
    ----------
    seed : int
        Seed of all random samples, from 0.
    min_norm : float or None
        Rows of a smaller norm are damaged; by default the gap between norms decides.
    pairs : int or None
        Pairs of rows sampled for the cosine distribution; None (or "all") for every pair, 0 for
        none.
    popular_share : float
        Share of frequent tokens, by falling frequency ([FRAGE] §3: 20%).
    isotropy_rows, isotropy_runs
        Rows in a sample and number of samples of Wang's protocol, which needs `isotropy_rows`.
    row_errors : bool
        Whether to estimate errors over tokens of the spectrum from single rows.
    neighbors : int
        k of every neighbor search.
    neighbors_of : {"sample", "page", "all"}
        Rows whose neighbors are searched for hubs, rarity and the intrinsic dimension: a sample, or
        all. "page": a sample for these, and all for the report, from their leading coordinates
        where rows are many.
    plane : {"none", "tsne"}
        A further plane of the map: t-SNE of up to 5,000 rows, by scikit-learn.
    precision : {"float64", "float32"}
        Precision of sums of products; float32 also for entries stored in float64.
    show_neighbors : tuple of (token, tuple of tokens)
        Tokens whose neighbors are listed, each with tokens whose rank is reported. A text such as
        ``"token"`` or ``"token=a,b"`` stands for one of them.

    Raises
    ------
    BadOption
        If a value is invalid.

    Examples
    --------
    >>> Options(seed=1, show_neighbors="king=queen,man").show_neighbors
    (('king', ('queen', 'man')),)
    """

    seed: Natural = 0
    min_norm: Annotated[float, Meta(ge=0)] | None = None
    # Upper bounds of what costs time, as settings may come with a stranger's checkout.
    pairs: Annotated[int, Meta(ge=0, le=10**9)] | None = 100_000
    popular_share: Annotated[float, Meta(gt=0, lt=1)] = 0.2
    isotropy_rows: Positive | None = None
    isotropy_runs: Annotated[int, Meta(ge=1, le=1000)] = 10
    row_errors: bool = True
    neighbors: Annotated[int, Meta(ge=1, le=1000)] = 10
    neighbors_of: Queries = "sample"
    plane: Plane = "none"
    precision: Precision = "float64"
    show_neighbors: tuple[ListedToken, ...] = ()

    def __post_init__(self) -> None:
        """Parse values given as text, and refuse invalid ones."""
        object.__setattr__(self, "pairs", _parse_pairs(self.pairs))
        listed: Any = self.show_neighbors
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            listed = (listed,)
        object.__setattr__(self, "show_neighbors", tuple(map(_parse_token, listed)))
        parse_fields(self)

    @classmethod
    def of(cls, given: Mapping[str, Any], sections: Collection[str] | None = None) -> Self:
        """Return the options by the names that a user gave; BadOption for those without effect.

        `sections` are the measured sections, by default all of them.
        """
        made = cls(**given)
        if "isotropy_runs" in given and made.isotropy_rows is None:
            raise BadOption(
                "says how often, but not how many rows are sampled",
                where=argument("isotropy_runs"),
                way_out=f"give {argument('isotropy_rows')} too",
            )
        for name, about in _SECTIONS.items():
            if name in given and sections is not None and not {*about} & {*sections}:
                raise BadOption(
                    f"is about the section {about[0]}, which {argument('sections')} leaves out",
                    where=argument(name),
                    way_out=f"add {about[0]} to {argument('sections')}",
                )
        return made

    def for_tokens(self, tokens: Collection[str] | None) -> Self:
        """Return the same options for a vocabulary, which may have tokens that contain a ``=``."""
        if tokens is None or not self.show_neighbors:
            return self
        known = set(tokens)
        listed = tuple(
            (whole, ()) if (whole := f"{token}={','.join(others)}") in known else (token, others)
            for token, others in self.show_neighbors
        )
        return replace(self, show_neighbors=listed)


def _parse_pairs(pairs: Any) -> int | None:
    """Parse a number of pairs from a number or text; None for all."""
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


def _list_types(kind: type, without: Collection[str]) -> dict[str, Any]:
    return {name: hint for name, hint in type_hints(kind).items() if name not in without}


#: Options of loading and their types, as commands and settings files give them.
LOADING = _list_types(Source, ("path", "hash_file", "stacked"))
#: Options of measuring, in the same way; the others are for Python only.
MEASURING = _list_types(Options, ("row_errors", "neighbors", "show_neighbors"))
MEASURING["pairs"] = int | str
RESOURCES: dict[str, Any] = {"memory": str, "threads": Positive, "device": str}
#: Further options of ``embgeo analyze``.
OF_ANALYZE: dict[str, Any] = {
    "show_neighbors": tuple[str, ...],
    "sections": str | tuple[str, ...],
    "reference": bool,
    **RESOURCES,
}


def choose_sections(sections: str | Collection[str] | None) -> tuple[str, ...] | None:
    """Choose names of sections from a text with commas, or from several texts.

    >>> choose_sections("cosine, tokens"), choose_sections(["cosine"]), choose_sections(None)
    (('cosine', 'tokens'), ('cosine',), None)
    """
    if isinstance(sections, str):
        return tuple(name.strip() for name in sections.split(","))
    return None if sections is None else as_texts(sections, "sections")


def merge_options(rest: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a settings file, with typed ones in their place.

    Token frequencies come from one of the two only.
    """
    if any(name in given for name in FREQUENCIES):
        rest = {name: value for name, value in rest.items() if name not in FREQUENCIES}
    return {**rest, **given}


def known_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function for Python callers: an unknown keyword is answered with the nearest."""
    code = function.__code__
    known = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    if code.co_flags & CO_VARKEYWORDS:
        known |= {one.name for of in (Source, Options) for one in fields(of)} - {"path"}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                near = find_nearest(name, known)
                way_out = f"did you mean {argument(near)}?" if near else "see the documentation"
                where = argument(name)
                raise BadOption("no argument has this name", where=where, way_out=way_out)
        return function(*args, **kwargs)

    return call
