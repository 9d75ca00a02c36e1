"""Hidden states from files: matrices, batches of sequences, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.matrix import Matrix
from tests.support.refusals import refusal

FloatArray = npt.NDArray[np.float64]


def given_states(tmp_path: Path, states: FloatArray | dict[str, FloatArray]) -> dict[str, Path]:
    """Paths of an embedding of four columns and of the states."""
    rows = np.random.default_rng(0).standard_normal((40, 4))
    np.save(tmp_path / "rows.npy", rows)
    if isinstance(states, dict):
        np.savez(tmp_path / "states.npz", **states)
        return {"path": tmp_path / "rows.npy", "hidden": tmp_path / "states.npz"}
    np.save(tmp_path / "states.npy", states)
    return {"path": tmp_path / "rows.npy", "hidden": tmp_path / "states.npy"}


@pytest.mark.parametrize("shape", [(60, 4), (5, 12, 4), (5, 3, 4, 4)])
def test_batches_of_hidden_states_are_rows(tmp_path: Path, shape: tuple[int, ...]) -> None:
    states = np.random.default_rng(1).standard_normal((60, 4)) + 3.0
    matrix = embgeo.load(**given_states(tmp_path, states.reshape(shape)))
    assert matrix.hidden is not None
    np.testing.assert_array_equal(matrix.hidden.data, states)
    assert [len(shape) > 2] == [
        "hidden states are read as 60 rows" in note for note in matrix.origin.notes or ("",)
    ]
    analysis = embgeo.analyze(matrix, sections=["hidden"], reference=False)
    assert analysis.provenance["hidden"]["states"] == 60
    plain = replace(matrix, hidden=Matrix(states))
    expected = embgeo.analyze(plain, sections=["hidden"], reference=False)
    assert [s.value for s in analysis.scalars] == [s.value for s in expected.scalars]


def test_states_that_are_none_are_refused_in_words_about_states(tmp_path: Path) -> None:
    one = np.ones((5, 4))
    for states in (
        np.ones(4),
        np.ones((3, 4, 5)),
        {"layer1": one, "layer2": np.ones((2, 3, 4))},
    ):
        with refusal():
            embgeo.analyze(embgeo.load(**given_states(tmp_path, states)))
    given = given_states(tmp_path, {"layer1": one, "layer2": np.ones((2, 3, 4))})
    with refusal() as caught:
        embgeo.load(**given, hidden_tensor="layer3")
    assert "--hidden-tensor 'layer3' is not" in caught.value.command_line_text
    matrix = embgeo.load(**given, hidden_tensor="layer2")
    assert matrix.hidden is not None
    assert matrix.hidden.data.shape == (6, 4)
    assert "the 2×3×4 hidden states of layer2 are read as 6 rows" in matrix.origin.notes
