"""``embgeo.gate``: rules about saved analyses, and about matrices that are measured for them.

The command writes an outcome to files for CI servers, and as annotations and summary of GitHub.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, load_comparison
from embgeo.core.arguments import as_texts, refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile, argument, writing
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options, known_arguments, merge_options
from embgeo.core.progress import Progress
from embgeo.core.quantities import QUANTITIES, quantities_of, require_known, track
from embgeo.core.source import Source
from embgeo.core.text import defuse
from embgeo.files.records import NewerFormat
from embgeo.files.saved import has_format
from embgeo.io.load import open_checkpoint
from embgeo.io.memory import as_matrix
from embgeo.io.places.names import is_remote
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.result.saved import FORMAT, JSON_NAME
from embgeo.rules import baseline_file
from embgeo.rules.check import OF_RUNS, Measured, Outcome, check_rules, require_sense
from embgeo.rules.outputs import (
    as_json,
    github_annotations,
    github_summary,
    junit,
    sarif,
    table,
)
from embgeo.rules.rule import Place, Rule, is_called, read_preset
from embgeo.rules.rule_value import LEVEL, VERDICT, deviations
from embgeo.rules.settings import (
    GateSettings,
    RuleEntry,
    find_gate,
    find_options,
    read_gate,
    refuse_both,
)
from embgeo.workflows.analyze import is_path, measure
from embgeo.workflows.folders import write_output
from embgeo.workflows.settings import fit_options, load_source, read_settings

#: Sections that decide the state of the verdict.
OF_VERDICT = ("spectrum", "cosine", "isotropy")
#: Option → the output, and how an earlier file begins; no other file is replaced.
FILES: Mapping[str, tuple[ModuleType, tuple[bytes, ...]]] = {
    "junit": (junit, (b"<?xml", b"<testsuite")),
    "sarif": (sarif, (b"{",)),
}
#: Outputs that say that a run has no outcome, from the start of the run.
WITH_ERRORS = {"junit": junit, "sarif": sarif}
#: GitHub's limit for the summary of a step.
SUMMARY_BYTES = 2**20


@known_arguments
def gate(
    *sources: Any,
    rules: str | Sequence[str] = (),
    preset: str | None = None,
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
        Saved analyses and tracks, analyses, checkpoints, or what :func:`embgeo.analyze` takes.
        Matrices are measured in the sections that the rules name.
    rules : str or sequence of str
        ``"cosine.mean <= 0.1"`` or ``"isotropy.i1_unit_rows drop <= 5%, warn"`` (docs/gate.md).
    preset : str, optional
        Name of a preset whose rules are added: "finetune-ready".
    baseline : path or Analysis, optional
        What drop, rise and change compare with: a baseline file, an analysis, saved or not, or a
        checkpoint.
    level : float, optional
        Confidence level at which a sampled value has to pass; 0.95 by default.
    command : str
        Recorded in the provenance of new analyses.
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
        If a rule cannot be parsed or checks nothing, or an option does not apply.
    EmbgeoError
        If a source cannot be read or measured.

    Examples
    --------
    >>> import embgeo
    >>> embgeo.gate("fixtures/cosreg.safetensors", rules="cosine.mean <= 0.1")
    <Outcome passed, 1 check
      passed: cosine.mean is 0.004687>
    """
    texts = as_texts(rules, "rules")
    planned = plan_gate(texts, sources, baseline, level, settings, preset=preset)
    return planned.check(command, progress)


def plan_gate(
    rules: Sequence[str],
    sources: Sequence[Any] = (),
    baseline: Any = None,
    level: float | None = None,
    given: Mapping[str, Any] | None = None,
    settings: GateSettings | None = None,
    preset: str | None = None,
) -> Gate:
    """Return a gate from arguments and settings; nothing is measured.

    Arguments add to the rules of the settings and override everything else in them.
    """
    settings, given = settings or GateSettings(), given or {}
    parsed = [parse_entry(entry, settings) for entry in settings.rules]
    parsed += [Rule.parse(text) for text in rules]
    for name in dict.fromkeys(one for one in (settings.preset, preset) if one is not None):
        parsed += read_preset(name)
    if settings.allow_undefined:
        parsed = [replace(rule, allow_undefined=True) for rule in parsed]
    items = [Path(one) if is_path(one) else one for one in sources]
    items = items or [settings_path(settings, name) for name in settings.sources]
    if not items:
        way_out = "name a saved analysis or a checkpoint"
        raise BadOption("there is nothing to check", way_out=way_out)
    is_named = baseline is not None
    if baseline is None and settings.baseline is not None:
        baseline = settings_path(settings, settings.baseline, may_be_missing=True)
    elif is_path(baseline):
        baseline = Path(baseline)
    level = next(one for one in (level, settings.level, LEVEL) if one is not None)
    deviations(level)  # refuses an invalid level
    source, options, _ = read_settings(merge_options(settings.analyze, given))
    opened = tuple(map(load_saved, items))
    measured = all(isinstance(one, Analysis | Comparison) for one in opened)
    if given and measured and (baseline is None or not is_unmeasured(baseline)):
        raise BadOption(
            "is about checkpoints, and a saved analysis is measured already",
            where=", ".join(map(argument, given)),
            way_out="name the checkpoint, or leave the option out",
        )
    saved = {v.name for one in opened if isinstance(one, Analysis) for v in one.values()}
    known = {VERDICT, *QUANTITIES, *quantities_of(track), *saved}
    for rule in parsed:
        require_known(rule.name, known, rule.place.named)
    files = tuple(p for p in (*items, baseline, settings.path) if isinstance(p, Path))
    return Gate(tuple(parsed), opened, baseline, level, source, options, files, is_named)


def gate_settings(
    config: Path | None = None, search: bool = True, trust_settings: bool = False
) -> GateSettings:
    """Return the settings of a file, or of the current folder.

    Names in them may lead out of the folder or repository of the file only with `trust_settings`.
    """
    if config is None:
        return find_gate(Path.cwd(), trust_settings) if search else GateSettings()
    refuse_both(search)
    found = read_gate(config, trust_settings)
    if found.path is not None:
        return found
    return GateSettings(analyze=find_options(config, trust_settings=trust_settings))


def parse_entry(entry: RuleEntry, settings: GateSettings) -> Rule:
    """Parse a rule of the settings; its table may add to its text."""
    place = Place("" if settings.path is None else shorten_path(settings.path), entry.line)
    rule = Rule.parse(entry.rule, place)
    if rule.tensor and entry.tensor:
        raise BadOption(f"{entry.rule!r} has two tensors", where=place.named)
    return replace(
        rule,
        tensor=rule.tensor or entry.tensor,
        warn=rule.warn or entry.warn,
        allow_undefined=rule.allow_undefined or entry.allow_undefined,
    )


def settings_path(settings: GateSettings, name: str, *, may_be_missing: bool = False) -> Path:
    """Return a path in the settings; a missing one is absolute, so as not to name a model.

    A baseline may be missing: it is written, or refused before anything looks for a model.
    """
    if is_remote(name):
        return Path(name)
    path = settings.resolve_path(name)
    known = may_be_missing or path.exists()
    return Path(shorten_path(path)) if known else path.absolute()


def shorten_path(path: Path) -> str:
    """Return a path relative to the current folder, the same in every checkout."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()


@dataclass(frozen=True, slots=True)
class Gate:
    """Rules, what they are about, and what they compare with."""

    rules: tuple[Rule, ...]
    #: Analyses, tracks, paths of checkpoints, and other objects that hold a matrix.
    sources: tuple[Any, ...]
    baseline: Path | Analysis | None
    level: float
    #: How checkpoints are read and measured.
    source: Source
    options: Options
    #: All files that are read; no output may replace one.
    files: tuple[Path, ...] = ()
    #: Whether an argument names the baseline, not only the settings.
    is_baseline_named: bool = False

    @property
    def compares(self) -> bool:
        return any(rule.is_relative for rule in self.rules)

    def check(self, command: str = "", progress: Progress | None = None) -> Outcome:
        """Measure the sources, and check every rule."""
        unused = self.is_baseline_named and bool(self.rules) and not self.compares
        way_out = "write a rule with drop, rise or change"
        refuse_if(unused, argument("baseline"), "no rule compares with it", way_out)
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
        """Return the scalars that the rules need, of every source."""
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
                    fit_options(self.options, matrix),
                    sections=tuple(families | dict.fromkeys(OF_VERDICT if judged else ())),
                    # The verdict compares with isotropic rows.
                    reference=judged,
                    page=False,
                    command=command,
                    progress=progress,
                )
                found.append(Measured.of(analysis, is_default="" in names, with_verdict=judged))
        return found

    def _matrices(
        self, source: Any, rules: Sequence[Rule], alone: bool, progress: Progress | None
    ) -> Iterable[tuple[list[str], Matrix]]:
        """Return each tensor that rules are about, with the names that rules give it."""
        if not isinstance(source, Path):
            matrix = as_matrix(source)
            return [([rule.tensor for rule in rules if not rule.tensor], matrix)]
        names = dict.fromkeys(rule.tensor for rule in rules)
        matrices: dict[str, tuple[list[str], Matrix]] = {}
        for name in names:
            if name and not alone and not has_tensor(source, name):
                continue  # another file has it
            opened = replace(self.source, path=source, tensor=name or self.source.tensor)
            matrix = load_source(opened, progress)
            matrices.setdefault(matrix.origin.tensor, ([], matrix))[0].append(name)
        return matrices.values()


def load_saved(source: Any) -> Any:
    """Load the analysis or the track that was saved at a path; anything else unchanged."""
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
    """Tell whether a path is a saved analysis, not a checkpoint."""
    return (path / JSON_NAME).is_file() or has_format(path, FORMAT.name)


def is_unmeasured(baseline: Path | Analysis) -> bool:
    """Tell whether a baseline is a checkpoint."""
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
        try:
            old = baseline_file.read(path)
        except NewerFormat:
            raise
        except UnreadableFile:  # a damaged one is replaced
            pass
    elif path.exists():
        cause = "exists and is not a baseline file"
        raise BadOption(cause, where=path, way_out="choose another one")
    write_output(path, baseline_file.render(gate.measured(command, progress), command))
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


# --- what the command writes ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GateOutputs:
    """The outputs that the options request."""

    #: Files by option, see `FILES`.
    files: Mapping[str, Path]
    #: Writes commands for GitHub's runner.
    command: Callable[[str], None]
    as_json: bool = False
    as_markdown: bool = False
    quiet: bool = False
    #: Whether to annotate and summarize; None: if the environment is GitHub's.
    github: bool | None = None

    @property
    def annotates(self) -> bool:
        return os.environ.get("GITHUB_ACTIONS") == "true" if self.github is None else self.github

    @property
    def summary(self) -> Path | None:
        """The file that GitHub shows below the job."""
        name = os.environ.get("GITHUB_STEP_SUMMARY")
        return Path(name) if name and self.github is not False else None

    def prepare(self, inputs: Sequence[Path]) -> None:
        """Refuse to replace any file but earlier outputs, and mark those as unfinished.

        No earlier outcome may outlive a run that is killed.
        """
        taken = {path.resolve() for path in inputs}
        for name, path in self.files.items():
            where = f"{argument(name)} {path}"
            # A circle of links has no resolved path.
            dead = path.is_symlink() and not path.exists()
            if not dead and path.resolve() in taken:
                raise BadOption("is read or written already", where=where)
            if cause := find_obstacle(name, path):
                raise BadOption(cause, where=where, way_out="choose another file")
            taken.add(path.resolve())
        for name, path in self.files.items():
            if path.exists() and not path.is_file():
                continue
            if name in WITH_ERRORS:
                write_output(path, WITH_ERRORS[name].render_error("the run did not finish"))
            elif not path.is_symlink():
                path.unlink(missing_ok=True)

    def write(self, outcome: Outcome, say: Callable[[str], None]) -> None:
        """Write the files, then the text for people and GitHub; `say` prints a line on stdout."""
        for name, path in self.files.items():
            more = (locate_in_repository,) if name == "sarif" else ()
            write_output(path, FILES[name][0].render(outcome, *more))
        shown: Iterable[str] = ()
        if self.as_json:
            shown = [as_json.render(outcome).rstrip("\n")]
        elif self.as_markdown and not self.quiet:
            shown = github_summary.render(outcome).splitlines()
        elif not self.quiet:
            shown = table.lines(outcome)
        for text in shown:
            say(defuse(text) if self.annotates else text)
        if self.annotates:
            self.command(github_annotations.render(outcome, locate_in_repository))
        if self.summary is not None:
            room = min(measure_room(self.summary), github_summary.MOST_BYTES)
            append_summary(self.summary, github_summary.render(outcome, room))

    @contextlib.contextmanager
    def report_errors(self, describe: Callable[[BaseException], str]) -> Iterator[None]:
        """Report an error to CI as a run without an outcome: neither passed nor failed."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            message = describe(error)
            with contextlib.suppress(EmbgeoError, OSError):
                for name, output in WITH_ERRORS.items():
                    path = self.files.get(name)
                    if path is not None and not find_obstacle(name, path):
                        write_output(path, output.render_error(message))
                if self.annotates:
                    self.command(github_annotations.render_error(message))
                if self.summary is not None:
                    append_summary(self.summary, github_summary.render_error(message))
            raise


def find_obstacle(name: str, path: Path) -> str:
    """Find why a file must not be written to; empty for a new or empty one and an earlier output.

    Devices and pipes are written to and not read.
    """
    try:
        if path.is_symlink() and not path.exists():
            return "is a link to nothing"
        if path.is_dir():
            return "is a folder"
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    ours = not start or start.startswith(FILES[name][1])
    return "" if ours else "exists and was not written by this option"


def measure_room(summary: Path) -> int:
    """Count the bytes left in the summary of the step; other tools may have written to it."""
    with contextlib.suppress(OSError):
        return SUMMARY_BYTES - summary.stat().st_size
    return SUMMARY_BYTES


def append_summary(summary: Path, text: str) -> None:
    """Add to the summary of the step, unless it would become too long."""
    if len(text.encode()) > measure_room(summary):
        return
    with (
        writing(summary, f"{argument('no_github')} writes no summary"),
        open(summary, "a", encoding="utf-8", newline="\n", opener=open_now) as stream,
    ):
        stream.write(text)


def open_now(path: str, flags: int) -> int:
    """Open a file to write; OSError for a pipe that nobody reads, without waiting for a reader."""
    if not hasattr(os, "O_NONBLOCK"):  # Windows has no pipes among files
        return os.open(path, flags, 0o666)
    found = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(found, True)
    return found


def locate_in_repository(file: str) -> str:
    """Return the path of a file from the root of the checkout, as annotations name it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).resolve()
    if root and path.is_relative_to(Path(root).resolve()):
        return path.relative_to(Path(root).resolve()).as_posix()
    return Path(file).as_posix()
