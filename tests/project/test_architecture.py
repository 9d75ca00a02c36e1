"""The shape of the code: who may import whom, and what is listed where.

Each check walks the whole package once and lists every offender.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

import pytest

from tests.support.package_source import ROOT, modules, nodes, parse_module, source

#: Parts of the package from the ground up: a module imports only its own part and earlier ones.
PARTS = (
    "core",
    "files",
    "numerics",
    "io",
    "stats",
    "metrics",
    "diagnosis",
    "result",
    "measure",
    "row_repair",
    "distributed",
    "comparison",
    "training.study",
    "rules",
    "charts",
    "report",
    "publish",
    "training",
    "workflows",
    "callbacks",
    "__init__",
    "cli",
    "__main__",
)

#: What reads a saved result, and nothing of how it was made.
READERS = ("diagnosis", "rules", "charts", "report", "publish")
#: What a reader may import beside other readers: results, and files that are written whole.
READABLE = (
    "embgeo.comparison.film",
    "embgeo.core",
    "embgeo.files",
    "embgeo.result",
    "embgeo.training.study",
    "embgeo.comparison.sentences",
    "embgeo.comparison.suspects",
    "embgeo.comparison.comparison",
    "embgeo.comparison.differences",
    "embgeo.comparison.matching",
    "embgeo.comparison.pair",
    "embgeo.comparison.track",
    "embgeo.comparison.moved",
    "embgeo.comparison.shifts",
    "embgeo.comparison.vocabularies",
    "embgeo.row_repair.record",
)

#: What `embgeo --help` and a look into a header must not wait for.
HEAVY = {"matplotlib", "pandas", "scipy", "sklearn", "torch"}
LIGHT_PARTS = ("core", "io", "stats", "result", "cli", "__init__")

#: Tuple that lists the modules of a folder, and the line that marks such a module.
LISTS = {
    "stats.STATISTICS": r"^class \w+\((?:Statistic|PerRow)\):",
    "metrics.FAMILIES": r"^FAMILY = ",
    "diagnosis.findings.FINDINGS": r"^QUESTION = ",
    "charts.CHARTS": r"^[A-Z_]+ = (?:spec\.|specification\.)?Chart\(",
    "publish.latex.TABLES": r"^TABLE = ",
    "publish.export.TARGETS": r"^TARGET = ",
    "io.formats.FORMATS": r"^def sniff\(",
    "io.memory.KINDS": r"^def find_in_\w+\(",
    # The encoder-decoders are models of a task, not language models.
    "training.models.MODELS": r"^    NAME: ClassVar\[str\] = (?!.*encoder-decoder)",
    "training.tasks.TASKS": r"^class \w+\((?:task\.)?(?:Classification)?Task\):",
    "training.methods.REGULARIZERS": r"^    SOURCE: ClassVar\[str\] = (?!\"as of)",
}
#: Where the modules of a tuple lie, if not in its own folder.
FOLDERS = {"io.formats.FORMATS": "io"}


def part_of(module: str) -> str:
    rest = module.removeprefix("embgeo").removeprefix(".")
    if rest == "training.study" or rest.startswith("training.study."):
        return "training.study"
    return rest.partition(".")[0] or "__init__"


def imported(found: Iterable[ast.AST]) -> Iterator[str]:
    """Full names of what the statements among these nodes import."""
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide which part is meant"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def arrows(module: str) -> frozenset[str]:
    """The modules of embgeo that a module imports."""
    found = set()
    for name in imported(nodes(module)):
        while name.startswith("embgeo") and name not in modules():
            name = name.rpartition(".")[0]
        found.add(name)
    return frozenset(found & set(modules()) - {module})


@pytest.mark.slow
def test_imports_point_down() -> None:
    assert {part_of(module) for module in modules()} == set(PARTS)
    floor = {part: number for number, part in enumerate(PARTS)}
    assert not [
        f"{module} imports {other}"
        for module in modules()
        for other in arrows(module)
        if floor[part_of(other)] > floor[part_of(module)]
    ]


def test_the_map_of_the_parts_is_theirs() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert listed == [part for part in PARTS if part != "__main__"]


@pytest.mark.slow
def test_no_files_import_each_other_in_a_circle() -> None:
    waiting = {module: set(arrows(module)) for module in modules()}
    # A package and the modules that it lists: one unit, imported from outside.
    for module, others in waiting.items():
        others -= {other for other in others if module.startswith(f"{other}.")}
    while ready := {module for module, needs in waiting.items() if not needs & waiting.keys()}:
        waiting = {module: needs for module, needs in waiting.items() if module not in ready}
    in_circle = {m for m in waiting if m in reachable(waiting, waiting[m])}
    assert not in_circle


def reachable(graph: Mapping[str, set[str]], start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph.get(name, ())
    return seen


def test_readers_see_only_saved_results() -> None:
    readable = (*READABLE, *(f"embgeo.{part}" for part in READERS))
    assert not [
        f"{module} imports {other}"
        for module in modules()
        if part_of(module) in READERS
        for other in arrows(module)
        if other != "embgeo" and not any(f"{other}.".startswith(f"{ok}.") for ok in readable)
    ]


def at_module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import: not those in functions, nor under TYPE_CHECKING."""
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    """Nor is click, anywhere: Typer brings a copy of its own."""
    offenders = [
        f"{module} imports {name}"
        for module in modules()
        if part_of(module) in LIGHT_PARTS
        for node in at_module_level(parse_module(module))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported([node])
        if name.partition(".")[0] in HEAVY
    ]
    offenders += [
        f"{module} imports click"
        for module in modules()
        if "click" in {name.partition(".")[0] for name in imported(nodes(module))}
    ]
    assert not offenders


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """Also not numpy, which alone takes longer than the rest of ``--help``."""
    code = (
        "import contextlib, io, sys\n"
        "from embgeo.cli.app import app\n"
        "with contextlib.redirect_stdout(io.StringIO()) as shown:\n"
        "    app(['--help'], standalone_mode=False)\n"
        "assert 'analyze' in shown.getvalue(), shown.getvalue()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = set(run.stdout.split())
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "numpy", "jinja2", "ml_dtypes", "safetensors"}


@pytest.mark.parametrize("name", LISTS)
def test_every_module_of_a_kind_is_listed(name: str) -> None:
    folder, _, tuple_name = name.rpartition(".")
    if folder.startswith("training"):
        pytest.importorskip("torch")
    home = import_module(f"embgeo.{folder}")
    entries = getattr(home, tuple_name)
    entries = entries.values() if isinstance(entries, dict) else entries
    listed = {module_name(entry) for entry in entries}
    marked = {
        module
        for module in modules()
        if module.startswith(f"embgeo.{FOLDERS.get(name, folder)}.")
        and re.search(LISTS[name], source(module), re.MULTILINE)
    }
    assert listed == marked


def module_name(entry: object) -> str:
    """The module that an entry comes from: itself, a class, a function, or what holds one."""
    if isinstance(entry, ModuleType):
        return entry.__name__
    if isinstance(place := getattr(entry, "CLASS", None), str):
        return f"embgeo.training.{place.rpartition('.')[0]}"
    if isinstance(entry, type):
        return entry.__module__
    for held in ("build", "compute", "fill", "write"):
        entry = getattr(entry, held, entry)
    return entry.__module__


#: Left out: what others wrote and is kept whole.
NOT_OURS = ("embgeo/report/static/vendor/", "LICENSE")
#: Where people and build machines keep their files.
SOMEBODYS_PLACE = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|workspace|mnt|tmp)/\w")


def tracked_texts() -> dict[str, str]:
    listing = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT, check=True)
    texts = {}
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if not name.startswith(NOT_OURS) and path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[name] = content.decode("utf-8", "replace")
    return texts


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout, no list of files")
def test_no_file_names_a_place_on_somebodys_machine() -> None:
    texts = tracked_texts()
    assert "pyproject.toml" in texts
    found = {name: hit[0] for name, text in texts.items() if (hit := SOMEBODYS_PLACE.search(text))}
    assert not found
