"""Assemble a study from finished runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from embgeo.core.arguments import is_number
from embgeo.core.quantities import isotropy, spectrum
from embgeo.core.values import Quantity, Series, format_number
from embgeo.diagnosis.thresholds import PARTITION
from embgeo.result.analysis import Analysis
from embgeo.training.study.deciding import decide_claims, quality_name
from embgeo.training.study.numbers import PRIOR, QUANTITIES, prior, prior_distance
from embgeo.training.study.outcomes import Outcomes
from embgeo.training.study.record import Run, Study, StudyMethod, StudyWarning, group_runs
from embgeo.training.study.run_result import FinishedRun, collect_numbers
from embgeo.training.study.wording import describe_methods

#: The methods whose priors the spectra of all methods are compared with.
PRIOR_OF = {"exponential": "sc-exp", "polynomial": "sc-poly"}
SINGULAR_VALUES = spectrum.SINGULAR_VALUES.name
#: Settings of priors of spectrum control, by kind.
Priors = Mapping[str, Mapping[str, Any]]


def assemble_study(
    trained: Sequence[FinishedRun],
    methods: Sequence[StudyMethod],
    provenance: Mapping[str, Any],
    lost: Sequence[str] = (),
) -> Study:
    """Compare trained methods.

    `trained`: method by method, within one by seed; the baseline first. `methods`: name, title,
    reference and role of each trained method, in the same order; the rest is taken from the
    results. `provenance`: command and settings; corpus and versions are added. `lost`: the runs
    that diverged, and why.
    """
    if not trained:
        raise ValueError("nothing was trained")
    priors = {
        kind: one.result.own_settings
        for one in trained
        for kind, name in PRIOR_OF.items()
        if one.result.method == name
    }
    runs = tuple(make_run(one, priors) for one in trained)
    outcomes: dict[str, dict[int, Outcomes]] = {}
    for one in trained:
        if one.outcomes is not None:
            outcomes.setdefault(one.result.method, {})[one.result.seed] = one.outcomes
    results = {one.result.method: one.result for one in reversed(trained)}
    first = trained[0].result
    model = first.settings.get("model", {})
    mixture = "-mos" if model.get("experts", 1) > 1 else ""
    study = Study(
        provenance={
            **provenance,
            "corpus": dict(first.corpus),
            "versions": dict(first.versions),
        },
        quantities=list_quantities(trained, runs),
        methods=tuple(
            replace(
                method,
                source=results[method.name].source,
                settings=results[method.name].own_settings,
                deviations=results[method.name].deviations,
            )
            for method in methods
        ),
        runs=runs,
        outcomes=decide_claims(
            runs,
            outcomes=outcomes,
            # As published numbers name model and corpus.
            trained=(f"{model.get('name', '')}{mixture}", str(first.corpus.get("name", ""))),
            trials={method.name: len(method.tried) for method in methods},
        ),
        warnings=warn_of_methods(runs),
        notes=(
            *(f"{one}; no number here knows it" for one in lost),
            *chain.from_iterable(map(describe_tried, methods)),
            *list_notes(first.corpus, runs),
        ),
    )
    return replace(study, sentences=describe_methods(study))


def make_run(one: FinishedRun, priors: Priors) -> Run:
    """Make the numbers of a finished run, with those of its analyses."""
    result = one.result
    scalars = {str(role): collect_scalars(each, priors) for role, each in one.analyses.items()}
    scalars = {role: {**found, **result.of_rows.get(role, {})} for role, found in scalars.items()}
    return Run(
        method=result.method,
        seed=result.seed,
        folder=one.folder,
        steps=result.steps,
        epochs=result.epochs,
        tokens=result.tokens,
        seconds=result.seconds,
        parameters=result.parameters,
        numbers=collect_numbers(result, one.curves) | scalars.pop("input"),
        curves=one.curves,
        initial=result.initial_sha256,
        notes=result.notes,
        others=scalars,
        stopped_early=result.stopped_early,
        task=result.task,
        quality=result.quality,
    )


def collect_scalars(analysis: Analysis, priors: Priors) -> dict[str, float]:
    """Collect defined scalars by name, with distances of the spectrum from the priors in use."""
    found = {s.name: s.value for s in analysis.scalars if s.value is not None}
    if SINGULAR_VALUES not in analysis:
        return found
    curve = analysis[SINGULAR_VALUES]
    if isinstance(curve, Series) and "uncentered" in curve.y:
        sigma = curve.y["uncentered"]
        for kind, settings in priors.items():
            distance = prior_distance(sigma, prior(kind, len(sigma), settings))
            if math.isfinite(distance):
                found[PRIOR[kind].name] = distance
    return found


def describe_tried(method: StudyMethod) -> Iterator[str]:
    """Describe each tuned setting of a method, and the values that were not taken."""
    for setting in dict.fromkeys(one.setting for one in method.tried):
        tried = [one for one in method.tried if one.setting == setting]
        found = ", ".join(
            f"{spell_value(one.value)}: "
            f"{'failed' if one.score is None else format_number(one.score)}"
            for one in tried
        )
        (best,) = (one.value for one in tried if one.chosen)
        values = [one.value for one in tried]
        ordered = len(values) > 1 and all(is_number(value) for value in values)
        at_end = ordered and best in (min(values), max(values))
        more = "; it is at the end of these, so that a better one may lie beyond" if at_end else ""
        yield (
            f"{method.name}: {setting} {spell_value(best)}, by the validation "
            f"{tried[0].score_name} of a seed apart ({found}){more}"
        )


def spell_value(value: object) -> str:
    """Return a value of a setting, short.

    >>> spell_value(0.001), spell_value([0.1, 0.1])
    ('0.001', '0.1/0.1')
    """
    if isinstance(value, list | tuple):
        return "/".join(map(spell_value, value))
    return f"{value:g}" if is_number(value) else str(value)


def list_quantities(trained: Sequence[FinishedRun], runs: Sequence[Run]) -> tuple[Quantity, ...]:
    """List definitions of all numbers of the runs, those of training first."""
    held = {name for run in runs for own in (run.numbers, *run.others.values()) for name in own}
    found = {q.name: q for q in QUANTITIES if q.name in held}
    for one in trained:
        found |= {q.name: q for q in one.result.quantities if q.name in held}
        for scalar in (scalar for each in one.analyses.values() for scalar in each.scalars):
            if scalar.name in held:
                found.setdefault(scalar.name, scalar.quantity)
    return tuple(found.values())


def list_notes(corpus: Mapping[str, Any], runs: Sequence[Run]) -> tuple[str, ...]:
    """List notes for the reader: the text, seeds in common, notes shared by all runs."""
    found = [f"text: {note}" for note in corpus.get("notes") or []]
    by_method = group_runs(runs)
    seeds = [{run.seed for run in own} for own in by_method.values()]
    if not set.intersection(*seeds):
        found.append("the methods have no seed in common: no embeddings are compared")
    untied = dict.fromkeys(run.method for run in runs if run.others)
    if untied:
        found.append(
            f"{', '.join(untied)}: more than one matrix, each with numbers of its own; a claim "
            "reads the one that its method acts on"
        )
    notes = {name: dict.fromkeys(chain(*(r.notes for r in own))) for name, own in by_method.items()}
    shared = set.intersection(*map(set, notes.values())) if len(notes) > 1 else set()
    found += [note for note in next(iter(notes.values())) if note in shared]
    for method, own in notes.items():
        found += [f"{method}: {note}" for note in own if note not in shared]
    return tuple(dict.fromkeys(found))


def warn_of_methods(runs: Sequence[Run]) -> tuple[StudyWarning, ...]:
    """Return all warnings, in the order of the methods."""
    by_method = group_runs(runs)
    split = quality_name(runs).partition(".")[0]
    found = [warn_of_unigram(method, own, split) for method, own in by_method.items()]
    found += [warn_of_long_rows(method, own) for method, own in by_method.items()]
    return tuple(warning for warning in found if warning is not None)


def warn_of_unigram(method: str, runs: Sequence[Run], split: str) -> StudyWarning | None:
    """Warn if a run of the method is not below the unigram perplexity of the split."""
    perplexity, unigram = f"{split}.perplexity", f"{split}.unigram"
    above = [
        run.numbers
        for run in runs
        if unigram in run.numbers and run.numbers.get(perplexity, 0.0) >= run.numbers[unigram]
    ]
    if not above:
        return None
    worst = max(above, key=lambda numbers: numbers[perplexity])
    return StudyWarning(
        "not_below_unigram",
        method,
        f"{method}: {count_runs(above, runs)}perplexity {format_number(worst[perplexity])} is not "
        f"below that of a unigram model, {format_number(worst[unigram])}: it predicts no better "
        "than word frequencies do",
    )


def warn_of_long_rows(method: str, runs: Sequence[Run]) -> StudyWarning | None:
    """Warn if long rows alone make I1 at mean norm 1 low."""
    unit, rows = isotropy.I1_UNIT.name, isotropy.I1_UNIT_ROWS.name
    low = [
        run.numbers
        for run in runs
        if {unit, rows} <= run.numbers.keys()
        and PARTITION.state(run.numbers[unit]) == "degenerate"
        and PARTITION.state(run.numbers[rows]) == "healthy"
    ]
    if not low:
        return None
    worst = min(low, key=lambda numbers: numbers[unit])
    return StudyWarning(
        "long_rows",
        method,
        f"{method}: {count_runs(low, runs)}I1 at mean norm 1 is {format_number(worst[unit])} "
        f"because a few rows are long; I1 of unit rows is {format_number(worst[rows])}",
    )


def count_runs(some: Sequence[object], runs: Sequence[Run]) -> str:
    return "" if len(runs) == 1 else f"{len(some)} of {len(runs)} runs: "
