"""Campaigns of training: what the methods of the papers do, with seeds.

    python benchmarks/campaign.py overfit --data ptb [--runs FOLDER] [--out FOLDER] [--seeds N]
        [--set KEY=VALUE] [--jobs N]

A campaign that was interrupted goes on when it is started again. At the end its table of claims,
its numbers and its settings are written to ``benchmarks/results/campaign-NAME.md``, ``.csv`` and
``.toml``; ``--summary`` writes them of the runs that are finished so far. The report stays with the
runs. ``--decide`` decides the claims of a saved campaign again from its ``.csv``, by today's rules:
its intervals over the text are kept, and a campaign without early stopping has no curves there that
could show convergence.
"""

from __future__ import annotations

import argparse
import csv
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import embgeo
from embgeo.core.errors import RunFailed
from embgeo.core.numbers import format_optional
from embgeo.core.progress import RunMonitor
from embgeo.core.quantities import QUANTITIES as OF_ANALYSES
from embgeo.report.study_tables import ClaimRow, claim_rows, heads
from embgeo.report.text.study import table
from embgeo.result.saved import JSON_NAME
from embgeo.training.loop.checkpoint import run_folder
from embgeo.training.methods import METHODS
from embgeo.training.methods.definitions import find_method
from embgeo.training.settings import read_settings
from embgeo.training.study.claims import TIME
from embgeo.training.study.deciding import (
    adjust_claims,
    compare_with_control,
    decide_claims,
    describe_quality,
    quality_name,
)
from embgeo.training.study.numbers import QUANTITIES
from embgeo.training.study.record import Run, Study, StudyMethod
from embgeo.training.study.run_result import is_finished
from embgeo.training.tasks import TASKS, make_task
from embgeo.workflows.train import prepare
from embgeo.workflows.train_settings import parse_assignment
from embgeo.workflows.train_study import make_study

RESULTS = Path(__file__).parent / "results"
HEADS = (
    "claim",
    "published",
    "here",
    "difference (95% over seeds)",
    "95% over the text",
    "of the published",
    "p",
    "p, Holm",
    "detectable",
)
#: Early stopping in place of a number of steps, at one rate.
TO_THE_END = {
    "optimizer.schedule": "constant",
    "optimizer.lr": 3e-3,
    "training.steps": None,
    "training.epochs": 60,
    "training.keep": "best",
    "training.patience": 3,
    "evaluation.every": None,
    "geometry.every": None,
}
#: λ1 to λ4 of spectrum control, and ε of the adversarial softmax, before validation chose others.
ONES = {"frobenius": [1.0, 1.0], "spectral": [1.0, 1.0]}
BEFORE = {
    "method": {"sc-exp": ONES, "sc-poly": ONES, "adversarial": {"epsilon": 0.005}},
}
#: Methods at other settings: γ of CosReg; of spectrum control λ_e, λ1 to λ4 together, and c1. Wang
#: et al. give no c1: 4.0 keeps Σ at its norm, 10 and 20 have that of W in a trained `mle` and
#: `factored`.
GRID: dict[str, dict[str, Any]] = {
    "gamma-0_01": {"base": "cosreg", "gamma": 0.01},
    "gamma-0_1": {"base": "cosreg", "gamma": 0.1},
    "gamma-10": {"base": "cosreg", "gamma": 10.0},
    "prior-0_1": {**ONES, "base": "sc-exp", "strength": 0.1},
    "prior-10": {**ONES, "base": "sc-exp", "strength": 10.0},
    "prior-100": {**ONES, "base": "sc-exp", "strength": 100.0},
    "orthogonal-0_01": {"base": "sc-exp", "frobenius": [0.01, 0.01], "spectral": [0.01, 0.01]},
    "orthogonal-0_1": {"base": "sc-exp", "frobenius": [0.1, 0.1], "spectral": [0.1, 0.1]},
    "orthogonal-10": {"base": "sc-exp", "frobenius": [10.0, 10.0], "spectral": [10.0, 10.0]},
    "c1-10": {**ONES, "base": "sc-exp", "c1": 10.0},
    "c1-20": {**ONES, "base": "sc-exp", "c1": 20.0},
    "c1-free": {**ONES, "base": "sc-exp", "c1": "free"},
}
#: A Transformer without an output bias, whose common direction carries the frequencies of the
#: words: a cone in seconds. It stops when it overfits.
CONE: dict[str, Any] = {
    "data.size": 1000,
    "data.tokens": 8000,
    "model": {"name": "llama", "d": 48, "layers": 1, "heads": 4, "kv_heads": 2, "dropout": 0.2},
    "optimizer.lr": 5e-3,
    "training.epochs": 60,
    "training.batch": 20,
    "training.bptt": 16,
    "training.patience": 5,
    "evaluation.tokens": 6000,
    "geometry.every": None,
}
#: A Transformer as in the papers: normalization after each addition, sinusoidal positions, one
#: matrix, label smoothing. It shows a cone where most words are rare.
VASWANI: dict[str, Any] = {
    **{key: value for key, value in CONE.items() if key != "optimizer.lr"},
    "data.size": 5000,
    "data.tokens": 30_000,
    "task": {"smoothing": 0.1},
    "model": {
        "name": "transformer",
        "d": 48,
        "layers": 1,
        "heads": 4,
        "dropout": 0.2,
        "norm": "after",
        "positions": "sinusoidal",
    },
    "optimizer": {
        "kind": "adam",
        "lr": 5e-3,
        "betas": [0.9, 0.98],
        "schedule": "inverse-sqrt",
        "warm_up_steps": 100,
    },
}
#: Each method's own settings, then the rate, by validation.
OWN_GRID = {
    "method.cosreg.gamma": [0.1, 1.0, 10.0],
    **{
        f"method.{name}.{key}": values
        for name in ("sc-exp", "sc-poly")
        for key, values in {
            "strength": [0.1, 1.0, 10.0],
            "frobenius": [[0.01, 0.01], [0.1, 0.1], [1.0, 1.0]],
            "spectral": [[0.01, 0.01], [0.1, 0.1], [1.0, 1.0]],
        }.items()
    },
    "method.frage.lr": [1e-2, 1e-1],
    "method.frage.lambda_": [0.02, 0.1, 0.5],
    "method.adversarial.epsilon": [0.005, 0.02, 0.1],
}
OF_TIED = {f"method.{name}.gamma": [0.3, 0.65, 1.3] for name in ("al", "real")}
RATES = {"lr": [2.5e-3, 5e-3, 1e-2]}


@dataclass(frozen=True)
class Campaign:
    """Settings that are not those of the preset."""

    what: str
    preset: str
    seeds: int
    compare: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    tune: Mapping[str, Sequence[Any]] | None = None


CAMPAIGNS = {
    "overfit": Campaign(
        "models that fit 15,000 tokens and then overfit: minutes a seed on two cores",
        "overfit-cpu",
        5,
        ",".join(METHODS),
        BEFORE,
    ),
    "overfit-tuned": Campaign(
        "the same, each method at the settings that validation chooses",
        "overfit-cpu",
        3,
        "mle,untied,factored,cosreg,sc-exp,sc-poly,frage,al,re,real,adversarial",
        tune={**OWN_GRID, **OF_TIED},
    ),
    "ptb": Campaign(
        "Penn Treebank, 5,000 words, the first 300,000 tokens, until early stopping: hours",
        "tiny-cpu",
        3,
        "mle,untied,factored,cosreg,sc-exp,sc-poly,frage,al,re,real,adversarial,coupled-adam",
        {**TO_THE_END, **BEFORE, "data.size": 5000, "data.tokens": 300_000},
    ),
    "grids": Campaign(
        "γ of CosReg, λ and c₁ of spectrum control over the grids of the papers",
        "overfit-cpu",
        3,
        ",".join(["mle", "factored", "cosreg", "sc-exp", *GRID]),
        {"method": {**GRID, "sc-exp": ONES}},
    ),
    "skipgram": Campaign(
        "word vectors, judged by word similarity, with and without FRAGE: minutes a run",
        "skipgram-cpu",
        5,
    ),
    "imdb": Campaign(
        "classes of reviews, with and without FRAGE: minutes a run on one core",
        "imdb-cpu",
        5,
    ),
    "newsgroups": Campaign(
        "four groups of 20 Newsgroups, with and without FRAGE: minutes a run on one core",
        "20ng-cpu",
        5,
    ),
    "newsgroups-20": Campaign(
        "all twenty groups of 20 Newsgroups, with and without FRAGE: minutes a run on one core",
        "20ng-cpu",
        5,
        settings={"task.merge": []},
    ),
    "multi30k": Campaign(
        "translation of captions, German to English: minutes a run on two cores",
        "multi30k-cpu",
        3,
    ),
    "cone": Campaign(
        "a small Transformer that shows a cone, tied: every method at its own settings",
        "overfit-cpu",
        5,
        "mle,untied,factored,cosreg,sc-exp,sc-poly,frage,al,re,real,adversarial,coupled-adam",
        CONE,
        {**OWN_GRID, **OF_TIED, **RATES},
    ),
    "cone-untied": Campaign(
        "the same with two matrices",
        "overfit-cpu",
        5,
        "mle,factored,cosreg,sc-exp,sc-poly,frage,adversarial,coupled-adam",
        {**CONE, "model": {**CONE["model"], "tied": False}},
        {**OWN_GRID, **RATES},
    ),
    "cone-vaswani": Campaign(
        "a small Transformer as in the papers, with a cone: minutes a run",
        "overfit-cpu",
        3,
        "mle,factored,cosreg,sc-exp",
        VASWANI,
    ),
    "wt2": Campaign(
        "AWD-LSTM of the published size on WikiText-2, a twelfth of the cycle: minutes on a GPU",
        "wt2-cycle",
        3,
        "mle,cosreg",
        {"training.epochs": 12, "evaluation.every": 1000},
    ),
    "tiny-llama": Campaign(
        "a present language model, judged by bits per byte: minutes a run on two cores",
        "tiny-llama-cpu",
        3,
        "mle,coupled-adam,cosreg",
    ),
    "tiny-llama-untied": Campaign(
        "the same with two matrices",
        "tiny-llama-cpu",
        3,
        "mle,coupled-adam,cosreg",
        {"model.tied": False},
    ),
}


def request(
    campaign: Campaign,
    data: Path,
    runs: Path,
    seeds: int | None,
    own: Iterable[str] = (),
) -> dict[str, Any]:
    """The arguments of `embgeo.train`; `own` are settings such as ``task.wordsim=FOLDER``."""
    chosen = {".".join(keys): value for keys, value in map(parse_assignment, own)}
    return {
        "data": data,
        "preset": campaign.preset,
        "compare": campaign.compare,
        "settings": {**campaign.settings, **chosen},
        "seeds": seeds or campaign.seeds,
        "out": runs,
        "tune": campaign.tune,
        "resume": (runs / "train.toml").is_file(),
    }


def train(arguments: Mapping[str, Any], jobs: int) -> Study:
    """Every run of a campaign; those that are finished are kept."""
    trained = embgeo.train(**arguments, jobs=jobs, monitor=RunMonitor(say=print))
    assert trained is not None
    if trained.failed:
        print(f"failed: {', '.join(f'{name}, seed {seed}' for name, seed in trained.failed)}")
    return trained.study


def read_finished(arguments: Mapping[str, Any]) -> Study:
    """The study of the runs that are finished, with each method's own number of seeds."""
    settings, _, folder = prepare(**arguments)
    homes = {run: run_folder(folder, *run) for run in settings.runs}
    absent = {
        run: RunFailed("it is not finished")
        for run, home in homes.items()
        if not (is_finished(home) and (home / JSON_NAME).is_file())
    }
    if len(absent) == len(homes):
        raise SystemExit(f"{folder} holds no finished run")
    return make_study(settings, folder, absent, "")


def leave_out_times(study: Study) -> Study:
    """Without claims about time: a campaign takes hours, next to whatever else the machine does."""
    kept = [one for one in study.outcomes if one.number != TIME]
    return replace(study, outcomes=adjust_claims(kept))


def write_summary(name: str, campaign: Campaign, study: Study, runs: Path, out: Path) -> None:
    """The table of claims as Markdown and CSV, and the settings."""
    study = leave_out_times(study)
    out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(describe(name, campaign, study)) + "\n"
    (out / f"campaign-{name}.md").write_text(text, encoding="utf-8")
    with (out / f"campaign-{name}.csv").open("w", newline="", encoding="utf-8") as stream:
        write_csv(study, csv.writer(stream, lineterminator="\n"))
    settings = read_settings(runs / "train.toml")
    settings = settings.updated({"data": {"path": Path(settings.data.path).name}})
    if "wordsim" in settings.task.settings:
        folder = Path(settings.task.settings["wordsim"])
        settings = settings.updated({"task": {"wordsim": folder.name}})
    (out / f"campaign-{name}.toml").write_text(settings.text(), encoding="utf-8")


def describe(name: str, campaign: Campaign, study: Study) -> Iterator[str]:
    """The page of a campaign."""
    corpus, versions = study.provenance["corpus"], study.provenance["versions"]
    tokens = ", ".join(f"{split} {n:,}" for split, n in corpus["tokens"].items())
    yield f"# Campaign `{name}`: {campaign.what}"
    yield ""
    yield f"`python benchmarks/campaign.py {name}`, seeds {', '.join(map(str, study.seeds))}."
    yield f"Text: {corpus['name']}, {corpus['rows']:,} rows; tokens: {tokens}."
    yield f"{', '.join(f'{key} {value}' for key, value in versions.items())}; {platform.machine()}."
    yield ""
    yield "```text"
    yield from table(study)
    yield "```"
    quality = quality_name(study.runs)
    yield from describe_differences(study, quality)
    yield from describe_claims(study)


def describe_differences(study: Study, quality: str) -> Iterator[str]:
    """The difference of each method from its control; of those with factors also from `mle`."""
    yield f"\n| method | compared with | seeds | {describe_quality(quality)}, difference |"
    yield "|---|---|---|---|"
    for method in study.methods:
        for reference in dict.fromkeys((method.reference, "mle")):
            other = replace(method, reference=reference)
            held = compare_with_control(study, other, quality)
            if (
                held is not None
                and method.name != "mle"
                and method.reference in (reference, "factored")
            ):
                yield f"| `{method.name}` | `{reference}` | {held.seeds} | {held.text} |"


def describe_claims(study: Study) -> Iterator[str]:
    """The tables of claims, a paper after the other."""
    for source in dict.fromkeys(one.source.partition(",")[0] for one in study.outcomes):
        yield f"\n## {source}\n"
        yield f"| {' | '.join(HEADS)} |"
        yield "|---" * len(HEADS) + "|"
        for row in claim_rows(study):
            if row.paper == source:
                yield describe_claim(row)


def describe_claim(row: ClaimRow) -> str:
    """A line of the table of claims."""
    claim = row.outcome
    verdict = f"**{claim.verdict}**{' (a check)' if claim.sanity else ''}"
    if claim.verdict == "not decidable":
        verdict += f": {claim.reason}"
    cells = (
        f"{claim.text} ({row.methods})",
        claim.published or "no number",
        verdict,
        f"{row.difference} ({row.interval})" if row.interval else row.difference,
        row.text_interval or "–",
        row.share,
        format_optional(claim.p_value, 2),
        format_optional(claim.p_adjusted, 2),
        row.detectable,
    )
    return f"| {' | '.join(cells)} |"


def decide_again(name: str, out: Path) -> None:
    """Write the page of a saved campaign anew, with the claims decided from its numbers."""
    page = out / f"campaign-{name}.md"
    before = page.read_text(encoding="utf-8").splitlines()
    settings = read_settings(out / f"campaign-{name}.toml")
    early = settings.training.patience is not None
    with (out / f"campaign-{name}.csv").open(newline="", encoding="utf-8") as stream:
        runs = read_csv(csv.DictReader(stream), settings.task.name, early=early)
    defined = {name for name, table in settings.method.items() if {"base", "parts"} & {*table}}
    runs = [run for run in runs if run.method in METHODS or run.method in defined]
    names = list(dict.fromkeys(run.method for run in runs))  # without those of plug-ins
    found = {one: find_method(one, settings.method) for one in names}
    methods = [
        StudyMethod(one, m.title, m.reference if m.reference in names else "", m.role)
        for one, m in found.items()
    ]
    trained = (settings.model.name, Path(settings.data.path).name)
    outcomes = [
        one
        for one in decide_claims(runs, trained=trained)
        if one.number != TIME and one.cause != "no_number"
    ]
    study = Study({}, outcomes=adjust_claims(outcomes), methods=tuple(methods), runs=tuple(runs))
    study = replace(
        study, quantities=(*QUANTITIES, *OF_ANALYSES.values(), *make_task(settings).QUANTITIES)
    )
    # Of the old page stays what was trained, the table of numbers, and the intervals over the text.
    first = next(i for i, line in enumerate(before) if line.startswith("| method | compared"))
    rows = [line.split(" | ") for line in before]
    texts = {sides_of(row[0]): row[4] for row in rows if len(row) > 4}
    lines = [*before[: first - 1], *describe_differences(study, quality_name(study.runs))]
    others = (line for line in before if line.startswith("| `") and line.count("|") == 5)
    lines += [line for line in others if line.split("`")[1] not in names]
    for line in describe_claims(study):
        cells = line.split(" | ")
        known = texts.get(sides_of(cells[0]))
        if known is not None and len(cells) > 4 and cells[4] == "–":
            line = " | ".join((*cells[:4], known, *cells[5:]))
        lines += line.split("\n")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sides_of(claim: str) -> tuple[str, str]:
    """What the text interval of a claim depends on: its words, and its two methods."""
    about = re.sub(r" \((against|the) [^)]*\)", "", claim.rpartition(" (")[0])
    return about, claim.rpartition(" (")[2]


def read_csv(lines: Iterable[Mapping[str, str]], task: str, *, early: bool) -> list[Run]:
    """The runs of a campaign; `early` if early stopping ended all of them."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for line in lines:
        roles = found.setdefault((line["method"], int(line["seed"])), {"": {}})
        roles.setdefault(line["matrix"], {})[line["name"]] = float(line["value"])
    quality = TASKS[task].QUALITY
    return [
        Run(
            method,
            seed,
            "",
            1,
            1.0,
            1,
            0.0,
            numbers=roles.pop(""),
            others=roles,
            stopped_early=early,
            task=task,
            quality=quality,
        )
        for (method, seed), roles in found.items()
    ]


def write_csv(study: Study, writer: Any) -> None:
    """The numbers of every run that the report's tables hold, one a line."""
    names = {head.name for head in heads(study)} | {one.number for one in study.outcomes}
    names -= {TIME}
    writer.writerow(["method", "seed", "matrix", "name", "value"])
    for run in study.runs:
        for matrix, numbers in (("", run.numbers), *run.others.items()):
            for name, value in numbers.items():
                if name in names:
                    writer.writerow([run.method, run.seed, matrix, name, repr(value)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=CAMPAIGNS)
    parser.add_argument("--data", type=Path, help="the text")
    parser.add_argument("--runs", type=Path, help="folder of the runs; NAME.runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, help="in place of the campaign's own")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="own")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    parser.add_argument("--decide", action="store_true", help="only decide the claims again")
    options = parser.parse_args()
    campaign = CAMPAIGNS[options.name]
    if options.decide:
        decide_again(options.name, options.out)
        return
    if options.data is None:
        parser.error("--data is missing")
    runs = options.runs or Path(f"{options.name}.runs")
    arguments = request(campaign, options.data, runs, options.seeds, options.own)
    study = read_finished(arguments) if options.summary else train(arguments, options.jobs)
    write_summary(options.name, campaign, study, runs, options.out)


if __name__ == "__main__":
    main()
