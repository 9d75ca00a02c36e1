"""Matrices that MLX has quantized, against a loop over their entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import embgeo
from embgeo.core.errors import EmbgeoError

N, D, GROUP = 40, 64, 32
NAME = "model.embed_tokens"


def write(folder: Path, bits: int, quantization: dict[str, Any]) -> np.ndarray:
    """A folder as mlx_lm.convert writes it; gives what its embedding stands for."""
    rng = np.random.default_rng(bits)
    integers = rng.integers(0, 2**bits, (N, D))
    scales = rng.uniform(0.01, 0.1, (N, D // GROUP)).astype("f2")
    biases = rng.uniform(-1, 0, (N, D // GROUP)).astype("f2")
    words, numbers = np.zeros((N, D * bits // 32), "u4"), np.zeros((N, D), "f4")
    for i in range(N):
        for j in range(D):
            place = j * bits
            words[i, place // 32] |= np.uint32(integers[i, j] << place % 32)
            scale, bias = scales[i, j // GROUP], biases[i, j // GROUP]
            numbers[i, j] = np.float32(scale) * integers[i, j] + np.float32(bias)
    tensors = {f"{NAME}.weight": words, f"{NAME}.scales": scales, f"{NAME}.biases": biases}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"quantization": quantization}))
    return numbers


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_entries_are_those_of_a_loop(bits: int, tmp_path: Path) -> None:
    other = {"bits": 8 if bits == 4 else 4, "group_size": 64}
    own = {"bits": bits, "group_size": GROUP}
    expected = write(tmp_path, bits, {**other, NAME: own} if bits == 2 else own)
    found = embgeo.load(tmp_path)
    np.testing.assert_allclose(found.data, expected, rtol=1e-6)
    assert any("is quantized (MLX)" in note for note in found.origin.notes)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "name its folder, where config.json says how"),
        ({"bits": 3, "group_size": GROUP}, r"quantized \(MLX, 3 bits\)"),
        ({"bits": 4, "group_size": 128}, "do not fit groups of 128"),
        ({"bits": 4, "group_size": "x"}, "not a matrix"),
    ],
)
def test_what_is_not_read_is_said(settings: dict[str, Any], reason: str, tmp_path: Path) -> None:
    write(tmp_path, 4, settings)
    with pytest.raises(EmbgeoError, match=reason):
        embgeo.load(tmp_path)


def test_the_file_alone_does_not_say_how(tmp_path: Path) -> None:
    write(tmp_path, 4, {"bits": 4, "group_size": GROUP})
    with pytest.raises(EmbgeoError, match="name its folder"):
        embgeo.load(tmp_path / "model.safetensors")


def test_other_tensors_stay_as_they_are(tmp_path: Path) -> None:
    numbers = write(tmp_path, 4, {"bits": 4, "group_size": GROUP})
    held = load_file(tmp_path / "model.safetensors")
    others = {"model.norm.weight": np.ones(D, "f4"), "a.weight": np.ones((4, 4), "u4")}
    # Scales of other rows than the words are no scales of them.
    others |= {"a.scales": np.ones((3, 1), "f2"), "a.biases": np.ones((3, 1), "f2")}
    save_file(held | others, tmp_path / "model.safetensors")
    found = embgeo.load(tmp_path)
    np.testing.assert_allclose(found.data, numbers, rtol=1e-6)
    assert {one.name for one in embgeo.inspect(tmp_path).tensors} == {f"{NAME}.weight", *others}
