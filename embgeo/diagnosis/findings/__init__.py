"""The questions of the verdict, one per file, in the order of the report.

Every sentence quotes its numbers; all limits are in :mod:`embgeo.diagnosis.thresholds`.
"""

from types import ModuleType

from embgeo.diagnosis.findings import (
    clump,
    clusters,
    cone,
    coordinate,
    duplicates,
    frequency,
    initialization,
    isotropy,
    rows,
    spectrum,
    two_sided,
)

#: Each has a `QUESTION`.
FINDINGS: tuple[ModuleType, ...] = (
    rows,
    initialization,
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
