"""The settings of a study or of one run, read from TOML and written as TOML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption, argument
from embgeo.core.settings import Where, parse_value, refuse_unknown, type_hints
from embgeo.files import settings
from embgeo.training import sections
from embgeo.training.limits import MOST, Seed, Settings, Texts
from embgeo.training.schedules import SCHEDULES

#: The settings of a comparison, in its folder.
STUDY_SETTINGS_NAME = "train.toml"

#: Types of the settings of [optimizer] that one optimizer or schedule has, by what chooses it.
OF_OPTIMIZER = {
    key: {name: hint for kind in known.values() for name, hint in type_hints(kind).items()}
    for key, known in (("kind", sections.OPTIMIZERS), ("schedule", SCHEDULES))
}

#: A setting that chooses, and the settings that depend on it; None: all that not every choice has.
CHOICES: tuple[tuple[str, str, Collection[str] | None], ...] = (
    ("data", "bpe", ("size", "min_count")),
    ("task", "name", None),
    ("model", "name", None),
    *(("optimizer", key, names) for key, names in OF_OPTIMIZER.items()),
)

#: Tables of settings that can be tuned.
TUNABLE = ("optimizer", "training", "model", "method")
#: Values to try of a setting.
Tried = Annotated[tuple[Any, ...], Meta(max_length=MOST)]
T = TypeVar("T", bound=Settings)
NONE: Mapping[str, Any] = MappingProxyType({})


class StudySettings(Settings, frozen=True):
    """All settings of a study, or with one method and one seed of a run."""

    #: Names of methods.
    compare: Texts = ("mle",)
    seeds: Annotated[tuple[Seed, ...], Meta(max_length=MOST)] = (0,)
    task: sections.TaskSettings = sections.TaskSettings()
    data: sections.DataSettings = sections.DataSettings()
    model: sections.ModelSettings = sections.ModelSettings()
    optimizer: sections.OptimizerSettings = sections.OptimizerSettings()
    training: sections.TrainingSettings = sections.TrainingSettings()
    evaluation: sections.EvaluationSettings = sections.EvaluationSettings()
    geometry: sections.GeometrySettings = sections.GeometrySettings()
    #: Values to try, by the dotted name of a setting, ``method.cosreg.gamma``.
    tune: Mapping[str, tuple[Any, ...]] = {}
    #: Settings of methods that differ from their defaults: ``[method.cosreg]``. With ``base`` they
    #: define a method; see `embgeo.training.registry`.
    method: Mapping[str, Mapping[str, Any]] = {}
    #: SHA-256 of each plug-in file that the study was started with, by its name. Reading settings
    #: loads none.
    plugins: Mapping[str, str] = {}

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Method and seed of every run; all methods of one seed before the next."""
        return [(method, seed) for seed in self.seeds for method in self.compare]

    def one(self, method: str, seed: int, tuned: Mapping[str, Any] = NONE) -> StudySettings:
        """Return the settings of one run of the comparison, with `tuned` values by dotted name."""
        own = {method: self.method[method]} if method in self.method else {}
        found = replace(self, compare=(method,), seeds=(seed,), method=own, tune={})
        changes: dict[str, Any] = {}
        for name, value in tuned.items():
            put(changes, name.split("."), value)
        return found.updated(changes) if changes else found

    def list_tuned(self, method: str) -> dict[str, tuple[Any, ...]]:
        """List the tuned settings that concern a method."""
        return {
            name: values
            for name, values in self.tune.items()
            if not name.startswith("method.") or name.split(".")[1] == method
        }

    def tables(self) -> dict[str, Any]:
        """Return the tables of plain values for TOML, without unset ones."""
        found: dict[str, Any] = {"compare": list(self.compare), "seeds": list(self.seeds)}
        for name in self.__struct_fields__:
            if isinstance(section := getattr(self, name), Settings):
                table = settings.to_toml(section)
                found[name] = table | table.pop("settings", {})
        if self.task == sections.TaskSettings():
            del found["task"]  # the default, which earlier versions did not write
        if self.method:
            found["method"] = settings.to_toml(self.method)
        if self.plugins:
            found["plugins"] = dict(self.plugins)
        if self.tune:
            found["tune"] = settings.to_toml(self.tune)
        return found

    def updated(self, changes: Mapping[str, Any]) -> StudySettings:
        """Return the settings with other values, such as ``{"training": {"epochs": 3}}``.

        ``None`` takes a setting back to its default.
        """
        return from_tables(merge_tables(self.tables(), changes))

    def text(self) -> str:
        """Return the settings as a TOML document."""
        import tomli_w  # of the extra `train`, which reading settings does not need

        return tomli_w.dumps(self.tables())


def read_settings(path: Path) -> StudySettings:
    """Read settings from a file; `UnreadableFile` if it is missing or not TOML."""
    return parse_settings(settings.read_document(path, "give a file of settings in TOML"), path)


def parse_settings(text: str, where: Where) -> StudySettings:
    """Parse settings from a TOML document; `where` is named in errors."""
    return from_tables(settings.parse_document(text, where, "correct it there"), where)


def list_presets() -> dict[str, Traversable]:
    """List the files of settings that come with the package, by name."""
    folder = resources.files("embgeo.training") / "presets"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {f.name.removesuffix(".toml"): f for f in files if f.name.endswith(".toml")}


def load_preset(name: str) -> StudySettings:
    """Load settings that come with the package."""
    return from_tables(read_preset(name), f"preset {name}")


def read_preset(name: str) -> dict[str, Any]:
    """Read the tables of a preset over those of the one that it names by ``base``."""
    known = list_presets()
    if name not in known:
        raise refuse_name("preset", name, known, argument("preset"))
    text = known[name].read_text(encoding="utf-8")
    tables = settings.parse_document(text, f"preset {name}", "correct it there")
    base = tables.pop("base", None)
    return tables if base is None else merge_tables(read_preset(base), tables)


def from_tables(tables: Mapping[str, Any], where: Where = None) -> StudySettings:
    """Return settings from tables of plain values; `BadOption` for unknown keys and wrong types."""
    hints = type_hints(StudySettings)
    tables_of = [name for name, hint in hints.items() if isinstance(hint, type)]
    inner = [f"{name}.{key}" for name in tables_of for key in settings.list_fields(hints[name])]
    inner += [f"optimizer.{key}" for names in OF_OPTIMIZER.values() for key in names]
    refuse_unknown(tables, hints, "settings", where, inner)
    parsed: dict[str, Any] = {}
    for name, value in tables.items():
        hint: Any = hints[name]
        if name == "method":
            is_table = isinstance(value, Mapping)  # whose entries are checked under their own names
            methods = value if is_table else parse_value(value, dict[str, Any], "[method]", where)
            parsed[name] = {
                method: parse_value(own, dict[str, Any], f"[method.{method}]", where)
                for method, own in methods.items()
            }
        elif name == "tune":
            parsed[name] = _parse_tuned(parse_value(value, dict[str, Any], "[tune]", where), where)
        elif name not in tables_of:
            parsed[name] = parse_value(value, hint, name, where)
        else:
            parsed[name] = _parse_section(hint, value, f"[{name}]", where)
    return StudySettings(**parsed)


def _parse_section(kind: type[T], value: Any, name: str, where: Where) -> T:
    """Parse a table, whose settings of a model, a task, an optimizer or a schedule stay open."""
    if "settings" in kind.__struct_fields__ and isinstance(value, Mapping):
        known = {*kind.__struct_fields__} - {"settings"}
        own = {key: entry for key, entry in value.items() if key not in known}
        own = parse_value(own, dict[str, Any], name, where)
        if kind is sections.OptimizerSettings:
            hints = {k: hint for names in OF_OPTIMIZER.values() for k, hint in names.items()}
            refuse_unknown(own, {*hints} | known, name, where)
            own = {k: parse_value(v, hints[k], f"{k} of {name}", where) for k, v in own.items()}
        value = {k: v for k, v in value.items() if k in known} | {"settings": own}
    return settings.parse_table(kind, value, name, where)


def _parse_tuned(table: Mapping[str, Any], where: Where, outer: str = "") -> dict[str, Any]:
    """Parse values to try by dotted name, from tables inside each other."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{outer}{key}"
        if isinstance(value, Mapping):
            found |= _parse_tuned(value, where, f"{name}.")
            continue
        name = "optimizer.lr" if name == "lr" else name
        values = parse_value(value, Tried, f"{name} of [tune]", where)
        if not values or any(one in values[:i] for i, one in enumerate(values)):
            cause = f"{name} of [tune] is {list(values)}"
            raise BadOption(cause, where=where, way_out="give one value or more, each once")
        choosing = tuple(f"{of}.{setting}" for of, setting, _ in CHOICES)
        if name.partition(".")[0] not in TUNABLE or name in choosing:
            way_out = (
                f"tune settings of {', '.join(f'[{of}]' for of in TUNABLE)} that choose no other"
            )
            raise BadOption(f"{name} of [tune] is not tuned", where=where, way_out=way_out)
        found[name] = values
    return found


def put(tables: dict[str, Any], keys: Sequence[str], value: Any) -> None:
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


def merge_tables(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace some values of settings; None removes a key.

    A change of model, optimizer or schedule removes the settings of the earlier one. A tokenizer to
    learn removes the settings of the vocabulary, because it has its own.
    """
    merged = dict(tables)
    for name, key, belonging in CHOICES:
        table, new = merged.get(name), changes.get(name)
        if not isinstance(table, Mapping) or not isinstance(new, Mapping):
            continue
        if new.get(key, table.get(key)) != table.get(key):
            shared = type_hints(StudySettings)[name].__struct_fields__
            gone = {*table} - {*shared} if belonging is None else belonging
            merged[name] = {k: v for k, v in table.items() if k not in gone}
    return _replace_values(merged, changes)


def _replace_values(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = _replace_values(inner if isinstance(inner, Mapping) else {}, value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged
