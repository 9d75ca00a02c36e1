"""Methods by name: of embgeo, of plug-ins, and defined in settings.

In settings, ``base`` makes a variant of a method::

    [method.cosreg-10]
    base = "cosreg"
    gamma = 10.0

    [method.no-memory]
    base = "mle"
    model.memory = 0
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, get_args

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption
from embgeo.training.methods import METHODS, Method, Regularizer, Step
from embgeo.training.methods.method import FACTORED, UNTIED
from embgeo.training.methods.regularizer import list_settings
from embgeo.training.registry import check_defaults, check_name, is_name
from embgeo.training.study.record import Role

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


def check_method(method: Method) -> str:
    """Return the name of a method of a plug-in; ValueError if the method is not usable."""
    if not isinstance(method, Method):
        raise ValueError("it is not a Method")
    parts = method.parts if isinstance(method.parts, tuple) else (None,)
    if not all(isinstance(part, type) and issubclass(part, Regularizer) for part in parts):
        raise ValueError("its parts are not a tuple of classes of regularizers")
    for part in method.parts:
        if not (method.source or hasattr(part, "SOURCE")):
            raise ValueError(f"{part.__name__} has no SOURCE")
        if part.ROLE not in get_args(Role):
            raise ValueError(f"{part.__name__} is for the layer {part.ROLE!r}, which no model has")
        if unknown := set(part.NEEDS) - {field.name for field in fields(Step)}:
            raise ValueError(f"{part.__name__} needs {min(unknown)!r}, which no step has")
        check_defaults(part, {k: one.default for k, one in list_settings(part).items()})
    if method.reference not in ("", method.name, *METHODS):
        raise ValueError(f"its reference {method.reference!r} is not a method")
    return check_name(method.name)


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
