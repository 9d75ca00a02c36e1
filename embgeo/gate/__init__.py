"""Rules about saved results, whether they hold, and how that is told: one format a file."""

from types import ModuleType

from embgeo.gate import (
    as_json,
    github_annotations,
    github_summary,
    junit,
    metrics_json,
    metrics_txt,
    table,
)

#: Every way to tell an outcome; each has a NAME and ``render(outcome)``.
OUTPUTS: tuple[ModuleType, ...] = (
    table,
    as_json,
    junit,
    github_annotations,
    github_summary,
    metrics_txt,
    metrics_json,
)
