"""Mutants of small sound files, read by embgeo and by the library that defines the format.

    python tests/support/differential.py --mutants 100000 [--format NAME] [--seed S] [--out FOLDER]

Both give the same arrays, or embgeo refuses. A disagreement is a mutant that both open, with other
arrays; the command ends with 1 if there is one. What happened to each mutant is a line of
FOLDER/NAME-S.tsv, and a run that was stopped goes on where these lines end. The readers run in a
process of their own, which is started again where a library takes it down.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np

from embgeo.core.errors import EmbgeoError
from embgeo.io import open_checkpoint
from embgeo.io.convert import limited
from tests.support.differential_files import OFFICIAL, Arrays, Official, numbers_of
from tests.support.fuzz import mutant

#: Seconds after which a reader counts as one that hangs.
DEADLINE = 30
#: Memory of the process with the readers.
MOST_MEMORY = 3 * 2**30
#: Larger arrays, which views can make of small files, are compared by type and shape alone.
_READ_BYTES = 2**24
#: Of the library's message, and outcomes of a format that are listed.
_LONGEST, _LISTED = 64, 10
_SAME, _LEFT_OUT = "same", "same, and embgeo leaves out others with a note"

Outcome = tuple[str, str, str]


def make_mutant(official: Official, sound: list[bytes], place: int, seed: int) -> bytes:
    """Mutant number `place`: of the bytes, of the structure, or the ends of two files joined."""
    chance = random.Random(f"{official.name} {seed} {place}")
    way = chance.random()
    if way < 0.4:
        return official.restructure(chance)
    content = chance.choice(sound)
    if way < 0.45:
        other = chance.choice(sound)
        return content[: chance.randrange(len(content))] + other[chance.randrange(len(other)) :]
    return mutant(content, chance)


def read_both(official: Official, path: Path) -> Iterator[str]:
    """What embgeo says of the file, then what the library says, then whether these agree."""
    ours: Arrays | str
    try:
        checkpoint = open_checkpoint(path)
        ours = {
            tensor.name: numbers_of(tensor.open())
            if tensor.nbytes <= _READ_BYTES
            else (np.dtype(tensor.dtype).name, tensor.shape, None)
            for tensor in checkpoint.tensors
        }
        yield f"opened as {checkpoint.format}"
    except EmbgeoError as error:
        ours = summarize(error.cause, path)
        yield ours
    theirs: Arrays | str
    try:
        theirs = official.read(path)
        yield "opened"
    except Exception as error:
        theirs = f"{type(error).__name__}: {summarize(str(error), path)}"
        yield theirs
    if isinstance(ours, str) or isinstance(theirs, str):
        yield "-"
        return
    yield compare(ours, theirs, bool(checkpoint.notes))


def compare(ours: Arrays, theirs: Arrays, noted: bool) -> str:
    """Whether embgeo's arrays are those of the library, each of the same name, type and bits."""
    for name, (dtype, shape, content) in ours.items():
        if name not in theirs:
            return f"DISAGREE: only embgeo has {name!r}"
        if (dtype, shape) != theirs[name][:2]:
            return f"DISAGREE: {name!r} is {dtype} {shape}, the library's is {theirs[name][:2]}"
        if content is not None and content != theirs[name][2]:
            return f"DISAGREE: {name!r} has other numbers"
    missing = sorted(theirs.keys() - ours.keys())
    if not missing:
        return _SAME
    return _LEFT_OUT if noted else f"DISAGREE: embgeo has no {missing[0]!r}, and no note"


def summarize(cause: str, path: Path) -> str:
    """The cause of an error without the names and numbers of this file."""
    cause = cause.removeprefix(f"{path}: ").replace(str(path), "FILE").partition(": {")[0]
    cause = re.sub(r"[^\x20-\x7e]+|\\[ux][0-9a-f]+", "?", cause)
    cause = re.sub(r"'[^']*'|\"[^\"]*\"", "'_'", cause)
    cause = re.sub(r"^\S* ((?:has|is|reaches|overlaps|lies|does|would|ends)\b)", r"_ \1", cause)
    return re.sub(r"-?\b(0x[0-9a-f]+|\d[\d,.]*)", "N", cause)[:80]


def answer_here(request: dict[str, Any], text: Any) -> tuple[int, bytes]:
    """The answer of a limited process without a process of its own."""
    return 0, json.dumps(limited.answer_request(request, text)).encode()


def run_mutants(
    official: Official, places: range, seed: int, report: Callable[[str], None]
) -> None:
    """Read the mutants of these numbers, and report a line of each, a part at a time."""
    os.environ["HDF5_PLUGIN_PRELOAD"] = "::"
    usual, limited.exchange = limited.exchange, answer_here
    sound = official.sound()
    try:
        with tempfile.TemporaryDirectory(prefix="differential-") as name:
            path = Path(name) / f"a{official.suffix}"
            for place in places:
                path.unlink(missing_ok=True)  # a map of the last one may still be open
                path.write_bytes(make_mutant(official, sound, place, seed))
                report(str(place))
                for part in read_both(official, path):
                    report("\t" + re.sub(r"\s", " ", part))
                report("\n")
    finally:
        limited.exchange = usual


def serve(official: Official, places: range, seed: int, out: Path) -> None:
    """The process with the readers: within limits, and every part of a line at once in the file."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except ImportError:  # Windows
        pass
    warnings.simplefilter("ignore")
    with out.open("ab", buffering=0) as lines:

        def report(part: str) -> None:
            if part.isdigit():
                faulthandler.dump_traceback_later(DEADLINE, exit=True)
            lines.write(part.encode("ascii", "backslashreplace"))

        run_mutants(official, places, seed, report)


def drive(official: Official, mutants: int, seed: int, out: Path) -> None:
    """Start the process with the readers until all mutants have a line."""
    while True:
        text = out.read_text() if out.exists() else ""
        if text and not text.endswith("\n"):  # the process died over this mutant
            parts = text[text.rfind("\n") + 1 :].split("\t")
            rest = ["crash", "-", "-"] if len(parts) == 1 else ["crash", "-"][: 4 - len(parts)]
            with out.open("a") as lines:
                lines.write("\t" + "\t".join(rest) + "\n")
            continue
        done = text.count("\n")
        if done >= mutants:
            return
        span = ["--slice", str(done), str(mutants), "--seed", str(seed), "--out", str(out)]
        command = [sys.executable, __file__, "--format", official.name, *span]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        if out.read_text() == text:
            sys.exit(f"the readers of {official.name} do not start: {' '.join(command)}")


def read_outcomes(out: Path) -> Counter[Outcome]:
    whole = (line.split("\t") for line in out.read_text().splitlines() if line.count("\t") == 3)
    return Counter((ours, theirs[:_LONGEST], verdict) for _, ours, theirs, verdict in whole)


def kind(outcome: Outcome) -> str:
    """The column of the table that an outcome is counted in."""
    ours, theirs, verdict = outcome
    if ours == "crash" or verdict.startswith("DISAGREE"):
        return "disagree"
    if verdict != "-":
        return "same"
    if theirs == "opened":
        return "embgeo alone refuses"
    return "library alone refuses" if ours.startswith("opened") else "both refuse"


KINDS = (
    "same",
    "both refuse",
    "embgeo alone refuses",
    "library alone refuses",
    "disagree",
)


def describe(found: dict[str, Counter[Outcome]]) -> str:
    """The counts of all formats, and the reasons where only one side refuses, as Markdown."""
    lines = [f"| format | mutants | {' | '.join(KINDS)} |", "|---" * (2 + len(KINDS)) + "|"]
    for name, outcomes in found.items():
        counts: Counter[str] = Counter()
        for outcome, times in outcomes.items():
            counts[kind(outcome)] += times
        cells = " | ".join(f"{counts[column]:,}" for column in KINDS)
        lines.append(f"| {name} | {counts.total():,} | {cells} |")
    for column in KINDS[2:]:
        rows = []
        for name, outcomes in found.items():
            ours = [one for one in outcomes.most_common() if kind(one[0]) == column]
            for outcome, times in ours[:_LISTED]:
                cells = " | ".join(part.replace("|", "/") for part in outcome)
                rows.append(f"| {name} | {times:,} | {cells} |")
            if rest := sum(times for _, times in ours[_LISTED:]):
                rows.append(f"| {name} | {rest:,} | others | | |")
        if rows:
            heading = "| format | times | embgeo | the library | |\n|---|---|---|---|---|"
            lines += ["", f"{column[0].upper()}{column[1:]}:", "", heading, *rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=1000, help="For each format.")
    parser.add_argument("--format", choices=list(OFFICIAL), help="This one alone.")
    parser.add_argument("--seed", type=int, default=0, help="Other mutants.")
    parser.add_argument("--out", type=Path, default=Path("differential"), help="Where to.")
    parser.add_argument("--slice", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.slice:
        serve(OFFICIAL[arguments.format], range(*arguments.slice), arguments.seed, arguments.out)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = {}
    for official in [OFFICIAL[arguments.format]] if arguments.format else OFFICIAL.values():
        if importlib.util.find_spec(official.package) is None:
            print(f"{official.name}: {official.package} is not installed", file=sys.stderr)
            continue
        out = arguments.out / f"{official.name}-{arguments.seed}.tsv"
        drive(official, arguments.mutants, arguments.seed, out)
        found[official.name] = read_outcomes(out)
    print(describe(found))
    sys.exit(any(kind(outcome) == "disagree" for counts in found.values() for outcome in counts))


if __name__ == "__main__":
    main()
