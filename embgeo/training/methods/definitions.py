"""Methods by name: of embgeo, of plug-ins, and defined in settings.

In settings, ``base`` makes a variant of a method, and ``parts`` combines several::

    [method.cosreg-10]
    base = "cosreg"
    gamma = 10.0

    [method.no-memory]
    base = "mle"
    model.memory = 0

    [method.both]
    parts = ["sc-exp", "adversarial"]
    sc-exp.strength = 10.0
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, get_args

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption
from embgeo.core.settings import refuse_unknown
from embgeo.training.methods import METHODS, Factorization, Method, Regularizer, Step, Tying
from embgeo.training.methods.method import FACTORED, UNTIED
from embgeo.training.methods.regularizer import list_settings
from embgeo.training.registry import check_defaults, check_name, is_name
from embgeo.training.study.record import Role

BASE, PARTS, MODEL = "base", "parts", "model"

#: The tables ``[method.NAME]`` of settings, by name.
MethodTables = Mapping[str, Mapping[str, Any]]
NO_TABLES: MethodTables = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CombinedMethod(Method):
    """Several methods together; each has a table of its name inside the table of this method."""

    members: tuple[Method, ...] = ()
    #: For each of `parts`, its index among the parts of all members.
    order: tuple[int, ...] = ()

    def tables(self, given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the table of each member."""
        own = {name: value for name, value in given.items() if name not in self.definition}
        where = f"[method.{self.name}]"
        refuse_unknown(own, [member.name for member in self.members], where)
        for name, table in own.items():
            if not isinstance(table, Mapping):
                way_out = f"write [method.{self.name}.{name}]"
                raise BadOption(f"{name} of {where} is not a table", way_out=way_out)
        return [own.get(member.name, {}) for member in self.members]

    def settings(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = [
            settings
            for member, table in zip(self.members, self.tables(given), strict=True)
            for settings in replace(member, name=f"{self.name}.{member.name}").settings(table)
        ]
        return [found[place] for place in self.order]

    def complete(self, given: Mapping[str, Any], *, sgd: bool) -> dict[str, Any]:
        tables = zip(self.members, self.tables(given), strict=True)
        own = {member.name: member.complete(table, sgd=sgd) for member, table in tables}
        return {**self.definition, **{name: table for name, table in own.items() if table}}


def find_method(name: str, tables: MethodTables = NO_TABLES, where: str = "compare") -> Method:
    """Find a method by name, which `tables` may define; `BadOption` if it is unknown or invalid.

    `where` is what names the method.
    """
    table = tables.get(name, {})
    defining = [key for key in (BASE, PARTS) if key in table]
    if not defining:
        return find_known(name, where, tables)
    where = f"[method.{name}]"
    if name in METHODS or not is_name(name):
        raise BadOption(
            f"{where} defines a method of a name that it cannot have",
            way_out="choose another one of letters, digits, - and _",
        )
    if len(defining) == 2:
        raise BadOption(f"{where} has base and parts", way_out="leave one out")
    (key,) = defining
    if key == BASE:
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
        model = dict(changed)
        return replace(method, reference=known.name, definition=definition, model=model)
    return combine(name, table[PARTS])


def find_known(name: object, where: str, tables: MethodTables = NO_TABLES) -> Method:
    """Find a method by name; an unknown one is refused with suggestions."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    defined = (key for key, table in tables.items() if BASE in table or PARTS in table)
    known = [*METHODS, *defined]
    raise refuse_name("method", name, known, where)


def check_method(method: Method) -> str:
    """Return the name of a method of a plug-in; ValueError if the method is not usable."""
    if not isinstance(method, Method):
        raise ValueError("it is not a Method")
    parts = method.parts if isinstance(method.parts, tuple) else (None,)
    if not all(isinstance(part, type) and issubclass(part, Regularizer) for part in parts):
        raise ValueError("its parts are not a tuple of classes of regularizers")
    if not (method.parts or method.source):
        raise ValueError("it has neither a source nor parts")
    for part in method.parts:
        if part.NAME == Regularizer.NAME:
            raise ValueError(f"{part.__name__} has no NAME")
        if not (method.source or isinstance(getattr(part, "SOURCE", None), str)):
            raise ValueError(f"{part.__name__} has no SOURCE")
        if part.ROLE not in get_args(Role):
            raise ValueError(f"{part.__name__} is for the layer {part.ROLE!r}, which no model has")
        if unknown := set(part.NEEDS) - {field.name for field in fields(Step)}:
            raise ValueError(f"{part.__name__} needs {min(unknown)!r}, which no step has")
        check_defaults(part, {k: one.default for k, one in list_settings(part).items()})
    if method.reference not in ("", method.name, *METHODS):
        raise ValueError(f"its reference {method.reference!r} is not a method")
    return check_name(method.name)


def combine(name: str, parts: object) -> CombinedMethod:
    """Join several methods; those that replace layers come first."""
    where = f"[method.{name}]"
    if not isinstance(parts, list | tuple) or len(set(map(str, parts))) != len(parts) or not parts:
        raise BadOption(f"parts of {where} are {parts!r}", way_out="list methods, each once")
    members = tuple(find_known(part, f"parts of {where}") for part in parts)
    names = " and ".join(member.name for member in members)
    tied = {member.tied for member in members if member.tied is not None}
    if len(tied) > 1:
        raise BadOption(
            f"parts of {where} are {names}, which need one matrix and two",
            way_out="combine methods that go with one model",
        )
    kinds = [kind for member in members for kind in member.parts]
    factoring = [kind for kind in kinds if issubclass(kind, Factorization)]
    coupled = any(member.coupled for member in members)
    if len(set(kinds)) < len(kinds) or len(factoring) > 1 or (factoring and coupled):
        raise BadOption(
            f"parts of {where} are {names}, which change the same weights",
            way_out="take one of them",
        )
    # Parts that replace layers are attached first.
    late = [(not issubclass(kind, Tying), not issubclass(kind, Factorization)) for kind in kinds]
    order = tuple(sorted(range(len(kinds)), key=lambda place: late[place]))
    untied = any(UNTIED in (member.reference, member.name) for member in members)
    control = ("" if untied else FACTORED) if factoring else (UNTIED if untied else "mle")
    return CombinedMethod(
        name,
        " + ".join(member.title for member in members),
        tuple(kinds[place] for place in order),
        tied=next(iter(tied), None),
        coupled=coupled,
        reference=control,
        source="; ".join(dict.fromkeys(member.publication for member in members)),
        own_deviations=tuple(line for member in members for line in member.own_deviations),
        definition={PARTS: [member.name for member in members]},
        members=members,
        order=order,
    )


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
