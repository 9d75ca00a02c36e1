"""A matrix measured in parts gives what one run gives, however it is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.matrix import FinalNorm, Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.distributed import reader
from embgeo.distributed.passes import Part, StoredRows
from embgeo.distributed.reader import SHOWN_NOTES, analyze_remotely, join_parts, without_entries
from embgeo.measure.analyze import analyze
from embgeo.stats import AngleTo, Norms
from tests.support.in_parts import EngineHere, check_analyses, even, in_parts, through
from tests.support.matrices import ASKED, NAMES, case, gaussian
from tests.support.refusals import refusal
from tests.support.sampling import sample_cases

#: Rows whose entries are stored in float32 or less are multiplied so, block by block.
SINGLE = ("fp16", "bf16")
#: Errors of their spectra magnify the rounding of sums.
STEEP = ("ill-conditioned", "beyond Gram")


@pytest.mark.parametrize("name", sample_cases(NAMES, 3))
@pytest.mark.slow
def test_sixteen_parts_are_one_run(name: str) -> None:
    matrix = replace(case(name).matrix, hidden=None)
    m = len(case(name).kept)
    options = Options(
        isotropy_rows=max(2, m // 2), isotropy_runs=2, show_neighbors=ASKED, pairs=300
    )
    found = in_parts(matrix, even(matrix.n, min(16, matrix.n)), options=options)
    rel = 1e-6 if name in SINGLE else 1e-8 if name in STEEP else 1e-12
    check_analyses(found, analyze(matrix, options=options), rel)


CUTS = {
    "one part": [(0, 300)],
    "very uneven": [(0, 1), (1, 290), (290, 300)],
    "backwards": even(300, 7)[::-1],
    "every row by itself at the ends": [(0, 1), (1, 2), (2, 298), (298, 299), (299, 300)],
}


def labels(n: int) -> dict[str, Any]:
    return {
        "tokens": tuple(f"t{i}" for i in range(n)),
        "frequency": Frequency("counts", np.arange(n, 0, -1.0) // 3, "made counts"),
    }


def sample() -> Matrix:
    """Zero, infinite, masked and duplicate rows, and an output matrix."""
    W = gaussian(300, 300, 6) * np.linspace(1.0, 0.3, 6) + 0.2
    W[[4, 151]], W[77, 2] = 0.0, np.inf
    W[200] = W[10]
    output = Matrix(gaussian(301, 300, 5), origin=Origin(tensor="head", stored_shape=(300, 5)))
    return Matrix(
        W,
        masked={"padding": np.array([0, 298, 299])},
        output=output,
        final_norm=FinalNorm("ln", np.ones(6), np.arange(6.0)),
        **labels(300),
    )


@pytest.mark.parametrize("name", sample_cases(CUTS, 2))
@pytest.mark.slow
def test_however_the_rows_are_cut(name: str) -> None:
    found = in_parts(sample(), CUTS[name])
    check_analyses(found, analyze(sample()))
    assert [part["rows"] for part in found.provenance["parts"]] == sorted(map(list, CUTS[name]))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.slow
def test_single_rows_come_as_they_are_stored(dtype: Any) -> None:
    matrix = Matrix(gaussian(302, 200, 5).astype(dtype), **labels(200))
    check_analyses(in_parts(matrix, even(200, 3)), analyze(matrix), 1e-6)


@pytest.mark.slow
def test_sections() -> None:
    for sections in (("spectrum",), ("cosine",), ("frequency", "subspace")):
        found = in_parts(sample(), even(300, 3), sections=sections, reference=False)
        check_analyses(found, analyze(sample(), sections=sections, reference=False))


@pytest.mark.parametrize("options", [{}, {"min_norm": 1e-3}])
@pytest.mark.slow
def test_damaged_rows_are_left_out_of_a_repeated_first_pass(options: dict[str, Any]) -> None:
    """One part holds damaged rows only, and no part could see the gap by itself."""
    W = gaussian(300, 200, 8)
    W[90:100] *= 1e-12
    matrix, wanted = Matrix(W), {"options": Options(**options), "sections": ("spectrum", "tokens")}
    engine = EngineHere(matrix, [(0, 90), (90, 100), (100, 200)])
    found = through(engine, **wanted)
    check_analyses(found, analyze(matrix, **wanted))
    assert found.provenance["masked"] == {"damaged": 10}
    first, again, *_ = engine.tasks
    assert (first.sifts, again.sifts) == (True, False)
    assert again.left_out.tolist() == list(range(90, 100))


@pytest.mark.slow
def test_rows_are_requested_once_and_entries_never_read_here() -> None:
    matrix = sample()
    engine = EngineHere(matrix, even(300, 4))
    absent = without_entries(matrix)
    found = analyze_remotely(absent, engine.parts, engine.run, sections=("cosine", "tokens"))
    check_analyses(found, analyze(matrix, sections=("cosine", "tokens")))
    assert [len(task.needed) > 0 for task in engine.tasks[:3]] == [False, True, False]


def test_a_part_that_changed_between_the_passes() -> None:
    matrix = sample()
    engine = EngineHere(matrix, even(300, 3))

    def change(_rows: int) -> None:
        matrix.data[150, 1] += 1e-9

    remote = reader.RemoteReader(
        matrix, engine.parts, engine.run, progress=Progress(advance=change)
    )
    remote.sift([Norms()])
    with refusal():
        remote.fold([AngleTo("x", np.ones(6))])


def test_too_many_single_rows_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_GATHERED", 100 * 6 * 8)
    found = in_parts(sample(), even(300, 2), sections=("spectrum", "cosine"), reference=False)
    said = [note.text for note in found.notes if note.code == "parts"]
    too_many = "which reads 294 single rows, too many to gather from parts"
    assert f"skipped cosine (cosine): {too_many}" in said
    assert found.find_scalar("cosine.mean") is None


def make_part(n: int = 4, **known: Any) -> Matrix:
    matrix = Matrix(gaussian(7, n, 3), "W", origin=Origin(path="a.npy", stored_shape=(n, 3)))
    return replace(matrix, **known)


def test_the_whole_has_the_labels_of_all_parts() -> None:
    one = make_part(tokens=("a", "b", "c", "d"))
    other = make_part(2, tokens=("e", "f"))
    other = replace(other, origin=replace(other.origin, path="b.npy"))
    whole = join_parts([(4, other), (0, one)])
    assert (whole.n, whole.d, whole.dtype) == (6, 3, "float64")
    assert whole.tokens == ("a", "b", "c", "d", "e", "f")
    assert whole.origin.path == whole.name == "a.npy and 1 more"
    assert whole.origin.stored_shape == (6, 3)


def test_parts_that_are_not_one_matrix() -> None:
    for pieces in (
        [(0, make_part()), (5, make_part())],
        [(1, make_part())],
        [(0, make_part()), (3, make_part())],
        [(0, make_part()), (4, Matrix(np.ones((2, 3), np.float32)))],
        [(0, make_part()), (4, Matrix(np.ones((2, 5))))],
        [(0, make_part()), (4, make_part(tokens=tuple("abcd")))],
    ):
        with refusal():
            join_parts(pieces)


def test_columns_in_another_order() -> None:
    one, other = (
        make_part(origin=Origin(path=names, columns=tuple(names))) for names in ("abc", "acb")
    )
    with refusal():
        join_parts([(0, one), (4, other)])


def test_notes_of_single_files_are_few() -> None:
    pieces = [
        (4 * i, make_part(origin=Origin(path=f"{i}.npy", notes=("of all", f"of {i}"))))
        for i in range(12)
    ]
    notes = join_parts(pieces).origin.notes
    assert notes[:2] == ("of all", "of 0")
    assert len(notes) == SHOWN_NOTES + 1
    assert notes[-1] == "5 more notes of single files"


def make_rows(*index: int, d: int = 2) -> StoredRows:
    numbers = np.array(index)
    return StoredRows(numbers, np.repeat(numbers[:, None], d, axis=1).astype(np.float32))


def test_rows_of_several_states_are_joined_each_once() -> None:
    joined = StoredRows().join(make_rows(3, 5)).join(StoredRows()).join(make_rows(1, 3, 9))
    assert joined.entries is not None
    assert joined.index.tolist() == [1, 3, 5, 9]
    assert joined.entries[:, 0].tolist() == [1, 3, 5, 9]


def test_a_version_of_another_worker_is_refused() -> None:
    part = Part(0, 4, "W", sha256="x", embgeo="0.0")
    with refusal():
        reader.check_part(part, Part(0, 4))
