"""From the numbers of an analysis to a line that a newcomer understands, and its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embgeo.diagnosis.blame import blame_tokens
from embgeo.diagnosis.finding import RANK, Finding, Numbers, State
from embgeo.diagnosis.findings import FINDINGS
from embgeo.diagnosis.findings.rows import has_short_rows, names_all_rows
from embgeo.diagnosis.findings.spectrum import share_of_long_rows


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The headline, the state of the geometry, and the findings behind it.

    Attributes
    ----------
    headline : str
    state : {"healthy", "mild", "degenerate", "undecided"}
    findings : tuple of Finding
    blame_lead : str
        What the tokens in `blame` have in common, e.g. "Deepest in the cone"; empty if none is
        named.
    blame : tuple of str
        Up to five tokens, hidden characters spelled out; rows by number where tokens are unknown.
    blame_rows : tuple of int
        Their rows.
    """

    headline: str
    state: State
    findings: tuple[Finding, ...]
    blame_lead: str = ""
    blame: tuple[str, ...] = ()
    blame_rows: tuple[int, ...] = ()

    @property
    def blame_sentence(self) -> str:
        """The tokens to blame as a line of text; empty if there are none."""
        return f"{self.blame_lead}: {', '.join(self.blame)}" if self.blame else ""

    @property
    def tone(self) -> State:
        """How alarming the headline looks: a split by frequency alone is no calm matter."""
        frequency = self.finding("frequency")
        split = frequency is not None and frequency.state in ("mild", "degenerate")
        return "mild" if self.state == "healthy" and split else self.state

    def finding(self, key: str) -> Finding | None:
        return next((f for f in self.findings if f.key == key), None)

    def __repr__(self) -> str:
        return f"<Verdict {self.state}: {self.headline}>"

    def __str__(self) -> str:
        return self.headline

    def to_dict(self) -> dict[str, Any]:
        """As ``analysis.json`` has it."""
        return {
            "state": self.state,
            "headline": self.headline,
            "findings": [finding.to_dict() for finding in self.findings],
            "blame": list(self.blame),
        }


def judge(analysis: Numbers) -> Verdict:
    """All findings about one matrix, and the line that sums them up."""
    asked = [(f.QUESTION, f.QUESTION.decide(analysis)) for f in FINDINGS]
    shown = tuple(finding for question, finding in asked if question.shows(finding))
    state: State = max((f.state for q, f in asked if q.geometry), key=RANK.__getitem__)
    # Other healthy numbers must not hide that an essential question was never looked at.
    if state == "healthy" and any(f.state == "undecided" for q, f in asked if q.essential):
        state = "undecided"
    headline = _headline(state, {q.key for q, _ in asked if q.is_cause}, shown)
    rows = next((f for f in shown if f.key == "rows"), None)
    # Where nothing else is known, rows that are merely idle decide nothing.
    faults = ("degenerate",) if state == "undecided" else ("mild", "degenerate")
    if rows is not None and rows.state in faults:
        frequency = next(f for f in shown if f.key == "frequency")
        is_calm = state == "healthy" and frequency.state in ("healthy", "undecided")
        headline = _with_rows(rows, is_calm, headline, has_others(analysis))
        state = max(state, rows.state, key=RANK.__getitem__)
    return Verdict(headline, state, shown, *blame_tokens(analysis, _causes(analysis, shown)))


def has_others(analysis: Numbers) -> bool:
    """Whether the numbers are of rows that nothing is wrong with."""
    return not (has_short_rows(analysis) or names_all_rows(analysis))


def _with_rows(rows: Finding, is_calm: bool, headline: str, others: bool) -> str:
    """The headline about the rows that are kept, after what is wrong with some."""
    verb = "show" if is_calm else "are"
    first = rows.clause[0].upper() + rows.clause[1:]
    who = "The other rows" if others else "All rows together"
    return f"{first}. {who} {verb} {headline[0].lower()}{headline[1:]}"


def _causes(analysis: Numbers, findings: tuple[Finding, ...]) -> list[str]:
    """Of what single tokens can be the cause; a split by frequency is nobody's."""
    states = {f.key: f.state for f in findings}
    causes = ["rows"] if states.get("rows") == "degenerate" else []
    if states.get("rows") == "mild":
        causes += ["short rows" if has_short_rows(analysis) else "idle rows"]
    causes += ["clump"] if states.get("clump") == "mild" else []
    causes += ["scattered", "cone"] if states["cone"] in ("mild", "degenerate") else []
    if states["spectrum"] in ("mild", "degenerate") and share_of_long_rows(analysis) is not None:
        causes.append("large norms")
    return causes


#: What belongs to the picture although another finding is worse.
_EVEN_IF_MILD = ("clusters", "duplicates", "cone", "coordinate", "clump")


def _sort_faults(state: State, causes: set[str], findings: tuple[Finding, ...]) -> list[Finding]:
    """What the headline lists: causes before what follows from them, the worst before others."""
    faults = [
        f
        for f in findings
        if f.key not in ("rows", "isotropy", "frequency")
        and f.clause
        and (f.state == state or (f.state == "mild" and f.key in _EVEN_IF_MILD))
    ]
    return sorted(faults, key=lambda f: (f.key not in causes, f.state != state))


def _headline(state: State, causes: set[str], findings: tuple[Finding, ...]) -> str:
    by_key = {f.key: f for f in findings}
    frequency = by_key["frequency"]
    apart = frequency.state in ("mild", "degenerate")
    calm = [f.clause for f in findings if f.key in ("cone", "spectrum") and f.state == "healthy"]
    if state == "mild" and _is_clump_alone(findings):
        text = f"Healthy but for {by_key['clump'].clause}: {_listed(calm)}"
        return f"{text}, yet {frequency.clause}." if apart else f"{text}."
    if state in ("mild", "degenerate"):
        clauses = [f.clause for f in _sort_faults(state, causes, findings)]
        clauses = clauses or [by_key["isotropy"].clause]
        lead = "Degenerate" if state == "degenerate" else "Mildly degenerate"
        return f"{lead}: {_listed([*clauses, frequency.clause] if apart else clauses)}."
    if state == "undecided":
        open_question = next(f for f in findings if f.state == "undecided" and f.key != "rows")
        known = [f.clause for f in findings if f.key in ("cone", "spectrum") and f.clause]
        if apart:
            known.append(frequency.clause)
        return (
            f"Undecided: {'; '.join([open_question.open, *([_listed(known)] if known else [])])}."
        )
    if apart:
        # Not the word of the state: norms alone can split what no probe separates.
        partly = "partly " if frequency.state == "mild" else ""
        lead = f"Not degenerate, but rare and popular tokens live {partly}apart"
        return f"{lead}: {_listed(calm)}, yet {frequency.clause}."
    if frequency.clause:
        calm.append(frequency.clause)
    return f"No sign of degeneration: {_listed(calm)}."


def _is_clump_alone(findings: tuple[Finding, ...]) -> bool:
    """Whether rows that lie together are all that is wrong with the geometry."""
    states = {f.key: f.state for f in findings if f.key not in ("rows", "frequency")}
    faults = [key for key, state in states.items() if state in ("mild", "degenerate")]
    return faults == ["clump"] and "undecided" not in (states["cone"], states["spectrum"])


def _listed(clauses: list[str]) -> str:
    if len(clauses) < 2:
        return "".join(clauses)
    return f"{', '.join(clauses[:-1])}{',' if len(clauses) > 2 else ''} and {clauses[-1]}"
