"""Both matrices of an untied model, each measured and judged by itself."""

from __future__ import annotations

from dataclasses import replace

from embgeo.core.progress import Progress
from embgeo.workflows.analyze import Analysis, measure_requested
from embgeo.workflows.request import AnalysisRequest

#: Sections that are about both matrices, or about hidden states.
_SHARED = frozenset({"subspace", "hidden"})


def analyze_sides(
    request: AnalysisRequest, command: str, progress: Progress | None
) -> tuple[Analysis, Analysis | None]:
    """The analysis of what a request names, and that of the output matrix where there is one.

    The first knows the verdict on the second: ``provenance["output"]["verdict"]``.
    """
    matrix = request.load(progress)
    analysis = measure_requested(matrix, request, command, progress)
    sections = request.sections
    if sections is not None:
        sections = tuple(name for name in sections if name not in _SHARED)
    if matrix.output is None or sections == ():
        return analysis, None
    own = replace(request, sections=sections)
    output = measure_requested(matrix.output, own, command, progress)
    return name_output(analysis, output), output


def name_output(analysis: Analysis, output: Analysis) -> Analysis:
    """The analysis of an input embedding, with the verdict on the output matrix."""
    verdict = {"state": output.verdict.state, "headline": output.verdict.headline}
    said = {**analysis.provenance["output"], "verdict": verdict}
    # The note says that only the input embedding is judged.
    notes = tuple(note for note in analysis.notes if note.code != "output")
    return replace(analysis, provenance={**analysis.provenance, "output": said}, notes=notes)
