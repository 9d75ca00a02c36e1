"""Campaigns of training: what the methods of the papers do, with seeds.

    python benchmarks/campaign.py overfit --data ptb [--runs FOLDER] [--out FOLDER] [--jobs N]
        [--set KEY=VALUE] [--variant NAME]
    python benchmarks/campaign.py --decide

A campaign is a file of settings, ``benchmarks/results/campaign-NAME.toml``. One that was
interrupted goes on when it is started again. At the end its notes and numbers are written to
``campaign-NAME.md`` and ``.csv`` beside it; ``--summary`` writes them of the runs that are finished
so far. The report stays with the runs.

Then, or with ``--decide`` alone, the claims of all campaigns are decided together from these
numbers, with Holm's correction over all of them: ``benchmarks/results/claims.csv``, of which
``docs/make_claims.py`` makes the tables. Intervals over the text are those of the runs.

Runs of a variant, such as other threads or kernels, are written to ``campaign-NAME.VARIANT.csv``
alone. Its claims are decided in place of those of the campaign, with those of all others:
``variants.csv``.
"""

from __future__ import annotations

import argparse
import csv
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from embgeo.training.registry import load_class
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

RESULTS = Path(__file__).parent / "results"
CLAIMS_NAME = "claims.csv"
#: Whether a run had converged, among its numbers.
CONVERGED = "converged"
#: Campaigns whose claims are those of others: `grids` trains the methods of `overfit` again.
WITHOUT_CLAIMS = ("grids",)
#: In the order in which their claims are decided: of runs that campaigns share, the first counts.
CAMPAIGNS = (
    "overfit",
    "overfit-tuned",
    "ptb",
    "grids",
    "skipgram",
    "imdb",
    "newsgroups",
    "newsgroups-20",
    "multi30k",
    "cone",
    "cone-untied",
    "cone-vaswani",
    "wt2",
    "tiny-llama",
    "tiny-llama-untied",
)


def request(name: str, data: Path, runs: Path, own: Iterable[str] = ()) -> dict[str, Any]:
    """The arguments of `embgeo.train`; `own` are settings such as ``task.wordsim=FOLDER``."""
    return {
        "data": data,
        "config": RESULTS / f"campaign-{name}.toml",
        "settings": list(own),
        "out": runs,
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


def write_summary(name: str, variant: str, study: Study, out: Path) -> None:
    """The numbers of a campaign or a variant as CSV, and the page of a campaign."""
    out.mkdir(parents=True, exist_ok=True)
    names = {head.name for head in heads(study)} | {one.number for one in study.outcomes}
    file = out / f"campaign-{name}{variant and '.'}{variant}.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        write_csv(study, names - {TIME}, csv.writer(stream, lineterminator="\n"))
    if not variant:
        text = "\n".join(describe(name, study)) + "\n"
        (out / f"campaign-{name}.md").write_text(text, encoding="utf-8")


def describe(name: str, study: Study) -> Iterator[str]:
    """The page of a campaign."""
    settings = (RESULTS / f"campaign-{name}.toml").read_text("utf-8")
    corpus, versions = study.provenance["corpus"], study.provenance["versions"]
    tokens = ", ".join(f"{split} {n:,}" for split, n in corpus["tokens"].items())
    yield f"# Campaign `{name}`: {settings.partition(chr(10))[0].removeprefix('# ')}"
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


def decide_saved(file: Path, settings: StudySettings) -> tuple[list[Run], tuple[ClaimOutcome, ...]]:
    """The saved runs of a campaign or a variant, and its claims; without variants of methods."""
    with file.open(newline="", encoding="utf-8") as stream:
        found = read_csv(csv.DictReader(stream), settings.task.name)
    runs = [run for run in found if run.method in METHODS]
    trained = (settings.model.name, Path(settings.data.path).name)
    trials = {method: sum(map(len, settings.list_tuned(method).values())) for method in METHODS}
    claims = decide_claims(runs, trained=trained, trials=trials)
    # A campaign takes hours, next to whatever else the machine does: no claim about time.
    return runs, tuple(one for one in claims if one.number != TIME)


def read_csv(lines: Iterable[Mapping[str, str]], task: str) -> list[Run]:
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for line in lines:
        roles = found.setdefault((line["method"], int(line["seed"])), {"": {}})
        roles.setdefault(line["matrix"], {})[line["name"]] = float(line["value"])
    quality = load_class(TASKS[task]).QUALITY
    return [
        Run(
            method,
            seed,
            stopped_early=bool(roles[""].pop(CONVERGED, 0.0)),
            numbers=roles.pop(""),
            others=roles,
            task=task,
            quality=quality,
        )
        for (method, seed), roles in found.items()
    ]


def decide_all(out: Path, study: Study | None = None, name: str = "") -> None:
    """Decide the claims of all saved campaigns together, then those of their variants.

    `study`: the runs of the campaign `name`, which have intervals over the text; those of others
    are kept as they are.
    """
    known = read_claims(out / CLAIMS_NAME)
    texts = {(row["campaign"], row["key"], row["method"]): row for row in known}
    rows: list[tuple[str, ClaimOutcome]] = []
    variants: list[tuple[str, str, tuple[ClaimOutcome, ...]]] = []
    seen: set[tuple[Any, ...]] = set()
    for campaign in CAMPAIGNS:
        file = out / f"campaign-{campaign}.csv"
        if campaign in WITHOUT_CLAIMS or not file.is_file():
            continue
        settings = read_settings(file.with_suffix(".toml"))
        runs, claims = decide_saved(file, settings)
        given = study.outcomes if study is not None and campaign == name else ()
        own = {(one.key, one.method): one.text_interval for one in given}
        for one in claims:
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
        for other in sorted(out.glob(f"campaign-{campaign}.*.csv")):
            variants.append(
                (campaign, other.stem.partition(".")[2], decide_saved(other, settings)[1])
            )
    decided = adjust_claims([one for _, one in rows])
    write_rows(
        out / CLAIMS_NAME, [describe_claim(c, o) for (c, _), o in zip(rows, decided, strict=True)]
    )
    if variants:
        write_rows(out / "variants.csv", list(decide_variants(rows, variants)))


def decide_variants(
    rows: Sequence[tuple[str, ClaimOutcome]],
    variants: Iterable[tuple[str, str, tuple[ClaimOutcome, ...]]],
) -> Iterator[dict[str, Any]]:
    """The claims of each variant, decided in place of its campaign's with those of all others."""
    for campaign, variant, claims in variants:
        own = {(campaign, one.key, one.method): one for one in claims}
        keys = [(name, one.key, one.method) for name, one in rows]
        found = [own.get(key, one) for key, (_, one) in zip(keys, rows, strict=True)]
        for key, one in zip(keys, adjust_claims(found), strict=True):
            if key in own:
                yield {"variant": variant, **describe_claim(campaign, one)}


def write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


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


def describe_claim(campaign: str, one: ClaimOutcome) -> dict[str, Any]:
    """A row of a table of claims."""
    held = one.contrast
    low, high = (None, None) if held is None else held.interval or (None, None)
    text_low, text_high = one.text_interval or (None, None)
    return {
        "campaign": campaign,
        "key": one.key,
        "source": one.source,
        "claim": one.text,
        "method": one.method,
        "control": one.reference,
        "matrix": MATRICES[one.role] if one.role else "",
        "check": "check" if one.sanity else "",
        "verdict": one.verdict,
        "cause": one.cause or "",
        "reason": one.reason,
        "relative": "relative" if held is not None and held.relative else "",
        "seeds": 0 if held is None else held.seeds,
        "difference": round_cell(None if held is None else held.difference),
        "low": round_cell(low),
        "high": round_cell(high),
        "text_low": round_cell(text_low),
        "text_high": round_cell(text_high),
        "share": round_cell(one.share),
        "detectable": round_cell(None if held is None else held.detectable),
        "tried": one.trials,
        "tried_control": one.reference_trials,
        "p": round_cell(one.p_value),
        "p_holm": round_cell(one.p_adjusted),
        "published": one.published,
    }


def round_cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def write_csv(study: Study, names: set[str], writer: Any) -> None:
    """The numbers of every run that the report's tables hold, one a line."""
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
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="own")
    parser.add_argument("--variant", default="", help="what is not as in the campaign")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    parser.add_argument("--decide", action="store_true", help="only decide the claims again")
    options = parser.parse_args()
    if options.decide:
        decide_all(options.out)
        return
    if options.name is None or options.data is None:
        parser.error("the name of a campaign or --data is missing")
    runs = options.runs or Path(f"{options.name}.runs")
    arguments = request(options.name, options.data, runs, options.own)
    study = read_finished(arguments) if options.summary else train(arguments, options.jobs)
    write_summary(options.name, options.variant, study, options.out)
    decide_all(options.out, None if options.variant else study, options.name)


if __name__ == "__main__":
    main()
