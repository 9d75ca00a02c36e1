"""Made-up runs of a training, as folders and as their result, for tests of whatever reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from embgeo.comparison.compare import compare
from embgeo.comparison.comparison import Comparison, Member
from embgeo.result.analysis import Analysis
from embgeo.training.study.assemble import assemble_study
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.record import Run, Study, StudyMethod
from embgeo.training.study.run_result import (
    OUTPUT_FOLDER,
    RESULT_NAME,
    RUN_RESULT,
    FinishedRun,
    RunResult,
    read_run,
)
from tests.support.sample_analysis import HOSTILE, Shape, sample, sample_matrix

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


def shape_of(made: Made) -> Shape:
    return "cone" if made.method in ("mle", "output") else "isotropic"


def analysis_of(made: Made, *, hostile: bool = False) -> Analysis:
    return sample(shape_of(made), hostile=hostile, seed=made.seed)


def train_sample(made: Made, *, hostile: bool = False) -> FinishedRun:
    """A run as it is read."""
    with TemporaryDirectory() as study:
        return read_run(Path(study), write_run(Path(study), made, hostile=hostile))


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
    return compare(
        [
            (
                Member(
                    made.method, f"runs/{made.method}", analysis_of(made, hostile=hostile), True
                ),
                sample_matrix(shape_of(made), hostile=hostile, seed=made.seed),
            )
            for made in made_runs(methods, 1)
        ]
    )


def run(method: str, seed: int, **numbers: float) -> Run:
    """A run that is nothing but its numbers; dots of names are written as double underscores."""
    held = {name.replace("__", "."): value for name, value in numbers.items()}
    return Run(method, seed, f"{method}/seed-{seed}", 1, 1.0, 1, 1.0, numbers=held)
