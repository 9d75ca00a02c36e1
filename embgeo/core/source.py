"""The options of loading."""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from embgeo.core.arguments import as_path, parse_size
from embgeo.core.errors import BadOption, argument
from embgeo.core.settings import parse_fields

#: ``"A:B"`` or (A, B), counted from 0, B excluded; None for all rows.
RowRange: TypeAlias = str | tuple[int | None, int | None] | None
#: Treatment of rows beyond the vocabulary.
Padding: TypeAlias = Literal["auto", "mask", "keep"]

#: Instead of a file of tokens: rows have no labels.
NO_TOKENS = "none"
#: Alternative options for token frequencies.
FREQUENCIES = ("counts", "corpus", "rank_order")
#: Options that name a file or folder next to the checkpoint.
FILES = ("tokens", "counts", "corpus", "hidden")
#: Options about labels, frequencies and hidden states, except `padding`.
ABOUT_LABELS = ("tokens", *FREQUENCIES, "check_reachable", "hidden", "hidden_tensor")


_RANGE = re.compile(r"\s*(\d{0,18})\s*:\s*(\d{0,18})\s*")


def split_range(rows: RowRange) -> tuple[int | None, int | None]:
    """Return A and B of ``A:B``; None for what is left out."""
    if rows is None:
        return None, None
    text = rows if isinstance(rows, str) else ":".join("" if n is None else str(n) for n in rows)
    found = _RANGE.fullmatch(text)
    if found is None:
        raise BadOption(
            f"{argument('rows')} {text!r} is not a range",
            way_out="write A:B, for instance 0:5000, from row 0",
        )
    return int(found[1]) if found[1] else None, int(found[2]) if found[2] else None


@dataclass(frozen=True, slots=True)
class Source:
    """A matrix in a file, with labels and counts for its rows: the options of :func:`embgeo.load`.

    :func:`embgeo.load` explains each. The path is as the user wrote it; it is empty in options that
    apply to several files.
    """

    path: Path | str = ""
    tensor: str | None = None
    output: str | None = None
    rows: RowRange = None
    transpose: bool = False
    tokens: Path | None = None
    counts: Path | None = None
    corpus: Path | None = None
    rank_order: bool = False
    padding: Padding = "auto"
    check_reachable: bool = False
    hidden: Path | None = None
    hidden_tensor: str | None = None
    max_download: str | None = None
    hash_file: bool = True
    #: Whether the file holds rows of a matrix in several files, which the caller stacks.
    stacked: bool = False

    def __post_init__(self) -> None:
        """Refuse values of a wrong type, and options that contradict each other."""
        as_path(self.path, "path")
        for name in FILES:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_path(value, name))
        parse_fields(self, without=("path", *FILES))
        given = [argument(name) for name in FREQUENCIES if getattr(self, name)]
        if len(given) > 1:
            raise BadOption(f"{' and '.join(given)} exclude each other", way_out="give one of them")
        _ = self.most_bytes
        split_range(self.rows)
        if self.hidden_tensor is not None and self.hidden is None:
            raise BadOption(
                "names a tensor of no file",
                where=argument("hidden_tensor"),
                way_out=f"give {argument('hidden', 'FILE')} too",
            )

    @property
    def most_bytes(self) -> int | None:
        """Most bytes to fetch of a remote model."""
        return None if self.max_download is None else parse_size(self.max_download, "max_download")

    def collect_changes(self) -> dict[str, Any]:
        """Collect the options that differ from their defaults, without the path."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "path"}
        return {name: values[name] for name in values if values[name] != _DEFAULTS[name]}

    def without_labels(self) -> Self:
        """Return the source without labels, frequencies and hidden states."""
        return replace(self, **{name: _DEFAULTS[name] for name in ABOUT_LABELS})


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(Source)}
