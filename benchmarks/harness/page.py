"""The results as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Json = Mapping[str, Any]

INTRODUCTION = (
    "Made by `python benchmarks/run.py`; every single time stands in the JSON file next to this "
    "page. A ratio is embgeo's {clock} over the other's in the same round, where contenders take "
    "turns: the median over the rounds, with the lowest and the highest. No time is shown whose "
    "answer was not checked."
)

TINY = "**Tiny sizes**, to see that everything works: no time means anything."


def render_page(results: Json) -> str:
    """Machine, every line that has a bound, then each case by itself."""
    machine, cases, tiny = results["machine"], results["cases"], results["tiny"]
    common = next(iter(cases.values()))["versions"]
    bounded = [row for case in cases.values() for row in case["rows"] if row["bound"] is not None]
    parts = [
        f"# Benchmarks: {machine['cpu']}, {machine['cores']} cores",
        INTRODUCTION.format(clock=results.get("clock", "time")),
        *([TINY] if tiny else []),
        bullets({"Memory": f"{machine['memory_gb']} GB", "System": machine["system"], **common}),
    ]
    if warnings := [f"{name}: {c['load']['warning']}" for name, c in cases.items() if is_busy(c)]:
        parts.append(f"**Warning.** {'; '.join(warnings)}.")
    if bounded:
        parts += ["## Bounds", bounds(bounded)]
    parts += [section(name, case, common) for name, case in cases.items()]
    return "\n\n".join(parts) + "\n"


def is_busy(case: Json) -> bool:
    return bool(case["load"]["warning"])


def bounds(rows: Iterable[Json]) -> str:
    body = [
        (row["what"], value(row), limit(row), row["verdict"], str(row["rounds"] or ""))
        for row in rows
    ]
    return table(("what", "seen", "bound", "", "rounds"), body)


def section(name: str, case: Json, common: Json) -> str:
    parts = [f"## {name}: {case['title']}" if case["title"] else f"## {name}"]
    if is_busy(case):
        parts.append(f"**Warning.** {case['load']['warning']}.")
    if case["failed"]:
        parts.append(f"**Failed.** {case['failed']}")
    if case["rows"]:
        parts += [lines(case["rows"]), contenders(case["rows"])]
    if case["printed"]:
        parts.append(f"```\n{case['printed'].rstrip()}\n```")
    return "\n\n".join([*(part for part in parts if part), state(case, common)])


def lines(rows: Sequence[Json]) -> str:
    header = ("what", "seen", "bound", "rounds", "median times", "how")
    body = [
        (
            row["what"],
            value(row),
            f"{limit(row)}, {row['verdict']}" if row["verdict"] else "",
            str(row["rounds"] or ""),
            "; ".join(f"{s['name']} {number(median(s['seconds']))} s" for s in row["sides"]),
            row["note"],
        )
        for row in rows
    ]
    return table(header, body)


def contenders(rows: Iterable[Json]) -> str:
    """Where each contender's time went, and how far off its answers were at worst."""
    sides = {side["name"]: side for row in rows for side in row["sides"]}
    told = []
    for name, side in sides.items():
        spent = ", ".join(f"{k} {number(v)} s" for k, v in side["stages"].items())
        wrong = ", ".join(f"{k} {v:.0e}" for k, v in side["errors"].items())
        facts = [spent, f"answers off by at most {wrong}" if wrong else ""]
        if any(facts):
            told.append(f"- {name}: {'; '.join(fact for fact in facts if fact)}")
    return "\n".join(told)


def state(case: Json, common: Json) -> str:
    """When, next to what, and which versions were others than those of the first case."""
    load = case["load"]
    shared = "" if load["others"] is None else f", other processes took {load['others']:.0%}"
    facts = {
        "Measured": f"{case['date']}, {case['minutes']:.1f} minutes",
        "Load average": f"{load['before']:.2f} before, {load['after']:.2f} after{shared}",
    }
    others = {k: v for k, v in case["versions"].items() if common.get(k) != v}
    return bullets(facts | others)


def bullets(facts: Json) -> str:
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items())


def value(row: Json) -> str:
    if row["value"] is None:
        return "–"
    shown = f"{number(row['value'])}{unit(row)}"
    if row["rounds"] < 2:
        return shown
    low, high = row["spread"]
    return f"{shown} ({number(low)} – {number(high)})"


def limit(row: Json) -> str:
    return "" if row["bound"] is None else f"≤ {row['bound']:g}{unit(row)}"


def unit(row: Json) -> str:
    return f" {row['unit']}" if row["unit"] else ""


def number(x: float) -> str:
    """Three digits."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |" for row in rows)
