"""The outcome as JUnit XML, which most CI servers show."""

import xml.etree.ElementTree as ET

from embgeo.core.text import printable
from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import BLOCKING


def render(outcome: Outcome) -> str:
    """Render a test case for each check; warnings pass, with a note in ``system-out``."""
    failures = sum(check.state in BLOCKING for check in outcome.checks)
    skipped = len(outcome.of_state("skipped"))
    return document([case(c) for c in outcome.checks], failures=failures, skipped=skipped)


def render_error(message: str) -> str:
    """Render a run without an outcome: one test case in error, neither passed nor failed."""
    broken = ET.Element("testcase", classname="embgeo gate", name="run")
    ET.SubElement(broken, "error", message=printable(message), type="error")
    return document([broken], errors=1)


def case(check: Check) -> ET.Element:
    matrix, place = check.matrix, check.rule.place
    names = [] if matrix is None else [matrix.file, matrix.tensor]
    found = ET.Element(
        "testcase",
        classname=printable(" ".join(name for name in names if name) or "embgeo gate"),
        name=printable(check.rule.text),
    )
    if place.file:
        found.set("file", printable(place.file))
    if place.line is not None:
        found.set("line", str(place.line))
    sentence = printable(check.sentence)
    if check.state in BLOCKING:
        failure = ET.SubElement(found, "failure", message=sentence, type="rule")
        convention = check.reading.convention
        details = f"rule in {place}{f'; convention: {convention}' if convention else ''}"
        failure.text = printable(details)
    elif check.state == "skipped":
        ET.SubElement(found, "skipped", message=sentence)
    else:
        before = "warning: " if check.state == "warned" else ""
        ET.SubElement(found, "system-out").text = f"{before}{sentence}"
    return found


def document(
    cases: list[ET.Element], *, failures: int = 0, errors: int = 0, skipped: int = 0
) -> str:
    counts = {"tests": len(cases), "failures": failures, "errors": errors, "skipped": skipped}
    attributes = {"name": "embgeo gate"} | {key: str(count) for key, count in counts.items()}
    root = ET.Element("testsuites", attributes)
    suite = ET.SubElement(root, "testsuite", attributes)
    suite.extend(cases)
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
