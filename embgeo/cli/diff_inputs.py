"""What is compared: saved analyses as they are, checkpoints analyzed with the same options."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.cli.analyze import default_name
from embgeo.cli.corpus_bar import corpus_bar
from embgeo.cli.measuring import Wanted
from embgeo.cli.shared import command_line
from embgeo.core.errors import BadOption, UnreadableFile

if TYPE_CHECKING:
    from embgeo.comparison.pairs import Input
    from embgeo.comparison.steps import Steps
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress
    from embgeo.result.analysis import Analysis
    from embgeo.stats.resources import Resources


@dataclass(frozen=True, slots=True)
class Loading:
    """How checkpoints are read; defaults are what is meant where nothing is said."""

    tensor: str | None = None
    output: str | None = None
    rows: str | None = None
    transpose: bool = False
    tokens: Path | None = None
    counts: Path | None = None
    corpus: Path | None = None
    rank_order: bool = False
    padding: str = "auto"
    reference: bool = True

    def check(self, paths: Sequence[Path], wanted: Wanted) -> None:
        """Refuse what cannot be compared, and options that would do nothing.

        Raises
        ------
        BadOption, UnreadableFile
        """
        from embgeo.comparison.files import COMPARISON_NAME
        from embgeo.comparison.originals import saved_folder
        from embgeo.training.study.files import TRAINING_NAME

        wanted.check()
        if len(paths) < 2:
            raise BadOption(
                "there is nothing to compare it with", where=paths[0], way_out="name another one"
            )
        if sum(str(path) == "-" for path in paths) > 1:
            raise BadOption("stdin can be read once", where="-", way_out="save one to a file")
        for path in paths:
            if (path / COMPARISON_NAME).is_file():
                raise UnreadableFile(
                    "a comparison, which holds several analyses",
                    where=path,
                    way_out=f"name one of them, as in {path / '0-…'}",
                )
            if (path / TRAINING_NAME).is_file():
                raise UnreadableFile(
                    "runs of several methods",
                    where=path,
                    way_out=f"name two of them, as in {path / 'mle' / 'seed-0'}",
                )
        if wanted.sections is not None:
            check_sections(wanted.sections)
        idle = self.given() + given_of(wanted)
        if idle and all(saved_folder(path) is not None for path in paths):
            raise BadOption(
                "would do nothing: all that is compared are saved analyses",
                where=idle[0],
                way_out="analyze the checkpoints with it, and compare those",
            )

    def given(self) -> list[str]:
        """Names of the options that were used."""
        plain = Loading()
        used = [f.name for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)]
        return ["--no-reference" if name == "reference" else option(name) for name in used]

    def load(self, path: Path, quiet: bool) -> Matrix:
        import embgeo

        with corpus_bar(quiet) as heard:
            return embgeo.load(
                path,
                tensor=self.tensor,
                output=self.output,
                rows=self.rows,
                transpose=self.transpose,
                tokens=self.tokens,
                counts=self.counts,
                corpus=self.corpus,
                rank_order=self.rank_order,
                padding=self.padding,
                progress=heard,
            )


@dataclass(frozen=True, slots=True)
class How:
    """All that is said about reading and measuring checkpoints."""

    loading: Loading
    wanted: Wanted
    resources: Resources
    quiet: bool


def check_sections(sections: Sequence[str]) -> None:
    """Refuse names of no section, before it cuts saved analyses down to nothing."""
    from embgeo.metrics import SECTIONS

    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise BadOption(
            f"no section is called {', '.join(map(repr, unknown))}",
            where="--sections",
            way_out=f"choose among {', '.join(SECTIONS)}",
        )


def given_of(wanted: Wanted) -> list[str]:
    names = ("pairs", "popular_share", "isotropy_rows", "isotropy_runs", "sphere")
    given = [option(name) for name in names if getattr(wanted, name) is not None]
    return [*given, *(["--precision"] if wanted.precision != "float64" else [])]


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def in_order(paths: Sequence[Path]) -> tuple[list[Path], Steps]:
    """The checkpoints of a run by rising step, and their steps."""
    from embgeo.comparison.steps import Steps, steps_of
    from embgeo.io.training_step import training_step

    found = steps_of(paths, training_step)
    order = found.order
    return [paths[i] for i in order], Steps(tuple(found.values[i] for i in order), found.source)


def read_inputs(
    paths: Sequence[Path],
    steps: Steps | None,
    how: How,
    progress: Progress | None,
) -> tuple[list[Input], dict[str, float]]:
    """Every input with its analysis, and the seconds that each took."""
    from embgeo.comparison.names import told_apart
    from embgeo.comparison.originals import saved_folder

    plain = [name_of(path, saved_folder(path)) for path in paths]
    names = told_apart(plain, paths)
    # Everything is opened before anything is measured: a mistake is told at once.
    opened = [opened_input(path, how) for path in paths]
    inputs, timing = [], {}
    for place, (path, name) in enumerate(zip(paths, names, strict=True)):
        began = time.perf_counter()
        found = opened[place]
        if found.analysis is None:
            found = analyzed(found, how, progress)
        inputs.append(
            as_input(found, name, str(path), None if steps is None else steps.values[place])
        )
        timing[f"analysis of {name}"] = round(time.perf_counter() - began, 4)
    return inputs, timing


def name_of(path: Path, saved: Path | None) -> str:
    if saved is None:
        return default_name(path)
    return saved.resolve().name.removesuffix(".embgeo") or "analysis"


@dataclass(frozen=True, slots=True)
class Opened:
    """A matrix, an analysis, or both."""

    matrix: Matrix | None
    analysis: Analysis | None = None
    from_saved: bool = False
    matrix_absent: str = ""


def opened_input(path: Path, how: How) -> Opened:
    import embgeo
    from embgeo.comparison.originals import original, saved_folder

    saved = saved_folder(path)
    if saved is None:
        matrix = how.loading.load(path, how.quiet)
        how.wanted.options(matrix)  # refuses what does not fit this matrix
        return Opened(matrix)
    analysis = embgeo.load_analysis(saved)
    found, absent = original(analysis, saved)
    return Opened(found, cut_to(analysis, how.wanted.sections), True, absent)


def analyzed(opened: Opened, how: How, progress: Progress | None) -> Opened:
    import embgeo

    if opened.matrix is None:
        raise ValueError("nothing to analyze")
    analysis = embgeo.analyze(
        opened.matrix,
        sections=how.wanted.sections,
        options=how.wanted.options(opened.matrix),
        reference=how.loading.reference,
        command=command_line(),
        progress=progress,
        resources=how.resources,
    )
    return replace(opened, analysis=analysis)


def as_input(opened: Opened, name: str, given: str, step: float | None) -> Input:
    from embgeo.comparison.comparison import Member
    from embgeo.comparison.pairs import Input

    if opened.analysis is None:
        raise ValueError("nothing was analyzed")
    member = Member(name, given, opened.analysis, opened.from_saved, opened.matrix_absent, step)
    return Input(member, opened.matrix)


def cut_to(analysis: Analysis, sections: tuple[str, ...] | None) -> Analysis:
    """Without the sections that were not asked for."""
    if sections is None:
        return analysis

    def kept(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value for value in values if value.quantity.family in sections)

    return replace(
        analysis,
        scalars=kept(analysis.scalars),
        series=kept(analysis.series),
        histograms=kept(analysis.histograms),
        points=kept(analysis.points),
        columns=kept(analysis.columns),
        tables=kept(analysis.tables),
        absent={name: why for name, why in analysis.absent.items() if name in sections},
    )
