"""A question that the verdict asks about an analysis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from embgeo.diagnosis.finding import (
    Finding,
    Numbers,
    Part,
    State,
    Undecided,
    explain_few_rows,
)

#: State and sentence.
Answer = tuple[State, Sequence[Part]]


@dataclass(frozen=True, slots=True)
class Question:
    """One question and the pure function that answers it."""

    key: str
    #: The question as a heading.
    title: str
    #: Returns state and sentence for an analysis; raises `Undecided` if a number is missing.
    answer: Callable[[Numbers], Answer]
    #: Whether the answer counts for the state of the geometry.
    geometry: bool = False
    #: Whether the geometry is undecided if this question is.
    essential: bool = False
    #: Whether the finding is shown always, unless it is undecided, or only if it is a fault.
    shown: Literal["always", "decided", "fault"] = "always"
    #: Whether the answer depends on the basis of the rows: no state is worse for it.
    by_axes: bool = False
    #: Whether the question makes sense for rows with a single entry, and for any number of rows.
    one_dimension: bool = False
    any_size: bool = False
    #: What the headline calls a fault, in a few words.
    fault: str | Callable[[Numbers, State], str] = ""
    #: What a fault costs, and what is known to help; docs/interpret.md says more.
    why: str = ""
    advice: str | Callable[[Numbers], str] = ""

    def decide(self, analysis: Numbers) -> Finding:
        """Return the finding; undecided, with the reason, if a number is missing."""
        try:
            if not self.one_dimension and analysis.provenance.get("d") == 1:
                raise Undecided("one dimension has only two directions")
            if not self.any_size and (few := explain_few_rows(analysis)):
                raise Undecided(few)
            state, parts = self.answer(analysis)
        except Undecided as error:
            reason = str(error).rstrip(".")
            return Finding(
                self.key, self.title, "undecided", (f"Not decided: {reason}.",), open=reason
            )
        finding = Finding(self.key, self.title, state, tuple(parts))
        if not finding.is_fault:
            return finding
        advice = self.advice if isinstance(self.advice, str) else self.advice(analysis)
        fault = self.fault if isinstance(self.fault, str) else self.fault(analysis, state)
        return replace(finding, fault=fault, why=self.why, advice=advice)

    def is_shown(self, finding: Finding) -> bool:
        if self.shown == "fault":
            return finding.is_fault
        return self.shown == "always" or finding.state != "undecided"
