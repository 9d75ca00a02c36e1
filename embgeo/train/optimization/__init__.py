"""How weights change: optimisers, learning rates over time, and averages of weights."""

from embgeo.train.optimization.averaging import WeightAverage
from embgeo.train.optimization.nt_asgd import NtAsgd
from embgeo.train.optimization.optimizers import (
    OPTIMIZERS,
    apply_factor,
    build_optimizer,
    parameter_groups,
)
from embgeo.train.optimization.schedules import SCHEDULES, Schedule, build_schedule

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "NtAsgd",
    "Schedule",
    "WeightAverage",
    "apply_factor",
    "build_optimizer",
    "build_schedule",
    "parameter_groups",
]
