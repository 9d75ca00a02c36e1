"""GitHub's workflow commands: an annotation at the line of each rule that does not hold."""

from collections.abc import Callable

from embgeo.core.text import printable
from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import BLOCKING, State

#: GitHub shows this many errors and this many warnings of a step, and drops the others.
MOST = 10


def render(outcome: Outcome, path: Callable[[str], str] = str) -> str:
    """Render a line for each failure and each warning, as far as GitHub shows them.

    `path` makes the file of a rule relative to the root of the repository.
    """
    lines = []
    states: dict[str, tuple[State, ...]] = {"error": BLOCKING, "warning": ("warned",)}
    for command, chosen in states.items():
        checks = tuple(check for state in chosen for check in outcome.of_state(state))
        shown = checks if len(checks) <= MOST else checks[: MOST - 1]
        lines += [annotation(command, check, path) for check in shown]
        if left := len(checks) - len(shown):
            message = f"{left} more {command}s: the step's summary and its log list them all"
            lines.append(f"::{command} title=embgeo gate::{data(message)}")
    return "".join(f"{line}\n" for line in lines)


def render_error(message: str) -> str:
    """Render a run without an outcome."""
    return f"::error title=embgeo gate could not run::{data(message)}\n"


def annotation(command: str, check: Check, path: Callable[[str], str]) -> str:
    place, matrix = check.rule.place, check.matrix
    properties = {"title": f"embgeo gate: {check.rule.text}"}
    if place.file:
        properties |= {"file": path(place.file)}
        if place.line is not None:
            properties |= {"line": str(place.line)}
    message = check.sentence
    if matrix is not None:
        message += f" ({matrix.file} {matrix.tensor})"
    shown = ",".join(f"{key}={value_of(value)}" for key, value in properties.items())
    return f"::{command} {shown}::{data(message)}"


def data(text: str) -> str:
    """Return the message of a command; the runner decodes percent signs."""
    return printable(text).replace("%", "%25")


def value_of(text: str) -> str:
    """Return a property of a command, which would also end at a colon or a comma."""
    return data(text).replace(":", "%3A").replace(",", "%2C")
