"""Saved results in the formats of other programs, one file each."""

from embgeo.publish.export import csv_file, parquet, projector
from embgeo.publish.export.target import Target

TARGETS: tuple[Target, ...] = (
    projector.TARGET,
    parquet.TARGET,
    csv_file.TARGET,
)
