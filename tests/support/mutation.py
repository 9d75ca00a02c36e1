"""Changes one at a time what the package computes, and counts how many the tests notice.

    python tests/support/mutation.py [--mutants 20] [--seed S] [--only AREA] [--out FILE]

From each area a seeded sample of mutants is drawn: a comparison, an operator, a number or a
condition is another one. The tests of the same area run against each in a copy of the repository:
the examples of the module, those that name it, slow ones last.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Sources by area, and their tests.
AREAS = {
    "numerics": (
        "embgeo/numerics",
        "tests/numerics tests/metrics/test_token_geometry.py tests/metrics/test_hidden.py",
    ),
    "metrics": ("embgeo/metrics", "tests/metrics"),
    "stats": ("embgeo/stats", "tests/stats"),
    "comparison": ("embgeo/comparison", "tests/comparison"),
    "gate": ("embgeo/gate", "tests/gate"),
    "pickle": (
        "embgeo/io/pickle",
        "tests/io/test_safe_pickle.py tests/io/test_pandas_pickles.py "
        "tests/io/test_stacked_vectors.py tests/io/test_torch_formats.py",
    ),
}
#: Seconds after which the tests of a mutant are taken to hang.
DEADLINE = 900
_COPIED = ("embgeo", "tests", "fixtures", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class CodeMutant:
    """A piece of a file, from byte `start` to `stop` of it, and what replaces it."""

    file: str
    line: int
    start: int
    stop: int
    before: str
    after: str

    @property
    def text(self) -> str:
        return f"`{self.file}:{self.line}` `{self.before}` → `{self.after}`"


def find_mutants(file: Path, root: Path) -> Iterator[CodeMutant]:
    """Every change of one operator, number or condition."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _walk(ast.parse(source)):
        before = ast.unparse(node)
        for after in _others(node):
            start = starts[node.lineno - 1] + node.col_offset
            stop = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            name = file.relative_to(root).as_posix()
            yield CodeMutant(name, node.lineno, start, stop, before, after)


def _walk(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that compute: no annotations, decorators, messages, or parts of f-strings."""
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)):
        return
    if isinstance(node, ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _others(node: ast.expr) -> Iterator[str]:
    """The expression with one thing changed."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OTHER:
        changed: ast.expr = ast.Compare(node.left, [_OTHER[type(node.ops[0])]()], node.comparators)  # type: ignore[list-item]
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
        changed = ast.BinOp(node.left, _OTHER[type(node.op)](), node.right)  # type: ignore[arg-type]
    elif isinstance(node, ast.BoolOp):
        changed = ast.BoolOp(_OTHER[type(node.op)](), node.values)  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        changed = node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        changed = ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        changed = ast.Constant(node.value + 1)
    else:
        return
    yield f"({ast.unparse(changed)})"


def draw(area: str, count: int, seed: int, root: Path = ROOT) -> list[CodeMutant]:
    files = sorted((root / AREAS[area][0]).rglob("*.py"))
    every = [found for file in files for found in find_mutants(file, root)]
    return random.Random(f"{area} {seed}").sample(every, min(count, len(every)))


def is_caught(mutant: CodeMutant, tests: str, root: Path) -> bool:
    """Whether a test fails, or hangs, with the mutant in the copy of the repository."""
    path = root / mutant.file
    source = path.read_bytes()
    path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.stop :])
    try:
        files = _order(tests, path.stem, root)
        return (
            _fails(["--doctest-modules", str(path)], root)
            or _fails(["-m", "not slow", *files], root)
            or _fails(["-m", "slow and not nightly", *files], root)
        )
    finally:
        path.write_bytes(source)


def _order(tests: str, stem: str, root: Path) -> list[str]:
    """The files of tests, those that name the module first."""
    files: list[Path] = []
    for name in tests.split():
        place = root / name
        files += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    files.sort(key=lambda file: (stem not in file.read_text(), stem not in file.stem))
    return [str(file) for file in files]


def _fails(arguments: Sequence[str], root: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        code = subprocess.run(
            [*command, *arguments],
            cwd=root,
            env=environment,
            timeout=DEADLINE,
            check=False,
            **quiet,
        ).returncode
    except subprocess.TimeoutExpired:
        return True
    return code not in (0, 5)  # 5: no test has this mark


def score(area: str, mutants: Sequence[CodeMutant], root: Path, minutes: float) -> tuple[str, str]:
    """A row of the table, and the survivors; mutants for which there is no time are left out."""
    end = time.monotonic() + 60 * minutes
    tried, survivors = 0, ""
    for mutant in mutants:
        if time.monotonic() > end:
            break
        found = is_caught(mutant, AREAS[area][1], root)
        tried += 1
        survivors += "" if found else f"- {mutant.text}\n"
        print(f"{area}: {'caught' if found else 'SURVIVED'} {mutant.text}", flush=True)
    caught = tried - survivors.count("\n")
    return f"| {area} | {tried} | {caught} | {caught / max(tried, 1):.0%} |\n", survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=20, help="From each area.")
    parser.add_argument("--minutes", type=float, default=50, help="For each area, at most.")
    parser.add_argument("--seed", type=int, default=0, help="Other mutants.")
    parser.add_argument("--only", choices=list(AREAS), help="This area alone.")
    parser.add_argument("--out", type=Path, help="The score as Markdown.")
    arguments = parser.parse_args()
    table, survivors = "| area | mutants | caught | share |\n|---|---|---|---|\n", ""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        root = Path(name)
        for part in _COPIED:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, root / part)
        for area in [arguments.only] if arguments.only else AREAS:
            mutants = draw(area, arguments.mutants, arguments.seed, root)
            row, missed = score(area, mutants, root, arguments.minutes)
            table, survivors = table + row, survivors + missed
    page = f"{table}\nSurvivors:\n\n{survivors}"
    print(page)
    if arguments.out:
        arguments.out.write_text(page)


if __name__ == "__main__":
    main()
