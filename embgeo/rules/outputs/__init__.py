"""The outcome of a gate for people and for other programs: one format a file."""

from types import ModuleType

from embgeo.rules.outputs import (
    as_json,
    github_annotations,
    github_summary,
    junit,
    sarif,
    table,
)

#: Every format; each has a NAME and ``render(outcome)``.
OUTPUTS: tuple[ModuleType, ...] = (
    table,
    as_json,
    junit,
    sarif,
    github_annotations,
    github_summary,
)
