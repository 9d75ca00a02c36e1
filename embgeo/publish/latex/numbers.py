"""The main numbers by method: of analyses with their errors, of a study as means over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from embgeo.charts.render.paper import Venue
from embgeo.comparison.differences import explain_unlike
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import Cell, Quantity, Scalar, format_number
from embgeo.publish.latex.latex_table import (
    Latex,
    LatexTable,
    TableColumn,
    TableContent,
    latex_number,
    latex_text,
    lay_out,
)
from embgeo.result.analysis import Analysis
from embgeo.training.study.deciding import quality_name
from embgeo.training.study.numbers import PERPLEXITIES
from embgeo.training.study.spread import Spread, spread
from embgeo.training.study.wording import spell_score

#: Headings in mathematics, by quantity.
HEADINGS: dict[Quantity, Latex] = {
    cosine.MEAN: Latex("Mean cosine"),
    spectrum.TOP_SHARE: Latex("Top share"),
    spectrum.EFFECTIVE_RANK: Latex("Eff.\\ rank"),
    isotropy.I1_UNIT_ROWS: Latex("$I_1(\\hat{W})$"),
    frequency.PROBE_AUC: Latex("Probe AUC"),
    frequency.NEIGHBOR_RARITY_RARE: Latex("Rare nbrs."),
}
#: Longest label of a method.
LABEL = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A number, its spread, and how far it is from its reference; empty if it is not known."""

    number: Spread | None
    distance: float | None = None


def missing(analysis: Analysis) -> str:
    if all(analysis.find_scalar(quantity) is None for quantity in HEADINGS):
        return "its analysis left out the sections spectrum, cosine, isotropy and frequency"
    return ""


def find_entry(method: TableColumn, quantity: Quantity) -> Entry:
    """Find a number: the mean over the seeds of a study, else that of the analysis."""
    scalar = method.analysis.find_scalar(quantity)
    reference = None if scalar is None else scalar.reference
    if method.runs:
        found = [run.numbers[quantity.name] for run in method.runs if quantity.name in run.numbers]
        number = spread(found)
    elif scalar is None or scalar.value is None:
        return Entry(None)
    else:
        errors = (scalar.population_error, scalar.standard_error)
        number = Spread(scalar.value, next((e for e in errors if e is not None), None), 1)
    if number is None or reference is None:
        return Entry(number)
    return Entry(number, abs(number.mean - reference))


def find_quality(methods: Sequence[TableColumn]) -> tuple[str, list[Entry]]:
    """Find the score of the models of a study, and its name; lower is better of perplexities."""
    runs = [run for method in methods for run in method.runs]
    if not runs or not all(method.runs for method in methods):
        return "", []
    name = quality_name(runs)
    sign = 1.0 if name.partition(".")[2] in PERPLEXITIES else -1.0
    entries = []
    for method in methods:
        number = spread([run.numbers[name] for run in method.runs if name in run.numbers])
        entries.append(Entry(number, None if number is None else sign * number.mean))
    if all(entry.number is None for entry in entries):
        return "", []
    return spell_score(name), entries


def write_column(entries: Sequence[Entry]) -> list[Latex]:
    """Write the cells of a column; the number closest to its reference is bold.

    So are those that print alike; if all do, none is.
    """
    known = [
        (e.distance, write_mean(e.number)) for e in entries if e.number and e.distance is not None
    ]
    best = min(known)[1] if len({text for _, text in known}) > 1 else ""
    cells = []
    for entry in entries:
        if entry.number is None:
            cells.append(Latex("--"))
            continue
        text, deviation = write_mean(entry.number), entry.number.parts[1]
        if text == best:
            text = rf"$\mathbf{{{text.strip('$')}}}$"
        error = rf" {{\scriptsize$\pm${latex_number(deviation)}}}" if deviation else ""
        cells.append(Latex(text + error))
    return cells


def write_mean(number: Spread) -> str:
    mean, deviation = number.parts
    return latex_number(mean if deviation else format_number(number.mean, 3))


def write_reference(scalar: Scalar | None) -> Latex:
    if scalar is None or scalar.reference is None:
        return Latex("--")
    return Latex(latex_number(format_number(scalar.reference, 3)))


def join_groups(members: Sequence[TableColumn]) -> list[TableColumn]:
    """Return the groups with the runs of their members, and the analysis of the first."""
    found: dict[str, TableColumn] = {}
    for one in members:
        label = one.group or one.label
        held = found.get(label, replace(one, label=label, runs=()))
        found[label] = replace(held, runs=(*held.runs, *one.runs))
    return list(found.values())


def find_unlike(methods: Sequence[TableColumn], shown: Sequence[Quantity]) -> dict[Quantity, Latex]:
    """Explain which numbers are different quantities in some of the analyses."""
    first, *others = methods
    found = {}
    for q in shown:
        for other in others:
            facts = first.analysis.provenance, other.analysis.provenance
            if why := explain_unlike(q.family, *facts):
                label = latex_text(other.label, LABEL)
                found[q] = Latex(f"{label}: {latex_text(why, 200)}")
    return found


def fill(members: Sequence[TableColumn], _signs: str, page: Venue) -> TableContent:
    methods = join_groups(members)
    shown = [q for q in HEADINGS if any(m.analysis.find_scalar(q) is not None for m in methods)]
    entries = {q.name: [find_entry(method, q) for method in methods] for q in shown}
    unlike = find_unlike(methods, shown)
    for q in unlike:
        entries[q.name] = [Entry(entry.number) for entry in entries[q.name]]
    heads: list[Latex] = [HEADINGS[q] for q in shown]
    columns = [write_column(entries[q.name]) for q in shown]
    title, quality = find_quality(methods)
    if quality:
        entries[title] = quality
        heads, columns = [Latex(latex_text(title)), *heads], [write_column(quality), *columns]
    labels = [Latex(latex_text(method.label, LABEL)) for method in methods]
    body = [list(row) for row in zip(labels, *columns, strict=True)]
    first = methods[0].analysis
    references = [write_reference(None if q in unlike else first.find_scalar(q)) for q in shown]
    body_end = [Latex("\\emph{Reference}"), *([Latex("--")] if quality else []), *references]
    seeds = max(len(method.runs) for method in methods)
    said = "mean and standard deviation over seeds" if seeds > 1 else "one seed"
    said = said if seeds else "value and error over tokens"
    bold = f" Bold: the closest to the reference{', and the best score' if quality else ''}."
    caption = Latex(
        f"Geometry of the embedding matrix, {said}. Reference: isotropic rows of the same norms; "
        f"of probe and neighbors, chance.{bold if len(methods) > 1 else ''}"
        + "".join(
            f" {', '.join(HEADINGS[q] for q in unlike if unlike[q] == why)}: not comparable, {why}."
            for why in dict.fromkeys(unlike.values())
        )
    )
    rows: list[tuple[Cell, ...]] = [
        (method.label, name, e.number.mean, e.number.deviation)
        for name, column in entries.items()
        for method, e in zip(methods, column, strict=True)
        if e.number is not None
    ]
    values = lay_out([Latex("Method"), *heads], body, page, caption, "geometry", last=body_end)
    return TableContent(values, ("analysis", "name", "value", "spread"), rows)


TABLE = LatexTable("numbers", missing, fill, template="grid")
