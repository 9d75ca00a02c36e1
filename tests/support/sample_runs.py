"""Made-up runs of a training, as folders and as their result, for tests of whatever reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.comparison.comparison import Comparison, Member
from embgeo.result.analysis import Analysis
from embgeo.training.study.assemble import assemble_study
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.record import Role, Run, Study, StudyMethod
from embgeo.training.study.run_result import (
    OUTPUT_FOLDER,
    RESULT_NAME,
    RUN_RESULT,
    FinishedRun,
    RunResult,
    thin_curves,
)
from tests.support.sample_analysis import HOSTILE, sample
from tests.support.sample_comparison import differences, pair

#: With an output matrix of their own.
UNTIED = ("untied", "al")
#: Of the test split of all samples: between those of the methods.
UNIGRAM = 107.0
REFERENCES = {"mle": "", "cosreg": "mle", "sc-exp": "mle", "untied": "mle", "al": "untied"}


@dataclass(frozen=True)
class Made:
    """One run: which method, which seed, how good."""

    method: str
    seed: int
    perplexity: float


def result(made: Made, *, hostile: bool = False) -> RunResult:
    p = made.perplexity
    text = HOSTILE[0] if hostile else "a note"
    return RunResult(
        method=made.method,
        seed=made.seed,
        steps=400,
        epochs=2.5,
        tokens=240_000,
        seconds=61.25,
        parameters=365_496,
        valid={
            "perplexity": p + 4,
            "loss": np.log(p + 4),
            "rare": 9 * p,
            "popular": p / 2,
            "unigram": 110.0,
        },
        test={
            "perplexity": p,
            "loss": np.log(p),
            "rare": 10 * p,
            "popular": p / 2.1,
            "unigram": UNIGRAM,
        },
        settings={
            "model": {"name": "awd-lstm", "d": 16},
            "method": {made.method: {"gamma": 2.0}} if made.method == "cosreg" else {},
        },
        source=HOSTILE[1] if hostile else "Author 2020, Eq. 6",
        deviations=(HOSTILE[2],) if hostile else ("rows of norm zero are left out",),
        notes=(text,),
        versions={"embgeo": "0.1.0", "torch": "2.13.0"},
        command="embgeo train",
        corpus={
            "name": HOSTILE[0] if hostile else "pydocs",
            "unit": "sentences",
            "rows": 600,
            "tokens": {"train": 430_000, "valid": 24_000, "test": 24_000},
            "files": {"pydocs.txt": "0" * 64},
            "notes": ["a twentieth for validation", f"scored by BLEU|{'tok:13a|' * 9}"],
        },
        initial_sha256=f"{made.seed:064x}",
    )


def log_lines(made: Made) -> str:
    """The content of ``metrics.jsonl``."""
    lines = []
    for step in range(0, 401, 100):
        left = 1.0 - step / 500.0
        lines.append({"step": step, "cosine.mean": 0.2 * left + 0.01 * made.seed})
        if step:
            lines.append(
                {
                    "step": step,
                    "train.loss": 4.0 + left,
                    "train.tokens_per_second": 20_000.0,
                    "valid.perplexity": made.perplexity * (1.0 + max(left - 0.4, 0.0)),
                }
            )
    return "".join(json.dumps(line) + "\n" for line in lines)


def write_run(folder: Path, made: Made, *, hostile: bool = False) -> Path:
    """The folder of a run, without its model."""
    home = folder / made.method / f"seed-{made.seed}"
    home.mkdir(parents=True)
    (home / RESULT_NAME).write_text(
        RUN_RESULT.text(result(made, hostile=hostile)), encoding="utf-8"
    )
    (home / LOG_NAME).write_text(log_lines(made), encoding="utf-8")
    analysis_of(made, hostile=hostile).save(home)
    if made.method in UNTIED:
        analysis_of(Made("output", made.seed, 0.0)).save(home / OUTPUT_FOLDER)
    return home


@cache
def _sample(shape: Any, hostile: bool, seed: int) -> Analysis:
    return sample(shape, hostile=hostile, seed=seed)


def analysis_of(made: Made, *, hostile: bool = False) -> Analysis:
    cone = made.method in ("mle", "output")
    return _sample("cone" if cone else "isotropic", hostile, made.seed)


def train_sample(made: Made, *, hostile: bool = False) -> FinishedRun:
    """A run as it is read, without files."""
    curves: dict[str, dict[float, float]] = {}
    for line in log_lines(made).splitlines():
        entry = json.loads(line)
        step = entry.pop("step")
        for name, value in entry.items():
            curves.setdefault(name, {})[float(step)] = value
    kept = thin_curves(
        {n: (np.array(list(c)), np.array(list(c.values()))) for n, c in curves.items()}
    )
    own = result(made, hostile=hostile)
    place = f"{made.method}/seed-{made.seed}"
    analyses: dict[Role, Analysis] = {"input": analysis_of(made, hostile=hostile)}
    if made.method in UNTIED:
        analyses["output"] = analysis_of(Made("output", made.seed, 0.0))
    return FinishedRun(place, own, kept, analyses)


#: Perplexity of each method in the samples, and how far apart its seeds are.
SAMPLES = {
    "mle": (100.0, 1.0),
    "cosreg": (96.0, 1.1),
    "sc-exp": (108.0, 0.9),
    "untied": (104.0, 1.0),
    "al": (103.9, 1.6),
}


def made_runs(methods: tuple[str, ...], seeds: int) -> list[Made]:
    return [
        Made(method, seed, middle + spread * seed)
        for method in methods
        for middle, spread in [SAMPLES[method]]
        for seed in range(seeds)
    ]


def study_methods(methods: tuple[str, ...], *, hostile: bool = False) -> list[StudyMethod]:
    """Methods as a workflow names them."""
    return [
        StudyMethod(
            name,
            HOSTILE[2] if hostile else name.upper(),
            REFERENCES[name] if REFERENCES[name] in methods else "",
        )
        for name in methods
    ]


@cache
def sample_training(
    *, methods: tuple[str, ...] = ("mle", "cosreg", "sc-exp"), seeds: int = 3, hostile: bool = False
) -> Study:
    """Methods side by side."""
    runs = [train_sample(made, hostile=hostile) for made in made_runs(methods, seeds)]
    settings = runs[0].result.settings
    return assemble_study(
        runs,
        study_methods(methods, hostile=hostile),
        {"command": "embgeo train --data pydocs.txt", "settings": settings},
    )


@cache
def embeddings(
    *, methods: tuple[str, ...] = ("mle", "cosreg", "sc-exp"), hostile: bool = False
) -> Comparison:
    """The embeddings of the first seed side by side."""
    members = tuple(
        Member(made.method, f"runs/{made.method}", analysis_of(made, hostile=hostile), True)
        for made in made_runs(methods, 1)
    )
    pairs = tuple(pair(members, 0, place, True) for place in range(1, len(members)))
    return Comparison(
        {"command": "", "versions": {}}, members, pairs, differences=differences(members)
    )


def run(method: str, seed: int, **numbers: float) -> Run:
    """A run that is nothing but its numbers; dots of names are written as double underscores."""
    held = {name.replace("__", "."): value for name, value in numbers.items()}
    return Run(method, seed, f"{method}/seed-{seed}", 1, 1.0, 1, 1.0, numbers=held)
