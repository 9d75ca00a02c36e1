"""Every benchmark in one command: each case in a process of its own, and a table of ratios.

    python benchmarks/run.py [--only NAME] [--runs R] [--peers PYTHON] [--before PYTHON]
        [--processor] [--threads T]

Answers are checked before their times count. With `--before`, an earlier embgeo takes turns with
this one, and scalars that moved are listed. On a busy machine, `--processor` counts processor time.
 Results go to benchmarks/results/MACHINE-DATE.md and
.json; cases measured on the same day are added to the same files. Peers are looked for in
SCRATCH/peers; what is not installed is left out and said. Ends with 1 if a case failed or an
answer was wrong; a bound that was missed is only shown.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: What holds BLAS to other kernels than it would choose for this processor.
HOLDS_KERNELS = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_ENABLE_INSTRUCTIONS",
    "BLIS_ARCH_TYPE",
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KEEP_KERNELS = "--keep-kernels"
if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    if KEEP_KERNELS not in sys.argv:
        for name in HOLDS_KERNELS:  # before numpy is imported, and for every process after this one
            os.environ.pop(name, None)

from benchmarks.harness import clock, peers  # noqa: E402
from benchmarks.harness.call import Failed, Wrong, in_a_process  # noqa: E402
from benchmarks.harness.case import measure_case  # noqa: E402
from benchmarks.harness.load import Load, Moment  # noqa: E402
from benchmarks.harness.machine import machine, versions  # noqa: E402
from benchmarks.harness.page import render_page  # noqa: E402

#: Modules next to this one that compare something, the short ones first.
CASES = (
    "small",
    "commands",
    "gpt2_size",
    "packages",
    "precision",
    "shapes",
    "scaling",
    "large",
)
#: Scripts that print what they found, with what makes them short.
SCRIPTS = {
    "hull": ("--rows", "2000", "--columns", "100"),
    "memory_100k": ("--rows", "1000", "--columns", "16"),
    "callbacks": ("--calls", "1"),
    "gpu": ("--device", "torch-cpu", "--rows", "400", "--columns", "16"),
}
PEERS = ("weightwatcher", "isoscore", "scikit-dimension", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    runs: int | None
    scratch: Path
    peers: Path | None
    before: Path | None
    tiny: bool


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # KEEP_KERNELS is looked for before there is a parser
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=(*CASES, *SCRIPTS),
        metavar="NAME",
        help=f"only this one, repeatable: {', '.join((*CASES, *SCRIPTS))}",
    )
    parser.add_argument("--runs", type=int, help="rounds; 5 by default")
    scratch = Path(tempfile.gettempdir()) / "embgeo-benchmarks"
    parser.add_argument(
        "--scratch", type=Path, default=scratch, help="folder for matrices, kept; %(default)s"
    )
    parser.add_argument("--peers", type=Path, help="Python with the packages to compare with")
    parser.add_argument("--before", type=Path, help="Python with an earlier embgeo")
    parser.add_argument("--processor", action="store_true", help="count processor time")
    parser.add_argument("--threads", type=int, help="threads of BLAS; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument(
        KEEP_KERNELS,
        action="store_true",
        help=f"keep {', '.join(HOLDS_KERNELS)} of the environment",
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: does everything work?")
    options = parser.parse_args(arguments)
    if options.runs is not None and options.runs < 1:
        parser.error("--runs: at least one round")
    for name in ("peers", "before"):
        python = getattr(options, name)
        if python is not None and not python.exists():
            parser.error(f"--{name}: there is no {python}")
    return options


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    beside = options.scratch / "peers" / "bin" / "python"
    python = options.peers or (beside if beside.exists() else None)
    settings = Settings(
        options.runs, options.scratch.resolve(), python, options.before, options.tiny
    )
    threads = ""
    if options.threads is not None:
        threads = f"-{options.threads}-threads"
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    if options.processor:
        os.environ[clock.PROCESSOR] = "1"
    settings.scratch.mkdir(parents=True, exist_ok=True)
    here = machine()
    name = f"{'tiny-' if options.tiny else ''}{slug(here)}{threads}-{date.today()}.json"
    target = options.out / name
    results = load_earlier(target) or {"machine": here, "tiny": options.tiny, "cases": {}}
    results["clock"] = "processor time" if options.processor else "time"
    outcome = 0
    for name in options.only or (*CASES, *SCRIPTS):
        print(f"{name}:", file=sys.stderr, flush=True)
        case = time_case(name, settings)
        found = results["cases"] | {name: case}
        results["cases"] = {n: found[n] for n in (*CASES, *SCRIPTS) if n in found}
        write(results, target)
        if case["failed"]:
            print(f"  {case['failed']}", file=sys.stderr)
            outcome = 1
    print(target.with_suffix(".md"))
    return outcome


def time_case(name: str, settings: Settings) -> dict[str, Any]:
    """A case with everything that is told about it; one that fails says why."""
    start, failed = Moment.now(), ""
    found: dict[str, Any] = {"title": "", "rows": [], "printed": ""}
    work: Callable[[str, Settings], dict[str, Any]] = run_comparison if name in CASES else script
    try:
        found |= work(name, settings)
    except Wrong as wrong:
        failed = f"wrong answer: {wrong}"
    except Failed as error:
        failed = str(error)
    end = Moment.now()
    return found | {
        "failed": failed,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "minutes": (end.time - start.time) / 60,
        "load": Load.between(start, end).to_json(),
        "versions": versions() | peer_versions(settings.peers),
    }


def run_comparison(name: str, settings: Settings) -> dict[str, Any]:
    arguments = {
        "name": name,
        "scratch": str(settings.scratch),
        "runs": settings.runs,
        "peers": None if settings.peers is None else str(settings.peers),
        "before": None if settings.before is None else str(settings.before),
        "tiny": settings.tiny,
    }
    return in_a_process(measure_case, arguments, loud=True)


def script(name: str, settings: Settings) -> dict[str, Any]:
    """What a script prints."""
    short = SCRIPTS[name] if settings.tiny else ()
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *short],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    if done.returncode:
        raise Failed(f"{name}.py ended with {done.returncode}, see above")
    return {"printed": done.stdout}


def peer_versions(python: Path | None) -> dict[str, str]:
    have = peers.list_installed(python)
    return {f"{name} of the peers": have[name] for name in PEERS if name in have}


def slug(here: dict[str, Any]) -> str:
    text = f"{here['cpu']} {here['cores']} cores"
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def load_earlier(target: Path) -> dict[str, Any] | None:
    """What was measured on this machine earlier today."""
    if not target.exists():
        return None
    found: dict[str, Any] = json.loads(target.read_text("utf-8"))
    return found


def write(results: dict[str, Any], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    for path, text in (
        (target, json.dumps(results, indent=1) + "\n"),
        (target.with_suffix(".md"), render_page(results)),
    ):
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
