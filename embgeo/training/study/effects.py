"""Effect of each method on a number, compared with its control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embgeo.core.quantities import isotropy
from embgeo.training.study.deciding import is_relative, quality_name
from embgeo.training.study.spread import Paired, paired
from embgeo.training.study.training import StudyMethod, Training

#: Where the whole 95 % interval of a difference lies; "open" where it holds 0, or there is none.
Direction = Literal["lower", "higher", "open"]

#: How far, as a share, the numbers of parameters of two models may differ that are compared in a
#: headline: factors and biases are within it, a second matrix is not.
PARAMETER_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference between a method and its control.

    Attributes
    ----------
    relative : bool
        Whether it is one of logarithms.
    comparable : bool
        Whether both have as many parameters, within `PARAMETER_TOLERANCE`.
    """

    method: str
    reference: str
    held: Paired
    relative: bool
    comparable: bool

    @property
    def direction(self) -> Direction:
        if self.held.interval is None:
            return "open"
        low, high = self.held.interval
        return "lower" if high < 0.0 else "higher" if low > 0.0 else "open"


def list_quality_effects(training: Training) -> tuple[Effect, ...]:
    """Effects of all methods whose control was trained, in the order of the methods."""
    name = quality_name(training.runs)
    return list_effects(training, name, relative=is_relative(name))


def list_isotropy_effects(training: Training) -> tuple[Effect, ...]:
    """Effects on I1 at a mean norm of 1, for the matrix that each method acts on."""
    return list_effects(training, isotropy.I1_UNIT.name, relative=False, of_matrix=True)


def list_effects(
    training: Training, name: str, *, relative: bool, of_matrix: bool = False
) -> tuple[Effect, ...]:
    """Effects of the methods on one number."""
    found = []
    for method in training.methods:
        if not method.reference:
            continue
        role = method.role if of_matrix else None
        sides = (training.values(one, name, role) for one in (method.reference, method.name))
        held = paired(*sides, relative=relative)
        if held is not None:
            comparable = has_same_size(training, method)
            found.append(Effect(method.name, method.reference, held, relative, comparable))
    return tuple(found)


def has_same_size(training: Training, method: StudyMethod) -> bool:
    """Whether a method and its control have as many parameters, within the tolerance."""
    sizes = [training.runs_of(one)[0].parameters for one in (method.reference, method.name)]
    before, after = sizes
    if before is None or after is None:
        return True
    return abs(after / before - 1.0) <= PARAMETER_TOLERANCE
