"""The report of an analysis: one HTML file that needs no network, checkpoint or script.

Tables and vector figures are complete by themselves; the script adds a map of all tokens with
search, lasso and linked histograms. Every string from the analysis is untrusted text: templates
escape it and spell out invisible characters.
"""

import re
from collections.abc import Sequence
from typing import Any

from embgeo.charts.items import ChartItem
from embgeo.core.quantities import coordinates, cosine, frequency, isotropy, spectrum, tokens
from embgeo.core.rows import CANDIDATES, MEASURING
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds
from embgeo.diagnosis.finding import RANK, Finding, find_scalar
from embgeo.diagnosis.verdict import judge
from embgeo.report.board import list_board
from embgeo.report.page import code, draw_charts, environment
from embgeo.report.payload import build, list_numbers
from embgeo.report.tables import (
    TableView,
    facts,
    group_by_family,
    headline_rows,
    list_absences,
    list_quantities,
    number_table,
    provenance_rows,
    table_view,
)
from embgeo.report.text.suspects import write_repair
from embgeo.result.analysis import Analysis

_SECTIONS = (
    ("spectrum", "Spectrum"),
    ("cosine", "Cosines and the cone"),
    ("isotropy", "Isotropy"),
    ("frequency", "Rare and frequent tokens"),
    ("subspace", "Input and output matrix"),
    ("hidden", "Hidden states"),
    ("tokens", "Tokens at the extremes"),
    ("numbers", "All numbers"),
    ("methods", "Methods"),
    ("provenance", "Provenance"),
)

#: Tables that templates place by name; all others are shown with the tokens.
_PLACED = frozenset(
    {
        spectrum.DECAY.name,
        cosine.TOP_DIMENSIONS.name,
        coordinates.LARGEST.name,
        frequency.BY_FREQUENCY_BIN.name,
        frequency.NEIGHBORS.name,
        frequency.NEIGHBOR_RANKS.name,
        tokens.HUBS.name,
        tokens.SMALLEST_NORMS.name,
        tokens.LARGEST_NORMS.name,
        tokens.NEAREST_TO_MEAN.name,
    }
)


def render(analysis: Analysis) -> str:
    """Render the whole page as text; equal analyses give equal text."""
    return environment().get_template("report.html.j2").render(_context(analysis))


#: What a healthy finding looked for.
CHECKED = {
    "initialization": "initialization",
    "cone": "cone",
    "spectrum": "spectrum",
    "two-sided": "two-sided collapse",
    "isotropy": "isotropy",
    "clusters": "clusters",
    "norms": "two modes of norms",
    "coordinate": "rogue coordinates",
    "frequency": "rare against frequent tokens",
}


def sort_evidence(findings: Sequence[Finding]) -> dict[str, list[Any]]:
    """Return the findings for the first screen, the worst first.

    Healthy ones beside a fault are folded, undecided ones are there once for each reason.
    """
    # The absence of a two-sided collapse needs no line.
    found = [f for f in findings if (f.key, f.state) != ("two-sided", "healthy")]
    first = {f.open: f for f in reversed(found) if f.state == "undecided"}
    found = [f for f in found if f.state != "undecided" or first[f.open] is f]
    worst_first = sorted(found, key=lambda f: -RANK[f.state])
    faults = any(f.is_fault for f in found)
    return {
        "evidence": [f for f in worst_first if f.state != "healthy" or not faults],
        "fine": [(CHECKED[f.key], f) for f in found if f.state == "healthy" and faults],
    }


def _context(analysis: Analysis) -> dict[str, Any]:
    verdict = judge(analysis)
    board = list_board(analysis)
    absences = list_absences(analysis)
    provenance = analysis.provenance
    gallery = draw_charts([ChartItem("", analysis)], "analysis")
    found = list_quantities(analysis.values())
    file_name = name_model(provenance)
    tables: dict[str, TableView] = {t.name: table_view(t) for t in analysis.tables if t.rows}
    numbers = {
        family: number_table(f"{family.capitalize()} in numbers", scalars)
        for family, scalars in group_by_family(analysis.scalars, lambda s: s.quantity.family)
    }
    return {
        "analysis": analysis,
        "file_name": file_name,
        "title": f"{file_name} – embedding geometry",
        "facts": facts(analysis),
        "version": (provenance.get("versions") or {}).get("embgeo", ""),
        "verdict": verdict,
        "headline": verdict.headline,
        "output_headline": ((provenance.get("output") or {}).get("verdict") or {}).get("headline"),
        # The board says what it found.
        **sort_evidence([f for f in verdict.findings if f.key != "suspects"]),
        "suspects": verdict.finding("suspects"),
        "board": board,
        "repair": write_repair(analysis),
        "headline_rows": headline_rows(analysis),
        "reference_note": (provenance.get("reference") or {}).get("note", ""),
        "own_published": [
            find_scalar(analysis, q) for q in (isotropy.I1_MEAN_SIGN, isotropy.I2_MEAN_SIGN)
        ],
        "warnings": analysis.notes,
        "treatments": list_numbers(analysis),
        "absences": absences,
        "sampled": analysis.treated_places and analysis.treated_places.sampled,
        "recall": describe_recall(analysis),
        "not_found": [
            f"{t.quantity.title}: {t.note}" for t in analysis.tables if not t.rows and t.note
        ],
        "figures": gallery,
        "defined": frozenset(q.name for q in found),
        "tables": tables,
        "other_tables": [key for key in tables if key not in _PLACED],
        "notes_by_value": {h.name: h.note for h in analysis.histograms},
        "frequency": describe_frequency(provenance.get("frequency"), counted=True),
        "own_sections": ("spectrum", "cosine", "isotropy", "frequency", "subspace", "hidden"),
        "hidden_scalars": numbers.get("hidden"),
        "states": format_number((provenance.get("hidden") or {}).get("states", 0)),
        "output": (provenance.get("output") or {}).get("tensor", ""),
        "number_tables": list(numbers.items()),
        "methods": group_by_family(found, lambda q: q.family),
        "thresholds": thresholds.THRESHOLDS,
        "standard_errors": thresholds.STANDARD_ERRORS,
        "eigengap": thresholds.EIGENGAP,
        "provenance": provenance_rows(provenance),
        "sections": [
            {"id": key, "title": title}
            for key, title in _SECTIONS
            if key not in absences and (key != "hidden" or "hidden" in numbers)
        ],
        **code(gallery.charts, build(analysis)),
    }


def describe_recall(analysis: Analysis) -> str:
    """Describe how many of the true neighbors the page shows, where it does not show all."""
    nearest = analysis.nearest
    if nearest is None or nearest.recall == 1.0:
        return ""
    return (
        f"Neighbors of all tokens are those of the largest cosine among the {CANDIDATES} that are "
        f"nearest in the leading coordinates: {100.0 * nearest.recall:.1f}% of the true nearest "
        f"{nearest.neighbors.shape[1]} of {MEASURING} sampled tokens."
    )


#: File names that every model has, and names of commits: the folder says which model it is.
_ANY_MODEL = re.compile(
    r"(model|pytorch_model|tf_model|flax_model|adapter_model|consolidated|weights|checkpoint"
    r"|diffusion_pytorch_model)([-._]?\d[\w-]*)?(\.[\w.]+)?|[0-9a-f]{40}|snapshots"
)


def name_model(provenance: dict[str, Any]) -> str:
    """Return the name of the model: of its file, or of its folder where any file is called so.

    >>> name_model({"file": "runs/gpt2/model.safetensors"}), name_model({"file": "runs/a.pt"})
    ('gpt2', 'a.pt')
    >>> name_model({"file": "/hub/models--org--name/snapshots/" + 40 * "0"})
    'org/name'
    """
    path = str(provenance.get("file") or "matrix").replace("\\", "/").rstrip("/")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")] or [path]
    named = next((part for part in reversed(parts) if not _ANY_MODEL.fullmatch(part)), parts[-1])
    return named.removeprefix("models--").replace("--", "/") if "models--" in named else named


def describe_frequency(stored: dict[str, Any] | None, *, counted: bool) -> str:
    """Describe the classes of tokens, with their sizes if `counted`, and the source.

    Empty without frequencies.
    """
    if not stored:
        return ""
    share = format_number(100 * float(stored.get("popular_share", 0)))
    sizes = [f" ({stored.get(name, 0):,})" * counted for name in ("n_popular", "n_rare")]
    kind = "; only their order is known" if stored.get("kind") == "rank" else ""
    classes = f"Frequent are the {share}% most frequent tokens{sizes[0]}, rare the rest{sizes[1]}. "
    return (
        f"{classes if stored.get('n_popular') else ''}"
        f"Frequencies: {stored.get('source', '')}{kind}."
    )
