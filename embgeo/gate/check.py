"""Rules against measured matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.track import name_steps
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.quantities import track as q
from embgeo.core.values import Scalar
from embgeo.gate.decide import Decision, State, decide
from embgeo.gate.named_rows import name_rows
from embgeo.gate.rule import Rule
from embgeo.gate.rule_value import LEVEL, VERDICT, RuleValue, deviations
from embgeo.result.analysis import Analysis

#: Checks that a `repr` shows.
MOST_SHOWN = 10
#: The family of numbers about a run as a whole.
OF_RUNS = q.DUPLICATES.family


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of one matrix, from an analysis or from a baseline file.

    Attributes
    ----------
    provenance : dict
        Of the analysis; of a baseline file the part of it that is kept there.
    readings : mapping of str to RuleValue
        Every scalar, by name.
    others : tuple of str
        Names of values that are not scalars.
    absent : mapping of str to str
        Sections that were left out, and why.
    undecided : str
        Why there is no verdict.
    is_default : bool
        Whether rules that name no tensor are about this matrix.
    rows : mapping of str to str
        Some of the rows, or steps, that a count is about, by its name.
    is_run : bool
        Whether these are the numbers of a run as a whole.
    """

    provenance: Mapping[str, Any]
    readings: Mapping[str, RuleValue]
    others: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    undecided: str = "it was not measured with these options"
    is_default: bool = True
    rows: Mapping[str, str] = field(default_factory=dict)
    is_run: bool = False

    @classmethod
    def of_track(cls, comparison: Comparison) -> list[Measured]:
        """The run that checkpoints make up, then each of them."""
        track, first = comparison.track, comparison.baseline.analysis.provenance
        assert track is not None
        places = {
            q.DUPLICATES.name: [i for i, same in enumerate(track.same_as) if same is not None],
            q.OUTLIERS.name: track.outliers,
        }
        run = cls(
            {"file": comparison.baseline.given, "tensor": first.get("tensor")},
            {scalar.name: RuleValue.of(scalar) for scalar in track.scalars()},
            rows={
                name: name_steps([track.steps[i] for i in own])
                for name, own in places.items()
                if own
            },
            is_run=True,
        )
        return [run, *(cls.of(member.analysis) for member in comparison.members)]

    @classmethod
    def of(
        cls, analysis: Analysis, *, is_default: bool = True, with_verdict: bool = True
    ) -> Measured:
        """The numbers of an analysis; `with_verdict` unless it holds but a part of them."""
        readings = {s.name: RuleValue.of(s) for s in analysis.scalars}
        others = tuple(v.name for v in analysis.values() if not isinstance(v, Scalar))
        found = cls(analysis.provenance, readings, others, analysis.absent, is_default=is_default)
        found = replace(found, rows=name_rows(analysis))
        if not with_verdict:
            return found
        verdict = RuleValue.of_verdict(analysis.verdict)
        if verdict.value is None:
            return replace(found, undecided=verdict.undefined)
        return replace(found, readings=readings | {VERDICT: verdict})

    @property
    def file(self) -> str:
        return str(self.provenance.get("file") or "an array")

    @property
    def tensor(self) -> str:
        return str(self.provenance.get("tensor") or "")

    def reading(self, name: str) -> RuleValue:
        """The number of that name, or why there is none."""
        if name in self.readings:
            return self.readings[name]
        if name == VERDICT:
            return RuleValue.missing(self.undecided)
        family = name.partition(".")[0]
        if family in self.absent:
            return RuleValue.missing(f"the section {family} was left out: {self.absent[family]}")
        if family not in self.provenance.get("sections", ()):
            return RuleValue.missing(f"the section {family} was not measured")
        return RuleValue.missing("it was not measured with these options")

    def is_called(self, tensor: str) -> bool:
        """Whether `tensor` is the name of the matrix, or what follows a dot in it."""
        return self.tensor == tensor or self.tensor.endswith(f".{tensor}")


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, the matrix it was applied to, and the decision.

    Attributes
    ----------
    rule : Rule
    matrix : Measured or None
        None where no matrix of the rule's tensor was measured.
    reading : RuleValue
    baseline : RuleValue or None
        Of rules that compare.
    decision : Decision
    """

    rule: Rule
    matrix: Measured | None
    reading: RuleValue
    baseline: RuleValue | None
    decision: Decision

    @property
    def state(self) -> State:
        return self.decision.state

    @property
    def sentence(self) -> str:
        """The whole statement: what was measured, and what it should have been."""
        return f"{self.rule.name} {self.decision.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """Everything that a gate found.

    Attributes
    ----------
    checks : tuple of Check
        Every rule with every matrix that it is about, in the order of the rules.
    matrices : tuple of Measured
    level : float
        Share of a normal distribution that the intervals of sampled values hold.
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
        """Whether no rule failed; warnings do not count."""
        return not self.of_state("failed")


def check_rules(
    rules: Sequence[Rule],
    matrices: Sequence[Measured],
    *,
    baseline: Sequence[Measured] = (),
    baseline_name: str = "",
    level: float = LEVEL,
) -> Outcome:
    """Apply every rule to every matrix that it is about.

    Parameters
    ----------
    rules : sequence of Rule
    matrices : sequence of Measured
    baseline : sequence of Measured
        What relative rules compare with: of several matrices the one of the same tensor.
    baseline_name : str
        For messages.
    level : float
        Share of a normal distribution that the intervals of sampled values hold.

    Raises
    ------
    BadOption
        No rule, a rule on something other than a number, or a relative one without a baseline.
    EmbgeoError
        A baseline of several tensors without the one that is asked about.
    """
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
            if rule.is_relative:
                before = counterpart(matrix, matrices, baseline, baseline_name).reading(rule.name)
            decision = decide(rule, reading, before, z)
            if decision.state in ("failed", "warned") and rule.name in matrix.rows:
                reason = f"{decision.reason}: {matrix.rows[rule.name]}"
                decision = Decision(decision.state, reason)
            checks.append(Check(rule, matrix, reading, before, decision))
    return Outcome(tuple(checks), tuple(matrices), level, baseline_name)


def require_sense(rules: Sequence[Rule], has_baseline: bool) -> None:
    """Refuse, before anything is measured, what would check nothing."""
    if not rules:
        raise BadOption(
            "no rules, so that nothing would be checked",
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
    return matrix.is_called(rule.tensor) if rule.tensor else matrix.is_default


def require_number(rule: Rule, matrices: Sequence[Measured]) -> None:
    """Refuse a rule on a curve, a table or whatever else is not a single number."""
    for matrix in matrices:
        if rule.name in matrix.others:
            numbers = [name for name in matrix.readings if name.startswith(f"{rule.family}.")]
            raise BadOption(
                f"{rule.name} is not a single number",
                where=rule.place.named,
                way_out=f"take one of {', '.join(numbers)}" if numbers else "take another one",
            )


def counterpart(
    matrix: Measured, matrices: Sequence[Measured], baseline: Sequence[Measured], name: str
) -> Measured:
    """What of the baseline `matrix` is compared with: what has its tensor, and then its file.

    Where there is just one of either, they belong together whatever they are called.
    """
    found = [b for b in baseline if b.tensor == matrix.tensor]
    if len(found) > 1:
        found = [b for b in found if b.file == matrix.file]
    if not found and len(baseline) == len(matrices) == 1:
        return baseline[0]
    if len(found) != 1:
        known = ", ".join(f"{b.tensor} of {b.file}" for b in baseline)
        raise EmbgeoError(
            f"{'several things' if found else 'nothing'} to compare {matrix.tensor} of "
            f"{matrix.file} with",
            where=name,
            way_out=f"it holds {known}; write it again with {argument('update_baseline')}",
        )
    return found[0]
