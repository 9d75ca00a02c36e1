"""The ``model-index`` block of a Hugging Face model card.

Follows the metadata specification of the Hub (``modelcard.md`` in huggingface/hub-docs): task,
dataset and metrics, each metric with its type and value. The dataset is the embedding matrix.
"""

from pathlib import Path
from typing import Any

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
from embgeo.publish.export.escaping import yaml_lines
from embgeo.publish.export.target import Request, Target
from embgeo.result.analysis import Analysis

FIRST_LINE = "# model-index block, made by embgeo export"

#: The scalars of a card by default, as far as the analysis has them.
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
    # Not the command, which names folders of somebody's machine.
    version = request.record["versions"]["embgeo"]
    comment = f"{FIRST_LINE} ({version}); goes into the front matter of README.md"
    result = {
        "task": {"type": request.task},
        "dataset": describe_dataset(analysis),
        "metrics": [describe_metric(s) for s in choose_scalars(analysis, request.scalars)],
    }
    index = {"model-index": [{"name": request.model, "results": [result]}]}
    lines = (comment, *yaml_lines(index))
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")


def choose_scalars(analysis: Analysis, names: tuple[str, ...]) -> list[Scalar]:
    """Choose the named scalars, or those of the headline that have a value."""
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
            reason = missing if scalar is None else f"is not defined: {scalar.undefined}"
            raise BadOption(f"{name} {reason}", where=argument("scalar"), way_out="leave it out")
        out.append(scalar)
    return out


def describe_dataset(analysis: Analysis) -> dict[str, Any]:
    """Write the matrix as the card's dataset."""
    p = analysis.provenance
    # A card is published: the name of the file, not the folders of somebody's machine.
    file = str(p.get("file") or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    args: dict[str, Any] = {"file": file} if file else {}
    args |= {key: p[key] for key in ("tensor", "sha256", "n", "d", "kept") if p.get(key)}
    if isinstance(p.get("frequency"), dict):
        args["token_counts"] = p["frequency"].get("source")
    args["verdict"] = analysis.verdict.state
    name = f"{p.get('tensor')} ({p.get('n'):,} × {p.get('d'):,})"
    return {"type": "embedding-matrix", "name": name, "args": args}


def describe_metric(scalar: Scalar) -> dict[str, Any]:
    args = {
        "convention": scalar.convention,
        "standard_error": scalar.standard_error,
        "sample": scalar.sample,
        "reference": scalar.reference,
        "reference_note": scalar.reference_note if scalar.reference is not None else "",
    }
    known = {key: value for key, value in args.items() if value not in (None, "")}
    metric = {"type": scalar.name, "name": scalar.quantity.title, "value": scalar.value}
    return metric | ({"args": known} if known else {})


def is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.readline(200).startswith(FIRST_LINE.encode())
    except OSError:
        return False


TARGET = Target("model-card", ".model-index.yaml", write, is_ours)
