"""What a gate is about: saved analyses as they are, checkpoints measured as far as rules ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from embgeo.cli.corpus_bar import corpus_bar
from embgeo.cli.measuring import Wanted
from embgeo.cli.shared import command_line, progress_bar
from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.options import Options
    from embgeo.gate.check import Measured
    from embgeo.gate.rule import Rule
    from embgeo.result.analysis import Analysis

#: Options that each say where the tokens' frequencies come from: one takes the others' place.
FREQUENCIES = ("counts", "corpus", "rank_order")


@dataclass(frozen=True, slots=True)
class Measuring:
    """Options of ``embgeo analyze`` for the checkpoints of a gate; None where nothing is said."""

    tensor: str | None = None
    output: str | None = None
    rows: str | None = None
    transpose: bool | None = None
    tokens: Path | None = None
    counts: Path | None = None
    corpus: Path | None = None
    rank_order: bool | None = None
    padding: str | None = None
    hidden: Path | None = None
    hidden_tensor: str | None = None
    popular_share: float | None = None
    pairs: str | None = None
    isotropy_rows: int | None = None
    isotropy_runs: int | None = None
    seed: int | None = None

    @classmethod
    def read(cls, table: Mapping[str, Any], path: Path) -> Self:
        """From the table ``analyze`` of a settings file; paths are relative to its folder.

        Raises
        ------
        BadOption
            A key that is no option, or a value of the wrong type.
        """
        types = get_type_hints(cls)
        found: dict[str, Any] = {}
        for key, value in table.items():
            if key not in types:
                known = ", ".join(types)
                raise BadOption(
                    f"analyze has no setting {key!r}", where=path, way_out=f"it has {known}"
                )
            if key == "pairs" and isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            kind = next(k for k in (bool, int, float, Path, str) if types[key] == k | None)
            given = {Path: str, float: (int, float)}.get(kind, kind)
            if not isinstance(value, given) or (isinstance(value, bool) and kind is not bool):  # type: ignore[arg-type]
                raise BadOption(f"{key} of analyze is {value!r}, which does not fit", where=path)
            found[key] = path.parent / value if kind is Path else value
        return cls(**found)

    @property
    def given(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, False)}

    def over(self, other: Self) -> Self:
        """These, and where they say nothing those of `other`."""
        rest = other.given
        if any(name in self.given for name in FREQUENCIES):
            rest = {name: value for name, value in rest.items() if name not in FREQUENCIES}
        return replace(self, **(rest | self.given))

    def load(self, path: Path, tensor: str, quiet: bool) -> Matrix:
        import embgeo

        with corpus_bar(quiet) as heard:
            return embgeo.load(
                path,
                tensor=tensor or self.tensor,
                output=self.output,
                rows=self.rows,
                transpose=bool(self.transpose),
                tokens=self.tokens,
                counts=self.counts,
                corpus=self.corpus,
                rank_order=bool(self.rank_order),
                padding=self.padding or "auto",
                hidden=self.hidden,
                hidden_tensor=self.hidden_tensor,
                progress=heard,
            )

    def options(self, matrix: Matrix, rules: Sequence[Rule]) -> Options:
        from embgeo.metrics.names import lean

        wanted = Wanted(
            sections=None,
            seed=self.seed or 0,
            pairs=self.pairs,
            popular_share=self.popular_share,
            isotropy_rows=self.isotropy_rows,
            isotropy_runs=self.isotropy_runs,
            sphere=None,
            neighbors=(),
        )
        wanted.check()
        return lean(wanted.options(matrix), {rule.name for rule in rules})


def is_saved(path: Path) -> bool:
    """Whether a path is an analysis that was saved, and not something to be analyzed."""
    from embgeo.result.analysis import FORMAT, JSON_NAME

    try:
        if path.is_dir():
            return (path / JSON_NAME).is_file()
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:  # stdin, a member of an archive, a missing file
        return False
    return start.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in start


def measured(
    paths: Sequence[Path],
    saved: Mapping[Path, Analysis],
    rules: Sequence[Rule],
    measuring: Measuring,
    quiet: bool,
) -> list[Measured]:
    """The numbers that the rules need, of every path; those in `saved` are read already."""
    from embgeo.gate.check import Measured

    found = []
    for path in paths:
        if path in saved:
            found.append(Measured.of(saved[path]))
        else:
            found += from_checkpoint(path, rules, measuring, quiet, alone=len(paths) == 1)
    return found


def from_checkpoint(
    path: Path, rules: Sequence[Rule], measuring: Measuring, quiet: bool, *, alone: bool
) -> list[Measured]:
    """Each tensor that rules are about, with the sections that they name and no others."""
    import embgeo
    from embgeo.gate.check import Measured

    asked = dict.fromkeys(rule.tensor for rule in rules)
    if not alone:  # among several files, each tensor need only be in one
        asked = dict.fromkeys(name for name in asked if not name or holds(path, name))
    matrices: dict[str, Matrix] = {}
    names: dict[str, list[str]] = {}
    for name in asked:
        matrix = measuring.load(path, name, quiet)
        key = matrix.origin.tensor
        matrices.setdefault(key, matrix)
        names.setdefault(key, []).append(name)
    found = []
    for key, matrix in matrices.items():
        about = [rule for rule in rules if rule.tensor in names[key]]
        with progress_bar(quiet) as progress:
            analysis = embgeo.analyze(
                matrix,
                sections=tuple(dict.fromkeys(rule.family for rule in about)),
                options=measuring.options(matrix, about),
                reference=False,
                command=command_line(),
                progress=progress,
            )
        found.append(Measured.of(analysis, is_default="" in names[key]))
    return found


def holds(path: Path, tensor: str) -> bool:
    from embgeo.io import open_checkpoint

    return any(
        t.name == tensor or t.name.endswith(f".{tensor}") for t in open_checkpoint(path).tensors
    )
