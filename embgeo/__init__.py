"""The geometry of a language model's embedding matrix: measured, compared, checked and drawn.

The commands of ``embgeo`` run these functions; docs/python.md shows how to use them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.comparison.comparison import Comparison, load_comparison
    from embgeo.core.errors import EmbgeoError
    from embgeo.core.matrix import Matrix
    from embgeo.core.options import Options
    from embgeo.core.progress import Progress
    from embgeo.core.values import Quantity, Scalar
    from embgeo.io.load import load
    from embgeo.stats.resources import Resources
    from embgeo.training.study.record import load_study
    from embgeo.workflows.analyze import Analysis, analyze, load_analysis
    from embgeo.workflows.diff import compare_vocabularies, diff
    from embgeo.workflows.export import export
    from embgeo.workflows.fetch import fetch
    from embgeo.workflows.figures import figures
    from embgeo.workflows.gate import gate
    from embgeo.workflows.inspect import inspect
    from embgeo.workflows.render import render
    from embgeo.workflows.repair import repair
    from embgeo.workflows.train import train

    __version__: str

#: Name → module, which is imported with the first use of the name.
_HOMES = {
    "Analysis": "embgeo.workflows.analyze",
    "Comparison": "embgeo.comparison.comparison",
    "EmbgeoError": "embgeo.core.errors",
    "Matrix": "embgeo.core.matrix",
    "Options": "embgeo.core.options",
    "Progress": "embgeo.core.progress",
    "Quantity": "embgeo.core.values",
    "Resources": "embgeo.stats.resources",
    "Scalar": "embgeo.core.values",
    "analyze": "embgeo.workflows.analyze",
    "compare_vocabularies": "embgeo.workflows.diff",
    "diff": "embgeo.workflows.diff",
    "export": "embgeo.workflows.export",
    "fetch": "embgeo.workflows.fetch",
    "figures": "embgeo.workflows.figures",
    "gate": "embgeo.workflows.gate",
    "inspect": "embgeo.workflows.inspect",
    "load": "embgeo.io.load",
    "load_analysis": "embgeo.workflows.analyze",
    "load_comparison": "embgeo.comparison.comparison",
    "load_study": "embgeo.training.study.record",
    "render": "embgeo.workflows.render",
    "repair": "embgeo.workflows.repair",
    "train": "embgeo.workflows.train",
}

__all__ = [
    "Analysis",
    "Comparison",
    "EmbgeoError",
    "Matrix",
    "Options",
    "Progress",
    "Quantity",
    "Resources",
    "Scalar",
    "__version__",
    "analyze",
    "compare_vocabularies",
    "diff",
    "export",
    "fetch",
    "figures",
    "gate",
    "inspect",
    "load",
    "load_analysis",
    "load_comparison",
    "load_study",
    "render",
    "repair",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        from embgeo.core.version import VERSION

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
