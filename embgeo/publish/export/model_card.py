"""The ``model-index`` block of a Hugging Face model card.

Follows the metadata specification of the Hub (``modelcard.md`` in huggingface/hub-docs): task,
dataset and metrics, each metric with its type and value. What was measured is the embedding matrix:
the dataset names it.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from embgeo.core.errors import BadOption, argument
from embgeo.core.quantities import (
    QUANTITIES,
    cosine,
    frequency,
    isotropy,
    require_known,
    spectrum,
    subspace,
)
from embgeo.core.values import Scalar
from embgeo.publish.export.escaping import yaml_text
from embgeo.publish.export.target import Request, Target
from embgeo.result.analysis import Analysis

FIRST_LINE = "# model-index block, made by embgeo export"

#: What a card shows where nobody chose, as far as the analysis holds it.
HEADLINE = (
    spectrum.EFFECTIVE_RANK.name,
    spectrum.TOP_SHARE.name,
    cosine.MEAN.name,
    isotropy.I1.name,
    isotropy.I2.name,
    isotropy.I1_UNIT.name,
    isotropy.I2_UNIT.name,
    frequency.PROBE_AUC.name,
    frequency.NEIGHBOR_RARITY_RARE.name,
    subspace.DISTANCE.name,
)


def write(request: Request, path: Path) -> None:
    analysis = request.saved()
    page = (
        _environment()
        .get_template("model_card.yaml.j2")
        .render(
            comment=Plain(comment(request)),
            model=request.model,
            task=request.task,
            dataset=dataset(analysis),
            metrics=[metric(s) for s in choose_scalars(analysis, request.scalars)],
        )
    )
    path.write_text(page, "utf-8", newline="\n")


def choose_scalars(analysis: Analysis, names: tuple[str, ...]) -> list[Scalar]:
    """The asked scalars, or those of the headline that have a value."""
    if not names:
        found = [analysis.scalar(name) for name in HEADLINE]
        return [s for s in found if s is not None and s.value is not None]
    known = {scalar.name: scalar for scalar in analysis.scalars}
    out = []
    for name in names:
        require_known(name, {*QUANTITIES, *known}, argument("scalar"))
        scalar = known.get(name)
        if scalar is None or scalar.value is None:
            missing = "is not in this analysis"
            why = missing if scalar is None else f"is not defined: {scalar.undefined}"
            raise BadOption(f"{name} {why}", where=argument("scalar"), way_out="leave it out")
        out.append(scalar)
    return out


def dataset(analysis: Analysis) -> dict[str, Any]:
    """The matrix as the card's dataset."""
    p = analysis.provenance
    args = {key: p[key] for key in ("tensor", "sha256", "n", "d", "kept") if p.get(key)}
    if isinstance(p.get("frequency"), dict):
        args["token_counts"] = p["frequency"].get("source")
    # A card is published: the name of the file, not the folders of somebody's machine.
    file = str(p.get("file") or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    args = {"file": file, **args} if file else args
    args["verdict"] = analysis.verdict.state
    name = f"{p.get('tensor')} ({p.get('n'):,} × {p.get('d'):,})"
    return {"name": name, "args": args}


def metric(scalar: Scalar) -> dict[str, Any]:
    args = {
        "convention": scalar.convention,
        "standard_error": scalar.standard_error,
        "sample": scalar.sample,
        "reference": scalar.reference,
        "reference_note": scalar.reference_note if scalar.reference is not None else "",
    }
    return {
        "type": scalar.name,
        "name": scalar.quantity.title,
        "value": scalar.value,
        "args": {key: value for key, value in args.items() if value not in (None, "")},
    }


class Plain(str):
    """YAML source, which a template takes as it stands."""

    __slots__ = ()


def comment(request: Request) -> str:
    """By what it was made; not the command, which names folders of somebody's machine."""
    version = request.record["versions"]["embgeo"]
    return f"{FIRST_LINE} ({version}); goes into the front matter of README.md"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("embgeo.publish.export"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_scalar,
    )
    environment.filters["plain"] = Plain
    return environment


def _scalar(value: Any) -> str:
    """Whatever a template prints, as a YAML scalar on one line."""
    if isinstance(value, Plain):
        return value
    if isinstance(value, float):
        # YAML 1.1 takes 1e-05 for text: its numbers have a point.
        text = repr(value)
        return text if "." in text or not math.isfinite(value) else text.replace("e", ".0e")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value) if isinstance(value, int) else yaml_text(str(value))


def is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.readline(200).startswith(FIRST_LINE.encode())
    except OSError:
        return False


TARGET = Target("model-card", ".model-index.yaml", write, is_ours)
