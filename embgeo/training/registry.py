"""Models, tasks and methods by name, with their settings, before torch is imported.

In settings, ``base`` makes a variant of a method::

    [method.cosreg-10]
    base = "cosreg"
    gamma = 10.0

    [method.no-memory]
    base = "mle"
    model.memory = 0
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, get_type_hints

import msgspec

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption
from embgeo.core.settings import refuse_unknown
from embgeo.files.settings import parse_table, to_toml
from embgeo.training import components
from embgeo.training.limits import Settings, choose
from embgeo.training.study.record import Role

T = TypeVar("T")

#: A name is also the name of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
#: Keywords of constructors whose values the run has, rather than settings.
FROM_SETUP = ("ignore_rows", "seed", "sgd")
#: Types that a file of settings can hold; None stands for a setting that is left out.
_PLAIN = (bool, int, float, str, list, tuple, dict, NoneType)


def load_class(place: Any) -> Any:
    """Import the class that takes these settings, or that has this name in `embgeo.training`."""
    place = place.CLASS if isinstance(place, type) and issubclass(place, Settings) else place
    if not isinstance(place, str):
        return place
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"embgeo.training.{module}"), name)


def take(thing: Any, given: Mapping[str, Any]) -> Any:
    """Return the settings of an object of a class with `SETTINGS`; `BadOption` for wrong ones."""
    return parse_table(thing.SETTINGS, given, thing.NAME)


def describe_class(kind: Any) -> type[Settings]:
    """Make the structure of a plug-in's settings from the keywords of its constructor.

    Where that passes keywords on, those of its bases are settings, too, up to a class of embgeo.
    ValueError for a setting without a default that a file of settings can hold.
    """
    found: dict[str, Any] = {}
    base: type[Settings] = Settings
    for owner, function in list_constructors(kind):
        if "SETTINGS" in vars(owner):
            base = owner.SETTINGS
            break
        found = {**list_keywords(kind, function), **found}
    if base is Settings and hasattr(kind, "attach"):
        found |= list_keywords(kind, kind.attach)
    models = {model.NAME: describe_class(model) for model in getattr(kind, "MODELS", ())}
    if not models and hasattr(kind, "MODELS"):
        models = getattr(kind.SETTINGS, "MODELS", {})
    made: Any = msgspec.defstruct(
        kind.__name__,
        [(name, *one) for name, one in found.items()],
        bases=(base,),
        namespace={"CLASS": kind, "MODELS": models},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    checked: type[Settings] = made
    return checked


def list_constructors(kind: type) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """List the constructor of a class and, as far as it passes keywords on, those of its bases."""
    for owner in kind.__mro__:
        if function := vars(owner).get("__init__"):
            yield owner, function
            if inspect.getfullargspec(function).varkw is None:
                return


def list_keywords(kind: type, function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """List the keyword-only parameters of a function: type and default by name."""
    found: dict[str, tuple[Any, Any]] = {}
    hints = get_type_hints(function, include_extras=True)
    for one in inspect.signature(function).parameters.values():
        if one.kind is not one.KEYWORD_ONLY or one.name in FROM_SETUP:
            continue
        usual: Any = one.default
        if not isinstance(usual, _PLAIN):
            raise ValueError(f"the setting {one.name} of {kind.__name__} has no plain default")
        hint = hints.get(one.name, Any if usual is None else type(usual))
        try:
            msgspec.json.Decoder(hint)
        except TypeError:  # of a form that is not checked, such as list | tuple
            hint = Any
        if isinstance(usual, list | dict):
            usual = msgspec.field(default_factory=usual.copy)
        found[one.name] = hint, usual
    return found


def find(what: str, known: Mapping[str, T], name: str) -> T:
    """Find a model or a task by name; `BadOption` without one."""
    if name not in known:
        raise refuse_name(what, name, known, f"name of [{what}]")
    return known[name]


def find_model(task: str, name: str) -> type[Settings]:
    """Find the settings of a model of a task."""
    models = find("task", components.TASKS, task).MODELS
    if name not in models and models is not components.MODELS:
        raise BadOption(
            f"the task {task} has no model {name!r}",
            where="name of [model]",
            way_out=f"choose from {', '.join(models)}",
        )
    kind: type[Settings] = find("model", models, name)
    return kind


def is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


# --- Methods --------------------------------------------------------------------------------------

#: Controls of methods for models with two matrices, and with factors.
UNTIED, FACTORED = "untied", "factored"
COUPLED_ADAM = "methods.coupled_adam.CoupledAdam"


@dataclass(frozen=True, slots=True)
class Method:
    """A published way to train against degeneration, or a control."""

    #: The name in settings and folders.
    name: str
    #: The name in tables and pages.
    title: str
    #: Regularizers, attached to the model in this order: their settings, or classes of a plug-in.
    parts: tuple[type, ...] = ()
    #: Defaults of this method for settings of the parts.
    usual: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the output layer is the input embedding; by default, the model's settings decide.
    tied: bool | None = None
    #: Whether `CoupledAdam` is the optimizer.
    coupled: bool = False
    #: Name of its control: the same model trained by maximum likelihood. Empty for a control.
    reference: str = "mle"
    #: The publication; by default that of the parts.
    source: str = ""
    #: For a method that settings define, the keys of its table that define it.
    definition: Mapping[str, Any] = field(default_factory=dict)
    #: Settings of the model that the method changes.
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model_settings(self) -> dict[str, Any]:
        """Settings of the model that the method changes, with `tied`."""
        return {**({} if self.tied is None else {"tied": self.tied}), **self.model}

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of the parts, which need torch."""
        return tuple(map(load_class, self.parts))

    @property
    def role(self) -> Role:
        """The matrix of an untied model that the method acts on, and is judged by."""
        if self.parts:
            role: Role = self.classes[-1].ROLE
            return role
        # Coupled Adam is derived for gradients of the output matrix (§2–3).
        return "output" if self.coupled else "input"

    @property
    def publication(self) -> str:
        """The publication of the method or of its parts."""
        return self.source or "; ".join(part.SOURCE for part in self._published)

    @property
    def deviations(self) -> tuple[str, ...]:
        """All differences from the publication."""
        return tuple(dict.fromkeys(line for part in self._published for line in part.DEVIATIONS))

    @property
    def _published(self) -> tuple[Any, ...]:
        return (*self.classes, *(map(load_class, [COUPLED_ADAM] if self.coupled else ())))

    def settings(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all settings of each part; `BadOption` for unknown ones and wrong values."""
        given = {name: value for name, value in given.items() if name not in self.definition}
        found = [p if issubclass(p, Settings) else describe_class(p) for p in self.parts]
        known = {name for part in found for name in part.__struct_fields__}
        where = f"[method.{self.name}]"
        refuse_unknown(given, known, where)
        values = {**self.usual, **given}
        return [
            msgspec.structs.asdict(parse_table(part, choose(values, part), where)) for part in found
        ]

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all settings in one table, for the record of a run."""
        own = {name: value for part in self.settings(given) for name, value in part.items()}
        found: dict[str, Any] = to_toml({**self.definition, **own})
        return found


#: Every method by name, in the order of reports; plug-ins add to it.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "mle",
            "MLE",
            reference="",
            source="the model as configured, trained by maximum likelihood",
        ),
        Method(UNTIED, "MLE, untied", tied=False, source="the model with two matrices"),
        Method(FACTORED, "MLE, factored", (components.Factorization,)),
        Method("cosreg", "CosReg", (components.CosReg,)),
        Method(
            "sc-exp",
            "Spectrum control, exponential",
            (components.SpectrumControl,),
            {"prior": "exponential"},
            reference=FACTORED,
        ),
        Method(
            "sc-poly",
            "Spectrum control, polynomial",
            (components.SpectrumControl,),
            {"prior": "polynomial"},
            reference=FACTORED,
        ),
        Method("frage", "FRAGE", (components.Frage,)),
        Method("al", "AL", (components.AugmentedLoss,), tied=False, reference=UNTIED),
        Method("re", "RE", (components.Tying,), tied=True, reference=UNTIED),
        Method(
            "real",
            "REAL",
            (components.Tying, components.AugmentedLoss),
            tied=True,
            reference=UNTIED,
        ),
        Method(
            "spectral-norm",
            "Spectral normalization",
            (components.SpectralNorm,),
            reference=FACTORED,
        ),
        Method("d-optimal", "SN + D-optimal", (components.DOptimal,), reference=FACTORED),
        Method("adversarial", "Adversarial softmax", (components.AdversarialSoftmax,)),
        Method("coupled-adam", "Coupled Adam", coupled=True),
    )
}

BASE, MODEL = "base", "model"

#: The tables ``[method.NAME]`` of settings, by name.
MethodTables = Mapping[str, Mapping[str, Any]]
NO_TABLES: MethodTables = MappingProxyType({})


def find_method(name: str, tables: MethodTables = NO_TABLES, where: str = "compare") -> Method:
    """Find a method by name, which `tables` may define; `BadOption` if it is unknown or invalid.

    `where` is what names the method.
    """
    table = tables.get(name, {})
    if BASE not in table:
        return find_known(name, where, tables)
    where = f"[method.{name}]"
    if name in METHODS or not is_name(name):
        raise BadOption(
            f"{where} defines a method of a name that it cannot have",
            way_out="choose another one of letters, digits, - and _",
        )
    known = find_known(table[BASE], f"base of {where}")
    title = f"{known.title} ({name})"
    method = replace(known, name=name, title=title, definition={BASE: known.name})
    if MODEL not in table:
        return method
    changed = table[MODEL]
    if not isinstance(changed, Mapping) or not changed:
        raise BadOption(f"model of {where} is not a table", way_out="write model.memory = 0")
    # Compared with the same method on the model as configured: the change is what differs.
    definition = {BASE: known.name, MODEL: dict(changed)}
    return replace(method, reference=known.name, definition=definition, model=dict(changed))


def find_known(name: object, where: str, tables: MethodTables = NO_TABLES) -> Method:
    """Find a method by name; an unknown one is refused with suggestions."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    known = [*METHODS, *(key for key, table in tables.items() if BASE in table)]
    raise refuse_name("method", name, known, where)


def choose_reference(name: str, among: tuple[str, ...], tables: MethodTables = NO_TABLES) -> str:
    """Choose the control of a method if it is among the compared ones; else empty."""
    reference = find_method(name, tables).reference
    return reference if reference in among else ""


def add_controls(
    names: tuple[str, ...], tables: MethodTables = NO_TABLES, where: str = "compare"
) -> tuple[str, ...]:
    """Insert missing controls, each before the first method that needs it, except "mle".

    `where` is what names the methods.
    """
    found: dict[str, None] = {}
    for name in names:
        reference = find_method(name, tables, where).reference
        if reference in (UNTIED, FACTORED) and reference not in names:
            found[reference] = None
        found[name] = None
    return tuple(found)
