"""Where a matrix comes from: the options of loading, each declared once.

``embgeo.load``, the options of the commands, the keys of the settings file and the provenance are
derived from the fields of :class:`Source`. The metadata of a field says:

``help``
    One sentence for a person.
``section``
    What the option is about: ``file``, ``tensor``, ``rows``, ``labels``, ``frequencies``,
    ``hidden`` or ``provenance``.
``metavar``
    How the value is written, where its type does not say it.
``choices``
    The values that are allowed.
``in_python_only``
    Whether commands and settings leave the option out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

from embgeo.core.errors import BadOption, argument

#: ``"A:B"`` or (A, B), counted from 0, B excluded; None for all rows.
RowRange: TypeAlias = str | tuple[int | None, int | None] | None
#: What happens to rows beyond the vocabulary.
Padding: TypeAlias = Literal["auto", "mask", "keep"]
PADDINGS: tuple[str, ...] = get_args(Padding)

#: The options that say where token frequencies come from: one takes the place of the others.
FREQUENCIES = ("counts", "corpus", "rank_order")


def _about(text: str, section: str, **more: Any) -> dict[str, Any]:
    return {"help": text, "section": section, **more}


@dataclass(frozen=True, slots=True)
class Source:
    """A matrix in a file, and what belongs to its rows; :func:`embgeo.load` says what each means.

    Attributes
    ----------
    path : Path or str
        As the user wrote it; empty in options that apply to several files.
    tensor, output : str, optional
    rows : str or tuple of two ints, optional
    transpose : bool
    tokens, counts, corpus : Path, optional
    rank_order : bool
    padding : {"auto", "mask", "keep"}
    hidden : Path, optional
    hidden_tensor : str, optional
    hash_file : bool
    """

    path: Path | str = field(
        default="", metadata=_about("Checkpoint, model folder or vector file; - for stdin.", "file")
    )
    tensor: str | None = field(
        default=None,
        metadata=_about("Name of the embedding tensor; see: embgeo inspect.", "tensor"),
    )
    output: str | None = field(
        default=None,
        metadata=_about(
            "Name of the output projection of an untied model; none: without.", "tensor"
        ),
    )
    rows: RowRange = field(
        default=None, metadata=_about("Analyze rows A to B−1.", "rows", metavar="A:B")
    )
    transpose: bool = field(
        default=False, metadata=_about("Tokens are columns in the file.", "rows")
    )
    tokens: Path | None = field(
        default=None,
        metadata=_about(
            "Token labels, one a row (txt, tsv, json), or a tokenizer's file.", "labels"
        ),
    )
    counts: Path | None = field(
        default=None, metadata=_about("Token counts (tsv, or json {token: count}).", "frequencies")
    )
    corpus: Path | None = field(
        default=None,
        metadata=_about("Text, or a folder of texts, whose tokens are counted.", "frequencies"),
    )
    rank_order: bool = field(
        default=False,
        metadata=_about("Rows are sorted by frequency, most frequent first.", "frequencies"),
    )
    padding: Padding = field(
        default="auto",
        metadata=_about(
            "Rows beyond the vocabulary: mask them, keep them, or mask them only when the "
            "model itself brings the vocabulary.",
            "labels",
            choices=PADDINGS,
        ),
    )
    hidden: Path | None = field(
        default=None,
        metadata=_about("Hidden states of the model, one a row, in any format.", "hidden"),
    )
    hidden_tensor: str | None = field(
        default=None, metadata=_about("Name of the tensor that holds them.", "hidden")
    )
    hash_file: bool = field(
        default=True,
        metadata=_about(
            "Whether the SHA-256 of the files goes into the provenance.",
            "provenance",
            in_python_only=True,
        ),
    )

    def __post_init__(self) -> None:
        for name in FILES:
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, Path(value))

    def check(self) -> None:
        """Refuse options that contradict each other.

        Raises
        ------
        BadOption
        """
        if self.padding not in PADDINGS:
            raise BadOption(
                f"{argument('padding')} {self.padding!r} is not known",
                way_out="use auto, mask or keep",
            )
        given = [argument(name) for name in FREQUENCIES if getattr(self, name)]
        if len(given) > 1:
            raise BadOption(f"{' and '.join(given)} exclude each other", way_out="give one of them")
        if self.hidden_tensor is not None and self.hidden is None:
            raise BadOption(
                "names a tensor of no file",
                where=argument("hidden_tensor"),
                way_out=f"give {argument('hidden', 'FILE')} too",
            )

    def collect_changes(self) -> dict[str, Any]:
        """The options that differ from their defaults, without the path."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "path"}
        return {name: values[name] for name in values if values[name] != _DEFAULTS[name]}

    def over(self, other: Source) -> Self:
        """These options; those of `other` where this source has the defaults.

        A source that names token frequencies in one way does not take another way from `other`.
        """
        mine, rest = self.collect_changes(), other.collect_changes()
        if any(name in mine for name in FREQUENCIES):
            rest = {name: value for name, value in rest.items() if name not in FREQUENCIES}
        return replace(self, path=self.path or other.path, **(rest | mine))

    def relative_to(self, folder: Path) -> Self:
        """The same source with the paths of its files read from `folder`, as in settings."""
        named = {name: getattr(self, name) for name in FILES}
        return replace(self, **{name: folder / path for name, path in named.items() if path})


_DEFAULTS = {f.name: f.default for f in fields(Source)}
#: The options that name a file or folder beside the checkpoint.
FILES = tuple(f.name for f in fields(Source) if f.type == "Path | None")
