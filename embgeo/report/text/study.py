"""A study of training methods for a terminal: a line per method, claims, notes; and its plan."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from embgeo.core.text import align
from embgeo.report.study_tables import MATRICES, Head, method_rows, name_unit
from embgeo.training.study import deciding, wording
from embgeo.training.study.numbers import TOKENIZED_BLEU
from embgeo.training.study.record import Study


def render(study: Study) -> Iterator[str]:
    yield from table(study)
    if study.outcomes:
        yield claims(study)
    if len(study.methods) > 1:
        yield from wording.describe_few_seeds(study)
    for warning in study.warnings:
        yield f"  warning: {warning.text}"
    for note in study.notes:
        yield f"  note: {note}"


def table(study: Study) -> list[str]:
    """Return the table of methods; a head takes two lines: its first word, and the others."""
    heads, *lines = method_lines(study)
    return align([*([head.partition(" ")[at] for head in heads] for at in (0, 2)), *lines])


def method_lines(study: Study) -> list[list[str]]:
    """Return the lines of the table of methods, the heads first."""
    name = deciding.quality_name(study.runs)
    split = "test" if name.startswith("test") else "valid"
    shown = (
        (name, wording.describe_quality(name, "valid")),
        (f"{split}.{TOKENIZED_BLEU}", "tokenized BLEU"),
        (f"{split}.rare", "perplexity, rare words"),
        (f"{split}.popular", "perplexity, frequent words"),
        *((quantity.name, quantity.label) for quantity in wording.GEOMETRY),
    )
    columns = [
        Head(key, head) for key, head in shown if any(key in run.numbers for run in study.runs)
    ]
    rows = [["", *(head.title for head in columns)]]
    for row in method_rows(study, columns):
        inner = row.matrix not in ("", MATRICES["input"])
        cells = (" ± ".join(filter(None, (cell.mean, cell.deviation))) for cell in row.cells)
        rows.append([f"  {row.matrix}" if inner else row.name, *cells])
    return rows


def claims(study: Study) -> str:
    """Count how many of the papers' claims held."""
    count = deciding.count_verdicts(study.outcomes)
    shown = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
    return f"Claims of the papers: {shown or 'none'}.{describe_checks(study)}"


def describe_checks(study: Study) -> str:
    """Count how many of the decided checks hold; empty without one."""
    checks = [one for one in study.outcomes if one.sanity and one.cause is None]
    if not checks:
        return ""
    passed = sum(one.verdict == "reproduced" for one in checks)
    return f" Methods that reach what they minimize: {passed} of {len(checks)}."


def render_plan(plan: Mapping[str, Any], folder: Path) -> list[str]:
    """Render the planned runs."""
    corpus = plan["corpus"]
    sizes = ", ".join(f"{split} {n:,}" for split, n in corpus["tokens"].items())
    methods, seeds = len(plan["methods"]), len(plan["seeds"])
    runs = f"{methods} method{'s' * (methods > 1)} × {seeds} seed{'s' * (seeds > 1)}"
    if tuned := plan["tuned"]:
        runs += f", {', '.join(tuned)} tuned with a seed apart"
    lines = [
        f"{corpus['name']}: {corpus['rows']:,} rows; {name_unit(corpus)}: {sizes}",
        f"{plan['model']['name']}, {runs}, into {folder}",
    ]
    rows = [["", "parameters", "steps"]]
    for each in plan["methods"]:
        rows.append([each["method"], f"{each['parameters']:,}", f"{each['steps']:,}"])
    return [*lines, *align(rows), "nothing was written"]
