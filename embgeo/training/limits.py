"""The types of settings, with limits from above on what costs time or memory.

Settings may come with a stranger's files. The limits are far above what is published.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of something: of each its name, type, limits, default and meaning.

    `CLASS` names what takes them: a class of `embgeo.training`, or that of a plug-in itself.
    """

    CLASS: ClassVar[Any] = None


def choose(given: Mapping[str, Any], kind: type[Settings]) -> dict[str, Any]:
    """Choose the values that are settings of a structure."""
    return {name: value for name, value in given.items() if name in kind.__struct_fields__}


Natural = Annotated[int, Meta(ge=0, le=10**9)]
Whole = Annotated[int, Meta(ge=1, le=10**9)]
#: Rows of a matrix, tokens of a batch or of a context.
Rows = Annotated[int, Meta(ge=1, le=2**24)]
#: Tokens that attention sees besides those of a window.
Memory = Annotated[int, Meta(ge=0, le=2**24)]
#: Columns of a matrix, units of a layer.
Width = Annotated[int, Meta(ge=1, le=2**16)]
#: Layers, heads, experts, hypotheses.
Few = Annotated[int, Meta(ge=1, le=1024)]
Nonnegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Unit = Annotated[float, Meta(ge=0, le=1)]
#: Above 0 and up to 1, or below 1.
Ratio = Annotated[float, Meta(gt=0, le=1)]
Proper = Annotated[float, Meta(gt=0, lt=1)]
Pair = tuple[Nonnegative, Nonnegative]
Seed = Annotated[int, Meta(ge=0, lt=2**31)]
#: The number of seeds, and of methods or values to try.
MOST = 1000
#: The number of runs of a study, and of its trials.
MOST_RUNS = 10_000
Seeds = Annotated[int, Meta(ge=1, le=MOST)]
Texts = Annotated[tuple[str, ...], Meta(max_length=MOST)]
#: Share of the tokens, most frequent first, that count as frequent.
POPULAR = 0.2
