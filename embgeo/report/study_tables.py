"""Methods, claims and runs in the shape that the templates print."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.core.values import Quantity, format_number
from embgeo.core.visible import visible
from embgeo.training.study.claims import TIME
from embgeo.training.study.convergence import judge_all
from embgeo.training.study.deciding import (
    describe_quality,
    is_relative,
    quality_name,
    signed,
    unigram_perplexity,
)
from embgeo.training.study.numbers import QUANTITIES
from embgeo.training.study.spread import Paired, in_percent, paired, percent_text, spread
from embgeo.training.study.training import (
    ClaimOutcome,
    Learning,
    Role,
    StudyMethod,
    Training,
    Verdict,
)

#: Columns of the first table, after the perplexity that decides.
FIRST = (
    isotropy.I1_UNIT.name,
    cosine.MEAN.name,
    spectrum.EFFECTIVE_RANK.name,
    "training.parameters",
)
#: Columns of the table of all numbers after that perplexity, with short heads.
GEOMETRY: tuple[tuple[str, str], ...] = (
    (cosine.MEAN.name, "mean cosine"),
    (isotropy.I1.name, "I1"),
    (isotropy.I1_UNIT.name, "I1, norm 1"),
    (isotropy.I2.name, "I2"),
    (spectrum.EFFECTIVE_RANK.name, "effective rank"),
    (frequency.PROBE_AUC.name, "probe AUC"),
    (frequency.NEIGHBOR_RARITY_RARE.name, "rare near rare"),
    (subspace.DISTANCE.name, "input–output"),
)
#: Beginnings of the names of scores.
SPLITS = ("valid.", "test.")
#: Numbers that are the same whatever the seed: a difference needs no error.
FIXED = ("training.parameters",)

MATRICES: dict[Role, str] = {
    "input": "input embedding",
    "output": "output matrix",
    "source": "source embedding",
}
STATES: dict[Learning, str] = {
    "converged": "",
    "learning": "still learning",
    "unknown": "no validation curve",
}
UNIGRAM_TITLE = "word frequencies alone"

MARKS: dict[Verdict, str] = {"reproduced": "✓", "not reproduced": "✗", "not decidable": "?"}
CHIPS: dict[Verdict, str] = {
    "reproduced": "healthy",
    "not reproduced": "degenerate",
    "not decidable": "undecided",
}


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a column: the number, and what it is called here."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a method and its difference from that of its control.

    Attributes
    ----------
    text : str
    deviation : str
        Over seeds; empty for one.
    difference : str
        Empty without a control.
    interval : str
        Of the difference, 95 % over seeds; empty of few seeds.
    word : str
        "better", "worse", "within seeds", or empty.
    """

    text: str
    deviation: str = ""
    difference: str = ""
    interval: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A line of the table of methods.

    Attributes
    ----------
    matrix : str
        Which matrix of an untied model the geometry is that of; empty for others.
    state : str
        What is known of the end of its runs; empty where they had learned what they could.
    anchor : str
        Where the page says more of it; empty for the unigram model, which is not a method.
    """

    name: str
    title: str
    reference: str
    cells: tuple[Cell, ...]
    anchor: str = ""
    matrix: str = ""
    state: str = ""


def heads(training: Training) -> tuple[Head, ...]:
    """Columns that some method has a number for; the split that decides comes first."""
    held = {
        name for run in training.runs for own in (run.numbers, *run.others.values()) for name in own
    }
    quality = quality_name(training.runs)
    first, _, score = quality.partition(".")
    other = "valid" if first == "test" else "test"
    counted = name_unit(training.provenance.get("corpus") or {})
    columns = (
        (quality, describe_quality(quality)),
        *GEOMETRY,
        (f"{first}.rare", "perplexity, rare words"),
        (f"{first}.popular", "popular words"),
        (f"{other}.{score}", describe_quality(f"{other}.{score}")),
        (f"{first}.cache", "with cache"),
        (f"{first}.dynamic", "dynamic"),
        (f"{first}.logit_rank", "rank of ln p"),
        *((name, describe_quality(name)) for name in own_scores(training) if name != quality),
        (TIME, f"time a {'token' if counted.endswith('tokens') else 'unit'}"),
        ("training.parameters", "parameters"),
    )
    return tuple(Head(name, title) for name, title in dict(columns).items() if name in held)


def name_unit(corpus: Mapping[str, Any]) -> str:
    """What the sizes of splits are numbers of: ``"tokens"``, ``"documents"``."""
    unit = corpus.get("unit", "tokens")
    # How a text for language models is cut; its sizes are given in tokens.
    return "tokens" if unit in ("sentences", "stream") else visible(str(unit))


def own_scores(training: Training) -> tuple[str, ...]:
    """The scores of tasks that are not language models."""
    of_language_models = {q.name for q in QUANTITIES}
    names = (q.name for q in training.quantities if q.name.startswith(SPLITS))
    return tuple(name for name in names if name not in of_language_models)


def first_heads(training: Training) -> tuple[Head, ...]:
    """Columns of the first table: what each method did to perplexity and to isotropy."""
    found = heads(training)
    by_name = {head.name: head for head in found}
    return (*found[:1], *(by_name[name] for name in FIRST if name in by_name))


def method_rows(training: Training, columns: Sequence[Head]) -> tuple[MethodRow, ...]:
    """The lines of a table with these columns; the unigram model last."""
    rows = tuple(
        method_row(training, columns, place, role)
        for place, method in enumerate(training.methods)
        for role in list_lines(training, method.name)
    )
    return (*rows, *unigram_rows(training, columns))


def list_lines(training: Training, method: str) -> tuple[Role | None, ...]:
    """A line for each matrix of a model with several, else one."""
    roles = training.roles(method)
    return roles if len(roles) > 1 else (None,)


def method_row(
    training: Training, columns: Sequence[Head], place: int, role: Role | None
) -> MethodRow:
    """The line of a method, or of one matrix of a model with several.

    The line of another matrix has no numbers of the whole model, which stand in that before it.
    """
    method = training.methods[place]
    held = None
    if role not in (None, "input"):
        runs = training.runs_of(method.name)
        held = {name for run in runs for name in run.others.get(role, {})}
    cells = (
        cell(training, method, head.name, role) if held is None or head.name in held else Cell("")
        for head in columns
    )
    return MethodRow(
        visible(method.name),
        visible(method.title),
        visible(method.reference) if method.reference else "",
        tuple(cells),
        f"trained-{place}",
        "" if role is None else MATRICES[role],
        STATES[judge_all(training.runs_of(method.name))],
    )


def unigram_rows(training: Training, columns: Sequence[Head]) -> tuple[MethodRow, ...]:
    """The line of the unigram model: its perplexity, and nothing else."""
    known = {
        f"{split}.perplexity": value
        for split in ("valid", "test")
        if (value := unigram_perplexity(training.runs, split)) is not None
        and any(head.name == f"{split}.perplexity" for head in columns)
    }
    if not known:
        return ()
    cells = (
        Cell(format_number(known[head.name]) if head.name in known else "") for head in columns
    )
    return (MethodRow("unigram", UNIGRAM_TITLE, "", tuple(cells)),)


def cell(training: Training, method: StudyMethod, name: str, role: Role | None = None) -> Cell:
    own = training.values(method.name, name, role)
    found = spread(list(own.values()))
    if found is None:
        return Cell("–")
    quantity = training.quantity(name)
    mean, deviation = found.parts
    text = f"{mean} {quantity.unit}" if quantity is not None and quantity.unit else mean
    if name in FIXED:
        deviation = ""
    if not method.reference:
        return Cell(text, deviation)
    relative = is_relative(name)
    held = paired(training.values(method.reference, name, role), own, relative=relative)
    if held is None:
        return Cell(text, deviation)
    ends = () if name in FIXED else (held.interval or ())
    interval = " … ".join(step_text(value, relative=relative) for value in ends)
    difference = step_text(held.difference, relative=relative)
    return Cell(text, deviation, difference, interval, word(held, quantity, name))


def step_text(value: float, *, relative: bool) -> str:
    """``"−1.4 %"``, ``"+0.171"``."""
    return percent_text(value) if relative else signed(value)


def word(held: Paired, quantity: Quantity | None, name: str) -> str:
    """What is known of a difference over seeds; of numbers with a good direction, which it took."""
    if name in FIXED or held.interval is None:
        return ""
    low, high = held.interval
    if low <= 0.0 <= high:
        return "within seeds"
    if quantity is None or quantity.better is None:
        return ""
    return "better" if (high < 0.0) == (quantity.better == "lower") else "worse"


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim and its outcome."""

    text: str
    paper: str
    source: str
    methods: str
    number: str
    number_title: str
    before: str
    after: str
    difference: str
    interval: str
    verdict: str
    mark: str
    chip: str
    reason: str
    published: str
    share: str
    text_interval: str
    sanity: bool
    p_value: str
    p_adjusted: str
    detectable: str


def claim_rows(training: Training) -> tuple[ClaimRow, ...]:
    return tuple(claim_row(training, outcome) for outcome in training.outcomes)


def claim_row(training: Training, o: ClaimOutcome) -> ClaimRow:
    quantity = training.quantity(o.number)
    unit = " %" if o.relative else ""
    values = [v for v in (o.difference, *(o.interval or ())) if v is not None]
    shown = [change_text(value, relative=o.relative) for value in values]
    of_text = [change_text(value, relative=o.relative) for value in o.text_interval or ()]
    return ClaimRow(
        o.text,
        o.source.partition(",")[0],
        o.source,
        describe_sides(training, o),
        o.number,
        o.number if quantity is None else quantity.title,
        "–" if o.before is None else format_number(o.before),
        "–" if o.after is None else format_number(o.after),
        f"{shown[0]}{unit}" if shown else "–",
        f"{shown[1]} … {shown[2]}" if len(shown) == 3 else "",
        o.verdict,
        MARKS[o.verdict],
        CHIPS[o.verdict],
        o.reason,
        o.published,
        "–" if o.share is None else f"{format_number(100.0 * o.share, 2)} %",
        f"{' … '.join(of_text)}{unit}" if of_text else "",
        o.sanity,
        "–" if o.p_value is None else format_number(o.p_value, 2),
        "–" if o.p_adjusted is None else format_number(o.p_adjusted, 2),
        describe_detectable(o),
    )


def change_text(value: float, *, relative: bool) -> str:
    """A difference with its sign; of logarithms in per cent."""
    return signed(in_percent(value) if relative else value)


def describe_sides(training: Training, o: ClaimOutcome) -> str:
    """``"al against untied, input embedding"``: the matrix where one side has two."""
    sides = f"{visible(o.method)} against {visible(o.reference)}"
    two = any(len(training.roles(name)) > 1 for name in (o.method, o.reference))
    return sides if o.role is None or not two else f"{sides}, {MATRICES[o.role]}"


def describe_detectable(o: ClaimOutcome) -> str:
    """``"1.3 %"``: the change that would have been found in most studies of this size."""
    if o.detectable is None:
        return "–"
    if o.relative:
        return percent_text(o.detectable).removeprefix("+")
    return format_number(o.detectable, 2)


def settings_text(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Tables of settings as dotted names and values."""
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows += [(f"{key}.{name}", text) for name, text in settings_text(value)]
        else:
            rows.append((str(key), value if isinstance(value, str) else json.dumps(value)))
    return rows
