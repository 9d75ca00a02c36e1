"""Tables of methods and claims as the templates print them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embgeo.core.numbers import format_optional, join_unit
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.core.text import visible
from embgeo.core.values import format_number
from embgeo.training.study import deciding, record, wording
from embgeo.training.study.claims import TIME
from embgeo.training.study.numbers import QUANTITIES
from embgeo.training.study.spread import SeedDifference, in_percent, percent_text, signed, spread

#: Columns of the first table, after the deciding perplexity.
FIRST = (
    isotropy.I1_UNIT_ROWS.name,
    cosine.MEAN.name,
    spectrum.EFFECTIVE_RANK.name,
    "training.parameters",
)
#: Columns of the table of all numbers, after the deciding perplexity.
GEOMETRY = tuple(
    (quantity.name, quantity.label)
    for quantity in (
        cosine.MEAN,
        isotropy.I1_UNIT_ROWS,
        isotropy.I1_UNIT,
        isotropy.I1,
        isotropy.I2,
        spectrum.EFFECTIVE_RANK,
        frequency.PROBE_AUC,
        frequency.NEIGHBOR_RARITY_RARE,
        subspace.DISTANCE,
    )
)
#: Numbers that are the same whatever the seed: a difference needs no error.
FIXED = ("training.parameters",)

MATRICES: dict[record.Role, str] = {
    "input": "input embedding",
    "output": "output matrix",
    "source": "source embedding",
}
STATES: dict[record.Learning, str] = {
    "converged": "",
    "learning": "still learning",
    "unknown": "no validation curve",
}
UNIGRAM_TITLE = "word frequencies alone"

#: The mark of a verdict, and the state whose color it has.
MARKS: dict[record.Verdict, tuple[str, str]] = {
    "reproduced": ("✓", "healthy"),
    "nominal": ("~", "mild"),
    "not reproduced": ("✗", "degenerate"),
    "not decidable": ("?", "undecided"),
}


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: a number and its short title."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a method, its standard deviation over seeds, and its difference from the control.

    `interval` is the 95% interval of the difference over seeds, `word` what it says: "better",
    "worse" or "within seeds". Everything but `mean` may be empty.
    """

    mean: str
    unit: str = ""
    deviation: str = ""
    difference: str = ""
    interval: str = ""
    word: str = ""

    @property
    def text(self) -> str:
        return join_unit(self.mean, self.unit)


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A line of the table of methods."""

    name: str
    title: str
    reference: str
    cells: tuple[Cell, ...]
    #: Id of the section about the method; empty for the unigram model, which is not a method.
    anchor: str = ""
    #: The measured matrix of an untied model; empty for others.
    matrix: str = ""
    #: Empty if its runs had converged.
    state: str = ""


def heads(study: record.Study) -> tuple[Head, ...]:
    """Return the columns with a number of some method; the split that decides comes first."""
    held = {
        name for run in study.runs for own in (run.numbers, *run.others.values()) for name in own
    }
    quality = deciding.quality_name(study.runs)
    first, _, score = quality.partition(".")
    other = "valid" if first == "test" else "test"
    counted = name_unit(study.provenance.get("corpus") or {})
    columns = (
        (quality, wording.describe_quality(quality)),
        *GEOMETRY,
        (f"{first}.rare", "perplexity, rare words"),
        (f"{first}.popular", "perplexity, frequent words"),
        (f"{other}.{score}", wording.describe_quality(f"{other}.{score}")),
        (f"{first}.cache", "with cache"),
        (f"{first}.dynamic", "dynamic"),
        *((name, wording.describe_quality(name)) for name in own_scores(study) if name != quality),
        (TIME, f"time a {'token' if counted.endswith('tokens') else 'unit'}"),
        ("training.parameters", "parameters"),
        ("training.peak_memory", "peak memory"),
        ("movement.frequent", "movement, frequent words"),
        ("movement.rare", "movement, rare words"),
    )
    return tuple(Head(name, title) for name, title in dict(columns).items() if name in held)


def name_unit(corpus: Mapping[str, Any]) -> str:
    """Name the unit of the sizes of splits: ``"tokens"``, ``"documents"``."""
    unit = corpus.get("unit", "tokens")
    # Ways to cut a text for language models, whose size is given in tokens.
    return "tokens" if unit in ("sentences", "stream") else visible(str(unit))


def own_scores(study: record.Study) -> tuple[str, ...]:
    """Return the scores of tasks that are not language models."""
    of_language_models = {q.name for q in QUANTITIES}
    names = (q.name for q in study.quantities if q.name.startswith(deciding.SPLITS))
    return tuple(name for name in names if name not in of_language_models)


def first_heads(study: record.Study) -> tuple[Head, ...]:
    """Return the columns of the first table: perplexity and isotropy."""
    found = heads(study)
    by_name = {head.name: head for head in found}
    return (*found[:1], *(by_name[name] for name in FIRST if name in by_name))


def method_rows(study: record.Study, columns: Sequence[Head]) -> tuple[MethodRow, ...]:
    """Return the lines of a table: methods, each matrix of a model with several, and last a unigram
    model with its perplexity.

    Numbers of the whole model are in the line of the input embedding only.
    """
    rows: list[MethodRow] = []
    for place, method in enumerate(study.methods):
        runs, roles = study.runs_of(method.name), study.roles(method.name)
        for role in roles:
            inner = {name for run in runs for name in run.others.get(role, {})}
            cells = (
                cell(study, method, head.name, role)
                if role == "input" or head.name in inner
                else Cell("")
                for head in columns
            )
            rows.append(
                MethodRow(
                    visible(method.name),
                    visible(method.title),
                    visible(method.reference) if method.reference else "",
                    tuple(cells),
                    f"trained-{place}",
                    MATRICES[role] if len(roles) > 1 else "",
                    STATES[deciding.judge_all(runs)],
                )
            )
    unigram = {
        f"{split}.perplexity": value
        for split in ("valid", "test")
        if (value := deciding.unigram_perplexity(study.runs, split)) is not None
    }
    if any(head.name in unigram for head in columns):
        shown = (unigram.get(head.name) for head in columns)
        own = tuple(Cell("" if value is None else format_number(value)) for value in shown)
        rows.append(MethodRow("unigram", UNIGRAM_TITLE, "", own))
    return tuple(rows)


def cell(
    study: record.Study, method: record.StudyMethod, name: str, role: record.Role | None = None
) -> Cell:
    found = spread(list(study.values(method.name, name, role).values()))
    if found is None:
        return Cell("–")
    quantity = study.quantity(name)
    mean, deviation = found.parts
    unit = "" if quantity is None else quantity.unit
    deviation = "" if name in FIXED else deviation
    held = deciding.compare_with_control(study, method, name, role)
    if held is None:
        return Cell(mean, unit, deviation)
    ends = () if name in FIXED else (held.interval or ())
    interval = " … ".join(map(percent_text if held.relative else signed, ends))
    word = "" if name in FIXED else wording.judge_change(held, quantity)
    return Cell(mean, unit, deviation, held.change, interval, word)


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """An outcome, and what the table of claims says about it."""

    outcome: record.ClaimOutcome
    paper: str
    methods: str
    number_title: str
    difference: str
    interval: str
    text_interval: str
    share: str
    detectable: str
    tried: str
    mark: str
    chip: str


def claim_row(study: record.Study, o: record.ClaimOutcome) -> ClaimRow:
    quantity = study.quantity(o.number)
    held = o.contrast
    relative = held is not None and held.relative
    unit = "%" if relative else ""

    def write(values: Sequence[float]) -> str:
        """Write a difference with its sign; one of logarithms in percent."""
        return " … ".join(signed(in_percent(v) if relative else v) for v in values)

    mark, chip = MARKS[o.verdict]
    return ClaimRow(
        o,
        o.source.partition(",")[0],
        describe_sides(study, o),
        o.number if quantity is None else quantity.title,
        "–" if held is None else f"{write([held.difference])}{unit}",
        "" if held is None else write(held.interval or ()),
        f"{write(o.text_interval)}{unit}" if o.text_interval else "",
        "–" if o.share is None else f"{format_number(100.0 * o.share, 2)}%",
        describe_detectable(held),
        f"{o.trials} : {o.reference_trials}",
        mark,
        chip,
    )


def describe_sides(study: record.Study, o: record.ClaimOutcome) -> str:
    """Return ``"al against untied, input embedding"``: with the matrix if one side has two."""
    sides = f"{visible(o.method)} against {visible(o.reference)}"
    two = any(len(study.roles(name)) > 1 for name in (o.method, o.reference))
    return sides if o.role is None or not two else f"{sides}, {MATRICES[o.role]}"


def describe_detectable(held: SeedDifference | None) -> str:
    """Return ``"1.3%"``: the change that most studies of this size would find."""
    found = None if held is None else held.detectable
    if held is not None and found is not None and held.relative:
        return percent_text(found).removeprefix("+")
    return format_optional(found, 2)


def settings_text(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write settings as dotted names and values."""
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows += [(f"{key}.{name}", text) for name, text in settings_text(value)]
        else:
            rows.append((str(key), value if isinstance(value, str) else json.dumps(value)))
    return rows
