"""How far a spectrum lies from what spectrum control steers to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray

#: What the methods take where their settings say nothing.
GAMMA = {"exponential": 1.0, "polynomial": 0.6}
TAIL_RATIO = 0.1


def prior(kind: str, d: int, settings: Mapping[str, Any]) -> FloatArray:
    """σ*_k, k = 1 … d, up to scale.

    Parameters
    ----------
    kind : {"exponential", "polynomial"}
    d : int
    settings : mapping
        Of the method; ``gamma`` and ``tail_ratio`` are looked at.
    """
    gamma = float(settings.get("gamma") or GAMMA[kind])
    k = np.arange(1, d + 1, dtype=np.float64)
    if kind == "polynomial":
        return np.asarray(k**-gamma)
    ratio = float(settings.get("tail_ratio") or TAIL_RATIO)
    c2 = -math.log(ratio) / max(d**gamma - 1.0, 1e-12)
    return np.asarray(np.exp(-c2 * (k**gamma - 1.0)))


def distance(sigma: FloatArray, target: FloatArray) -> float:
    """‖σ/‖σ‖ − σ*/‖σ*‖‖, for σ in falling order; between 0 and √2."""
    ordered = np.sort(np.asarray(sigma, dtype=np.float64))[::-1]
    wanted = np.sort(target)[::-1]
    length = float(np.linalg.norm(ordered))
    if not length > 0.0 or len(ordered) != len(wanted):
        return math.nan
    return float(np.linalg.norm(ordered / length - wanted / np.linalg.norm(wanted)))
