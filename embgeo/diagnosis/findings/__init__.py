"""The questions of the verdict, one per file, in the order of the report.

Every sentence quotes its numbers; all limits are in :mod:`embgeo.diagnosis.thresholds`.
"""

from types import ModuleType

from embgeo.diagnosis.findings import (
    clusters,
    cone,
    coordinate,
    frequency,
    initialization,
    isotropy,
    norms,
    spectrum,
    suspects,
    two_sided,
)

#: Each has a `QUESTION`.
FINDINGS: tuple[ModuleType, ...] = (
    suspects,
    initialization,
    cone,
    spectrum,
    two_sided,
    isotropy,
    clusters,
    norms,
    coordinate,
    frequency,
)
