"""Mutants guided by coverage: atheris (libFuzzer) steers towards what no mutant has reached yet.

Run by ``python tests/support/fuzz.py --atheris SECONDS``, which starts one such process for each
format: libFuzzer ends the process it runs in.

    python tests/support/fuzz_coverage.py NAME SECONDS KEEP SCRATCH CORPUS

writes a mutant that fails into the folder KEEP and ends with an exit code other than 0; what lies
in the folder SCRATCH afterwards is of no use. It begins with the mutants in the folder CORPUS and
adds those on new paths.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parents[2])]

# What is imported here counts the branches that are taken in it.
with atheris.instrument_imports(include=["embgeo.io"]):
    from embgeo.core.errors import EmbgeoError
    from tests.support.fuzz import DEADLINE, MOST_MEMORY, read
    from tests.support.fuzz_parsers import PARSERS, Parser
    from tests.support.fuzz_seeds import SEEDS, Seed

_LONGEST_MUTANT = 2**16
#: Of a parser in memory, whose time grows with it.
_LONGEST_PARSED = 2**12


def parse_file(seed: Seed, folder: Path) -> Parser:
    """Read mutants from a file of the folder."""
    folder.mkdir()
    content = seed.make(folder)

    def parse(data: bytes) -> None:
        # Written anew, as in fuzz.py: to shorten a file waits for the disk.
        (folder / seed.file).unlink(missing_ok=True)
        (folder / seed.file).write_bytes(seed.wrap(data))
        read(seed, folder)

    return Parser(parse, lambda: [content])


def main() -> None:
    name, seconds, keep, scratch, kept = sys.argv[1:]
    warnings.simplefilter("error")
    parser = PARSERS.get(name) or parse_file(SEEDS[name], Path(scratch) / "opened")
    sound, corpus = parser.sound(), Path(kept)
    for number, content in enumerate(sound):
        parser.read(content)
        (corpus / f"sound-{number}").write_bytes(content)
    longest = _LONGEST_PARSED if name in PARSERS else _LONGEST_MUTANT

    def one(data: bytes) -> None:
        try:
            parser.read(data)
        except EmbgeoError as error:
            if not str(error).isprintable():
                raise RuntimeError(f"not one printable line: {error!r}") from error

    settings = {
        "max_total_time": seconds,
        "timeout": DEADLINE,
        "rss_limit_mb": MOST_MEMORY // 10**6 + 200,  # libFuzzer's own tables count too
        "max_len": max(longest, *map(len, sound)),
        "artifact_prefix": f"{keep}/{name.replace(' ', '-')}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    options = [f"-{key}={value}" for key, value in settings.items()]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
