"""The outcome as JUnit XML, which most CI servers show."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from embgeo.gate.check import Check, Outcome
from embgeo.gate.text import visible

NAME = "junit"


def render(outcome: Outcome) -> str:
    """A test case for each check; warnings pass and say so in ``system-out``."""
    cases = [case(check) for check in outcome.checks]
    return document(
        cases, failures=len(outcome.of_state("failed")), skipped=len(outcome.of_state("skipped"))
    )


def render_error(message: str) -> str:
    """A run that came to no outcome: one test case in error, neither passed nor failed."""
    broken = ET.Element("testcase", classname="embgeo gate", name="run")
    ET.SubElement(broken, "error", message=visible(message), type="error")
    return document([broken], errors=1)


def case(check: Check) -> ET.Element:
    matrix, place = check.matrix, check.rule.place
    names = [] if matrix is None else [matrix.file, matrix.tensor]
    found = ET.Element(
        "testcase",
        classname=visible(" ".join(name for name in names if name) or "embgeo gate"),
        name=visible(check.rule.text),
    )
    if place.file:
        found.set("file", visible(place.file))
    if place.line is not None:
        found.set("line", str(place.line))
    said = visible(check.sentence)
    if check.state == "failed":
        failure = ET.SubElement(found, "failure", message=said, type="rule")
        failure.text = visible(details(check))
    elif check.state == "skipped":
        ET.SubElement(found, "skipped", message=said)
    else:
        before = "warning: " if check.state == "warned" else ""
        ET.SubElement(found, "system-out").text = f"{before}{said}"
    return found


def details(check: Check) -> str:
    """Where the rule stands, and by which convention its value is measured."""
    known = [f"rule in {check.rule.place}"]
    if check.reading.convention:
        known.append(f"convention: {check.reading.convention}")
    return "; ".join(known)


def document(
    cases: list[ET.Element], *, failures: int = 0, errors: int = 0, skipped: int = 0
) -> str:
    counts = {
        "tests": str(len(cases)),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": str(skipped),
    }
    root = ET.Element("testsuites", {"name": "embgeo gate"} | counts)
    suite = ET.SubElement(root, "testsuite", {"name": "embgeo gate"} | counts)
    suite.extend(cases)
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
