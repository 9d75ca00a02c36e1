"""What :mod:`embgeo.training.methods` was called in version 0.1; still works."""

from embgeo.training.methods import *  # noqa: F403
from embgeo.training.methods import __all__ as __all__
