"""Record what every command prints and writes, and compare two records.

Run it once with each of two installations of embgeo, then compare the folders::

    python benchmarks/golden.py record before [--data FOLDER]
    python benchmarks/golden.py record after [--data FOLDER]
    python benchmarks/golden.py compare before after

`--data` names a folder of further matrices, which is measured in addition to `fixtures/`. Numbers
are compared to a relative difference of 1e-12, outputs of the gate byte for byte. A scalar or an
output that is in one record only is listed and does not count as a difference. A command that ends
with another exit code than it should ends the record with 1: it would compare nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
COUNTS = f"--counts={FIXTURES / 'vocab_counts.tsv'}"
TOLERANCE = 1e-12
#: Files that are compared byte for byte.
BYTES = (".rc", ".out", ".xml", ".txt", ".csv", ".tex", ".svg")
RULES = ("cosine.mean <= 0.1", "isotropy.i1_unit drop <= 5%", "suspects.zero <= 0")
#: Exit codes of commands that do not end with 0.
CODES = {"gate-fails": 1, "fetch": 2, "missing": 2}
#: Analyses of fixtures by name.
FIXTURE_RUNS = {
    "baseline": ("baseline.pt", COUNTS),
    "cosreg": ("cosreg.safetensors", COUNTS),
    "plain": ("baseline.pt",),
    "tiny-npy": ("tiny/tiny.npy",),
    "tiny-npz": ("tiny/tiny.npz",),
    "tiny-pt": ("tiny/tiny.pt",),
    "tiny-vec": ("tiny/tiny.vec",),
    "tiny-glove": ("tiny/tiny.glove.txt.gz",),
    "tiny-w2v": ("tiny/tiny.w2v.bin",),
    "tiny-pkl": ("tiny/tiny.pkl", "--tensor=weights"),
    "tiny-hf": ("tiny/tiny-hf",),
    "tiny-sharded": ("tiny/tiny-sharded",),
}
#: Analyses of further data by name: file and options.
DATA_RUNS = {
    "rnnlm": ("rnnlm_oreilly.pkl", "--tensor=0"),
    "cbow": ("cbow_oreilly.pkl",),
    "crystal-5000": ("crystal_5000.npy",),
    "crystal-40000": ("crystal_40000.npy",),
    "fairy-tales": ("fairy_tales_lstm_full_module.pt",),
    "glove": ("glove.500.50d.txt",),
    "lee-vec": ("lee_fasttext.vec",),
    "opennmt": ("opennmt_legacy_b.pt",),
    "w2v-papers": ("w2v_papers_24118x40.bin", "--rank-order"),
}


def record(folder: Path, data: Path | None) -> int:
    """Run every command and keep its exit code, output and files; the number of wrong codes."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    folder = folder.resolve()
    runs = {name: (str(FIXTURES / file), *more) for name, (file, *more) in FIXTURE_RUNS.items()}
    if data is not None:
        runs |= {name: (str(data / file), *more) for name, (file, *more) in DATA_RUNS.items()}
    cases: dict[str, tuple[str, ...]] = {}
    for name, arguments in runs.items():
        cases[f"analyze-{name}"] = ("analyze", *arguments, "-o", f"{name}.embgeo", "--json")
        cases[f"inspect-{name}"] = ("inspect", arguments[0], "--json")
    both = ("baseline.embgeo", "cosreg.embgeo")
    base, other = str(FIXTURES / "baseline.pt"), str(FIXTURES / "cosreg.safetensors")
    rules = [f"--rule={rule}" for rule in RULES]
    outputs = ("--junit=gate.xml", "--sarif=gate.sarif")
    cases |= {
        "diff-saved": ("diff", *both, "-o", "saved.diff", "--json"),
        "diff-files": ("diff", base, other, "-o", "files.diff", "--json"),
        "gate": ("gate", both[1], *rules, "-b", both[0], "--no-config", *outputs, "--json"),
        "gate-fails": ("gate", both[0], "--rule=cosine.mean <= 0.1", "--no-config"),
        "report": ("report", both[0]),
        "figures": ("figures", *both, "-o", "figures", "--table=isotropy"),
        "export-csv": ("export", both[0], "--to", "csv", "-o", "export.csv"),
        "export-parquet": ("export", both[0], "--to", "parquet", "-o", "export.parquet"),
        "repair": ("repair", other, "--dry-run", "--json"),
        "fetch": ("fetch", str(FIXTURES / "tiny/tiny-hf"), "-o", "fetched"),
        "missing": ("analyze", "missing.npy"),
    }
    wrong = [name for name, own in cases.items() if run(folder, name, *own) != CODES.get(name, 0)]
    print(f"{len(wrong)} with a wrong exit code", *wrong)
    return len(wrong)


def run(folder: Path, name: str, *arguments: str) -> int:
    """Run one command in the folder, with one thread, and keep what it prints; its exit code."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "embgeo", *arguments],
        cwd=folder,
        env={**environment, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / f"{name}.rc").write_text(f"{done.returncode}\n")
    (folder / f"{name}.out").write_text(done.stdout)
    (folder / f"{name}.err").write_text(done.stderr)
    print(f"{name}: {done.returncode}", flush=True)
    return done.returncode


def compare(before: Path, after: Path) -> int:
    """Print every difference; the number of them."""
    differences = 0
    for path in sorted(before.rglob("*")):
        at = path.relative_to(before)
        other = after / at
        if path.is_dir() or at.suffix in (".html", ".err"):
            continue
        if not other.exists():
            print(f"only in {before}: {at}")
        elif is_json(path) and is_json(other):
            pair = json.loads(path.read_text()), json.loads(other.read_text())
            found = list(differ(*pair, str(at)))
            differences += len(found)
            print(*found, sep="\n", end="\n" if found else "")
        elif at.suffix in BYTES and path.read_bytes() != other.read_bytes():
            differences += 1
            print(f"{at}: bytes differ")
    print(f"{differences} differences")
    return differences


def is_json(path: Path) -> bool:
    if path.suffix not in (".json", ".out"):
        return False
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


def differ(one: Any, other: Any, at: str) -> Iterator[str]:
    """The places where two documents differ."""
    if at.endswith((".timing", ".command", ".version", ".versions", ".provenance", "_sha256")):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one:
            if key in other:
                yield from differ(one[key], other[key], f"{at}.{key}")
            else:
                print(f"only before: {at}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        named = [keyed(entries) for entries in (one, other)]
        if all(entries is not None for entries in named):
            yield from differ(named[0], named[1], at)
        elif len(one) != len(other):
            yield f"{at}: {len(one)} entries, now {len(other)}"
        else:
            for number, (left, right) in enumerate(zip(one, other, strict=True)):
                yield from differ(left, right, f"{at}[{number}]")
    elif isinstance(one, float | int) and isinstance(other, float | int):
        if not (one == other or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-15)):
            yield f"{at}: {one!r}, now {other!r}"
    elif one != other:
        yield f"{at}: {str(one)[:100]!r}, now {str(other)[:100]!r}"


def keyed(entries: list[Any]) -> dict[str, Any] | None:
    """Entries by their names, if all have one."""
    if entries and all(isinstance(entry, dict) and "name" in entry for entry in entries):
        return {str(entry["name"]): entry for entry in entries}
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--data", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        return int(record(given.folder, given.data) > 0)
    return int(compare(given.before, given.after) > 0)


if __name__ == "__main__":
    sys.exit(main())
