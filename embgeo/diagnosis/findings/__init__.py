"""The questions that the verdict asks, one a file, in the order in which they are shown.

Every sentence quotes the numbers that it rests on; every limit stands in
:mod:`embgeo.diagnosis.thresholds` and is argued in docs/verdict.md.
"""

from types import ModuleType

from embgeo.diagnosis.findings import (
    clump,
    clusters,
    cone,
    coordinate,
    duplicates,
    frequency,
    isotropy,
    rows,
    spectrum,
    two_sided,
)

#: Each has a `QUESTION`.
FINDINGS: tuple[ModuleType, ...] = (
    rows,
    clump,
    cone,
    spectrum,
    two_sided,
    isotropy,
    clusters,
    duplicates,
    coordinate,
    frequency,
)
