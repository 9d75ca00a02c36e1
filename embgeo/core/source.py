"""The options of loading, each declared once.

``embgeo.load``, the options of commands and the keys of the settings file are derived from the
fields of :class:`Source`. The metadata of a field:

``help``
    One sentence for users.
``details``
    Further text for the documentation of Python.
``section``
    ``file``, ``tensor``, ``rows``, ``labels``, ``frequencies``, ``hidden`` or ``provenance``.
``metavar``
    The notation of the value, if it has one of its own.
``choices``
    The allowed values.
``in_python_only``
    Whether the option is for Python only.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypeVar, get_args

from embgeo.core.arguments import as_path, parse_size, refuse_type
from embgeo.core.errors import BadOption, argument
from embgeo.core.fields import declare

#: ``"A:B"`` or (A, B), counted from 0, B excluded; None for all rows.
RowRange: TypeAlias = str | tuple[int | None, int | None] | None
#: Treatment of rows beyond the vocabulary.
Padding: TypeAlias = Literal["auto", "mask", "keep"]
PADDINGS: tuple[str, ...] = get_args(Padding)

#: Instead of a file of tokens: rows have no labels.
NO_TOKENS = "none"
#: Alternative options for token frequencies.
FREQUENCIES = ("counts", "corpus", "rank_order")

Loader = TypeVar("Loader", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Source:
    """A matrix in a file, with labels and counts for its rows: the options of :func:`embgeo.load`.

    The path is as the user wrote it; it is empty in options that apply to several files.
    """

    path: Path | str = declare(
        "", "Checkpoint, model folder or vector file; hf://org/name; - for stdin.", "file"
    )
    tensor: str | None = declare(
        None,
        "Name of the embedding tensor; see: embgeo inspect.",
        "tensor",
        details="By default it is chosen by name and shape.",
    )
    output: str | None = declare(
        None, "Name of the output projection of an untied model; none leaves it out.", "tensor"
    )
    rows: RowRange = declare(
        None,
        "Analyze rows A to B−1.",
        "rows",
        metavar="A:B",
        details='``"A:B"`` or (A, B), counted from 0. Rows are cut before they are labeled.',
    )
    transpose: bool = declare(False, "Tokens are columns in the file.", "rows")
    tokens: Path | None = declare(
        None,
        "Token labels, one a row (txt, tsv, json), or a tokenizer's file; none: no labels.",
        "labels",
        details="One label for each row of the range, or of the whole matrix. Counts in the file "
        "are used unless other frequencies are given.",
    )
    counts: Path | None = declare(
        None,
        "Token counts (tsv, or json {token: count}).",
        "frequencies",
        details="Matched by token. If the rows have no labels and the file has an entry for each "
        "row, its tokens label the rows in order.",
    )
    corpus: Path | None = declare(
        None,
        "Text, or a folder of texts, whose tokens are counted.",
        "frequencies",
        details="Text is cut by the model's tokenizer if there is one and its package is "
        "installed (``embgeo[hf]``), else at white space. :attr:`Frequency.source` says which.",
    )
    rank_order: bool = declare(
        False, "Rows are sorted by frequency, most frequent first.", "frequencies"
    )
    padding: Padding = declare(
        "auto",
        "Rows beyond the vocabulary: mask them, keep them, or mask them only when the "
        "model itself brings the vocabulary.",
        "labels",
        choices=PADDINGS,
        details='"auto" refuses a `tokens` file of another length; "mask" masks the rows '
        "that a shorter one does not label.",
    )
    check_reachable: bool = declare(
        False,
        "Find unreachable tokens: decode each with the model's tokenizer.json and encode it again.",
        "labels",
        details="Needs the package tokenizers, and takes seconds for large vocabularies.",
    )
    hidden: Path | None = declare(
        None,
        "Hidden states of the model, one a row, in any format.",
        "hidden",
        details="An array with more axes, such as (batch, time, d), is flattened to rows.",
    )
    hidden_tensor: str | None = declare(
        None,
        "Name of the tensor that holds them.",
        "hidden",
        details="Required if the file of hidden states holds several.",
    )
    max_download: str | None = declare(
        None,
        "Most bytes to fetch of a remote model, such as 2GB or 640MiB.",
        "file",
        metavar="SIZE",
    )
    hash_file: bool = declare(
        True,
        "Whether the SHA-256 of the files goes into the provenance.",
        "provenance",
        in_python_only=True,
    )

    def __post_init__(self) -> None:
        as_path(self.path, "path")
        for name in FILES:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_path(value, name))
        for name in TEXTS:
            if not isinstance(value := getattr(self, name), str | None):
                raise refuse_type(value, name, "a text")
        if not isinstance(self.rows, str | Sequence | None):
            raise refuse_type(self.rows, "rows", 'a text such as "0:5000", or (0, 5000)')

    def check(self) -> None:
        """Raise BadOption for options that contradict each other."""
        if self.padding not in PADDINGS:
            raise BadOption(
                f"{argument('padding')} {self.padding!r} is not known",
                way_out="use auto, mask or keep",
            )
        given = [argument(name) for name in FREQUENCIES if getattr(self, name)]
        if len(given) > 1:
            raise BadOption(f"{' and '.join(given)} exclude each other", way_out="give one of them")
        _ = self.most_bytes
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
        """The options that differ from their defaults, without the path."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "path"}
        return {name: values[name] for name in values if values[name] != _DEFAULTS[name]}

    def over(self, other: Source) -> Self:
        """These options, with those of `other` in place of defaults.

        Token frequencies come from one of the two sources only.
        """
        mine, rest = self.collect_changes(), other.collect_changes()
        if any(name in mine for name in FREQUENCIES):
            rest = {name: value for name, value in rest.items() if name not in FREQUENCIES}
        return replace(self, path=self.path or other.path, **(rest | mine))

    def relative_to(self, folder: Path) -> Self:
        """The same source with paths of files relative to `folder`, as in settings."""
        named = {name: getattr(self, name) for name in FILES}
        return replace(self, **{name: folder / path for name, path in named.items() if path})

    def without_labels(self) -> Self:
        """The source without labels, frequencies and hidden states."""
        along = ("labels", "frequencies", "hidden")
        names = [f.name for f in fields(self) if f.metadata["section"] in along]
        defaults: dict[str, Any] = {name: _DEFAULTS[name] for name in names if name != "padding"}
        return replace(self, **defaults)


_DEFAULTS = {f.name: f.default for f in fields(Source)}
#: Options that name a file or folder next to the checkpoint.
FILES = tuple(f.name for f in fields(Source) if f.type == "Path | None")
#: Options whose values are texts.
TEXTS = tuple(f.name for f in fields(Source) if f.type == "str | None")


def with_source_options(load: Loader) -> Loader:
    """Give a function of ``**options`` the fields of :class:`Source` as its parameters.

    Signature and docstring list them, and other names are refused.
    """
    options = [one for one in fields(Source) if one.name != "path"]
    plain = inspect.signature(load)
    own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
    # Paths of files may be plain text, which Source converts.
    hints = {one.name: str(one.type).replace("Path |", "Path | str |") for one in options}
    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [
        inspect.Parameter(one.name, keyword, default=one.default, annotation=hints[one.name])
        for one in options
    ]
    signature = plain.replace(parameters=[*own, *named])

    @wraps(load)
    def checked(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        return load(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    described = "\n".join(
        f"    {one.name} : {hints[one.name]}\n"
        + textwrap.indent(
            textwrap.fill(f"{one.metadata['help']} {one.metadata.get('details', '')}", 92), " " * 8
        )
        for one in options
    )
    checked.__doc__ = (load.__doc__ or "").replace("    **options", described)
    return checked  # type: ignore[return-value]
