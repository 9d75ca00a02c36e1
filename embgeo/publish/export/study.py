"""A study as tables: means over seeds, differences from the controls, p-values after Holm.

CSV holds every number of the runs, a row a number and contrast. LaTeX and Markdown hold two tables:
means of the methods, and differences with what they say about the claims of the papers.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embgeo.charts.render.paper import Venue
from embgeo.core.numbers import format_optional, format_p
from embgeo.core.text import write_table
from embgeo.core.values import Cell
from embgeo.files.records import as_text
from embgeo.files.saved import csv_lines, write_file
from embgeo.publish.export.csv_file import RECORD_ENDING
from embgeo.publish.latex.latex_table import (
    DEFINITION,
    Latex,
    latex_number,
    latex_text,
    lay_out,
    render_body,
)
from embgeo.report.study_tables import cell, claim_row
from embgeo.report.text.study import method_lines
from embgeo.training.study import deciding, wording
from embgeo.training.study.record import Role, Study, StudyMethod
from embgeo.training.study.spread import SeedDifference, spread

COLUMNS = (
    "method",
    "control",
    "matrix",
    "number",
    "seeds",
    "mean",
    "deviation",
    "difference",
    "relative",
    "standard_error",
    "low",
    "high",
    "claim",
    "p",
    "p_holm",
    "verdict",
)
DIFFERENCES = (
    "method",
    "control",
    "number",
    "without",
    "with",
    "difference",
    "95%",
    "p",
    "p (Holm)",
    "claim",
)
#: Longest text of a cell in LaTeX.
LONGEST = 36

_N = r"[+−]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+−-]?[0-9]+)?"
_NUMBERS = re.compile(rf"(<?)({_N})(%)?(?:( ± | … )({_N})(%)?)?")
#: Symbols of mathematics among words: I1 and I2, p, and t of Student.
_SYMBOL = re.compile(r"(?<![\\\w{])(?:I(?P<index>[12])|[pt])(?![\w{])")
_SIGNS = {None: "", "%": r"\%", " ± ": r" $\pm$ ", " … ": r" \dots{} "}


def csv_rows(study: Study) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each number of a method and each contrast that it is in."""
    for method in study.methods:
        for role in study.roles(method.name):
            for name in list_numbers(study, method, role):
                found = spread(list(study.values(method.name, name, role).values()))
                assert found is not None
                whole = name.startswith((*deciding.SPLITS, "training."))
                head = (method.name, "" if whole else role, name)
                means = (found.n, found.mean, found.deviation)
                for control, contrast in list_contrasts(study, method, role, name):
                    yield (head[0], control, *head[1:], *means, *contrast)


def list_numbers(study: Study, method: StudyMethod, role: Role) -> list[str]:
    """List names of the numbers of a matrix.

    Those of the whole model are with the input embedding.
    """
    held = {
        name
        for run in study.runs_of(method.name)
        for name in (run.numbers if role == "input" else run.others.get(role, {}))
    }
    known = [q.name for q in study.quantities if q.name in held]
    return [*dict.fromkeys(known), *sorted(held.difference(known))]


def list_contrasts(
    study: Study, method: StudyMethod, role: Role, name: str
) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Yield controls and the cells after `deviation`: the method's own, then those of claims."""
    roles = study.roles(method.name)
    claims = [
        o
        for o in study.outcomes
        if (o.method, o.number) == (method.name, name)
        and (o.role if o.role in roles else "input") == role
    ]
    if not any(o.reference == method.reference for o in claims):
        held = deciding.compare_with_control(study, method, name, role)
        yield (
            method.reference,
            (*describe_difference(held), *([None] * 4)),
        )
    for o in claims:
        said = (o.key, o.p_value, o.p_adjusted, o.verdict)
        yield o.reference, (*describe_difference(o.contrast), *said)


def describe_difference(held: SeedDifference | None) -> tuple[Cell, ...]:
    """Return the difference, "log" or "", the standard error and the ends of the interval."""
    if held is None:
        return (None,) * 5
    kind = "log" if held.relative else ""
    return held.difference, kind, held.standard_error, *(held.interval or (None, None))


def difference_lines(study: Study) -> list[list[str]]:
    """List lines of the table of differences: the deciding number, then claims, by method."""
    quality = deciding.quality_name(study.runs)
    lines = []
    for method in study.methods:
        claims = [o for o in study.outcomes if o.method == method.name]
        said = any((o.reference, o.number) == (method.reference, quality) for o in claims)
        held = deciding.compare_with_control(study, method, quality)
        if held is not None and not said:
            ends = (format_optional(held.before), format_optional(held.after))
            shown = cell(study, method, quality)
            title = wording.describe_quality(quality)
            change = (shown.difference, shown.interval or "–")
            lines.append([method.name, method.reference, title, *ends, *change, "–", "–", "–"])
        for row in (claim_row(study, o) for o in claims):
            o = row.outcome
            if o.contrast is None:
                continue
            ends = (format_optional(o.contrast.before), format_optional(o.contrast.after))
            numbers = [*ends, row.difference, row.interval or "–"]
            chances = [format_p(p) for p in (o.p_value, o.p_adjusted)]
            title = f"{row.number_title}, {o.role}" if o.role else row.number_title
            lines.append([o.method, o.reference, title, *numbers, *chances, o.verdict])
    return lines


def split_means(study: Study) -> tuple[list[str], list[list[str]]]:
    """Return the heads and lines of the table of means; matrices of a method are below it."""
    heads, *lines = method_lines(study)
    return ["method", *heads[1:]], [[line[0].strip(), *line[1:]] for line in lines]


def describe_means(study: Study) -> str:
    n = len(study.seeds)
    return f"Mean ± standard deviation over {n} seeds." if n > 1 else "One seed."


ABOUT_DIFFERENCES = (
    "Paired differences over the seeds, with 95% intervals by Student's t; of perplexities and "
    "times in percent. p after Holm's correction over all claims of the study."
)


def make_csv(study: Study, _page: Venue) -> bytes:
    return b"".join(csv_lines(COLUMNS, csv_rows(study)))


def make_markdown(study: Study, _page: Venue) -> bytes:
    lines = [describe_means(study), "", *write_table(*split_means(study)), ""]
    lines += [ABOUT_DIFFERENCES, "", *write_table(DIFFERENCES, difference_lines(study))]
    return encode(lines)


def make_latex(study: Study, page: Venue) -> bytes:
    body = [
        latex_table(*split_means(study), page, describe_means(study), "means"),
        latex_table(
            DIFFERENCES, difference_lines(study), page, ABOUT_DIFFERENCES, "differences", "lll"
        ),
    ]
    defined = [DEFINITION] if any(r"\embgeochar" in part for part in body) else []
    return encode([r"% needs \usepackage{booktabs}", *defined, *body])


def encode(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def latex_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    page: Venue,
    caption: str,
    label: str,
    alignment: str = "l",
) -> str:
    """Write a table as wide as the page allows; the columns after `alignment` are numbers."""
    cells = [[Latex(latex_cell(text)) for text in row] for row in (heads, *rows)]
    words = Latex(" ".join(map(latex_cell, caption.split(" "))))
    rest = "r" * (len(heads) - len(alignment))
    named = (words, Latex(f"study-{label}"))
    return render_body(
        "grid", lay_out(cells[0], cells[1:], page, *named, alignment=alignment + rest)
    )


def latex_cell(text: str) -> str:
    r"""Escape untrusted text, but for symbols; leave numbers, with what joins them, as they are.

    >>> print(latex_cell("96.1 ± 1.2"), latex_cell("−1.4%"), latex_cell("I1 of a_b"))
    $96.1$ $\pm$ $1.2$ $-1.4$\% $I_1$ of a\_b
    """
    if text in ("", "–"):
        return "--"
    found = _NUMBERS.fullmatch(text)
    if found is None:
        shown = r"$\pm$" if text == "±" else latex_text(text, LONGEST)
        return _SYMBOL.sub(lambda s: f"$I_{s['index']}$" if s["index"] else f"${s[0]}$", shown)
    less, first, unit, sign, second, last = found.groups()
    end = latex_number(second) if second else ""
    start = latex_number(first)
    start = f"$<{start[1:]}".replace(r"1\times", "") if less else start
    return f"{start}{_SIGNS[unit]}{_SIGNS[sign]}{end}{_SIGNS[last]}"


@dataclass(frozen=True, slots=True)
class StudyForm:
    """A format of a study: the suffix of its file, and how it is made."""

    suffix: str
    make: Callable[[Study, Venue], bytes]


FORMS: Mapping[str, StudyForm] = {
    "csv": StudyForm(".csv", make_csv),
    "latex": StudyForm(".tex", make_latex),
    "markdown": StudyForm(".md", make_markdown),
}


def write(study: Study, form: str, page: Venue, record: Mapping[str, Any], path: Path) -> None:
    """Write a file, with its provenance in a JSON file next to it."""
    write_file(path, FORMS[form].make(study, page))
    known = {q.name: {"title": q.title, "meaning": q.meaning} for q in study.quantities}
    whole = {**record, "numbers": known, "study": dict(study.provenance)}
    write_file(path.with_name(path.name + RECORD_ENDING), as_text(whole))
