"""The outcome as Markdown, for the summary of a GitHub step and for comments."""

from embgeo.core.text import as_code, escape_markdown
from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import State
from embgeo.rules.outputs.table import verdict

#: GitHub drops a summary beyond 1 MiB a step; other tools write to it, too.
MOST_BYTES = 900_000

#: Worst first.
MARKS: dict[State, str] = {
    "failed": "**failed**",
    "unchecked": "**not checkable**",
    "warned": "warning",
    "skipped": "skipped",
    "passed": "passed",
}


def render(outcome: Outcome, most: int = MOST_BYTES) -> str:
    """Render the verdict and a table of all checks, at most `most` bytes in UTF-8."""
    head = (
        f"### embgeo {escape_markdown(verdict(outcome))}\n\n"
        "| | rule | measured | matrix | written in |\n|---|---|---|---|---|\n"
    )
    rows = [row(check) for state in MARKS for check in outcome.checks if check.state == state]
    room = most - len(head.encode()) - len(more(len(rows)).encode())
    shown = []
    for text in rows:
        room -= len(text.encode())
        if room < 0:
            break
        shown.append(text)
    left = len(rows) - len(shown)
    return head + "".join(shown) + (more(left) if left else "") + "\n"


def render_error(message: str) -> str:
    """Render a run without an outcome."""
    return f"### embgeo gate could not run\n\n{as_code(message[: MOST_BYTES // 20])}\n\n"


def more(left: int) -> str:
    return f"\n{left:,} more checks: the step's log lists them all.\n"


def row(check: Check) -> str:
    matrix = "" if check.matrix is None else f"{check.matrix.file} {check.matrix.tensor}".strip()
    reading = check.reading
    title = f"<br>{escape_markdown(reading.title)}" if reading.title else ""
    convention = f"; {escape_markdown(reading.convention)}" if reading.convention else ""
    cells = (
        MARKS[check.state],
        f"{as_code(check.rule.text)}{title}{convention}",
        escape_markdown(check.decision.reason),
        as_code(matrix),
        as_code(str(check.rule.place)),
    )
    return f"| {' | '.join(cells)} |\n"
