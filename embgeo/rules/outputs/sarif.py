"""The outcome as SARIF 2.1.0, for code scanning: a result for each rule that does not hold."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from embgeo.core.text import printable
from embgeo.core.version import VERSION
from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import BLOCKING

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(outcome: Outcome, path: Callable[[str], str] = str) -> str:
    """Render a result for each failure and each warning.

    `path` makes the file of a rule relative to the root of the repository.
    """
    shown = [check for check in outcome.checks if check.state in (*BLOCKING, "warned")]
    names = dict.fromkeys(check.rule.name for check in outcome.checks)
    return document([result(check, path) for check in shown], [{"id": name} for name in names])


def render_error(message: str) -> str:
    """Render a run without an outcome: one that was not successful."""
    notice = {"level": "error", "message": {"text": printable(message)}}
    failed = {"executionSuccessful": False, "toolExecutionNotifications": [notice]}
    return document([], [], failed)


def result(check: Check, path: Callable[[str], str]) -> dict[str, Any]:
    """Return a result at the line of the rule, or else at the matrix that it is about."""
    place, matrix = check.rule.place, check.matrix
    about = "" if matrix is None else f" ({matrix.file} {matrix.tensor})"
    found: dict[str, Any] = {
        "ruleId": check.rule.name,
        "level": "error" if check.state in BLOCKING else "warning",
        "message": {"text": printable(f"{check.rule.text}: {check.sentence}{about}")},
    }
    file = place.file or ("" if matrix is None else matrix.file)
    if file:
        where: dict[str, Any] = {"artifactLocation": {"uri": quote(path(file), errors="replace")}}
        if place.line is not None:
            where["region"] = {"startLine": place.line}
        found["locations"] = [{"physicalLocation": where}]
    return found


def document(
    results: list[dict[str, Any]], rules: list[dict[str, Any]], run: dict[str, Any] | None = None
) -> str:
    tool = {"driver": {"name": "embgeo gate", "version": VERSION, "rules": rules}}
    invocation = run or {"executionSuccessful": True}
    content = {"tool": tool, "invocations": [invocation], "results": results}
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [content]}
    return json.dumps(whole, indent=1) + "\n"
