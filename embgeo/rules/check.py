"""Rules against measured matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.differences import explain_unlike, find_difference
from embgeo.comparison.track import name_steps
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.quantities import suspects, tokens
from embgeo.core.quantities import track as q
from embgeo.core.suspects import list_rows
from embgeo.core.text import visible
from embgeo.core.values import FREEDOM, Scalar
from embgeo.result.analysis import Analysis
from embgeo.rules.decide import BLOCKING, Decision, State, decide, is_same
from embgeo.rules.rule import Rule, is_called
from embgeo.rules.rule_value import LEVEL, VERDICT, RuleValue, deviations

#: Checks in a `repr`, and matrices of a baseline in an error.
MOST_SHOWN = 10
#: The family of quantities about a run as a whole.
OF_RUNS = q.DUPLICATES.family
#: Families whose values depend on the number of columns.
OF_WIDTH = ("spectrum",)
NOT_MEASURED = "it was not measured with these files and options"
#: What a value is about → why an analysis of its section does not have it.
NOT_FOUND = {
    tokens.MISSING_ROWS.name: "nothing says how many tokens the rows are for",
    tokens.TIED_AS_CONFIGURED.name: "no config.json says whether the model is tied",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The scalars of one matrix, or of a run, from an analysis or a baseline file."""

    #: A baseline file keeps a part of it.
    provenance: Mapping[str, Any]
    readings: Mapping[str, RuleValue]
    #: Names of values that are not scalars.
    others: tuple[str, ...] = ()
    #: Sections that were left out → reason.
    absent: Mapping[str, str] = field(default_factory=dict)
    #: Why there is no verdict.
    undecided: str = NOT_MEASURED
    #: Whether rules without a tensor apply to this matrix.
    is_default: bool = True
    #: Name of a count → some of the rows or steps that it counts; of the verdict its headline.
    evidence: Mapping[str, str] = field(default_factory=dict)
    is_run: bool = False
    #: None for a baseline file.
    analysis: Analysis | None = None

    @classmethod
    def of_track(cls, comparison: Comparison) -> list[Measured]:
        """Return the run as a whole, then each of its checkpoints."""
        track, first = comparison.track, comparison.baseline.analysis.provenance
        assert track is not None
        same = [
            step for step, at in zip(track.steps, track.same_as, strict=False) if at is not None
        ]
        counted = {q.DUPLICATES.name: same, q.OUTLIERS.name: track.unfit}
        run = cls(
            {"file": comparison.baseline.given, "tensor": first.get("tensor")},
            {scalar.name: RuleValue.of(scalar) for scalar in track.scalars()},
            evidence={name: name_steps(steps) for name, steps in counted.items() if steps},
            is_run=True,
        )
        return [run, *(cls.of(member.analysis) for member in comparison.members)]

    @classmethod
    def of(
        cls, analysis: Analysis, *, is_default: bool = True, with_verdict: bool = True
    ) -> Measured:
        """Return the scalars of an analysis; no verdict of one that holds a few sections only."""
        readings = {s.name: RuleValue.of(s) for s in analysis.scalars}
        undecided = NOT_MEASURED
        evidence = name_rows(analysis)
        if with_verdict:
            evidence[VERDICT] = analysis.verdict.headline.rstrip(".")
            verdict = RuleValue.of_verdict(analysis.verdict)
            undecided = verdict.undefined
            readings |= {} if verdict.value is None else {VERDICT: verdict}
        return cls(
            analysis.provenance,
            readings,
            tuple(v.name for v in analysis.values() if not isinstance(v, Scalar)),
            analysis.absent,
            undecided,
            is_default,
            evidence,
            analysis=analysis,
        )

    @property
    def file(self) -> str:
        return str(self.provenance.get("file") or "an array")

    @property
    def tensor(self) -> str:
        return str(self.provenance.get("tensor") or "")

    def reading(self, name: str) -> RuleValue:
        """Return the value of this name, or an undefined one with the reason."""
        if name in self.readings:
            return self.readings[name]
        family = name.partition(".")[0]
        reason = NOT_FOUND.get(name, NOT_MEASURED)
        if name == VERDICT:
            reason = self.undecided
        elif family in self.absent:
            reason = f"the section {family} was skipped: {self.absent[family]}"
        elif family not in self.provenance.get("sections", ()):
            reason = f"the section {family} was not measured"
        return RuleValue.missing(reason)


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, the matrix that it was applied to, and the decision."""

    rule: Rule
    #: None if the rule's tensor was not measured.
    matrix: Measured | None
    reading: RuleValue
    #: None unless the rule compares with a baseline.
    baseline: RuleValue | None
    decision: Decision

    @property
    def state(self) -> State:
        return self.decision.state

    @property
    def sentence(self) -> str:
        """What was measured and, if the rule failed, what was required."""
        return f"{self.rule.name} {self.decision.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The result of a gate.

    Attributes
    ----------
    checks : tuple of Check
        Every rule with every matrix that it applies to, in the order of the rules.
    matrices : tuple of Measured
    level : float
        Confidence level of the intervals of sampled values.
    baseline : str
        Name of the baseline; empty without one.
    """

    checks: tuple[Check, ...]
    matrices: tuple[Measured, ...]
    level: float = LEVEL
    baseline: str = ""

    def __repr__(self) -> str:
        lines = [f"{check.state}: {check.sentence}" for check in self.checks[:MOST_SHOWN]]
        if len(self.checks) > MOST_SHOWN:
            lines.append(f"and {len(self.checks) - MOST_SHOWN} more")
        state = "passed" if self.passed else "failed"
        number = f"{len(self.checks)} check{'' if len(self.checks) == 1 else 's'}"
        return "\n  ".join([f"<Outcome {state}, {number}", *lines]) + ">"

    def of_state(self, state: State) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.state == state)

    @property
    def passed(self) -> bool:
        """Whether every rule holds or is allowed to be undefined; warnings do not count."""
        return not any(check.state in BLOCKING for check in self.checks)


def check_rules(
    rules: Sequence[Rule],
    matrices: Sequence[Measured],
    *,
    baseline: Sequence[Measured] = (),
    baseline_name: str = "",
    level: float = LEVEL,
) -> Outcome:
    """Apply every rule to every matrix that it is about; BadOption for a rule without meaning."""
    require_sense(rules, bool(baseline))
    z = deviations(level)
    checks = []
    for rule in rules:
        require_number(rule, matrices)
        about = [m for m in matrices if is_about(rule, m)]
        if not about:
            cause = f"no tensor called {rule.tensor} was measured"
            if rule.family == OF_RUNS:
                cause = "it is about a run: name the folder of embgeo diff --track"
            reading = RuleValue.missing(cause)
            checks.append(Check(rule, None, reading, None, decide(rule, reading, None, z)))
        for matrix in about:
            reading = matrix.reading(rule.name)
            before = None
            notes = []
            deciding: tuple[RuleValue, RuleValue | None] = reading, None
            if rule.is_relative:
                other = counterpart(matrix, matrices, baseline, baseline_name)
                before = other.reading(rule.name)
                if cause := explain_incomparable(rule, matrix, other, reading, before):
                    reading = RuleValue.missing(cause)
                notes = [note for note in list_unlike(rule, matrix, other) if note != cause]
                deciding = pair_errors(rule, matrix, other, reading, before)
            decision = decide(rule, *deciding, z)
            if decision.state in ("failed", "warned") and rule.name in matrix.evidence:
                notes.insert(0, matrix.evidence[rule.name])
            reason = "; ".join([": ".join([decision.reason, *notes[:1]]), *notes[1:]])
            decision = Decision(decision.state, reason)
            checks.append(Check(rule, matrix, reading, before, decision))
    return Outcome(tuple(checks), tuple(matrices), level, baseline_name)


def pair_errors(
    rule: Rule, matrix: Measured, other: Measured, now: RuleValue, before: RuleValue
) -> tuple[RuleValue, RuleValue]:
    """Return a value and its baseline with the errors that decide.

    None where they are equal, whatever their errors; where both analyses are there, that of the
    difference, of which what both sides share drops out.
    """
    if now.value is None or before.value is None:
        return now, before
    if is_same(now.value, before.value):
        return now.as_exact(), before.as_exact()
    if not rule.is_of_errors and "sampled" not in (now.known, before.known):
        return now, before
    difference = None
    if matrix.analysis is not None and other.analysis is not None:
        difference = find_difference(rule.name, other.analysis, matrix.analysis)
    if rule.is_of_errors:
        error, freedom = find_error(now, before), None
        if difference is not None and difference.standard_error is not None:
            error = difference.standard_error
            freedom = FREEDOM if difference.error_kind == "population" else None
        if error is None:
            return now.as_exact(), before.as_exact()
        now = replace(now, standard_error=error, known="sampled", freedom=freedom)
        return now, before.as_exact()
    if difference is None or difference.error_kind != "population":
        return now, before
    share = rule.amount / 100.0 if rule.unit == "%" else 0.0
    error = (difference.standard_error or 0.0) + share * (before.standard_error or 0.0)
    if error >= math.hypot(now.standard_error or 0.0, before.standard_error or 0.0):
        return now, before
    return replace(now, standard_error=error, known="sampled", freedom=None), before.as_exact()


def find_error(now: RuleValue, before: RuleValue) -> float | None:
    """Find the error of a difference of two independent values; None if one has none."""
    errors = [
        one.standard_error if one.population_error is None else one.population_error
        for one in (now, before)
    ]
    known = [error for error in errors if error is not None]
    return math.hypot(*known) if len(known) == 2 else None


def require_sense(rules: Sequence[Rule], has_baseline: bool) -> None:
    """Refuse rules that would check nothing, before anything is measured."""
    if not rules:
        raise BadOption(
            "no rules given; nothing to check",
            way_out=f'give {argument("rules")} "cosine.mean <= 0.1", or write rules into '
            "embgeo.toml",
        )
    for rule in rules:
        if rule.is_relative and not has_baseline:
            raise BadOption(
                f"{rule.text!r} compares with a baseline, and there is none",
                where=rule.place.named,
                way_out=f"give {argument('baseline', 'FILE')}",
            )


def is_about(rule: Rule, matrix: Measured) -> bool:
    if matrix.is_run != (rule.family == OF_RUNS):
        return False
    return is_called(matrix.tensor, rule.tensor) if rule.tensor else matrix.is_default


def require_number(rule: Rule, matrices: Sequence[Measured]) -> None:
    """Refuse a rule on a curve, a table or another value that is not a scalar."""
    for matrix in matrices:
        if rule.name in matrix.others:
            numbers = [name for name in matrix.readings if name.startswith(f"{rule.family}.")]
            raise BadOption(
                f"{rule.name} is not a single number",
                where=rule.place.named,
                way_out=f"take one of {', '.join(numbers)}" if numbers else "take another one",
            )


def explain_incomparable(
    rule: Rule, matrix: Measured, other: Measured, now: RuleValue, before: RuleValue
) -> str:
    """Explain why a value and its baseline are different quantities; empty if they are one."""
    if unlike := explain_unlike(rule.family, other.provenance, matrix.provenance):
        return unlike
    if {now.known, before.known} & {"least", "most"} and (pairs := list_other_pairs(matrix, other)):
        return pairs[0]  # a bound of other pairs is another bound
    if now.size != before.size and before.value is not None:
        sizes = " and ".join(
            "an unknown number" if r.size is None else f"{r.size:,}" for r in (before, now)
        )
        return f"it depends on the number of rows, {sizes}"
    widths = [m.provenance.get("d") for m in (other, matrix)]
    if rule.family in OF_WIDTH and None not in widths and widths[0] != widths[1]:
        return f"it depends on the number of columns, {widths[0]:,} and {widths[1]:,}"
    return ""


def list_unlike(rule: Rule, matrix: Measured, other: Measured) -> list[str]:
    """List notes on facts that differ from those of the baseline."""
    notes = []
    if matrix.reading(rule.name).known != "exact":
        notes += list_other_pairs(matrix, other)
    shapes = [(m.provenance.get("n"), m.provenance.get("d")) for m in (other, matrix)]
    if shapes[0] != shapes[1] and not any(None in shape for shape in shapes):
        notes.append(f"the baseline has {shapes[0][0]:,} × {shapes[0][1]:,} entries")
    ranges = [m.provenance["row_range"] for m in (other, matrix) if "row_range" in m.provenance]
    if len(ranges) == 2 and ranges[0] != ranges[1]:
        before = ranges[0]
        which = "all rows" if before is None else f"rows {before[0]:,} to {before[1] - 1:,}"
        notes.append(f"the baseline is of {which}")
    named = (other.tensor, matrix.tensor)
    if all(named) and not (is_called(*named) or is_called(*named[::-1])):
        notes.append(f"the baseline is of {other.tensor}")
    return notes


def list_other_pairs(matrix: Measured, other: Measured) -> list[str]:
    pairs = [(m.provenance.get("options") or {}).get("pairs", "") for m in (other, matrix)]
    before, now = ("all" if one is None else one for one in pairs)
    if before == now:
        return []
    return [f"the baseline was measured with pairs = {before}, not {now}"]


def counterpart(
    matrix: Measured, matrices: Sequence[Measured], baseline: Sequence[Measured], name: str
) -> Measured:
    """Return the matrix of the baseline with the same tensor and, of several, the same file.

    One matrix and one baseline belong together whatever their names are.
    """
    found = [b for b in baseline if b.tensor == matrix.tensor]
    if len(found) > 1:
        found = [b for b in found if b.file == matrix.file]
    if not found and len(baseline) == len(matrices) == 1:
        return baseline[0]
    if len(found) != 1:
        known = ", ".join(f"{b.tensor} of {b.file}" for b in baseline[:MOST_SHOWN])
        known += f", and {len(baseline) - MOST_SHOWN:,} others" if baseline[MOST_SHOWN:] else ""
        raise EmbgeoError(
            f"{'several matrices' if found else 'no matrix'} to compare {matrix.tensor} of "
            f"{matrix.file} with",
            where=name,
            way_out=f"it holds {known}; write it again with {argument('update_baseline')}",
        )
    return found[0]


#: Rows that are named at most.
NAMED = 5


def name_rows(analysis: Analysis) -> dict[str, str]:
    """Name some of the serious suspects of each reason: ``row 2,950 <|im_start|>, …``."""
    found = {}
    for reason, quantity in suspects.COUNTS.items():
        own = [one.take(one.serious) for one in analysis.suspects if one.reason == reason]
        sides: dict[int, list[str]] = {}
        tokens: dict[int, str | None] = {}
        for side, row, tokens[row] in list_rows(own):
            sides.setdefault(row, []).append(side)
        named = [
            f"{'output ' if sides[row] == ['output'] else ''}{show_row(row, tokens[row])}"
            for row in [*sides][:NAMED]
        ]
        if named:
            more = f" and {len(sides) - len(named):,} more" if len(sides) > len(named) else ""
            found[quantity.name] = f"{', '.join(named)}{more}"
    return found


def show_row(row: int, token: str | None) -> str:
    return f"row {row:,}" if token is None else f"row {row:,} {visible(token)}"
