"""Processor time of this tree, of an earlier one and of peers, in turn, and their answers.

    pip install --no-deps --target PEERS modeldelta==0.4.4 weightwatcher powerlaw …
    python benchmarks/before_after.py --before PYTHON [--peers PEERS] [--rounds N] [--threads T]
        [--sizes gpt2 large] [--scratch FOLDER]

PYTHON is that of an environment in which an earlier embgeo is installed. Each case is measured in a
process of its own, in turn, so that whatever else the machine does meets all of them; processor
time does not count the waiting. Every value of both trees is compared: one that moved by more than
1e-6 of itself is listed, references apart. Results go to benchmarks/results/speed-THREADS-DATE.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from benchmarks.harness.machine import machine  # noqa: E402
from benchmarks.harness.matrices import Shape, write_matrix  # noqa: E402

SIZES = {
    "gpt2": Shape(50_257, 768),
    "large": Shape(128_256, 4096, "bfloat16"),
    "tiny": Shape(600, 24),
}
MOVED = 1e-6
Values: TypeAlias = dict[str, list[float | None]]

#: What a process runs, with the name of a matrix; it prints seconds and values as JSON.
OURS = """
import json, sys, time, resource
import numpy as np, embgeo
path, kind = sys.argv[1:3]
W = embgeo.load(path)
few = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
counts = np.floor(1e8 / (1.0 + np.arange(W.n)))
def run(matrix, n):
    if kind == "geometry":
        names = ["spectrum", "projection", "cosine", "isotropy"]
        return embgeo.analyze(matrix, sections=names, reference=False)
    tokens = [f"t{i}" for i in range(n)]
    if isinstance(matrix, embgeo.Matrix):
        matrix = matrix.data
    return embgeo.analyze(np.asarray(matrix), tokens=tokens, counts=counts[:n])
run(few, 300)
began = time.process_time()
found = run(W, W.n)
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "values": {s.name: [s.value, s.reference] for s in found.scalars}}))
"""
FLOOR = """
import json, sys, time
sys.path.insert(0, sys.argv[2])
from benchmarks.harness import floor
began = time.process_time()
floor.measure(sys.argv[1])
print(json.dumps({"seconds": time.process_time() - began}))
"""
WEIGHTWATCHER = """
import json, logging, sys, time
sys.path.insert(0, sys.argv[2]); sys.path.append(sys.argv[3])
logging.disable(logging.CRITICAL)
import numpy as np, torch, weightwatcher as ww
from pathlib import Path
from benchmarks.harness.matrices import open_matrix
def run(W):
    layer = torch.nn.Embedding.from_pretrained(torch.from_numpy(W))
    watcher = ww.WeightWatcher(model=torch.nn.Sequential(layer))
    began = time.process_time()
    frame = watcher.analyze(max_N=10**9)
    return frame, time.process_time() - began
run(np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32))
frame, seconds = run(np.array(open_matrix(Path(sys.argv[1]))))
print(json.dumps({"seconds": seconds, "values": {
    "spectrum.top_share": [1.0 / float(frame["stable_rank"].iloc[0]), None]}}))
"""


def run_process(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Processor seconds and peak memory (MiB) of a process, and what it printed."""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as wrong:
        process = subprocess.Popen(command, stdout=said, stderr=wrong, env=environment, cwd="/")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if process.returncode:
            wrong.seek(0)
            raise SystemExit(
                f"{command[:3]} ended with {process.returncode}: {wrong.read()[-800:]}"
            )
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said.read()


@dataclass
class Outcome:
    """What a contender took and found: seconds by round, peak in MiB, values by name."""

    seconds: list[float] = field(default_factory=list)
    peak: float = 0.0
    values: Values = field(default_factory=dict)


class Contest:
    """Contenders in turn."""

    def __init__(self, rounds: int, threads: int) -> None:
        self.rounds = rounds
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self.environment = {**os.environ, **dict.fromkeys(names, str(threads))}
        self.environment.pop("PYTHONPATH", None)

    def measure(self, contenders: dict[str, list[str]]) -> dict[str, Outcome]:
        found = {name: Outcome() for name in contenders}
        for number in range(self.rounds):
            for name, command in contenders.items():
                seconds, peak, said = run_process(command, self.environment)
                record = json.loads(said.splitlines()[-1]) if said.strip().endswith("}") else {}
                one = found[name]
                one.seconds.append(record.get("seconds", seconds))
                one.peak, one.values = peak, record.get("values", {})
                print(f"  {number + 1} {name}: {one.seconds[-1]:.2f} s", file=sys.stderr)
        return found


def list_moved(before: Values, now: Values) -> list[str]:
    """Values that moved, that went out and that came in."""
    lines = []
    for name in before.keys() & now.keys():
        old, new = before[name][0], now[name][0]
        if (old is None) != (new is None) or (
            old is not None and new is not None and abs(new - old) > MOVED * max(abs(old), 1e-3)
        ):
            lines.append(f"{name}: {old} → {new}")
    gone, come = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    lines += [f"gone: {', '.join(gone)}"] if gone else []
    return sorted(lines) + ([f"new: {', '.join(come)}"] if come else [])


def make_cases(options: argparse.Namespace, size: str) -> dict[str, dict[str, list[str]]]:
    path = str(write_matrix(SIZES[size], options.scratch))
    pythons = {"before": options.before, "now": sys.executable}
    floor = [sys.executable, "-c", FLOOR, path, str(ROOT)]
    geometry = {n: [p, "-c", OURS, path, "geometry"] for n, p in pythons.items()}
    cases = {"sections 1–4": geometry | {"floor": floor}}
    if size == "large":
        return cases
    default = {n: [p, "-c", OURS, path, "default"] for n, p in pythons.items()}
    if options.peers:
        peer = [sys.executable, "-c", WEIGHTWATCHER, path, str(ROOT), str(options.peers)]
        default["weightwatcher"] = peer
    folders = [write_changed(path, options.scratch / f"{size}-{one}", one) for one in (0, 1)]
    out = options.scratch / "out"
    diff = {
        n: [str(Path(p).with_name("embgeo")), "diff", *folders, "-q", "-o", f"{out}-{n}.embgeo"]
        for n, p in pythons.items()
    }
    if options.peers:
        code = f"import runpy, sys; sys.path.append({str(options.peers)!r}); "
        code += "runpy.run_module('modeldelta', run_name='__main__', alter_sys=True)"
        page = str(options.scratch / "modeldelta.html")
        diff["modeldelta"] = [sys.executable, "-c", code, *folders, "-o", page]
    fixture = {
        n: [
            str(Path(p).with_name("embgeo")), "analyze", str(ROOT / "fixtures/baseline.pt"),
            "--counts", str(ROOT / "fixtures/vocab_counts.tsv"), "-q", "--force",
            "-o", f"{out}-fixture-{n}",
        ]
        for n, p in pythons.items()
    }  # fmt: skip
    return cases | {
        "default call with counts": default,
        "diff, whole command": diff,
        "README's fixture, whole command": fixture,
    }


def write_changed(path: str, folder: Path, step: int) -> str:
    """A checkpoint with the matrix, changed a little in step 1."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.safetensors").exists():
        W = np.load(path)
        noise = np.random.default_rng(1).standard_normal(W.shape, dtype=np.float32)
        save_file({"embed_tokens.weight": W + step * 0.01 * noise}, folder / "model.safetensors")
    return str(folder)


def check_peer(found: dict[str, Outcome]) -> None:
    """End if the peer found another number."""
    if "weightwatcher" not in found:
        return
    name = "spectrum.top_share"
    theirs, ours = (found[one].values[name][0] for one in ("weightwatcher", "now"))
    if theirs is None or ours is None or abs(theirs - ours) > 1e-5 * ours:
        raise SystemExit(f"weightwatcher's {name} is {theirs}, ours {ours}")


def main(options: argparse.Namespace) -> None:
    here, lines = machine(), []
    contest = Contest(options.rounds, options.threads)
    for size in options.sizes:
        lines += ["", f"## {SIZES[size].text}", ""]
        lines += ["| case | processor seconds, median of each | peak MiB | ratios of now |"]
        lines += ["|---|---|---|---|"]
        moved: list[str] = []
        for name, contenders in make_cases(options, size).items():
            print(name, file=sys.stderr)
            found = contest.measure(contenders)
            seconds = {n: median(one.seconds) for n, one in found.items()}
            shown = "; ".join(f"{n} {s:.2f}" for n, s in seconds.items())
            peaks = "; ".join(f"{n} {one.peak:.0f}" for n, one in found.items())
            others = [n for n in seconds if n != "now"]
            ratios = "; ".join(f"{n} {seconds['now'] / seconds[n]:.2f}" for n in others)
            lines.append(f"| {name} | {shown} | {peaks} | {ratios} |")
            moved += list_moved(found["before"].values, found["now"].values)
            check_peer(found)
        lines += ["", f"Values that moved by more than {MOVED:g}, references apart:", ""]
        lines += [f"- {line}" for line in dict.fromkeys(moved)] or ["none"]
    head = f"# Processor time before and after, {date.today()}\n\n{here['cpu']}, "
    head += f"{here['cores']} cores; {options.threads} thread(s), {options.rounds} rounds in turn"
    target = ROOT / f"benchmarks/results/speed-{options.threads}-{date.today()}.md"
    target.write_text(head + "\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(target)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, help="Python with an earlier embgeo")
    parser.add_argument("--peers", type=Path, help="folder with modeldelta and weightwatcher")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["gpt2"])
    scratch = Path(tempfile.gettempdir()) / "embgeo-benchmarks"
    parser.add_argument("--scratch", type=Path, default=scratch)
    return parser.parse_args()


if __name__ == "__main__":
    main(parse_arguments())
