"""Mutants of small sound files of every format: each opens, or is refused in one line.

    python tests/support/fuzz.py --mutants 10000 [--format NAME] [--seed S] [--keep FOLDER]
    python tests/support/fuzz.py --atheris SECONDS [--format NAME] [--keep FOLDER] [--corpus FOLDER]

A mutant fails where it ends in anything but embgeo's own error, where it computes longer than ten
seconds, or where reading it takes a gigabyte. Failures are written to a folder with their
traceback, and belong into tests/support/hostile_corpus.py once they are understood. With
``--atheris`` (``pip install atheris``) libFuzzer chooses the mutants, guided by the branches they
reach. The mutants on new paths are kept in a folder for each format, from which the next run goes
on, and ``counts.json`` next to these folders says how many mutants all runs have read.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib.util
import json
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

from embgeo.core.errors import EmbgeoError
from embgeo.io import open_checkpoint
from embgeo.io.labels.counts_file import read_counts
from embgeo.io.labels.label_file import read_labels
from tests.support.fuzz_seeds import SEEDS, Seed, same

#: Seconds of computing of this process; those of readers in C have limits of their own.
DEADLINE = 10
_HANGS = 600
MOST_MEMORY = 10**9
#: Tensors up to this size are read whole.
_READ_BYTES = 2**26
_NUMBERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
_LARGE = (*_NUMBERS, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_DIGITS = (b"-1", b"0", b"1e999", b"nan", b"9" * 400, b"2147483648", b"9223372036854775808")


class TooLong(BaseException):
    """Past every handler of exceptions: a mutant that took longer than it may."""


# Mutation


def flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def replace(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))


def number(data: bytearray, chance: random.Random) -> None:
    size, order = chance.choice((2, 4, 8, 8)), chance.choice("<<<>")
    at = chance.randrange(len(data))
    code = {2: "H", 4: "I", 8: "Q"}[size]
    value = chance.choice(_LARGE) % 2 ** (8 * size)
    data[at : at + size] = struct.pack(order + code, value)


def digits(data: bytearray, chance: random.Random) -> None:
    """Another number where there are digits, as text has them."""
    places = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        at = chance.choice(places)
        data[at : at + 1] = chance.choice(_DIGITS)


def remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.choice((1, 2, 4, 8, 64))]


def double(data: bytearray, chance: random.Random) -> None:
    at, size = chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 64, 512))
    data[at:at] = data[at : at + size] * chance.choice((1, 1, 1, 2, 50))


def insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 16)))


def move(data: bytearray, chance: random.Random) -> None:
    size = chance.choice((1, 2, 4, 8, 32))
    a, b = chance.randrange(len(data)), chance.randrange(len(data))
    data[a : a + size] = data[b : b + size]


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip, flip, replace, replace, number, number, digits, remove, double, insert, move, cut,
)  # fmt: skip


def mutant(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if data:
            chance.choice(WAYS)(data, chance)
    return bytes(data)


# What is done with a mutant


def read(seed: Seed, folder: Path) -> None:
    path = folder / (seed.open or seed.file)
    if seed.side == "tokens":
        read_labels(path)
    elif seed.side == "counts":
        read_counts(path)
    else:
        checkpoint = open_checkpoint(path)
        if checkpoint.label_error is not None:  # raised where labels are wanted
            raise checkpoint.label_error
        for tensor in checkpoint.tensors:
            if tensor.nbytes <= _READ_BYTES:
                array = tensor.open()
                assert array.shape == tensor.shape
                array.tobytes()


@contextlib.contextmanager
def deadline() -> Iterator[None]:
    """Raise TooLong after `DEADLINE` seconds of computing, and end the process if it hangs."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong(f"more than {DEADLINE} seconds")

    faulthandler.dump_traceback_later(_HANGS, exit=True)
    has_alarm = hasattr(signal, "setitimer")
    if has_alarm:
        before = signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, DEADLINE)
    try:
        yield
    finally:
        if has_alarm:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()


def peak() -> int:
    """The most memory that this process has taken so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass
class Tally:
    """Outcomes of the mutants of a seed."""

    name: str
    opened: int = 0
    refused: int = 0
    slowest: float = 0
    memory_before: int = field(default_factory=peak)
    failures: list[tuple[bytes, str]] = field(default_factory=list)


def attempt(seed: Seed, folder: Path, tally: Tally) -> str:
    """Why the mutant in the folder fails; empty if it does not."""
    started = time.process_time()
    try:
        with deadline():
            read(seed, folder)
        tally.opened += 1
    except EmbgeoError as error:
        tally.refused += 1
        if not str(error).isprintable():
            return f"not one printable line: {error!r}"
    except (Exception, TooLong):
        return traceback.format_exc()
    finally:
        tally.slowest = max(tally.slowest, time.process_time() - started)
    taken = peak() - tally.memory_before
    return f"took {taken / 1e6:,.0f} MB" if taken > MOST_MEMORY else ""


def fuzz(seed: Seed, mutants: int, number: int = 0) -> Tally:
    """Open so many mutants of a seed; half of them are mutated inside of what wraps them."""
    chance = random.Random(f"{seed.name} {number}")
    tally = Tally(seed.name)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = Path(name)
        content = seed.make(folder)
        whole = seed.wrap(content)
        (folder / seed.file).write_bytes(whole)
        read(seed, folder)
        for _ in range(mutants):
            if seed.wrap is not same and chance.random() < 0.5:
                made = seed.wrap(mutant(content, chance))
            else:
                made = mutant(whole, chance)
            # Written anew: to shorten a file waits for the disk where the file system is ext4.
            (folder / seed.file).unlink()
            (folder / seed.file).write_bytes(made)
            failure = attempt(seed, folder, tally)
            if failure:
                tally.failures.append((made, failure))
                if len(tally.failures) == 20:
                    break
    return tally


def keep(tally: Tally, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for place, (content, failure) in enumerate(tally.failures):
        stem = f"{tally.name.replace(' ', '-')}-{place}"
        (folder / stem).write_bytes(content)
        (folder / f"{stem}.txt").write_text(failure)


def seeds(beginning: str, quick: bool) -> Iterator[Seed]:
    """Those whose name begins so, whose packages are there, and, if quick, not in C."""
    for seed in SEEDS.values():
        if not seed.name.startswith(beginning) or (seed.slow and quick):
            continue
        if seed.needs and importlib.util.find_spec(seed.needs) is None:
            print(f"{seed.name:28} skipped: {seed.needs} is not installed")
        else:
            yield seed


def fuzz_guided(chosen: list[Seed], seconds: int, folder: Path, corpus: Path) -> int:
    """Fuzz by coverage, each format in a process of its own; how many of them failed."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    counted = corpus / "counts.json"
    counts: dict[str, int] = json.loads(counted.read_text()) if counted.is_file() else {}
    script = Path(__file__).with_name("fuzz_coverage.py")
    failed = 0
    for seed in chosen:
        kept = corpus / seed.name.replace(" ", "-")
        kept.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
            places = [str(folder), scratch, str(kept)]
            command = [sys.executable, str(script), seed.name, str(seconds), *places]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        count = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        found = re.search(r"new_units_added: +(\d+)", done.stderr)
        said = "failed" if done.returncode else "no failure"
        mutants = int(count[1]) if count else 0
        counts[seed.name] = counts.get(seed.name, 0) + mutants
        counted.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
        print(
            f"{seed.name:28} {mutants:8} mutants, {int(found[1]) if found else 0:5} on new paths, "
            f"{said}; {counts[seed.name]:,} mutants of all runs",
            flush=True,
        )
        if done.returncode:
            failed += 1
            (folder / f"{seed.name.replace(' ', '-')}.txt").write_text(done.stderr)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=1000, help="For each format.")
    parser.add_argument("--format", default="", help="Only seeds whose name begins with it.")
    parser.add_argument("--seed", type=int, default=0, help="Other mutants.")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="Where to.")
    parser.add_argument("--corpus", type=Path, default=Path("fuzz-corpus"), help="Of --atheris.")
    parser.add_argument("--quick", action="store_true", help="Without libraries in C.")
    parser.add_argument("--atheris", type=int, metavar="SECONDS", help="For each format.")
    arguments = parser.parse_args()
    chosen = list(seeds(arguments.format, arguments.quick))
    if arguments.atheris:
        sys.exit(
            1 if fuzz_guided(chosen, arguments.atheris, arguments.keep, arguments.corpus) else 0
        )
    failed = total = 0
    for seed in chosen:
        tally = fuzz(seed, arguments.mutants, arguments.seed)
        keep(tally, arguments.keep) if tally.failures else None
        failed += len(tally.failures)
        total += tally.opened + tally.refused
        print(
            f"{seed.name:28} {tally.opened:6} opened {tally.refused:6} refused "
            f"{len(tally.failures):3} failed, slowest {tally.slowest:.2f} s, "
            f"{peak() / 1e6:.0f} MB so far",
            flush=True,
        )
    print(f"{total:,} mutants, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
