"""Experiments of the papers that are no comparison of methods. One file each."""

from embgeo.training.experiments import inan_subspace
from embgeo.training.experiments.inan_subspace import InanSubspace, Point

__all__ = ["EXPERIMENTS", "InanSubspace", "Point"]

#: Every experiment, in the order of help texts.
EXPERIMENTS = (inan_subspace,)
