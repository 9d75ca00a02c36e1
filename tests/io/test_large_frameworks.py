"""Flax, Keras and TensorFlow: files that these libraries write themselves, where they are there.

They are too large to be installed for every run: ``pip install flax keras h5py tensorflow-cpu``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.io import open_checkpoint
from tests.support.framework_files import D, N, W, values

pytestmark = pytest.mark.filterwarnings("ignore")

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def library(*names: str) -> Any:
    """The first of the modules; the test is skipped unless all are installed."""
    found = [pytest.importorskip(name, reason=f"{name} is not installed") for name in names]
    return found[0]


# Flax


def parameters(dtype: str = "float32") -> Any:
    jnp = library("jax.numpy", "flax.serialization")
    kernel = np.ascontiguousarray(2 * W.T)
    tree = {"Embed_0": {"embedding": W}, "lm_head": {"kernel": kernel, "bias": np.zeros(N)}}
    return {
        layer: {name: jnp.asarray(array, dtype=dtype) for name, array in arrays.items()}
        for layer, arrays in tree.items()
    }


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_flax_parameters(tmp_path: Path, dtype: str) -> None:
    tree = {"params": parameters(dtype)}
    serialization = library("flax.serialization")
    path = tmp_path / "flax_model.msgpack"
    path.write_bytes(serialization.to_bytes(tree))
    read = serialization.msgpack_restore(path.read_bytes())["params"]
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == "params.Embed_0.embedding"
    np.testing.assert_array_equal(matrix.data, np.asarray(read["Embed_0"]["embedding"]))
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data.T, np.asarray(read["lm_head"]["kernel"]))


def test_a_flax_train_state(tmp_path: Path) -> None:
    train_state = library("flax.training.train_state", "optax")
    optax = library("optax")
    serialization = library("flax.serialization")
    state = train_state.TrainState.create(apply_fn=None, params=parameters(), tx=optax.adam(1e-3))
    path = tmp_path / "state"
    path.write_bytes(serialization.to_bytes(state))
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == "params.Embed_0.embedding"
    np.testing.assert_array_equal(matrix.data, W)
    assert any(name.startswith("opt_state.0.mu") for name in values(open_checkpoint(path)))


# Keras and TensorFlow


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
    kernels = [array for array in values(open_checkpoint(path)).values() if array.shape == (D, N)]
    np.testing.assert_array_equal(kernels[0], 2 * W.T)


def test_tensorflow_2(tmp_path: Path) -> None:
    made = model()
    tensorflow = library("tensorflow")
    tensorflow.train.Checkpoint(model=made).save(tmp_path / "ckpt")
    matrix = embgeo.load(tmp_path / "ckpt-1")
    assert matrix.origin.tensor.endswith("_embeddings")
    np.testing.assert_array_equal(matrix.data, W)
    np.testing.assert_array_equal(embgeo.load(tmp_path).data, W)
    reader = tensorflow.train.load_checkpoint(str(tmp_path / "ckpt-1"))
    found = values(open_checkpoint(tmp_path / "ckpt-1.index"))
    for name, array in found.items():
        np.testing.assert_array_equal(
            array, reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE")
        )


def test_a_saved_model(tmp_path: Path) -> None:
    model().export(tmp_path / "exported")
    found = values(open_checkpoint(tmp_path / "exported"))
    assert any(array.shape == W.shape and (array == W).all() for array in found.values())


def test_tensorflow_1_with_slices(tmp_path: Path) -> None:
    tensorflow = library("tensorflow")
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        v1.get_variable(
            "embedding",
            shape=W.shape,
            initializer=v1.random_normal_initializer(),
            partitioner=v1.fixed_size_partitioner(3),
        )
        v1.get_variable("bias", initializer=W[:, 0])
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    reader = tensorflow.train.load_checkpoint(prefix)
    found = values(open_checkpoint(prefix))
    assert set(found) == {"embedding", "bias"}
    for name, array in found.items():
        np.testing.assert_array_equal(array, reader.get_tensor(name))
    assert embgeo.load(prefix).origin.tensor == "embedding"
