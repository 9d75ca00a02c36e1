"""Assemble the comparison of methods from finished runs and the analyses of their embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from embgeo.core.quantities import spectrum
from embgeo.core.values import Quantity, Series, format_number
from embgeo.result.analysis import Analysis
from embgeo.training.study.deciding import decide_claims, describe_methods
from embgeo.training.study.document_outcomes import DocumentOutcomes, compare_documents
from embgeo.training.study.numbers import PRIOR, QUANTITIES, prior, prior_distance
from embgeo.training.study.run_result import FinishedRun, RunResult
from embgeo.training.study.samples import Samples, SamplesByMethod
from embgeo.training.study.training import Run, StudyMethod, Training
from embgeo.training.study.warnings import warn_of_methods

#: The method whose prior spectra are compared with.
PRIOR_OF = {"exponential": "sc-exp", "polynomial": "sc-poly"}
SINGULAR_VALUES = spectrum.SINGULAR_VALUES.name


def assemble_study(
    trained: Sequence[FinishedRun],
    methods: Sequence[StudyMethod],
    provenance: Mapping[str, Any],
    lost: Sequence[str] = (),
) -> Training:
    """Methods side by side.

    `trained`: method by method, within one by seed; the baseline first. `methods`: name, title,
    reference and role of each that was trained, in the same order; the rest is taken from the
    results. `provenance`: command, settings, versions; what is known of the text is added. `lost`:
    runs that did not come to their end, and why.
    """
    if not trained:
        raise ValueError("nothing was trained")
    priors = prior_settings(trained)
    runs = tuple(run_of(one, priors) for one in trained)
    first = trained[0].result
    samples = group_samples(trained)
    training = Training(
        provenance={
            **provenance,
            "corpus": dict(first.corpus),
            "versions": dict(first.versions),
        },
        quantities=quantities(trained, runs),
        methods=tuple(complete_method(method, trained) for method in methods),
        runs=runs,
        outcomes=decide_claims(runs, samples=samples, trained=name_trained(first)),
        warnings=warn_of_methods(runs),
        notes=(
            *(f"{one}; no number here knows it" for one in lost),
            *(describe_tried(method) for method in methods if method.tried),
            *describe_documents(methods, samples),
            *notes(trained, runs),
        ),
    )
    return replace(training, sentences=describe_methods(training))


def name_trained(result: RunResult) -> tuple[str, str]:
    """Names of model and corpus, as used by published numbers."""
    model = result.settings.get("model", {})
    mixture = "-mos" if model.get("experts", 1) > 1 else ""
    return f"{model.get('name', '')}{mixture}", str(result.corpus.get("name", ""))


def run_of(one: FinishedRun, priors: Mapping[str, Mapping[str, Any]]) -> Run:
    result = one.result
    return Run(
        method=one.method,
        seed=result.seed,
        folder=one.folder,
        steps=result.steps,
        epochs=result.epochs,
        tokens=result.tokens,
        seconds=result.seconds,
        parameters=result.parameters,
        numbers={**one.numbers, **collect_scalars(one.analysis, priors)},
        curves=one.curves,
        initial=result.initial_sha256,
        notes=result.notes,
        others={role: collect_scalars(each, priors) for role, each in one.others.items()},
        stopped_early=result.stopped_early,
        task=result.task,
        quality=result.quality,
    )


def group_samples(trained: Sequence[FinishedRun]) -> dict[str, dict[int, Samples]]:
    """Samples for bootstraps, by method and seed."""
    found: dict[str, dict[int, Samples]] = {}
    for one in trained:
        if one.samples is not None:
            found.setdefault(one.method, {})[one.result.seed] = one.samples
    return found


def describe_documents(methods: Sequence[StudyMethod], samples: SamplesByMethod) -> Iterator[str]:
    """McNemar's test of each method of classification against its reference."""
    documents = {
        method: {seed: one for seed, one in held.items() if isinstance(one, DocumentOutcomes)}
        for method, held in samples.items()
    }
    for method in methods:
        before, after = (documents.get(name, {}) for name in (method.reference, method.name))
        if said := compare_documents(before, after):
            yield (
                f"{method.name} against {method.reference}, documents that one of both alone gives "
                f"their class (McNemar's exact test): {said}"
            )


def collect_scalars(
    analysis: Analysis, priors: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Defined scalars by name, with the distances from priors."""
    scalars = {s.name: s.value for s in analysis.scalars if s.value is not None}
    return {**scalars, **from_priors(analysis, priors)}


def prior_settings(trained: Iterable[FinishedRun]) -> dict[str, Mapping[str, Any]]:
    """Settings of the priors of the trained methods of spectrum control, by kind.

    A prior that was fitted to the start of a run (target "own") is in no settings.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for one in trained:
        for kind, name in PRIOR_OF.items():
            if one.method == name and one.result.own_settings.get("target") != "own":
                found[kind] = one.result.own_settings
    return found


def from_priors(analysis: Analysis, priors: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Distance of the spectrum from each prior in use."""
    if SINGULAR_VALUES not in analysis:
        return {}
    curve = analysis[SINGULAR_VALUES]
    if not isinstance(curve, Series) or "uncentered" not in curve.y:
        return {}
    sigma = curve.y["uncentered"]
    found = {
        PRIOR[kind].name: prior_distance(sigma, prior(kind, len(sigma), settings))
        for kind, settings in priors.items()
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def complete_method(method: StudyMethod, trained: Sequence[FinishedRun]) -> StudyMethod:
    """Describe a method by the source, settings and deviations of its runs."""
    result = next(one for one in trained if one.method == method.name).result
    return replace(
        method,
        source=result.source,
        settings=result.own_settings,
        deviations=result.deviations,
    )


def describe_tried(method: StudyMethod) -> str:
    """Learning rate of a method, and the candidates."""
    rates = [one.lr for one in method.tried]
    found = ", ".join(
        f"{one.lr:g}: {'diverged' if one.perplexity is None else format_number(one.perplexity)}"
        for one in method.tried
    )
    (best,) = (one.lr for one in method.tried if one.chosen)
    at_end = len(rates) > 1 and best in (min(rates), max(rates))
    more = "; it is at the end of these, so that a better one may lie beyond" if at_end else ""
    return f"{method.name}: learning rate {best:g}, by the validation perplexity ({found}){more}"


def quantities(trained: Sequence[FinishedRun], runs: Sequence[Run]) -> tuple[Quantity, ...]:
    """Quantities of all numbers of the runs, those of training first."""
    held = {name for run in runs for own in (run.numbers, *run.others.values()) for name in own}
    found = {q.name: q for q in QUANTITIES if q.name in held}
    for one in trained:
        found |= {q.name: q for q in one.result.quantities if q.name in held}
        analyses = (one.analysis, *one.others.values())
        for scalar in (scalar for analysis in analyses for scalar in analysis.scalars):
            if scalar.name in held:
                found.setdefault(scalar.name, scalar.quantity)
    return tuple(found.values())


def notes(trained: Sequence[FinishedRun], runs: Sequence[Run]) -> tuple[str, ...]:
    """Notes for the reader: the text, a single seed, notes shared by all runs."""
    corpus = trained[0].result.corpus
    said = [f"text: {note}" for note in corpus.get("notes") or []]
    if len({run.seed for run in runs}) == 1:
        said.append(
            "one seed: differences between methods may be chance; --seeds 3 tells them apart"
        )
    seeds = [{run.seed for run in runs if run.method == one} for one in {r.method for r in runs}]
    if not set.intersection(*seeds):
        said.append("the methods have no seed in common: no embeddings are compared")
    untied = dict.fromkeys(run.method for run in runs if run.others)
    if untied:
        said.append(
            f"{', '.join(untied)}: more than one matrix, each with numbers of its own; a claim "
            "reads the one that its method acts on"
        )
    by_method: dict[str, dict[str, None]] = {}
    for run in runs:
        by_method.setdefault(run.method, {}).update(dict.fromkeys(run.notes))
    shared = [n for n in next(iter(by_method.values())) if all(n in m for m in by_method.values())]
    said += shared if len(by_method) > 1 else []
    for method, own in by_method.items():
        said += [f"{method}: {note}" for note in own if len(by_method) == 1 or note not in shared]
    return tuple(dict.fromkeys(said))
