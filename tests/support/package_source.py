"""The source of the package, each module read and parsed once, for the tests of its shape."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "embgeo"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its full name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def source(module: str) -> str:
    return modules()[module].read_text("utf-8")


@cache
def parse_module(module: str) -> ast.Module:
    return ast.parse(source(module), module)


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Every node of a module, from the outside in."""
    return tuple(ast.walk(parse_module(module)))
