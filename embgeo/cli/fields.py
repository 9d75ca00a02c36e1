"""Options of commands that are derived from the fields of `Source` and `Options`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import typer

from embgeo.core.errors import option_of
from embgeo.core.fields import OptionField, option_fields
from embgeo.core.options import Options
from embgeo.core.source import Source

_KEYWORD = inspect.Parameter.KEYWORD_ONLY

#: The typed options of a group, by name of the field.
Given: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EachField:
    """Marks a parameter of a command that stands for one option for each field of a dataclass."""

    of: type
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    #: Prefix of every help text.
    about: str = ""

    @property
    def options(self) -> dict[str, OptionField]:
        known = option_fields(self.of)
        names = self.only or [name for name in known if name not in self.without]
        return {name: known[name] for name in names}

    def parameters(self) -> list[inspect.Parameter]:
        """A parameter for each option, as typer reads them."""
        return [_parameter(option, self.about) for option in self.options.values()]


def _parameter(option: OptionField, about: str) -> inspect.Parameter:
    kind: Any = Literal[option.choices] if option.choices else option.kind
    if option.repeats:
        kind = list[kind]
    name = option_of(option.name)
    if option.kind is bool and option.default is None:
        name = f"{name}/--no-{name.removeprefix('--')}"
    text = f"{about}{option.help[0].lower()}{option.help[1:]}" if about else option.help
    described = typer.Option(name, help=text, min=option.least, metavar=option.metavar or None)
    return inspect.Parameter(
        option.name,
        _KEYWORD,
        default=option.default,
        annotation=Annotated[kind if option.default is not None else kind | None, described],
    )


#: Loading and measuring, as most commands take them.
Loading = Annotated[Given, EachField(Source)]
Measuring = Annotated[Given, EachField(Options)]


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that stands for a group by the options of the group.

    The command gets the typed options of a group; an option with its default is not among them.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, EachField] = {}
    parameters = [inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)]
    for parameter in signature.parameters.values():
        marks = getattr(parameter.annotation, "__metadata__", ())
        group = next((mark for mark in marks if isinstance(mark, EachField)), None)
        if group is None:
            parameters.append(parameter.replace(kind=_KEYWORD))
        else:
            groups[parameter.name] = group
            parameters += group.parameters()

    @functools.wraps(command)
    def run(ctx: typer.Context, **values: Any) -> None:
        for name, group in groups.items():
            options = {option: values.pop(option) for option in group.options}
            values[name] = {key: value for key, value in options.items() if _is_typed(ctx, key)}
        command(**values)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _is_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
