"""A plug-in of ``embgeo train`` that keeps the embedding along the way, for the film of the README.

``mle-film`` is maximum likelihood, ``cosreg-film`` CosReg; both write ``kept/METHOD/step-N.npy``.
"""

from pathlib import Path

import numpy as np
import torch

from embgeo.training.methods import CosReg, Method
from embgeo.training.methods.regularizer import WeightRegularizer
from embgeo.training.plugins import register

#: Steps before which the matrix is kept: close together where it changes most.
STEPS = (0, 4, 8, 12, 16, 20, 25, 30, 36, 42, 50, 60, 70, 80, 95, 110, 125, 140, 149)


class Keep(WeightRegularizer):
    """No penalty: it saves the matrix before some steps."""

    NAME = "keep"
    SOURCE = "none: it changes nothing"

    def __init__(self, source, *, folder="kept/mle-film"):
        super().__init__(source)
        self.folder = Path(folder)
        # A buffer: a run that is resumed goes on counting.
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def penalty(self, step):  # noqa: ARG002
        W = self.weight()
        at = int(self.step)
        if at in STEPS:
            self.folder.mkdir(parents=True, exist_ok=True)
            np.save(self.folder / f"step-{at}.npy", W.detach().numpy())
        self.step += 1
        return 0.0 * W.sum()


register(Method("mle-film", "MLE, kept", (Keep,)))
register(Method("cosreg-film", "CosReg, kept", (CosReg, Keep), {"folder": "kept/cosreg-film"}))
