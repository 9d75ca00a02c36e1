"""Results as lines of text or, for comments on pull requests, of Markdown."""

from collections.abc import Iterable, Iterator
from typing import Literal

from embgeo.comparison.comparison import Comparison
from embgeo.core.text import as_code, escape_markdown, write_table
from embgeo.report.text import suspects
from embgeo.report.text.analysis import headline_rows
from embgeo.report.text.analysis import render as render_analysis_text
from embgeo.report.text.comparison import MOST_NOTES, difference_rows, member_rows, track_rows
from embgeo.report.text.comparison import render as render_comparison_text
from embgeo.result.analysis import Analysis


def render(result: Analysis | Comparison, form: Literal["text", "markdown"]) -> Iterator[str]:
    if isinstance(result, Comparison):
        return (render_comparison_text if form == "text" else render_comparison)(result)
    return (render_analysis_text if form == "text" else render_analysis)(result)


def render_analysis(analysis: Analysis) -> Iterator[str]:
    """Yield verdict, suspects, headline numbers and notes."""
    p = analysis.provenance
    yield f"### {escape_markdown(analysis.verdict.headline)}"
    yield ""
    names = (as_code(p[name]) for name in ("file", "tensor") if p[name])
    yield " ".join([*names, f"{p['n']:,} × {p['d']:,}"])
    for line in suspects.render(analysis.suspects):
        yield f"<br>{escape_markdown(line.strip())}"
    yield ""
    yield from write_table(("", "measured", "reference"), headline_rows(analysis))
    yield from write_notes(analysis.notes)


def render_comparison(comparison: Comparison) -> Iterator[str]:
    """Yield verdicts, headline numbers with their differences, sentences and notes."""
    for member in comparison.members:
        yield f"- {as_code(member.name)}: {escape_markdown(member.analysis.verdict.headline)}"
    if comparison.track is not None:
        table = track_rows(comparison.track)[0]
    elif len(comparison.members) == 2:
        table = difference_rows(comparison, 1)
    else:
        table = member_rows(comparison)
    if table:
        yield ""
        yield from write_table(table[0], table[1:])
    if comparison.sentences:
        yield ""
        yield from map(escape_markdown, comparison.sentences)
    yield from write_notes(comparison.notes[:MOST_NOTES])


def write_notes(notes: Iterable[object]) -> Iterator[str]:
    lines = [f"- {escape_markdown(str(note))}" for note in notes]
    yield from ["", *lines] if lines else []
