"""A gate: rules, the matrices that they are about, and the baseline they compare with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import Comparison, load_comparison
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.io import open_checkpoint
from embgeo.io.bounded.saved import begins_as
from embgeo.io.memory import as_matrix
from embgeo.metrics.skipping import skip_sphere
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.result.saved import FORMAT, JSON_NAME
from embgeo.rules import baseline_file
from embgeo.rules.check import OF_RUNS, Measured, Outcome, check_rules, require_sense
from embgeo.rules.rule import Rule, is_called
from embgeo.rules.rule_value import VERDICT
from embgeo.workflows.analyze import measure
from embgeo.workflows.folders import write_file
from embgeo.workflows.request import AnalysisRequest

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress

#: Sections that decide the state of the verdict.
OF_VERDICT = ("spectrum", "cosine", "isotropy")


@dataclass(frozen=True, slots=True)
class Gate:
    """Rules, what they are about, and what they compare with."""

    rules: tuple[Rule, ...]
    #: Analyses, tracks, paths of checkpoints, and other objects that hold a matrix.
    sources: tuple[Any, ...]
    baseline: Path | Analysis | None
    level: float
    #: How checkpoints are read and measured.
    request: AnalysisRequest
    #: All files that are read; no output may replace one.
    files: tuple[Path, ...] = ()

    @property
    def compares(self) -> bool:
        return any(rule.is_relative for rule in self.rules)

    def require_comparison(self) -> None:
        """Refuse a baseline that no rule compares with."""
        if self.rules and not self.compares:
            raise BadOption(
                "no rule compares with it",
                where=argument("baseline"),
                way_out="write a rule with drop, rise or change",
            )

    def check(self, command: str = "", progress: Progress | None = None) -> Outcome:
        """Measure the sources, and check every rule."""
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
        """The scalars that the rules need, of every source."""
        return self._numbers(self.sources, self.rules, command, progress)

    def _measured_baseline(self, command: str, progress: Progress | None) -> list[Measured]:
        baseline = self.baseline
        if isinstance(baseline, Path):
            if baseline_file.is_baseline(baseline):
                return baseline_file.read(baseline)
            if not baseline.exists():
                way_out = f"{argument('update_baseline')} writes it"
                raise UnreadableFile("no such baseline", where=baseline, way_out=way_out)
        relative = [rule for rule in self.rules if rule.is_relative]
        return self._numbers((load_saved(baseline),), relative, command, progress)

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
            if isinstance(source, Comparison):
                found += Measured.of_track(source)
                continue
            rules = [rule for rule in rules if rule.family != OF_RUNS]
            matrices = self._matrices(source, rules, len(sources) == 1, progress)
            for names, matrix in matrices:
                about = [rule for rule in rules if rule.tensor in names]
                families = dict.fromkeys(rule.family for rule in about)
                judged = families.pop(VERDICT, 0) is None
                analysis = measure(
                    matrix,
                    skip_sphere(self.request.options_for(matrix), {rule.name for rule in about}),
                    sections=tuple(families | dict.fromkeys(OF_VERDICT if judged else ())),
                    # The verdict compares with isotropic rows.
                    reference=judged,
                    command=command,
                    progress=progress,
                )
                found.append(Measured.of(analysis, is_default="" in names, with_verdict=judged))
        return found

    def _matrices(
        self, source: Any, rules: Sequence[Rule], alone: bool, progress: Progress | None
    ) -> Iterable[tuple[list[str], Matrix]]:
        """Each tensor that rules are about, with the names that the rules give it."""
        if not isinstance(source, Path):
            matrix = as_matrix(source)
            return [([rule.tensor for rule in rules if not rule.tensor], matrix)]
        names = dict.fromkeys(rule.tensor for rule in rules)
        matrices: dict[str, tuple[list[str], Matrix]] = {}
        for name in names:
            if name and not alone and not has_tensor(source, name):
                continue  # another file has it
            tensor = name or self.request.source.tensor
            matrix = self.request.load(progress, path=source, tensor=tensor)
            matrices.setdefault(matrix.origin.tensor, ([], matrix))[0].append(name)
        return matrices.values()


def load_saved(source: Any) -> Any:
    """The analysis or the track that was saved at a path; anything else unchanged."""
    if not isinstance(source, Path):
        return source
    if (source / COMPARISON_NAME).is_file():
        comparison = load_comparison(source)
        if comparison.track is None:
            way_out = f"name one of its analyses, as in {source / '0-…'}"
            raise BadOption("a comparison that is not a track", where=source, way_out=way_out)
        return comparison
    return load_analysis(source) if is_saved(source) else source


def is_saved(path: Path) -> bool:
    """Whether a path is a saved analysis, not a checkpoint."""
    return (path / JSON_NAME).is_file() or begins_as(path, FORMAT.name)


def is_unmeasured(baseline: Path | Analysis) -> bool:
    """Whether a baseline is a checkpoint."""
    if not isinstance(baseline, Path):
        return False
    return not (baseline_file.is_baseline(baseline) or is_saved(baseline))


def has_tensor(path: Path, name: str) -> bool:
    return any(is_called(tensor.name, name) for tensor in open_checkpoint(path).tensors)


@dataclass(frozen=True, slots=True)
class BaselineUpdate:
    """The new content of a baseline file."""

    path: Path
    numbers: int
    #: How many numbers are new or changed; None without an earlier baseline.
    changed: int | None


def update_baseline(
    gate: Gate, command: str = "", progress: Progress | None = None
) -> BaselineUpdate:
    """Measure the scalars of the rules, and write them to the baseline file."""
    path = gate.baseline
    if not isinstance(path, Path):
        where, way_out = argument("update_baseline"), f"give {argument('baseline')}"
        raise BadOption("no file is named", where=where, way_out=way_out)
    require_sense(gate.rules, True)
    old: list[Measured] = []
    if baseline_file.is_baseline(path):
        old = baseline_file.read(path)
    elif path.exists():
        cause = "exists and is not a baseline file"
        raise BadOption(cause, where=path, way_out="choose another one")
    write_file(path, baseline_file.render(gate.measured(command, progress), command))
    before, now = (
        {
            (m.file, m.tensor, name): (reading.value, reading.standard_error)
            for m in matrices
            for name, reading in m.readings.items()
        }
        for matrices in (old, baseline_file.read(path))
    )
    changed = sum(before.get(key) != value for key, value in now.items())
    return BaselineUpdate(path, len(now), changed if old else None)
