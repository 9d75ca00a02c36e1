"""Every number measured, in the OpenMetrics text format: GitLab's metrics report."""

import re

from embgeo.core.text import printable
from embgeo.rules.check import Outcome
from embgeo.rules.decide import STATES
from embgeo.rules.outputs.metrics_json import labels
from embgeo.rules.rule_value import RuleValue, round_digits

NAME = "metrics.txt"


def render(outcome: Outcome) -> str:
    """Render a gauge for each scalar with a value, then the number of checks in each state.

    Labels only distinguish several matrices: GitLab compares a metric with the one of the same name
    and labels on the target branch.
    """
    several = len(outcome.matrices) > 1
    named = list(zip(labels(outcome.matrices), outcome.matrices, strict=True))
    names = sorted({name for matrix in outcome.matrices for name in matrix.readings})
    lines = []
    for name in names:
        samples = []
        title = ""
        for label, matrix in named:
            reading = matrix.readings.get(name)
            if reading is not None and reading.value is not None:
                title = title or describe_title(reading)
                tail = f'{{matrix="{label_value(label)}"}}' if several else ""
                samples.append(f"{metric(name)}{tail} {round_digits(reading.value)}")
        if samples:
            lines.append(f"# TYPE {metric(name)} gauge")
            if title:
                lines.append(f"# HELP {metric(name)} {help_text(title)}")
            lines += samples
    for state in STATES:
        gauge = f"embgeo_gate_{state}"
        lines += [f"# TYPE {gauge} gauge", f"{gauge} {len(outcome.of_state(state))}"]
    return "\n".join([*lines, "# EOF"]) + "\n"


def describe_title(reading: RuleValue) -> str:
    """Write the title, with the words that the numbers stand for."""
    words = (f"{place} {word}" for place, word in enumerate(reading.scale))
    return f"{reading.title}: {', '.join(words)}" if reading.scale else reading.title


def metric(name: str) -> str:
    """Write ``cosine.mean`` as ``embgeo_cosine_mean``."""
    return "embgeo_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


def label_value(text: str) -> str:
    """Return a quoted label; ``#`` is encoded, which GitLab takes for a comment even there."""
    return help_text(text).replace("#", "%23")


def help_text(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
