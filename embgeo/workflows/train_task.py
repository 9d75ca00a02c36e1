"""Training tasks: from plain arguments to settings, a text and a folder."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.workflows.folders import ELSEWHERE, is_occupied

if TYPE_CHECKING:
    from embgeo.io.bounded.records import RecordFormat
    from embgeo.training.settings import StudySettings
    from embgeo.training.tasks import Dataset


USUAL_PRESET = "tiny-cpu"

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """The arguments of :func:`embgeo.workflows.train.train`."""

    data: Path | str | None = None
    compare: Sequence[str] | str | None = None
    preset: str | None = None
    config: Path | str | None = None
    settings: Mapping[str, Any] | Sequence[str] = ()
    seeds: int | None = None
    device: str | None = None
    tune: Sequence[float] | str | None = None
    start: Path | str | None = None
    plugins: Sequence[Path | str] | None = ()
    out: Path | str | None = None
    resume: bool = False

    def read(self) -> StudySettings:
        """The settings, with the plug-ins that they may name loaded."""
        from embgeo.training.plugins import load_plugins, require_plugins

        loaded = load_plugins([Path(path) for path in self.plugins or ()])
        found = self.merge()
        require_plugins(found.plugins, loaded)
        return replace(found, plugins=loaded)

    def merge(self) -> StudySettings:
        """Unchecked settings: arguments override the file, which overrides the preset."""
        from embgeo.training.settings import from_tables, load_preset, merge_tables

        way_out = f"give their folder with {argument('out')}"
        unnamed = self.resume and self.out is None
        refuse_if(unnamed, argument("resume"), "does not say which runs", way_out)
        before = read_begun(Path(self.out)) if self.resume and self.out is not None else None
        if before is not None and self.preset is None and self.config is None:
            return extend(before, before.updated(self.changes()))
        tables = load_preset(self.preset or USUAL_PRESET).tables()
        if self.config is not None:
            tables = merge_tables(tables, read_own(Path(self.config)))
        found = from_tables(merge_tables(tables, self.changes()))
        return found if before is None else extend(before, found)

    def changes(self) -> dict[str, Any]:
        """The changes of the settings by arguments, as tables."""
        compare = self.compare
        if isinstance(compare, str):
            compare = [name.strip() for name in compare.split(",") if name.strip()]
        changed = as_tables(self.settings)
        for keys, value in (
            (["data", "path"], None if self.data is None else str(self.data)),
            (["compare"], None if compare is None else list(compare)),
            (["seeds"], None if self.seeds is None else list(range(self.seeds))),
            (["training", "device"], self.device),
            (["tune", "lr"], parse_rates(self.tune)),
            (["training", "start"], None if self.start is None else str(self.start)),
        ):
            if value is not None:
                put(changed, keys, value)
        return changed

    def folder(self, text: Path) -> Path:
        """The folder of runs on a text."""
        if self.out is not None:
            return Path(self.out)
        name = text.resolve().name
        return Path(f"{name.partition('.')[0] or name or 'text'}.runs")


def read_own(path: Path) -> dict[str, Any]:
    """The tables of a user's file of settings; paths in it are relative to its folder."""
    from embgeo.training.settings import read_settings

    read_settings(path)  # names the file in errors
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    paths = (("data", "path"), ("data", "tokenizer"), ("task", "wordsim"), ("training", "start"))
    for table, name in paths:
        if tables.get(table, {}).get(name):
            tables[table][name] = str(path.parent / tables[table][name])
    return tables


def read_begun(folder: Path) -> StudySettings:
    """The settings of the runs in a folder."""
    from embgeo.training.settings import STUDY_SETTINGS_NAME, read_settings

    path = folder / STUDY_SETTINGS_NAME
    way_out = f"leave out {argument('resume')}"
    refuse_if(not path.is_file(), str(folder), "holds no runs", way_out)
    return read_settings(path)


def extend(before: StudySettings, now: StudySettings) -> StudySettings:
    """New settings with the methods and seeds of earlier ones added."""
    return now.updated(
        {
            "compare": list(dict.fromkeys((*before.compare, *now.compare))),
            "seeds": sorted({*before.seeds, *now.seeds}),
        }
    )


def as_tables(settings: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Settings by dotted names, in tables, or as texts such as ``training.epochs=3``.

    >>> as_tables({"training.epochs": 3, "model": {"d": 8}})
    {'training': {'epochs': 3}, 'model': {'d': 8}}
    """
    tables: dict[str, Any] = {}
    if isinstance(settings, Mapping):
        put(tables, [], settings)
        return tables
    for text in settings:
        put(tables, *parse_assignment(text))
    return tables


def put(tables: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value in nested tables, or all values of a mapping with dotted keys."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            put(tables, [*keys, *str(key).split(".")], inner)
        return
    *outer, last = keys
    for key in outer:
        inner = tables.setdefault(key, {})
        if not isinstance(inner, dict):
            name = argument("settings", ".".join(keys))
            raise BadOption(f"{key} is not a table", where=name)
        tables = inner
    tables[last] = value


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """``training.epochs=3`` as keys and a value; a value that is not TOML is text.

    >>> parse_assignment("model.width=96"), parse_assignment("model.name=vd-lstm")
    ((['model', 'width'], 96), (['model', 'name'], 'vd-lstm'))
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    wrong, way_out = (
        not equals or not _KEY.fullmatch(key),
        argument("settings", "training.epochs=3"),
    )
    refuse_if(wrong, argument("settings"), f"{text!r} is not a setting", f"write {way_out}")
    try:
        parsed = tomllib.loads(f"x = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    return key.split("."), parsed["x"] if list(parsed) == ["x"] else value.strip()


def parse_rates(tune: Sequence[float] | str | None) -> list[float] | None:
    """``lr=1e-3,3e-3`` as numbers.

    >>> parse_rates("lr=1e-3,3e-3")
    [0.001, 0.003]
    """
    if tune is None or not isinstance(tune, str):
        return None if tune is None else list(tune)
    try:
        name, values = tune.split("=")
        found = [float(value) for value in values.split(",")]
    except ValueError:
        name, found = "", []
    cause, way_out = f"{tune!r} is not a list of learning rates", "write it as in lr=1e-3,3e-3,1e-2"
    refuse_if(name.strip() != "lr", argument("tune"), cause, way_out)
    return found


@dataclass(frozen=True, slots=True)
class StudyTask:
    """The settings, data and folder of a study to train."""

    settings: StudySettings
    dataset: Dataset
    folder: Path
    command: str
    #: Tuned learning rates by method.
    tuned: Mapping[str, float] = field(default_factory=dict)
    #: Files that are needed to resume.
    plugins: Sequence[Path | str] = ()

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Method and seed of every run; all methods of one seed before the next."""
        return [(method, seed) for seed in self.settings.seeds for method in self.settings.compare]

    def run_settings(self, method: str, seed: int) -> StudySettings:
        found = self.settings.one(method, seed)
        if method not in self.tuned:
            return found
        return found.updated({"optimizer": {"lr": self.tuned[method]}})

    def home(self, method: str, seed: int) -> Path:
        """The folder of a run."""
        from embgeo.training.loop.checkpoint import run_folder

        return run_folder(self.folder, method, seed)


def prepare(request: TrainRequest, command: str) -> StudyTask:
    """Read settings and text, and check them as far as possible before training."""
    from embgeo.training.complete import complete_settings
    from embgeo.training.loop.check import check_study
    from embgeo.training.methods.definitions import add_controls
    from embgeo.training.tasks import make_task

    requested = request.read()
    methods = add_controls(requested.compare, requested.method)
    settings = complete_settings(requested.updated({"compare": list(methods)}))
    if not settings.data.path:
        way_out = f"give a file or a folder with {argument('data')}"
        raise BadOption("no text is given", way_out=way_out)
    path = Path(settings.data.path)
    lost = request.resume and request.data is None and not path.exists()
    cause = "the text of the runs is not there, seen from the current folder"
    refuse_if(lost, str(path), cause, f"name it with {argument('data')}")
    dataset = make_task(settings).load(settings)
    check_study(settings, dataset)
    plugins = request.plugins or ()
    return StudyTask(settings, dataset, request.folder(path), command, plugins=plugins)


def check_runs_folder(folder: Path, *, resume: bool, own: str = "train.toml") -> None:
    """Refuse, before anything is computed, a folder to which runs cannot be added.

    The file `own` marks a folder of runs.
    """
    empty, ours = not is_occupied(folder), (folder / own).is_file()
    again, where = argument("resume"), str(folder)
    refuse_if(resume and empty, where, "holds no runs", f"leave out {again}")
    refuse_if(ours and not resume, where, "holds runs", f"resume them with {again}, or {ELSEWHERE}")
    refuse_if(not (empty or ours), where, "exists and holds something other than runs", ELSEWHERE)


def begin_experiment(
    form: RecordFormat[Any], record: object, folder: Path, keys: Sequence[str], *, resume: bool
) -> None:
    """Write the record of an experiment, or on resume compare these keys with the saved record."""
    check_runs_folder(folder, resume=resume, own=form.file)
    if not resume:
        form.save(record, folder)
        return
    before, now = form.to_json(form.load(folder)), form.to_json(record)
    differs = any(before[key] != now[key] for key in keys)
    cause = "holds the experiment with other settings or on another text"
    refuse_if(differs, str(folder), cause, ELSEWHERE)


def check_runs(task: StudyTask) -> None:
    """Refuse settings that differ from existing runs, before anything is written."""
    from embgeo.training.loop.checkpoint import RUN_NAME, identity, read_identity, require_same
    from embgeo.training.settings import read_settings

    for method, seed in task.runs:
        home = task.home(method, seed)
        now = task.run_settings(method, seed).tables()
        known = read_identity(home)
        if known is not None:
            require_same(known, identity(now, dict(task.dataset.files)), home)
        elif (home / RUN_NAME).is_file():
            before = read_settings(home / RUN_NAME).tables()
            require_same(identity(before, {}), identity(now, {}), home)


def explain_interrupt(
    folder: Path, command: str, kept: str = "what was trained is kept"
) -> EmbgeoError:
    """The error of an interrupted training, with the command that resumes it."""
    state = kept if folder.exists() else "nothing was written"
    return EmbgeoError(f"interrupted; {state}", way_out=f"resume it with: {command}")
