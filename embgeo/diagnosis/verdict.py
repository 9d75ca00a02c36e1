"""All findings about an analysis, and a headline that sums them up."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embgeo.core.special import classify_token
from embgeo.core.suspects import REASONS, Suspects
from embgeo.core.text import capital, join_words
from embgeo.diagnosis.finding import RANK, Finding, Numbers, State, milder
from embgeo.diagnosis.findings import FINDINGS

#: Faults in the order of the headline, which names the first two of the worst.
FAULTS = ("cone", "spectrum", "two-sided", "clusters", "norms", "coordinate", "isotropy")
MOST_FAULTS = 2
#: Expected suspects that lie in one place; others are as training left them.
TOGETHER = frozenset({"mean", "duplicate", "near_identical", "clump"})


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The headline, the state of the geometry, and the findings.

    Attributes
    ----------
    headline : str
        At most about a dozen words, without numbers of the geometry.
    state : {"healthy", "mild", "degenerate", "undecided"}
    findings : tuple of Finding
    """

    headline: str
    state: State
    findings: tuple[Finding, ...]

    @property
    def tone(self) -> State:
        """The color of the headline: a split by frequency alone also looks mild."""
        frequency = self.finding("frequency")
        split = frequency is not None and frequency.is_fault
        return "mild" if self.state == "healthy" and split else self.state

    def finding(self, key: str) -> Finding | None:
        return next((f for f in self.findings if f.key == key), None)

    def __repr__(self) -> str:
        return f"<Verdict {self.state}: {self.headline}>"

    def __str__(self) -> str:
        return self.headline

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in ``analysis.json``."""
        return {
            "state": self.state,
            "headline": self.headline,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def judge(analysis: Numbers) -> Verdict:
    """Return all findings about one matrix, and the line that sums them up."""
    answers = [(f.QUESTION, f.QUESTION.decide(analysis)) for f in FINDINGS]
    state: State = max((f.state for q, f in answers if q.geometry), key=RANK.__getitem__)
    faults = {f.key for q, f in answers if q.geometry and f.is_fault}
    # Coordinates are shown for what they make of a geometry that is judged without them.
    shown = [
        cap_state(finding, state) if question.by_axes else finding
        for question, finding in answers
        if question.is_shown(finding) and not is_refuted(finding, faults)
    ]
    # Other healthy numbers must not hide that an essential question is open.
    if state == "healthy" and any(f.state == "undecided" for q, f in answers if q.essential):
        state = "undecided"
    tokens = next((f for f in shown if f.key == "suspects"), None)
    # If nothing else is known, few faulty tokens decide nothing.
    telling = ("degenerate",) if state == "undecided" else ("mild", "degenerate")
    if tokens is not None and tokens.state in telling:
        state = max(state, tokens.state, key=RANK.__getitem__)
    return Verdict(write_headline(shown, analysis.suspects), state, tuple(shown))


#: Faults beside which the healthy answer to another question reads as if they were none.
_REFUTED = {
    "isotropy": ("cone", "spectrum", "two-sided", "clusters"),
    "initialization": ("cone", "spectrum", "two-sided", "clusters"),
}


def cap_state(finding: Finding, worst: State) -> Finding:
    """Return a finding whose state is at most that of the findings that no basis changes."""
    least: State = "healthy" if worst == "undecided" else worst
    return replace(finding, state=milder(finding.state, least))


def is_refuted(finding: Finding, faults: set[str]) -> bool:
    """Tell whether other findings explain or contradict a healthy one."""
    return finding.state == "healthy" and not faults.isdisjoint(_REFUTED.get(finding.key, ()))


def write_headline(findings: Sequence[Finding], suspects: Sequence[Suspects]) -> str:
    """Write what is wrong, or what is usual."""
    by_key = {finding.key: finding for finding in findings}
    found = [by_key[key] for key in FAULTS if key in by_key and by_key[key].is_fault]
    apart = "frequency" in by_key and by_key["frequency"].is_fault
    rows = [own.rows[own.serious] for own in suspects]
    faulty = len(np.unique(np.concatenate(rows))) if rows else 0
    tokens = [f"{faulty:,} faulty token{'' if faulty == 1 else 's'}"] if faulty else []
    if found:
        worst = max((one.state for one in found), key=RANK.__getitem__)
        faults = [one.fault for one in found if one.state == worst]
        text = join_words([*faults[:MOST_FAULTS], *tokens])
        if worst == "mild":
            return f"Mildly degenerate: {text}{'; rare tokens lie apart' if apart else ''}."
        return f"{capital(text)}{': rare tokens crowd on one side' if apart else ''}."
    also = f", with {tokens[0]}" if tokens else ""
    undecided = [f for f in findings if f.key in ("cone", "spectrum") and f.state == "undecided"]
    if undecided:
        return f"Undecided{also}: {undecided[0].open}."
    if "initialization" in by_key:
        return f"Untrained{also}: the rows look like an initialization."
    if apart:
        lead = f"{tokens[0]}, and" if tokens else "Not degenerate, but"
        return f"{lead} rare tokens lie apart from frequent ones."
    return f"Healthy, except for {tokens[0]}." if tokens else f"Healthy.{explain_usual(suspects)}"


def explain_usual(suspects: Sequence[Suspects]) -> str:
    """Say what is usual of tokens that no text uses, if anything is."""
    kinds = Counter(
        (classify_token(token) or "reserved", own.reason in TOGETHER)
        for own in suspects
        if REASONS[own.reason].serious and own.tokens is not None
        for token, serious in zip(own.tokens, own.serious.tolist(), strict=True)
        if not serious
    )
    if not kinds:
        return ""
    [((kind, together), count)] = kinds.most_common(1)
    does = "sit together" if together else "are untrained"
    return f" {count:,} {kind} tokens {does}, as usual."
