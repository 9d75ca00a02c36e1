"""The outcome as aligned lines for a terminal."""

from collections.abc import Iterator

from embgeo.core.text import ColoredLine, Tone, printable
from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import State

WORDS: dict[State, str] = {
    "passed": "passed",
    "failed": "FAILED",
    "unchecked": "UNKNOWN",
    "warned": "warning",
    "skipped": "skipped",
}
TONES: dict[State, Tone] = {
    "passed": "good",
    "failed": "bad",
    "unchecked": "bad",
    "warned": "warning",
}


def render(outcome: Outcome) -> str:
    return "".join(f"{line}\n" for line in lines(outcome))


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield each matrix with its rules, then the verdict in one line."""
    for matrix in (*outcome.matrices, None):
        checks = [check for check in outcome.checks if check.matrix is matrix]
        if not checks:
            continue
        if matrix is not None:
            p = matrix.provenance
            shape = f"{p['n']:,} × {p['d']:,}" if {"n", "d"} <= set(p) else ""
            dropped = p.get("n", 0) - p.get("kept", p.get("n", 0))
            left_out = f"{dropped:,} {plural(dropped, 'row')} left out" if dropped else ""
            head = (matrix.file, matrix.tensor, shape, left_out)
            yield "  ".join(printable(part) for part in head if part)
        width = max(len(printable(check.rule.text)) for check in checks)
        for check in checks:
            yield ColoredLine.of(line(check, width), TONES.get(check.state))
    yield ColoredLine.of(verdict(outcome), "good" if outcome.passed else "bad")


def line(check: Check, width: int) -> str:
    word, rule = WORDS[check.state], printable(check.rule.text)
    text = f"  {word:<7}  {rule:<{width}}  {printable(check.decision.reason)}"
    place = check.rule.place
    if check.state in ("failed", "unchecked", "warned") and place.file:
        text += f"  ({printable(str(place))})"
    return text


def verdict(outcome: Outcome) -> str:
    """Return ``gate failed: 1 of 3 checks``, with the number of warnings and skipped rules."""
    total = len(outcome.checks)
    counts = {state: len(outcome.of_state(state)) for state in WORDS}
    state: State = "passed" if outcome.passed else "failed"
    parts = [f"gate {state}: {counts[state]} of {total} {plural(total, 'check')}"]
    if unchecked := counts["unchecked"]:
        parts.append(f"{unchecked} not checkable")
    if warned := counts["warned"]:
        parts.append(f"{warned} {plural(warned, 'warning')}")
    if skipped := counts["skipped"]:
        parts.append(f"{skipped} not defined, which is allowed")
    if any(c.reading.known == "sampled" for c in outcome.checks):
        parts.append(f"sampled values with their {outcome.level * 100:g}% intervals")
    return "; ".join(parts)


def plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
