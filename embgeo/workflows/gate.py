"""A gate: rules, the matrices that they are about, and the baseline that they compare with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import Comparison, load_comparison
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.errors import BadOption, UnreadableFile, argument, writing
from embgeo.gate import baseline_file
from embgeo.gate.check import OF_RUNS, Measured, Outcome, check_rules, require_sense
from embgeo.gate.outputs import junit, metrics_json, metrics_txt
from embgeo.gate.rule import Rule
from embgeo.gate.rule_value import VERDICT
from embgeo.io import open_checkpoint
from embgeo.io.bounded.saved import begins_as
from embgeo.io.memory import as_matrix
from embgeo.metrics.skipping import skip_sphere
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.result.saved import FORMAT, JSON_NAME
from embgeo.workflows.analyze import measure
from embgeo.workflows.folders import write_file
from embgeo.workflows.request import AnalysisRequest

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress

#: Sections whose values the state of the verdict rests on.
OF_VERDICT = ("spectrum", "cosine", "isotropy")
#: What GitHub takes of a step's summary.
SUMMARY_BYTES = 2**20

#: What makes each file.
OUTPUTS = {"junit": junit, "metrics_json": metrics_json, "metrics_txt": metrics_txt}
#: How an earlier file of each kind begins; anything else is not ours to replace.
BEGINNINGS = {
    "junit": (b"<?xml", b"<testsuite"),
    "metrics_json": (b"{",),
    "metrics_txt": (b"#", b"embgeo_"),
}


@dataclass(frozen=True, slots=True)
class Gate:
    """Rules, what they are about, and what they compare with.

    Attributes
    ----------
    rules : tuple of Rule
    sources : tuple
        Analyses, tracks, paths of checkpoints, and whatever else holds a matrix.
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
        """Refuse a baseline that was asked for and would not be looked at."""
        if self.rules and not self.compares:
            raise BadOption(
                "no rule compares with it",
                where=argument("baseline"),
                way_out="write a rule with drop, rise or change",
            )

    def check(self, command: str = "", progress: Progress | None = None) -> Outcome:
        """Measure what is needed, and check every rule."""
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
                    "no such baseline",
                    where=baseline,
                    way_out=f"{argument('update_baseline')} writes it",
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
        """Each tensor that rules are about, with the names that they give it."""
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


def loaded(source: Any) -> Any:
    """The analysis, or the track, where a path is one that was saved; anything else as it is."""
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
    """Whether a baseline is still to be measured."""
    if not isinstance(baseline, Path):
        return False
    return not (baseline_file.is_baseline(baseline) or is_saved(baseline))


def holds(path: Path, tensor: str) -> bool:
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
    """Measure what the rules are about, and write it to the baseline file."""
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
        raise BadOption(
            "exists and is not a baseline file", where=path, way_out="choose another one"
        )
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


def check_files(files: Mapping[str, Path], inputs: Sequence[Path]) -> None:
    """Refuse, before anything is measured, to write over what is not an earlier output."""
    taken = {path.resolve() for path in inputs}
    for name, path in files.items():
        where = f"{argument(name)} {path}"
        if path.resolve() in taken:
            raise BadOption("is read or written already", where=where)
        taken.add(path.resolve())
        if cause := obstacle(name, path):
            raise BadOption(cause, where=where, way_out="choose another file")


def remove_earlier(files: Mapping[str, Path]) -> None:
    """Put "did not finish" where an earlier outcome would outlive a run that is killed."""
    for name, path in files.items():
        if path.exists() and not path.is_file():
            continue
        if name == "junit":
            write_file(path, junit.render_error("the run did not finish"))
        elif not path.is_symlink():
            path.unlink(missing_ok=True)


def obstacle(name: str, path: Path) -> str:
    """Why a file is not to be written to; empty if it is new, empty or an earlier output.

    A device or a pipe is not read: it is written to as it is.
    """
    try:
        if path.is_dir():
            return "is a folder"
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    ours = not start or start.startswith(BEGINNINGS[name])
    return "" if ours else "exists and is nothing that this option writes"


def write_files(files: Mapping[str, Path], outcome: Outcome) -> None:
    """Write each file whole."""
    for name, path in files.items():
        write_file(path, OUTPUTS[name].render(outcome))


def summary_room(summary: Path) -> int:
    """Bytes that the summary of the step still takes; other tools may have written to it."""
    with contextlib.suppress(OSError):
        return SUMMARY_BYTES - summary.stat().st_size
    return SUMMARY_BYTES


def append_summary(summary: Path, text: str) -> None:
    """Add to the summary of the step, unless it would become too long."""
    if len(text.encode()) > summary_room(summary):
        return
    with (
        writing(summary, f"{argument('no_github')} writes no summary"),
        summary.open("a", encoding="utf-8", newline="\n") as stream,
    ):
        stream.write(text)


def in_repository(file: str) -> str:
    """A file by its path from the root of the checkout, as annotations name it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).resolve()
    if root and path.is_relative_to(Path(root).resolve()):
        return path.relative_to(Path(root).resolve()).as_posix()
    return Path(file).as_posix()
