"""Campaigns of training: what the methods of the papers do, with seeds.

    python benchmarks/campaign.py overfit --data ptb [--runs FOLDER] [--out FOLDER] [--seeds N]
        [--set KEY=VALUE] [--jobs N]
    python benchmarks/campaign.py --decide

A campaign that was interrupted goes on when it is started again. At the end its numbers, notes
and settings are written to ``benchmarks/results/campaign-NAME.md``, ``.csv`` and ``.toml``;
``--summary`` writes them of the runs that are finished so far. The report stays with the runs.

Then, or with ``--decide`` alone, the claims of all campaigns are decided together from these
numbers, with Holm's correction over all of them: ``benchmarks/results/claims.csv``, of which
``docs/make_claims.py`` makes the tables. Intervals over the text are those of the runs.
"""

from __future__ import annotations

import argparse
import csv
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import embgeo
from embgeo.core.errors import RunFailed
from embgeo.core.progress import RunMonitor
from embgeo.report.study_tables import MATRICES, heads
from embgeo.report.text.study import table
from embgeo.result.saved import JSON_NAME
from embgeo.training.loop.checkpoint import run_folder
from embgeo.training.methods import METHODS
from embgeo.training.settings import StudySettings, read_settings
from embgeo.training.study.claims import TIME
from embgeo.training.study.deciding import (
    adjust_claims,
    compare_with_control,
    decide_claims,
    judge_learning,
    quality_name,
)
from embgeo.training.study.record import ClaimOutcome, Run, Study
from embgeo.training.study.run_result import is_finished
from embgeo.training.study.wording import describe_quality
from embgeo.training.tasks import TASKS
from embgeo.workflows.train import make_study, prepare
from embgeo.workflows.train_settings import parse_assignment

RESULTS = Path(__file__).parent / "results"
CLAIMS_NAME = "claims.csv"
COLUMNS = (
    "campaign",
    "key",
    "source",
    "claim",
    "method",
    "control",
    "matrix",
    "check",
    "verdict",
    "cause",
    "reason",
    "relative",
    "seeds",
    "difference",
    "low",
    "high",
    "text_low",
    "text_high",
    "share",
    "detectable",
    "tried",
    "tried_control",
    "p",
    "p_holm",
    "published",
)
#: Whether a run had converged, among its numbers.
CONVERGED = "converged"
#: Campaigns whose claims are those of others: `grids` trains the methods of `overfit` again.
WITHOUT_CLAIMS = ("grids",)
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
#: A Transformer as in the papers: normalization after each addition, sinusoidal positions, ReLU,
#: one matrix, label smoothing. It shows a cone where most words are rare.
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
        "activation": "relu",
    },
    "optimizer": {
        "kind": "adamw",
        "weight_decay": 0.0,
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


def write_summary(name: str, campaign: Campaign, study: Study, runs: Path, out: Path) -> None:
    """The page of a campaign, its numbers as CSV, and its settings."""
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
    yield f"Text: {corpus['name']}, {corpus['rows']:,} rows; {corpus['unit']}: {tokens}."
    yield f"{', '.join(f'{key} {value}' for key, value in versions.items())}; {platform.machine()}."
    yield ""
    yield "```text"
    yield from table(study)
    yield "```"
    yield from describe_differences(study, quality_name(study.runs))
    yield ""
    yield from (f"- {note}" for note in study.notes)
    yield ""
    yield "[Claims of the papers](claims.md) are decided over all campaigns."


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


def read_saved(name: str, out: Path) -> tuple[list[Run], StudySettings]:
    """The runs and the settings of a saved campaign; variants of methods are left out."""
    settings = read_settings(out / f"campaign-{name}.toml")
    with (out / f"campaign-{name}.csv").open(newline="", encoding="utf-8") as stream:
        runs = read_csv(csv.DictReader(stream), settings.task.name)
    return [run for run in runs if run.method in METHODS], settings


def read_csv(lines: Iterable[Mapping[str, str]], task: str) -> list[Run]:
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
            stopped_early=bool(roles[""].pop(CONVERGED, 0.0)),
            numbers=roles.pop(""),
            others=roles,
            task=task,
            quality=quality,
        )
        for (method, seed), roles in found.items()
    ]


def decide_all(out: Path, study: Study | None = None, name: str = "") -> None:
    """Decide the claims of all saved campaigns together.

    `study`: the runs of the campaign `name`, which have intervals over the text; those of others
    are kept as they are.
    """
    known = read_claims(out / CLAIMS_NAME)
    texts = {(row["campaign"], row["key"], row["method"]): row for row in known}
    rows: list[tuple[str, ClaimOutcome]] = []
    seen: set[tuple[Any, ...]] = set()
    for campaign in CAMPAIGNS:
        if campaign in WITHOUT_CLAIMS or not (out / f"campaign-{campaign}.csv").is_file():
            continue
        runs, settings = read_saved(campaign, out)
        trained = (settings.model.name, Path(settings.data.path).name)
        trials = {method: sum(map(len, settings.list_tuned(method).values())) for method in METHODS}
        given = study.outcomes if study is not None and campaign == name else ()
        own = {(one.key, one.method): one.text_interval for one in given}
        for one in decide_claims(runs, trained=trained, trials=trials):
            # A campaign takes hours, next to whatever else the machine does: no claim about time.
            if one.number == TIME:
                continue
            values = list_values(runs, one)
            if seen & values:
                one = replace(one, cause="same_runs", alone="not decidable", p_value=None)
            seen |= values
            before = texts.get((campaign, one.key, one.method), {})
            ends = before.get("text_low"), before.get("text_high")
            text = (float(ends[0]), float(ends[1])) if ends[0] and ends[1] else None
            rows.append(
                (campaign, replace(one, text_interval=own.get((one.key, one.method), text)))
            )
    decided = adjust_claims([one for _, one in rows])
    with (out / CLAIMS_NAME).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (campaign, _), one in zip(rows, decided, strict=True):
            writer.writerow(list_cells(campaign, one))


def read_claims(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def list_values(runs: Sequence[Run], one: ClaimOutcome) -> set[tuple[Any, ...]]:
    """What a claim is decided by: campaigns with the same model and text may share runs."""
    found = set()
    for seed in {run.seed for run in runs}:
        values = [
            run.select_numbers(one.role).get(one.number)
            for method in (one.reference, one.method)
            for run in runs
            if (run.method, run.seed) == (method, seed)
        ]
        if len(values) == 2 and None not in values:
            found.add((one.key, one.method, seed, *values))
    return found


def list_cells(campaign: str, one: ClaimOutcome) -> list[Any]:
    low, high = one.interval or (None, None)
    text_low, text_high = one.text_interval or (None, None)
    return [
        campaign,
        one.key,
        one.source,
        one.text,
        one.method,
        one.reference,
        MATRICES[one.role] if one.role else "",
        "check" if one.sanity else "",
        one.verdict,
        one.cause or "",
        one.reason,
        "relative" if one.relative else "",
        one.seeds,
        *(round_cell(v) for v in (one.difference, low, high, text_low, text_high)),
        *(round_cell(v) for v in (one.share, one.detectable)),
        one.trials,
        one.reference_trials,
        *(round_cell(v) for v in (one.p_value, one.p_adjusted)),
        one.published,
    ]


def round_cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def write_csv(study: Study, writer: Any) -> None:
    """The numbers of every run that the report's tables hold, one a line."""
    names = {head.name for head in heads(study)} | {one.number for one in study.outcomes}
    names -= {TIME}
    writer.writerow(["method", "seed", "matrix", "name", "value"])
    for run in study.runs:
        converged = judge_learning(run) == "converged"
        writer.writerow([run.method, run.seed, "", CONVERGED, float(converged)])
        for matrix, numbers in (("", run.numbers), *run.others.items()):
            for name, value in numbers.items():
                if name in names:
                    writer.writerow([run.method, run.seed, matrix, name, repr(value)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=CAMPAIGNS, nargs="?")
    parser.add_argument("--data", type=Path, help="the text")
    parser.add_argument("--runs", type=Path, help="folder of the runs; NAME.runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, help="in place of the campaign's own")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="own")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    parser.add_argument("--decide", action="store_true", help="only decide the claims again")
    options = parser.parse_args()
    if options.decide:
        decide_all(options.out)
        return
    if options.name is None or options.data is None:
        parser.error("the name of a campaign or --data is missing")
    campaign = CAMPAIGNS[options.name]
    runs = options.runs or Path(f"{options.name}.runs")
    arguments = request(campaign, options.data, runs, options.seeds, options.own)
    study = read_finished(arguments) if options.summary else train(arguments, options.jobs)
    write_summary(options.name, campaign, study, runs, options.out)
    decide_all(options.out, study, options.name)


if __name__ == "__main__":
    main()
