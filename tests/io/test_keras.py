"""Keras: files that it writes itself, where it is installed.

It is too large to be installed for every run: ``pip install keras h5py tensorflow-cpu``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import arrays
from tests.support.framework_files import D, N, W

pytestmark = pytest.mark.filterwarnings("ignore")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def library(*names: str) -> Any:
    """The first of the modules; the test is skipped unless all are installed."""
    found = [pytest.importorskip(name, reason=f"{name} is not installed") for name in names]
    return found[0]


def model() -> Any:
    keras = library("keras", "tensorflow", "h5py")
    layers = [
        keras.Input((5,), dtype="int32"),
        keras.layers.Embedding(N, D, name="tokens"),
        keras.layers.Dense(N, name="lm_head"),
    ]
    made = keras.Sequential(layers)
    made.get_layer("tokens").set_weights([W])
    made.get_layer("lm_head").set_weights([2 * W.T, np.zeros(N)])
    return made


@pytest.mark.parametrize("name", ["a.keras", "a.h5", "a.weights.h5"])
def test_keras_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    made = model()
    made.save_weights(path) if "weights" in name else made.save(path)
    np.testing.assert_array_equal(embgeo.load(path).data, W)
    kernels = [array for array in arrays(open_checkpoint(path)).values() if array.shape == (D, N)]
    np.testing.assert_array_equal(kernels[0], 2 * W.T)
