"""What an analysis says of its rows: how many are left out, why, and which have names."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import embgeo
from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.measure.provenance import hash_counts, versions

N = 60


def make_rows() -> Any:
    rows = np.random.default_rng(0).standard_normal((N, 6))
    rows[[0, 3, 4]] = 0.0
    rows[7] = np.nan
    rows[9] *= 1.1e-12
    return rows


def measure(**more: Any) -> embgeo.Analysis:
    return embgeo.analyze(Matrix(make_rows(), **more), sections=["spectrum"], reference=False)


def test_damage_is_counted_by_kind_and_padding_apart() -> None:
    found = measure()
    assert found.provenance["masked"] == {"exactly zero": 3, "non-finite": 1, "damaged": 1}
    notes = [note.text for note in found.notes]
    assert notes[:3] == [
        "2 rows are left out: exactly zero",
        "1 row is left out: exactly zero, as padding",
        "1 row is left out: non-finite",
    ]
    length = float(np.linalg.norm(make_rows()[9]))
    assert notes[3] == f"1 row is left out: damaged, their norms are at most {length:.2e}"


def test_an_array_is_its_own_file() -> None:
    plain = measure().provenance
    own = {"file": "", "tensor": "W", "stored_shape": [N, 6], "dtype": "float64", "row_range": None}
    assert plain == plain | own | {"n": N, "kept": N - 5, "transposed": False, "sha256": ""}
    origin = Origin("a", "npy", "w", (6, 80), "float16", "0f", True, (1, 61), True, reason="only")
    found = measure(origin=origin).provenance
    own = {"file": "a", "tensor": "w", "stored_shape": [6, 80], "dtype": "float16", "sha256": "0f"}
    assert found == found | own | {"transposed": True, "row_range": [1, 61], "repairable": True}
    assert (found["chosen_because"], found["n"]) == ("only", N)
    assert "float32" not in plain["conventions"]["accumulation"].partition(";")[0]
    options = embgeo.Options(precision="float32")
    found = embgeo.analyze(make_rows(), sections=["spectrum"], options=options, reference=False)
    assert "in float32 as requested" in found.provenance["conventions"]["accumulation"]
    assert "as requested" not in plain["conventions"]["accumulation"]


def test_damaged_rows_of_the_output_are_left_out_of_the_subspace_distance() -> None:
    output = np.random.default_rng(1).standard_normal((N, 5))
    output[[0, 5]] = 0.0
    output[6] *= 1e-12
    matrix = Matrix(make_rows(), output=Matrix(output))
    found = embgeo.analyze(matrix, sections=["tokens", "subspace"], reference=False)
    said = "1 row is left out of the subspace distance: damaged in the output matrix"
    assert said in [note.text for note in found.notes]
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert said not in [note.text for note in found.notes]


def test_shares_of_frequency_are_those_of_a_section_that_was_measured() -> None:
    counts = Frequency("counts", np.arange(N, 0.0, -1.0), "a list")
    assert measure(frequency=counts).provenance["frequency"] is None
    assert measure().provenance["frequency"] is None
    matrix = Matrix(make_rows(), frequency=counts)
    found = embgeo.analyze(matrix, sections=["frequency"], reference=False)
    assert found.provenance["frequency"] == {
        "kind": "counts",
        "source": "a list",
        "sha256": hashlib.sha256(np.arange(N, 0.0, -1.0).tobytes()).hexdigest(),
        "popular_share": 0.2,
        "n_popular": 11,
        "n_rare": 44,
    }
    assert found.popular is not None
    never = Matrix(
        make_rows(), frequency=Frequency("counts", np.maximum(np.arange(N) - 50.0, 0), "a list")
    )
    found = embgeo.analyze(never, sections=["frequency"], reference=False)
    assert (found.provenance["frequency"]["n_popular"], found.popular) == (0, None)
    assert measure(frequency=counts).popular is None


def test_counts_are_known_by_their_tokens_whatever_the_rows() -> None:
    counts, tokens = np.arange(N, 0.0, -1.0), [f"t{row}" for row in range(N)]
    order = np.random.default_rng(1).permutation(N)
    moved = [tokens[row] for row in order]
    assert hash_counts(counts[order], moved) == hash_counts(counts, tokens)
    assert hash_counts(counts[::-1], tokens) != hash_counts(counts, tokens)
    assert hash_counts(counts[::-1], None) != hash_counts(counts, None)


def test_an_alphabetical_order_is_asked_for_its_frequency() -> None:
    tokens = sorted(f"t{row}" for row in range(N))
    for named, ranked, noted in (
        (tokens, True, True),
        (tokens, False, False),
        (tokens[::-1], True, False),
    ):
        found = embgeo.analyze(
            make_rows(), tokens=named, rank_order=ranked, sections=["cosine"], reference=False
        )
        assert any("alphabetical order" in note.text for note in found.notes) is noted


def test_a_token_of_several_rows_is_said_where_its_neighbors_are_shown() -> None:
    tokens = ["same"] * 20 + [f"t{row}" for row in range(20, N)]
    for token, noted in (("same", True), ("t30", False)):
        found = embgeo.analyze(
            make_rows(), tokens=tokens, show_neighbors=[token], sections="frequency",
            reference=False,
        )  # fmt: skip
        said = "15 rows are called 'same'; neighbors are those of the first"
        assert (said in [note.text for note in found.notes]) is noted


def test_norms_that_are_hardly_those_of_embeddings_are_noted() -> None:
    rows = make_rows() / np.nanmedian(np.linalg.norm(make_rows(), axis=1))
    for scale, noted in ((1.0, False), (1e11, False), (1e13, True), (1e-11, False), (1e-13, True)):
        found = embgeo.analyze(scale * rows, sections=["cosine"], reference=False)
        assert any("right order" in note.text for note in found.notes) is noted


def test_a_device_has_versions_of_its_own() -> None:
    usual, device = versions(), versions("cuda")
    assert usual.items() < device.items()
    assert {"embgeo", "python", "numpy"} <= usual.keys()
    assert "torch" in device.keys() - usual.keys()
