"""The outcome as aligned lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from embgeo.core.tone import Tone, ToneLine
from embgeo.gate.check import Check, Outcome
from embgeo.gate.decide import State
from embgeo.gate.text import shape, visible

NAME = "table"

#: Failures are what a reader looks for in a long log.
WORDS: dict[State, str] = {
    "passed": "passed",
    "failed": "FAILED",
    "warned": "warning",
    "skipped": "skipped",
}
TONES: dict[State, Tone] = {"passed": "good", "failed": "bad", "warned": "warning"}


def render(outcome: Outcome) -> str:
    """The lines as one text."""
    return "".join(f"{line}\n" for line in lines(outcome))


def lines(outcome: Outcome) -> Iterator[str]:
    """Each matrix with its rules, then the verdict in one line."""
    for matrix in (*outcome.matrices, None):
        checks = [check for check in outcome.checks if check.matrix is matrix]
        if not checks:
            continue
        if matrix is not None:
            head = (matrix.file, matrix.tensor, shape(matrix))
            yield "  ".join(visible(part) for part in head if part)
        width = max(len(visible(check.rule.text)) for check in checks)
        for check in checks:
            yield ToneLine.of(line(check, width), TONES.get(check.state))
    yield ToneLine.of(verdict(outcome), "good" if outcome.passed else "bad")


def line(check: Check, width: int) -> str:
    word, rule = WORDS[check.state], visible(check.rule.text)
    said = f"  {word:<7}  {rule:<{width}}  {visible(check.decision.reason)}"
    place = check.rule.place
    if check.state in ("failed", "warned") and place.file:
        said += f"  ({visible(str(place))})"
    return said


def verdict(outcome: Outcome) -> str:
    """``gate failed: 1 of 3 checks``, with what else there is to know."""
    total = len(outcome.checks)
    counts = {state: len(outcome.of_state(state)) for state in WORDS}
    if outcome.passed:
        said = f"gate passed: {counts['passed']} of {total} {plural(total, 'check')}"
    else:
        said = f"gate failed: {counts['failed']} of {total} {plural(total, 'check')}"
    more = []
    if counts["warned"]:
        more.append(f"{counts['warned']} {plural(counts['warned'], 'warning')}")
    if counts["skipped"]:
        more.append(
            f"{counts['skipped']} not defined, as the {plural(counts['skipped'], 'rule')} "
            f"allow{'s' if counts['skipped'] == 1 else ''}"
        )
    if any(c.reading.known == "sampled" for c in outcome.checks):
        more.append(f"sampled values with their {outcome.level * 100:g} % intervals")
    return "; ".join([said, *more])


def plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
