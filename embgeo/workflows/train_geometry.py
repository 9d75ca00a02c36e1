"""The geometry of an embedding while it is trained, by the code of ``embgeo analyze``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace

#: What is measured every so many steps.
MEASURED = (
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    isotropy.I2.name,
    cosine.MEAN.name,
    spectrum.EFFECTIVE_RANK.name,
    frequency.PROBE_AUC.name,
)
#: And of an untied model.
OF_TWO = subspace.DISTANCE.name

Array = npt.NDArray[np.float32]


def geometry_measure(
    counts: npt.NDArray[np.int64],
) -> Callable[[Array, Array | None], dict[str, float]]:
    """A function that measures an embedding, for :func:`embgeo.training.loop.run.train_run`.

    Parameters
    ----------
    counts : int array
        Of the tokens in the training split.
    """
    from embgeo.core.matrix import Frequency, Matrix
    from embgeo.core.options import Options
    from embgeo.metrics.skipping import skip_unneeded
    from embgeo.workflows.analyze import analyze

    counted = Frequency("counts", np.asarray(counts, dtype=np.float64), "the training split")
    options = skip_unneeded(Options(), (*MEASURED, OF_TWO))
    families = tuple(dict.fromkeys(name.partition(".")[0] for name in (*MEASURED, OF_TWO)))

    def measure(W: Array, output: Array | None) -> dict[str, float]:
        twin: Any = None if output is None else Matrix(output, "output")
        matrix = Matrix(W, frequency=counted, output=twin)
        analysis = analyze(matrix, sections=families, options=options, reference=False)
        found = {name: analysis.scalar(name) for name in (*MEASURED, OF_TWO)}
        return {
            name: scalar.value
            for name, scalar in found.items()
            if scalar is not None and scalar.value is not None
        }

    return measure
