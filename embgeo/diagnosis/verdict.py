"""All findings about an analysis, and a headline that sums them up."""

from dataclasses import dataclass, replace
from typing import Any

from embgeo.core.text import capital, join_words
from embgeo.diagnosis.finding import RANK, Finding, Numbers, State, milder
from embgeo.diagnosis.findings import FINDINGS
from embgeo.diagnosis.findings.suspects import has_many_kept


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The headline, the state of the geometry, and the findings.

    Attributes
    ----------
    headline : str
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
    answers = [(q, cap_state(f, state) if q.by_axes else f) for q, f in answers]
    shown = tuple(finding for question, finding in answers if question.is_shown(finding))
    faults = {f.key for q, f in answers if q.geometry and f.is_fault}
    shown = tuple(f for f in shown if not is_refuted(f, faults))
    # Other healthy numbers must not hide that an essential question is open.
    if state == "healthy" and any(f.state == "undecided" for q, f in answers if q.essential):
        state = "undecided"
    headline = _headline(state, {q.key for q, _ in answers if q.is_cause}, shown)
    tokens = next((f for f in shown if f.key == "suspects"), None)
    # If nothing else is known, few faulty tokens decide nothing.
    telling = ("degenerate",) if state == "undecided" else ("mild", "degenerate")
    if tokens is not None and tokens.state in telling:
        frequency = next(f for f in shown if f.key == "frequency")
        verb = "show" if state == "healthy" and not frequency.is_fault else "are"
        # The numbers below the headline are those of all kept rows.
        who = "All rows together" if has_many_kept(analysis) else "The other rows"
        rest = f"{verb} {headline[0].lower()}{headline[1:]}"
        if _is_initial(state, shown):
            rest = _INITIAL
        headline = f"{capital(tokens.clause)}. {who} {rest}"
        state = max(state, tokens.state, key=RANK.__getitem__)
    return Verdict(headline, state, shown)


def _is_initial(state: State, findings: tuple[Finding, ...]) -> bool:
    """Tell whether nothing but an initialization is found."""
    by_key = {f.key: f for f in findings}
    return state == "healthy" and "initialization" in by_key and not by_key["frequency"].is_fault


_INITIAL = "look like an initialization: they hold no structure."

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


#: Findings that the headline mentions even if another finding is worse.
_EVEN_IF_MILD = ("clusters", "cone", "coordinate", "norms")


def _sort_faults(state: State, causes: set[str], findings: tuple[Finding, ...]) -> list[Finding]:
    """Get the faults in the headline: what reached the state first, causes before consequences."""
    faults = [
        f
        for f in findings
        if f.key not in ("suspects", "isotropy", "frequency")
        and f.clause
        and (f.state == state or (f.state == "mild" and f.key in _EVEN_IF_MILD))
    ]
    return sorted(faults, key=lambda f: (f.state != state, f.key not in causes))


def _headline(state: State, causes: set[str], findings: tuple[Finding, ...]) -> str:
    by_key = {f.key: f for f in findings}
    frequency = by_key["frequency"]
    apart = frequency.is_fault
    calm = [f.clause for f in findings if f.key in ("cone", "spectrum") and f.state == "healthy"]
    if state in ("mild", "degenerate"):
        clauses = [f.clause for f in _sort_faults(state, causes, findings)]
        clauses = clauses or [by_key["isotropy"].clause]
        lead = "Degenerate" if state == "degenerate" else "Mildly degenerate"
        return f"{lead}: {_join([*clauses, frequency.clause] if apart else clauses)}."
    if state == "undecided":
        open_question = next(f for f in findings if f.state == "undecided" and f.key != "suspects")
        known = [f.clause for f in findings if f.key in ("cone", "spectrum") and f.clause]
        if apart:
            known.append(frequency.clause)
        return f"Undecided: {'; '.join(filter(None, (open_question.open, _join(known))))}."
    calm += [f.clause for f in findings if f.key == "coordinate"]
    if apart:
        return f"Not degenerate, but {frequency.clause}. {capital(_join(calm))}."
    if _is_initial(state, findings):
        return f"The rows {_INITIAL}"
    if frequency.clause:
        calm.append(frequency.clause)
    return f"No sign of degeneration: {_join(calm)}."


def _join(clauses: list[str]) -> str:
    return join_words(clauses, comma=True)
