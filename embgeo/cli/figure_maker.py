"""From subjects to the files of figures and tables, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import embgeo
from embgeo.cli.figure_choice import Wanted
from embgeo.cli.outputs import check_free, record_bytes
from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from embgeo.charts.paper.base import Choices, PaperFigure, Subject
    from embgeo.publish.latex.base import LatexTable

FORMAT = "embgeo.figure"
FORMAT_VERSION = 1
#: What matplotlib's labels of logarithmic axes use and does not define.
MATHDEFAULT = r"\providecommand{\mathdefault}[1]{#1}"


@dataclass(frozen=True, slots=True)
class Made:
    """One figure or table.

    Attributes
    ----------
    name : str
    files : dict of str to bytes
        By file name: what was drawn, its data, its record.
    record : dict
        How it came about; the content of ``NAME.json``.
    size : tuple of two floats or None
        Of a figure, in inches.
    """

    name: str
    files: dict[str, bytes]
    record: dict[str, Any]
    size: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A figure or a table that is to be made.

    Attributes
    ----------
    name : str
    missing : callable
        Why a subject cannot be part of it; empty if it can.
    make : callable
        From subjects that lack nothing, and notes on those that do, to the files.
    least : int
        Subjects that it takes.
    """

    name: str
    missing: Callable[[Subject], str]
    make: Callable[[list[Subject], tuple[str, ...]], Made]
    least: int = 1


@dataclass(frozen=True, slots=True)
class Maker:
    """Everything that was chosen; see the options of ``embgeo figures``."""

    forms: tuple[str, ...]
    width: float
    color: str
    scalars: tuple[str, ...]
    parameter: str
    signs: str
    command: str

    def check(self, out: Path, wanted: Wanted) -> None:
        """Refuse formats that cannot be written and files that are not ours to replace.

        Raises
        ------
        BadOption
        """
        from embgeo.charts.paper.output import check_format

        for form in self.forms if wanted.figures else ():
            check_format(form)
        endings = tuple(f".{form}" for form in self.forms)
        for figure in wanted.figures:
            check_free(out, figure.name, (*endings, ".csv"), FORMAT)
        for table in wanted.tables:
            check_free(out, table.name, (".tex", ".csv"), FORMAT)

    def make_all(
        self, wanted: Wanted, subjects: Sequence[Subject]
    ) -> tuple[list[Made], dict[str, str]]:
        """Whatever is wanted and can be made; why the rest cannot.

        Raises
        ------
        BadOption
            If nothing can be made, or something that was asked for by name cannot.
        """
        from embgeo.charts.paper.base import NO_MATTER

        made: list[Made] = []
        left_out: dict[str, str] = {}
        for job in (*map(self.figure_job, wanted.figures), *map(self.table_job, wanted.tables)):
            reasons = [(subject, job.missing(subject)) for subject in subjects]
            able = [subject for subject, reason in reasons if not reason]
            without = [f"{subject.label}: {reason}" for subject, reason in reasons if reason]
            if len(able) >= job.least:
                notes = [f"left out {text}" for text in without if not text.endswith(NO_MATTER)]
                made.append(job.make(able, tuple(notes)))
            else:
                left_out[job.name] = without[0] if without else f"it takes {job.least} of them"
        if left_out and (wanted.asked or not made):
            name, reason = next(iter(left_out.items()))
            raise BadOption(f"cannot be made; {reason}", where=name)
        return made, left_out

    def figure_job(self, figure: PaperFigure) -> Job:
        from embgeo.charts.paper.base import Choices

        choices = Choices(self.color, self.scalars, self.parameter)
        return Job(
            figure.name,
            lambda subject: figure.missing(subject, choices),
            lambda able, notes: self.draw(figure, able, choices, notes),
            figure.least,
        )

    def table_job(self, table: LatexTable) -> Job:
        from embgeo.charts.paper.base import NO_ANALYSIS

        return Job(
            table.name,
            lambda s: NO_ANALYSIS if s.analysis is None else table.missing(s.analysis),
            lambda able, notes: self.typeset(table, able, notes),
        )

    def draw(
        self,
        figure: PaperFigure,
        subjects: Sequence[Subject],
        choices: Choices,
        notes: tuple[str, ...],
    ) -> Made:
        """A figure in all formats, with its data and its record."""
        from embgeo.charts.paper import style
        from embgeo.charts.paper.output import render
        from embgeo.io.bounded.delimited import csv_lines
        from embgeo.publish.latex.latex_text import DEFINITION, latex_text

        files: dict[str, bytes] = {}
        with style.settings(preamble=DEFINITION):
            for form in self.forms:
                # PGF is LaTeX source: there hostile text is hostile to TeX.
                text = latex_text if form == "pgf" else style.plain_text
                drawn = figure.draw(subjects, style.Page(self.width, text), choices)
                rendered = render(drawn.drawing, figure.name, form, f"embgeo {embgeo.__version__}")
                if form == "pgf":
                    name = f"{figure.name}.pgf"
                    rendered[name] = f"{DEFINITION}\n{MATHDEFAULT}\n".encode() + rendered[name]
                files |= rendered
        files[f"{figure.name}.csv"] = b"".join(csv_lines(drawn.data.columns, drawn.data.rows))
        width, height = (float(size) for size in drawn.drawing.get_size_inches())
        said = {"caption": drawn.caption, "width": width, "height": height}
        return self.made(
            figure.name, subjects, files, said, (*notes, *drawn.notes), (width, height)
        )

    def typeset(
        self, table: LatexTable, subjects: Sequence[Subject], notes: tuple[str, ...]
    ) -> Made:
        """A table in LaTeX, with its data and its record."""
        from embgeo.io.bounded.delimited import csv_lines
        from embgeo.publish.latex.base import Method
        from embgeo.publish.latex.render import render_table

        methods = [Method(s.label, s.analysis) for s in subjects if s.analysis is not None]
        content = table.fill(methods, self.signs)
        made_by = f"made by embgeo {embgeo.__version__}; {table.name}.json says how"
        files = {
            f"{table.name}.tex": render_table(table, content, made_by).encode(),
            f"{table.name}.csv": b"".join(csv_lines(content.columns, content.rows)),
        }
        return self.made(table.name, subjects, files, {}, notes)

    def made(
        self,
        name: str,
        subjects: Sequence[Subject],
        files: dict[str, bytes],
        said: dict[str, Any],
        notes: tuple[str, ...],
        size: tuple[float, float] | None = None,
    ) -> Made:
        """The files with a record of how they came about."""
        import platform
        from importlib import metadata

        record = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "name": name,
            **said,
            "notes": list(notes),
            "files": sorted(files),
            "sources": [source(subject) for subject in subjects],
            "command": self.command,
            "versions": {
                "embgeo": embgeo.__version__,
                "matplotlib": metadata.version("matplotlib"),
                "numpy": metadata.version("numpy"),
                "python": platform.python_version(),
            },
        }
        return Made(name, files | {f"{name}.json": record_bytes(record)}, record, size)


def source(subject: Subject) -> dict[str, Any]:
    """Where the numbers of a subject come from, as far as its analysis says."""
    said: dict[str, Any] = {"label": subject.label}
    if subject.x is not None:
        said["x"] = subject.x
    if subject.analysis is not None:
        of = subject.analysis.provenance
        said |= {key: of.get(key) for key in ("file", "tensor", "sha256", "n", "d", "kept", "seed")}
        said["embgeo"] = of.get("versions", {}).get("embgeo")
    if subject.log is not None:
        said["curves"] = sorted(subject.log.curves)
    return said
