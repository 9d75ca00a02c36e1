"""A question that the verdict asks of an analysis, and how it becomes a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from embgeo.diagnosis.finding import Finding, Numbers, Part, State, Undecided

#: State, sentence, and what the headline takes over.
Answer = tuple[State, tuple[Part, ...], str]


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the pure function of numbers that answers it.

    Attributes
    ----------
    key : str
    title : str
        The question as a heading.
    answer : callable
        Gives state, sentence and clause of an analysis; raises `Undecided` where numbers miss.
    geometry : bool
        Whether the answer counts for the state of the geometry.
    essential : bool
        Whether the geometry is undecided where this is.
    shown : {"always", "decided", "fault"}
        Whether the finding is shown always, unless it is undecided, or only if it is a fault.
    is_cause : bool
        Whether a fault explains faults of other findings: the headline begins with it.
    one_dimension : bool
        Whether it can be asked of rows with a single entry.
    why, advice : str
        What a fault costs, and what is known to help; docs/interpret.md says more.
    """

    key: str
    title: str
    answer: Callable[[Numbers], Answer]
    geometry: bool = False
    essential: bool = False
    shown: Literal["always", "decided", "fault"] = "always"
    is_cause: bool = False
    one_dimension: bool = False
    why: str = ""
    advice: str = ""

    def decide(self, analysis: Numbers) -> Finding:
        """The finding; undecided, with the reason, where a number misses."""
        try:
            if not self.one_dimension and analysis.provenance.get("d") == 1:
                raise Undecided("one dimension has only two directions")
            state, parts, clause = self.answer(analysis)
        except Undecided as error:
            reason = str(error).rstrip(".")
            return Finding(
                self.key, self.title, "undecided", (f"Not decided: {reason}.",), open=reason
            )
        fault = state in ("mild", "degenerate")
        why, advice = (self.why, self.advice) if fault else ("", "")
        return Finding(self.key, self.title, state, parts, clause, why=why, advice=advice)

    def shows(self, finding: Finding) -> bool:
        """Whether its finding is worth a line."""
        if self.shown == "fault":
            return finding.state in ("mild", "degenerate")
        return self.shown == "always" or finding.state != "undecided"
