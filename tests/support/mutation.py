"""Changes one at a time what the package computes, and counts how many the tests notice.

    python -m tests.support.mutation AREA [--mutants 100] [--seed S] [--minutes M] [--slow]

A seeded sample of mutants of an area is drawn: a comparison, an operator, a number, a condition or
an extreme is another one. The tests of the area run against each, those that run its function.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import math
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from _pytest.config import _prepareconfig
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[2]
#: Sources by area, and their tests.
AREAS = {
    "package": ("embgeo", "tests"),
    "diagnosis": ("embgeo/diagnosis", "tests/diagnosis"),
    "metrics": ("embgeo/metrics", "tests/metrics tests/diagnosis"),
    "stats": ("embgeo/stats", "tests/stats tests/metrics"),
    "comparison": ("embgeo/comparison", "tests/comparison"),
    "numerics": (
        "embgeo/numerics",
        "tests/numerics tests/metrics/test_token_geometry.py tests/metrics/test_hidden.py",
    ),
    "rules": ("embgeo/rules", "tests/rules"),
    "measure": ("embgeo/measure", "tests/measure tests/metrics/test_undefined.py"),
    "model": ("embgeo/io/model", "tests/io/model tests/io/test_choosing.py tests/io/test_load.py"),
    "pickle": (
        "embgeo/io/formats/pickle",
        "tests/io/test_safe_pickle.py tests/io/test_mutants.py "
        "tests/io/test_stacked_vectors.py tests/io/test_torch_formats.py",
    ),
}

#: MLX waits for ever in a process forked from one that it has computed in.
FORKED = "not forms_of_mlx"

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip

_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "maximum": "minimum",
          "minimum": "maximum", "std": "var", "floor": "ceil", "ceil": "floor"}  # fmt: skip


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
    """Expressions that compute: no annotations, decorators, messages, or parts of f-strings.

    Nor defaults of fields, which objects that are loaded already have taken over.
    """
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)):
        return
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if not isinstance(child, ast.AnnAssign):
                yield from _walk(child)
        return
    if isinstance(node, ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        if name == "keywords":  # `strict` of sequences of one length has no effect
            value = [one for one in value if one.arg != "strict"]
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
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        changed = node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        changed = ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        changed = ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        changed = ast.Constant(2.0 * node.value if node.value else 1.0)
    elif (
        isinstance(node, ast.Call) and (name := ast.unparse(node.func)).rpartition(".")[2] in _CALLS
    ):
        start, dot, last = name.rpartition(".")
        other = ast.parse(start + dot + _CALLS[last], mode="eval").body
        changed = ast.Call(other, node.args, node.keywords)
    else:
        return
    yield f"({ast.unparse(changed)})"


def draw(area: str, count: int, seed: int, root: Path = ROOT) -> list[CodeMutant]:
    """Draw mutants of an area; of the package, from each part in proportion to its lines."""
    parts = [folder for folder in sorted((root / "embgeo").iterdir()) if folder.is_dir()]
    if area != "package":
        parts = [root / AREAS[area][0]]
    files = [sorted(part.rglob("*.py")) for part in parts]
    lines = [sum(len(file.read_bytes().splitlines()) for file in part) for part in files]
    drawn = []
    for part, share in zip(files, np.array(lines) / sum(lines), strict=True):
        every = [found for file in part for found in find_mutants(file, root)]
        size = min(round(count * share), len(every))
        drawn += random.Random(f"{area} {seed}").sample(every, size)
    return drawn


class Tests:
    """The tests of some places, collected once; each mutant is tried in a process forked from it.

    A mutant goes into the functions that are loaded already, so that a process starts with its
    first test. Only tests that ran the changed function are run, the quickest first.
    """

    def __init__(self, places: Sequence[str], marks: str) -> None:
        arguments = [
            "-q",
            "-n0",
            "-s",
            "-p",
            "no:cacheprovider",
            "-m",
            marks,
            "-k",
            FORKED,
            *places,
        ]
        config = _prepareconfig(arguments)
        config._do_configure()
        self.session = pytest.Session.from_config(config)
        config.hook.pytest_sessionstart(session=self.session)
        config.hook.pytest_collection(session=self.session)
        self.items = {item.nodeid: item for item in self.session.items}
        #: By test: seconds of processor time, and the functions that it ran.
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, set[tuple[str, int]]] = {}

    def watch(self, folders: Sequence[Path]) -> list[str]:
        """Run each test once and note what it runs; returns those that fail without a mutant."""
        roots = tuple(f"{folder}{os.sep}" for folder in folders)
        failing = []
        shared: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for item, later in zip(self.session.items, [*self.session.items[1:], None], strict=True):
            seen: set[tuple[str, int]] = set()
            fixtures = _list_shared_fixtures(item)
            made = [key for key, is_made in fixtures.items() if not is_made]
            _forget_results()

            def note(frame: FrameType, event: str, _: object, seen: set[Any] = seen) -> None:
                if event == "call" and frame.f_code.co_filename.startswith(roots):
                    seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

            start = time.process_time()
            threading.setprofile(note)
            sys.setprofile(note)
            try:
                passed = _passes(item, later)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
            # What a fixture of several tests ran, each of them depends on.
            shared |= dict.fromkeys(made, seen)
            ran = seen.union(*(shared.get(key, seen) for key in fixtures))
            self.seconds[item.nodeid], self.ran[item.nodeid] = time.process_time() - start, ran
            if not passed:
                failing.append(item.nodeid)
        return failing

    def choose(
        self, file: Path, lines: Sequence[int], without: Sequence[str], most: float = math.inf
    ) -> list[str]:
        """Tests that run a function which begins at one of the lines, or any of the file.

        The quickest, until their processor time adds up to the given seconds.
        """
        at = {(str(file), line) for line in lines}
        found = [
            name
            for name, ran in self.ran.items()
            if name not in without
            and (not ran.isdisjoint(at) if lines else any(place[0] == str(file) for place in ran))
        ]
        found.sort(key=self.seconds.__getitem__)
        spent = np.cumsum([self.seconds[name] for name in found])
        return found[: max(1, int((spent <= most).sum()))]

    def catch(self, mutant: CodeMutant, root: Path, names: Sequence[str]) -> bool:
        """Whether one of the tests fails, crashes or hangs with the mutant."""
        child = os.fork()
        if child == 0:
            bound = int(20 + 5 * sum(self.seconds[name] for name in names))
            resource.setrlimit(resource.RLIMIT_CPU, (bound, bound))
            signal.alarm(5 * bound)  # one that waits for ever spends no processor time
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os._exit(self._try(mutant, root, names))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0

    def _try(self, mutant: CodeMutant, root: Path, names: Sequence[str]) -> int:
        try:
            install(mutant, root)
            _forget_results()
            # Tests of one file one after another, whose fixtures are shared, by the quickest.
            items = [self.items[name] for name in names]
            for item, later in zip(items, [*items[1:], None], strict=True):
                if not _passes(item, later):
                    return 1
        except BaseException:
            return 1
        return 0


def _list_shared_fixtures(item: pytest.Item) -> dict[tuple[str, str], bool]:
    """The fixtures of a test that others of its file use, too, and whether they are made."""
    known: Any = item
    definitions = [ones[-1] for ones in known._fixtureinfo.name2fixturedefs.values()]
    return {
        (one.baseid, one.argname): one.cached_result is not None
        for one in definitions
        if one.scope in ("class", "module")
    }


def _forget_results() -> None:
    """Empty the caches of functions: they hold what was computed without a mutant."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("embgeo", "tests")):
            for value in list(vars(module).values()):
                getattr(value, "cache_clear", lambda: None)()


def _passes(item: pytest.Item, later: pytest.Item | None) -> bool:
    reports = runtestprotocol(item, log=False, nextitem=later)
    return not any(report.failed for report in reports)


def install(mutant: CodeMutant, root: Path) -> None:
    """Put the mutant into the functions of the loaded module, or into all that hold its value."""
    path = root / mutant.file
    source = path.read_bytes()
    changed = source[: mutant.start] + mutant.after.encode() + source[mutant.stop :]
    name = ".".join(Path(mutant.file).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    made = ModuleType(name)
    made.__dict__.update(__file__=str(path), __package__=module.__package__)
    code = compile(changed, str(path), "exec")
    if find_functions(source, mutant.line):
        codes = dict(_list_codes(code))
        for qualname, function in _list_functions(module):
            if qualname in codes:
                function.__code__ = codes[qualname]
        return
    sys.modules[name] = made  # where dataclasses look up their module
    try:
        exec(code, made.__dict__)
    finally:
        sys.modules[name] = module
    for key, old in list(vars(module).items()):
        if key.startswith("__") or vars(made).get(key, old) is old or isinstance(old, FunctionType):
            continue
        if isinstance(old, type):
            for attribute, value in vars(vars(made)[key]).items() if old.__module__ == name else ():
                if attribute[:1] != "_" and isinstance(value, bool | int | float | str):
                    setattr(old, attribute, value)
            continue
        for place, holder in list(sys.modules.items()):
            if place.startswith(("embgeo", "tests")) and vars(holder).get(key, made) is old:
                setattr(holder, key, vars(made)[key])
    for qualname, function in _list_functions(module):
        other = dict(_list_functions(made)).get(qualname)
        if other is not None:
            function.__defaults__, function.__kwdefaults__ = (
                other.__defaults__,
                other.__kwdefaults__,
            )


def find_functions(source: bytes, line: int) -> list[int]:
    """First lines of the functions around a line, the outermost first; decorators count."""
    return [
        min([node.lineno, *(one.lineno for one in node.decorator_list)])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or node.lineno)
    ]


def _list_codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one.co_qualname, one
            yield from _list_codes(one)


def _list_functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """Functions and methods that a module defines, by their qualified names."""
    holders: list[Any] = [module]
    while holders:
        for value in list(vars(holders.pop()).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                holders.append(value)
            parts = [value, *(getattr(value, at, None) for at in ("fget", "func", "__func__"))]
            for part in parts:
                function = inspect.unwrap(part) if callable(part) else None
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    yield function.__qualname__, function


def score(
    area: str, mutants: Sequence[CodeMutant], tests: Tests, asked: argparse.Namespace
) -> tuple[int, list[CodeMutant]]:
    """How many mutants were tried, and the survivors; those without time are left out."""
    root, minutes = ROOT, asked.minutes
    failing = tests.watch([root / AREAS[area][0]])
    print(f"{area}: {len(tests.items)} tests, without a mutant fail: {failing}", flush=True)
    end = time.monotonic() + 60 * minutes
    tried, survivors = 0, []
    for mutant in mutants:
        if time.monotonic() > end:
            break
        lines = find_functions((root / mutant.file).read_bytes(), mutant.line)
        names = tests.choose(root / mutant.file, lines, failing, asked.seconds)
        found = bool(names) and tests.catch(mutant, root, names)
        tried += 1
        if not found:
            survivors.append(mutant)
        print(f"{area}: {'caught' if found else 'SURVIVED'} {mutant.text}", flush=True)
    return tried, survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("area", choices=list(AREAS))
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=50, help="At most.")
    parser.add_argument("--seed", type=int, default=0, help="Other mutants.")
    parser.add_argument("--slow", action="store_true", help="Run slow tests, too.")
    parser.add_argument("--seconds", type=float, default=math.inf, help="For a mutant, at most.")
    parser.add_argument("--tests", nargs="*", help="In place of those of the area.")
    parser.add_argument("--only", nargs="*", default=[], help="FILE:LINE of mutants of the sample.")
    asked = parser.parse_args()
    mutants = [
        one
        for one in draw(asked.area, asked.mutants, asked.seed)
        if not asked.only or f"{one.file}:{one.line}" in asked.only
    ]
    marks = "not nightly" if asked.slow else "not slow"
    tests = Tests(asked.tests or AREAS[asked.area][1].split(), marks)
    tried, survivors = score(asked.area, mutants, tests, asked)
    caught = tried - len(survivors)
    print(f"\n| {asked.area} | {tried} | {caught} | {caught / max(tried, 1):.0%} |\n")
    print("\n".join(f"- {one.text}" for one in survivors))


if __name__ == "__main__":
    main()
