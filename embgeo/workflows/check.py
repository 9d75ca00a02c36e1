"""Checking rules: saved analyses as they are, everything else measured as far as rules need it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.fields import OptionField, option_fields, read_table
from embgeo.core.options import Options
from embgeo.core.quantities import QUANTITIES, require_known
from embgeo.core.source import Source
from embgeo.gate import baseline_file
from embgeo.gate.check import Measured, Outcome, check_rules, require_sense
from embgeo.gate.reading import LEVEL, deviations
from embgeo.gate.rule import Place, Rule
from embgeo.gate.settings import GateSettings, RuleEntry, find_gate, read_gate
from embgeo.metrics.names import lean
from embgeo.result.analysis import FORMAT, JSON_NAME, Analysis, load_analysis
from embgeo.workflows.analyze import is_path, measure
from embgeo.workflows.folders import write_file
from embgeo.workflows.request import AnalysisRequest, split_settings

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress

#: Options that add lists, which no rule is about.
LISTS = ("asked",)


def check(
    *sources: Any,
    rules: str | Sequence[str] = (),
    baseline: Any = None,
    level: float | None = None,
    command: str = "",
    progress: Progress | None = None,
    **settings: Any,
) -> Outcome:
    """Check rules about embedding matrices.

    Parameters
    ----------
    *sources : path, Analysis or whatever holds a matrix
        Saved analyses, analyses, checkpoints, or what :func:`embgeo.analyze` takes; of what is
        not analyzed yet only the sections that rules name are measured.
    rules : str or sequence of str
        Such as ``"cosine.mean <= 0.1"`` or ``"isotropy.i1 drop <= 5%, warn"`` (docs/gate.md).
    baseline : path or Analysis, optional
        What drop, rise and change compare with: a baseline file, a saved analysis, an analysis
        or a checkpoint.
    level : float, optional
        Confidence that a sampled value has to pass with; 0.95.
    command : str
        Recorded in the provenance of what is measured.
    progress : Progress, optional
    **settings
        Arguments of :func:`embgeo.load` and fields of :class:`embgeo.Options`, for checkpoints.

    Returns
    -------
    Outcome
        ``outcome.passed``, and ``outcome.checks`` with a sentence for each rule.

    Raises
    ------
    BadOption
        A rule that is none, is about nothing or checks nothing, or an option that does not fit.
    EmbgeoError
        If a source cannot be read or measured.
    """
    entries = (rules,) if isinstance(rules, str) else tuple(rules)
    gate = plan_gate(entries, sources, baseline, level, settings)
    return gate.check(command, progress)


@dataclass(frozen=True, slots=True)
class Gate:
    """Rules, what they are about, and what they compare with.

    Attributes
    ----------
    rules : tuple of Rule
    sources : tuple
        Analyses, paths of checkpoints, and whatever else holds a matrix.
    baseline : Path, Analysis or None
    level : float
    request : AnalysisRequest
        How checkpoints are read and measured.
    files : tuple of Path
        All that is read; no output may replace one of them.
    """

    rules: tuple[Rule, ...]
    sources: tuple[Any, ...]
    baseline: Path | Analysis | None
    level: float
    request: AnalysisRequest
    files: tuple[Path, ...] = ()

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
                where=argument("baseline"),
                way_out="write a rule with drop, rise or change",
            )

    def check(self, command: str = "", progress: Progress | None = None) -> Outcome:
        """Measure what is needed, and check every rule.

        Raises
        ------
        EmbgeoError
        """
        require_sense(self.rules, self.baseline is not None)
        before = self._measured_baseline(command, progress) if self.compares else []
        named = self.baseline if isinstance(self.baseline, Path) else "the baseline"
        return check_rules(
            self.rules,
            self.measured(command, progress),
            baseline=before,
            baseline_name=str(named) if self.compares else "",
            level=self.level,
        )

    def measured(self, command: str = "", progress: Progress | None = None) -> list[Measured]:
        """The numbers that the rules need, of every source."""
        return self._numbers(self.sources, self.rules, command, progress)

    def _measured_baseline(self, command: str, progress: Progress | None) -> list[Measured]:
        """The baseline: its file, or what of it the rules compare with."""
        baseline = self.baseline
        if isinstance(baseline, Path):
            if baseline_file.is_baseline(baseline):
                return baseline_file.read(baseline)
            if not baseline.exists():
                raise UnreadableFile(
                    "no such baseline", where=baseline, way_out="--update-baseline writes it"
                )
        relative = [rule for rule in self.rules if rule.is_relative]
        return self._numbers((loaded(baseline),), relative, command, progress)

    def _numbers(
        self,
        sources: Sequence[Any],
        rules: Sequence[Rule],
        command: str,
        progress: Progress | None,
    ) -> list[Measured]:
        found = []
        for source in sources:
            if isinstance(source, Analysis):
                found.append(Measured.of(source))
                continue
            matrices = self._matrices(source, rules, len(sources) == 1, progress)
            for names, matrix in matrices:
                about = [rule for rule in rules if rule.tensor in names]
                analysis = measure(
                    matrix,
                    lean(self.request.options_for(matrix), {rule.name for rule in about}),
                    sections=tuple(dict.fromkeys(rule.family for rule in about)),
                    reference=False,
                    command=command,
                    progress=progress,
                )
                found.append(Measured.of(analysis, is_default="" in names))
        return found

    def _matrices(
        self, source: Any, rules: Sequence[Rule], alone: bool, progress: Progress | None
    ) -> Iterable[tuple[list[str], Matrix]]:
        """Each tensor that rules are about, with the names that they give it."""
        from embgeo.io.memory import as_matrix

        if not isinstance(source, Path):
            matrix = as_matrix(source)
            return [([rule.tensor for rule in rules if not rule.tensor], matrix)]
        wanted = dict.fromkeys(rule.tensor for rule in rules)
        if not alone:  # among several files, each tensor need only be in one
            wanted = dict.fromkeys(name for name in wanted if not name or holds(source, name))
        matrices: dict[str, tuple[list[str], Matrix]] = {}
        for name in wanted:
            tensor = name or self.request.source.tensor
            matrix = self.request.load(progress, path=source, tensor=tensor)
            matrices.setdefault(matrix.origin.tensor, ([], matrix))[0].append(name)
        return matrices.values()


def plan_gate(
    rules: Sequence[str],
    sources: Sequence[Any] = (),
    baseline: Any = None,
    level: float | None = None,
    given: Mapping[str, Any] | None = None,
    settings: GateSettings | None = None,
) -> Gate:
    """What is to be checked, refused as far as that needs nothing measured.

    Parameters
    ----------
    rules : sequence of str
        In addition to those of the settings.
    sources : sequence
        In place of those of the settings.
    baseline : Path, Analysis or None
    level : float, optional
    given : mapping of str to object, optional
        Options of loading and measuring that were named; they go before those of the settings.
    settings : GateSettings, optional

    Raises
    ------
    BadOption
        A rule that is none or about nothing, or an option that does not fit.
    """
    settings, given = settings or GateSettings(), given or {}
    parsed = [rule_of_settings(entry, settings) for entry in settings.rules]
    parsed += [Rule.parse(text) for text in rules]
    items = [Path(one) if is_path(one) else one for one in sources]
    items = items or [settings_path(settings, name) for name in settings.sources]
    if not items:
        raise BadOption(
            "nothing to hold to the rules", way_out="name a saved analysis or a checkpoint"
        )
    if baseline is None and settings.baseline is not None:
        baseline = settings_path(settings, settings.baseline)
    elif is_path(baseline):
        baseline = Path(baseline)
    level = level if level is not None else settings.level
    level = LEVEL if level is None else level
    deviations(level)
    request = merged_request(given, settings)
    opened = tuple(map(loaded, items))
    saved = [one for one in opened if isinstance(one, Analysis)]
    if given and len(saved) == len(opened) and (baseline is None or not is_unmeasured(baseline)):
        raise BadOption(
            "is about checkpoints, and a saved analysis is measured already",
            where=", ".join(map(argument, given)),
            way_out="name the checkpoint, or leave the option out",
        )
    known = {*QUANTITIES, *(value.name for one in saved for value in one.values())}
    for rule in parsed:
        require_known(rule.name, known, str(rule.place))
    files = tuple(p for p in (*items, baseline, settings.path) if isinstance(p, Path))
    return Gate(tuple(parsed), opened, baseline, level, request, files)


def merged_request(given: Mapping[str, Any], settings: GateSettings) -> AnalysisRequest:
    """The options that were named, over those of the settings.

    Raises
    ------
    BadOption
    """
    table: dict[str, Any] = {}
    if settings.path is not None:
        table = read_table(settings.analyze, gate_options(), settings.path)
    (own, measuring), (rest, others) = split_settings(given), split_settings(table)
    source = Source(**own).over(Source(**rest))
    return AnalysisRequest.of(**source.given(), **(others | measuring))


def gate_options() -> dict[str, OptionField]:
    """The options of loading and measuring that the settings of a gate may hold."""
    known = {**option_fields(Source), **option_fields(Options)}
    return {name: option for name, option in known.items() if name not in LISTS}


def gate_settings(config: Path | None = None, search: bool = True) -> GateSettings:
    """The settings of a file, or those that hold in the current folder.

    Raises
    ------
    BadOption, UnreadableFile
    """
    if config is None:
        return find_gate(Path.cwd()) if search else GateSettings()
    if not search:
        raise BadOption("--config and --no-config exclude each other", way_out="give one of them")
    found = read_gate(config)
    if found.path is None:
        raise BadOption("has no settings for the gate", where=config, way_out="write [gate]")
    return found


def rule_of_settings(entry: RuleEntry, settings: GateSettings) -> Rule:
    """A rule of the settings; what its table says comes in addition to its text.

    Raises
    ------
    BadOption
    """
    place = Place("" if settings.path is None else shown_path(settings.path), entry.line)
    rule = Rule.parse(entry.text, place)
    if rule.tensor and entry.tensor:
        raise BadOption(f"{entry.text!r} has two tensors", where=str(place))
    return replace(
        rule,
        tensor=rule.tensor or entry.tensor,
        warn=rule.warn or entry.warn,
        allow_undefined=rule.allow_undefined or entry.allow_undefined,
    )


def settings_path(settings: GateSettings, name: str) -> Path:
    return Path(shown_path(settings.beside(name)))


def shown_path(path: Path) -> str:
    """A file by its path from here, which another checkout has too."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()


def loaded(source: Any) -> Any:
    """The analysis where a path is one that was saved; anything else as it is."""
    return load_analysis(source) if isinstance(source, Path) and is_saved(source) else source


def is_saved(path: Path) -> bool:
    """Whether a path is an analysis that was saved, and not something to be analyzed."""
    try:
        if path.is_dir():
            return (path / JSON_NAME).is_file()
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:  # stdin, a member of an archive, a missing file
        return False
    return start.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in start


def is_unmeasured(baseline: Path | Analysis) -> bool:
    """Whether a baseline is still to be measured."""
    if not isinstance(baseline, Path):
        return False
    return not (baseline_file.is_baseline(baseline) or is_saved(baseline))


def holds(path: Path, tensor: str) -> bool:
    from embgeo.io import open_checkpoint

    return any(
        t.name == tensor or t.name.endswith(f".{tensor}") for t in open_checkpoint(path).tensors
    )


@dataclass(frozen=True, slots=True)
class BaselineUpdate:
    """What a baseline file was replaced with.

    Attributes
    ----------
    path : Path
    numbers : int
        That it holds.
    changed : int or None
        Those that are new or changed; None where there was no baseline before.
    """

    path: Path
    numbers: int
    changed: int | None


def update_baseline(
    gate: Gate, command: str = "", progress: Progress | None = None
) -> BaselineUpdate:
    """Measure what the rules are about, and write it to the baseline file.

    Raises
    ------
    BadOption
        No file is named, or it is something else than a baseline.
    EmbgeoError
        If it cannot be written.
    """
    path = gate.baseline
    if not isinstance(path, Path):
        raise BadOption(
            "nowhere to write to",
            where=argument("update_baseline"),
            way_out=f"give {argument('baseline')}",
        )
    require_sense(gate.rules, True)
    old: list[Measured] = []
    if baseline_file.is_baseline(path):
        old = baseline_file.read(path)
    elif path.exists():
        raise BadOption("exists and is no baseline file", where=path, way_out="choose another one")
    write_file(path, baseline_file.render(gate.measured(command, progress), command))
    before, now = numbers_of(old), numbers_of(baseline_file.read(path))
    changed = sum(before.get(key) != value for key, value in now.items())
    return BaselineUpdate(path, len(now), changed if old else None)


def numbers_of(matrices: Sequence[Measured]) -> dict[tuple[str, str, str], Any]:
    """Value and standard error by file, tensor and name."""
    return {
        (m.file, m.tensor, name): (r.value, r.standard_error)
        for m in matrices
        for name, r in m.readings.items()
    }
