"""What a gate does, put together from settings and command line before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.cli.gate_outputs import Outputs, write_file
from embgeo.cli.measured import Measuring, is_saved, measured
from embgeo.cli.shared import command_line, printable
from embgeo.core.errors import BadOption, UnreadableFile

if TYPE_CHECKING:
    from embgeo.gate.check import Measured, Outcome
    from embgeo.gate.rule import Rule
    from embgeo.gate.settings import GateSettings, RuleEntry
    from embgeo.result.analysis import Analysis


@dataclass(frozen=True, slots=True)
class Plan:
    """Rules, what they are about, and what they compare with.

    Attributes
    ----------
    rules : tuple of Rule
    sources : tuple of Path
    saved : dict of Path to Analysis
        Those of the sources that are saved analyses.
    baseline : Path or None
    level : float
    measuring : Measuring
    quiet : bool
    """

    rules: tuple[Rule, ...]
    sources: tuple[Path, ...]
    saved: dict[Path, Analysis]
    baseline: Path | None
    level: float
    measuring: Measuring
    quiet: bool

    def matrices(self) -> list[Measured]:
        return measured(self.sources, self.saved, self.rules, self.measuring, self.quiet)

    @property
    def compares(self) -> bool:
        return any(rule.is_relative for rule in self.rules)

    def require_comparison(self) -> None:
        """Refuse a baseline that was asked for and would not be looked at.

        Raises
        ------
        BadOption
        """
        if self.rules and not self.compares:
            raise BadOption(
                "no rule compares with it",
                where="--baseline",
                way_out="write a rule with drop, rise or change",
            )

    def outcome(self) -> Outcome:
        from embgeo.gate.check import check_rules, require_sense

        require_sense(self.rules, self.baseline is not None)
        before = self.before() if self.compares else []
        return check_rules(
            self.rules,
            self.matrices(),
            baseline=before,
            baseline_name=str(self.baseline) if self.compares else "",
            level=self.level,
        )

    def before(self) -> list[Measured]:
        """The baseline: its file, or what of an analysis or a checkpoint the rules compare with."""
        from embgeo.gate.baseline_file import is_baseline, read
        from embgeo.result.analysis import load_analysis

        assert self.baseline is not None
        if is_baseline(self.baseline):
            return read(self.baseline)
        if not self.baseline.exists():
            raise UnreadableFile(
                "no such baseline",
                where=self.baseline,
                way_out="--update-baseline writes it",
            )
        paths = (self.baseline,)
        saved = {path: load_analysis(path) for path in paths if is_saved(path)}
        relative = [rule for rule in self.rules if rule.is_relative]
        return measured(paths, saved, relative, self.measuring, self.quiet)


def settings_of(config: Path | None, no_config: bool) -> GateSettings:
    """The settings that hold here.

    Raises
    ------
    BadOption, UnreadableFile
    """
    from embgeo.gate.settings import GateSettings, find_gate, read_gate

    if config is None:
        return GateSettings() if no_config else find_gate(Path.cwd())
    if no_config:
        raise BadOption("--config and --no-config exclude each other", way_out="give one of them")
    found = read_gate(config)
    if found.path is None:
        raise BadOption("has no settings for the gate", where=config, way_out="write [gate]")
    return found


def plan(
    settings: GateSettings,
    rules: Sequence[str],
    sources: Sequence[Path],
    baseline: Path | None,
    level: float | None,
    options: Measuring,
    outputs: Outputs,
) -> Plan:
    """What is to be done, checked as far as that needs nothing measured.

    Raises
    ------
    BadOption
        A rule that is none or about nothing, or an option that does not fit.
    """
    from embgeo.core.quantities import QUANTITIES, require_known
    from embgeo.gate.reading import LEVEL, deviations
    from embgeo.gate.rule import Rule
    from embgeo.result.analysis import load_analysis

    parsed = [from_entry(entry, settings) for entry in settings.rules]
    parsed += [Rule.parse(text) for text in rules]
    paths = tuple(sources) or tuple(Path(shown(settings.beside(name))) for name in settings.sources)
    if not paths:
        raise BadOption(
            "nothing to hold to the rules", way_out="name a saved analysis or a checkpoint"
        )
    if baseline is None and settings.baseline is not None:
        baseline = Path(shown(settings.beside(settings.baseline)))
    level = level if level is not None else settings.level
    level = LEVEL if level is None else level
    deviations(level)
    asked = options.given
    outputs.check([path for path in (*paths, baseline, settings.path) if path is not None])
    if settings.path is not None:
        options = options.over(Measuring.read(settings.analyze, settings.path))
    saved = {path: load_analysis(path) for path in paths if is_saved(path)}
    if asked and set(paths) == set(saved) and (baseline is None or not is_other(baseline)):
        raise BadOption(
            "is about checkpoints, and a saved analysis is measured already",
            where=", ".join(f"--{name.replace('_', '-')}" for name in asked),
            way_out="name the checkpoint, or leave the option out",
        )
    known = QUANTITIES.keys() | {value.name for a in saved.values() for value in a.values()}
    for rule in parsed:
        require_known(rule.name, known, str(rule.place))
    return Plan(tuple(parsed), paths, saved, baseline, level, options, outputs.quiet)


def is_other(path: Path) -> bool:
    """Whether a baseline has to be measured."""
    from embgeo.gate.baseline_file import is_baseline

    return not (is_baseline(path) or is_saved(path))


def from_entry(entry: RuleEntry, settings: GateSettings) -> Rule:
    """A rule of the settings; what its table says comes in addition to its text.

    Raises
    ------
    BadOption
    """
    from embgeo.gate.rule import Place, Rule

    place = Place("" if settings.path is None else shown(settings.path), entry.line)
    rule = Rule.parse(entry.text, place)
    if rule.tensor and entry.tensor:
        raise BadOption(f"{entry.text!r} has two tensors", where=str(place))
    return replace(
        rule,
        tensor=rule.tensor or entry.tensor,
        warn=rule.warn or entry.warn,
        allow_undefined=rule.allow_undefined or entry.allow_undefined,
    )


def shown(path: Path) -> str:
    """A file by its path from here, which another checkout has too."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()


def write_baseline(planned: Plan, outputs: Outputs) -> None:
    """Measure what the rules are about, and write it to the baseline file.

    Raises
    ------
    BadOption
        No file is named, or it is something else than a baseline.
    """
    from embgeo.gate import baseline_file
    from embgeo.gate.check import require_sense

    path = planned.baseline
    if path is None:
        raise BadOption("nowhere to write to", where="--update-baseline", way_out="give --baseline")
    if outputs.files or outputs.as_json:
        raise BadOption(
            "checks nothing, so that there is no outcome to write",
            where="--update-baseline",
            way_out="check in a run of its own",
        )
    require_sense(planned.rules, True)
    old: list[Measured] = []
    if baseline_file.is_baseline(path):
        old = baseline_file.read(path)
    elif path.exists():
        raise BadOption("exists and is no baseline file", where=path, way_out="choose another one")
    matrices = planned.matrices()
    write_file(path, baseline_file.render(matrices, command_line()))
    if not planned.quiet:
        new = baseline_file.read(path)
        count = sum(len(matrix.readings) for matrix in new)
        changes = f", {changed(old, new)} of them new or changed" if old else ""
        print(printable(f"baseline: {path}, {count} numbers{changes}; no rule was checked"))


def changed(old: Sequence[Measured], new: Sequence[Measured]) -> int:
    """Numbers that the old file does not hold, or holds otherwise."""
    before = {
        (m.file, m.tensor, name): (r.value, r.standard_error)
        for m in old
        for name, r in m.readings.items()
    }
    return sum(
        before.get((m.file, m.tensor, name)) != (r.value, r.standard_error)
        for m in new
        for name, r in m.readings.items()
    )
