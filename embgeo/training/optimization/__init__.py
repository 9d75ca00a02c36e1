"""Optimizers, learning rate schedules and weight averages."""

from embgeo.training.optimization.averaging import NtAsgd, WeightAverage
from embgeo.training.optimization.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    Schedule,
    apply_factor,
    build_optimizer,
    build_schedule,
    parameter_groups,
    split_rates,
)

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
    "split_rates",
]
