"""Values of options that a shell completes.

The names of methods are written out: to import them is to import torch. A test compares them.
"""

from collections.abc import Callable, Iterable

METHODS = (
    "mle", "untied", "factored", "cosreg", "sc-exp", "sc-poly", "frage", "al", "re", "real",
    "spectral-norm", "d-optimal", "adversarial", "coupled-adam",
)  # fmt: skip
DEVICES = ("cpu", "cuda", "mps", "auto")


def complete_one(list_names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the completion of an option that takes one of these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in list_names() if name.startswith(incomplete)]

    return complete


def complete_list(list_names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the completion of an option that takes several of these names with commas."""

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        left = (name for name in list_names() if name not in head.split(","))
        return [f"{head}{comma}{name}" for name in left if name.startswith(last)]

    return complete


def list_devices() -> Iterable[str]:
    return DEVICES


def list_methods() -> Iterable[str]:
    return METHODS


def list_sections() -> Iterable[str]:
    from embgeo.metrics import SECTIONS

    return SECTIONS


def list_charts() -> Iterable[str]:
    from embgeo.charts import CHARTS

    return [chart.name for chart in CHARTS]


def list_presets() -> Iterable[str]:
    from embgeo.training.settings import list_presets

    return sorted(list_presets())


def list_rule_presets() -> Iterable[str]:
    from embgeo.rules.rule import PRESETS

    return PRESETS
