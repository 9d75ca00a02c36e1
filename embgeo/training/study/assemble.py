"""From finished runs and the analyses of their embeddings to a comparison of methods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from embgeo.core.quantities import spectrum, subspace
from embgeo.core.values import Quantity, Series
from embgeo.result.analysis import Analysis
from embgeo.training.study.deciding import decide_claims, describe_methods
from embgeo.training.study.numbers import PRIOR, QUANTITIES, prior, prior_distance
from embgeo.training.study.run_result import FinishedRun
from embgeo.training.study.training import Run, StudyMethod, Training
from embgeo.training.study.warnings import warn_of_methods

#: The method that spectra are held against the prior of.
PRIOR_OF = {"exponential": "sc-exp", "polynomial": "sc-poly"}
SINGULAR_VALUES = spectrum.SINGULAR_VALUES.name
#: What only a model with two matrices has.
OF_TWO = subspace.DISTANCE.name


def assemble_study(
    trained: Sequence[FinishedRun],
    references: Mapping[str, str],
    titles: Mapping[str, str],
    provenance: Mapping[str, Any],
    lost: Sequence[str] = (),
) -> Training:
    """Methods side by side.

    Parameters
    ----------
    trained : sequence of FinishedRun
        StudyMethod by method, within one by seed; the baseline first.
    references : mapping of str to str
        By method, what it is held against; empty for the baseline.
    titles : mapping of str to str
        By method, what people call it.
    provenance : mapping
        Command, settings, versions; what is known of the text is added.
    lost : sequence of str
        Runs that did not come to their end, and why.
    """
    if not trained:
        raise ValueError("nothing was trained")
    priors = prior_settings(trained)
    runs = tuple(run_of(one, priors) for one in trained)
    methods = tuple(
        method_of(name, titles.get(name, name), references.get(name, ""), trained)
        for name in dict.fromkeys(one.method for one in trained)
    )
    first = trained[0].result
    training = Training(
        provenance={
            **provenance,
            "corpus": dict(first.corpus),
            "versions": dict(first.versions),
        },
        quantities=quantities(trained, runs),
        methods=methods,
        runs=runs,
        outcomes=decide_claims(runs),
        warnings=warn_of_methods(runs),
        notes=(*(f"{one}; no number here knows it" for one in lost), *notes(trained, runs)),
    )
    return replace(training, sentences=describe_methods(training))


def run_of(one: FinishedRun, priors: Mapping[str, Mapping[str, Any]]) -> Run:
    result = one.result
    scalars = {s.name: s.value for s in one.analysis.scalars if s.value is not None}
    return Run(
        method=one.method,
        seed=result.seed,
        folder=one.folder,
        steps=result.steps,
        epochs=result.epochs,
        tokens=result.tokens,
        seconds=result.seconds,
        parameters=result.parameters,
        numbers={
            **one.numbers,
            **scalars,
            **from_priors(one.analysis, priors),
        },
        curves=one.curves,
        initial=result.initial_sha256,
        notes=result.notes,
    )


def prior_settings(trained: Iterable[FinishedRun]) -> dict[str, Mapping[str, Any]]:
    """Settings of the priors by kind, of the methods of spectrum control that were trained."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in trained:
        for kind, name in PRIOR_OF.items():
            if one.method == name:
                found[kind] = one.result.own_settings
    return found


def from_priors(analysis: Analysis, priors: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Distance of the spectrum from each prior that some method followed."""
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


def method_of(name: str, title: str, reference: str, trained: Sequence[FinishedRun]) -> StudyMethod:
    result = next(one for one in trained if one.method == name).result
    return StudyMethod(
        name,
        title,
        reference,
        result.source,
        result.own_settings,
        result.deviations,
    )


def quantities(trained: Sequence[FinishedRun], runs: Sequence[Run]) -> tuple[Quantity, ...]:
    """The facts of every number that some run holds; those of trainings first."""
    held = {name for run in runs for name in run.numbers}
    found = {q.name: q for q in QUANTITIES if q.name in held}
    for one in trained:
        for scalar in one.analysis.scalars:
            if scalar.name in held:
                found.setdefault(scalar.name, scalar.quantity)
    return tuple(found.values())


def notes(trained: Sequence[FinishedRun], runs: Sequence[Run]) -> tuple[str, ...]:
    """What a reader has to know: the text, one seed only, notes that all runs share."""
    corpus = trained[0].result.corpus
    said = [f"text: {note}" for note in corpus.get("notes") or []]
    if len({run.seed for run in runs}) == 1:
        said.append(
            "one seed: differences between methods may be chance; --seeds 3 tells them apart"
        )
    seeds = [{run.seed for run in runs if run.method == one} for one in {r.method for r in runs}]
    if not set.intersection(*seeds):
        said.append("the methods have no seed in common: no embeddings are held side by side")
    untied = dict.fromkeys(run.method for run in runs if OF_TWO in run.numbers)
    if untied:
        said.append(
            f"{', '.join(untied)}: two matrices; the geometry here is that of the input embedding, "
            "and the output matrix may have another"
        )
    by_method: dict[str, dict[str, None]] = {}
    for run in runs:
        by_method.setdefault(run.method, {}).update(dict.fromkeys(run.notes))
    shared = [n for n in next(iter(by_method.values())) if all(n in m for m in by_method.values())]
    said += shared if len(by_method) > 1 else []
    for method, own in by_method.items():
        said += [f"{method}: {note}" for note in own if len(by_method) == 1 or note not in shared]
    return tuple(dict.fromkeys(said))
