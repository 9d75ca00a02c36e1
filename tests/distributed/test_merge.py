"""A matrix measured in parts gives what one run gives, however it is cut, in whatever order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import FinalNorm, Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.source import Source
from embgeo.distributed import (
    add_rows,
    describe_part,
    extend_plan,
    files,
    finish,
    finish_after_one_round,
    first_round,
    make_plan,
    make_task,
    second_round,
)
from embgeo.distributed.code_version import code_version, hash_code
from embgeo.distributed.merging import label_plan, merge_first, merge_second
from embgeo.distributed.packing import Packer
from embgeo.distributed.plans import IN_PARTS, MergePlan, read_plan, save_plan
from embgeo.distributed.rounds import read_task
from embgeo.distributed.states import FirstState, save_second
from embgeo.measure.analyze import analyze
from embgeo.metrics import SECTIONS
from embgeo.result.analysis import Analysis
from tests.support.in_parts import check_analyses, even, first_files, in_parts
from tests.support.matrices import ASKED, NAMES, case, gaussian
from tests.support.sampling import sample_cases

#: StoredRows whose entries are stored in float32 or less are multiplied so, block by block.
SINGLE = ("fp16", "bf16")


def whole(matrix: Matrix, options: Options, **wanted: Any) -> Analysis:
    """One run, without what needs a pass for each of its steps."""
    found = analyze(matrix, options=replace(options, sphere=False), **wanted)
    reason = {"isotropy.i_sphere": IN_PARTS}
    scalars = tuple(replace(s, undefined=reason.get(s.name, s.undefined)) for s in found.scalars)
    return replace(found, scalars=scalars)


@pytest.mark.parametrize("name", sample_cases(NAMES, 3))
@pytest.mark.slow
def test_sixteen_parts_are_one_run(name: str, tmp_path: Path) -> None:
    matrix = replace(case(name).matrix, hidden=None)
    m = len(case(name).kept)
    options = Options(
        isotropy_rows=max(2, m // 2), isotropy_runs=2, show_neighbors=ASKED, pairs=300
    )
    expected = whole(matrix, options)
    wanted: dict[str, Any] = {"options": options}
    if expected.provenance["damaged"]["output"]:  # subspaces without these rows need a further pass
        wanted["sections"] = [name for name in SECTIONS if name != "subspace"]
        expected = whole(matrix, **wanted)
    found, _ = in_parts(matrix, even(matrix.n, 16), tmp_path, **wanted)
    rel = 1e-6 if name in SINGLE else 1e-8 if name == "ill-conditioned" else 1e-12
    check_analyses(found, expected, rel)


CUTS = {
    "one part": [(0, 300)],
    "very uneven": [(0, 1), (1, 290), (290, 300)],
    "with empty parts": [(0, 0), (0, 150), (150, 150), (150, 300), (300, 300)],
    "backwards": even(300, 7)[::-1],
    "every row by itself at the ends": [(0, 1), (1, 2), (2, 298), (298, 299), (299, 300)],
}


def labels(n: int) -> dict[str, Any]:
    return {
        "tokens": tuple(f"t{i}" for i in range(n)),
        "frequency": Frequency("counts", np.arange(n, 0, -1.0) // 3, "made counts"),
    }


def sample() -> Matrix:
    """Zero, infinite, masked and duplicate rows, and an output projection."""
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
def test_however_the_rows_are_cut(name: str, tmp_path: Path) -> None:
    cuts = CUTS[name]
    found, rounds = in_parts(sample(), cuts, tmp_path)
    assert rounds == 3
    check_analyses(found, whole(sample(), Options()))
    assert [part["rows"] for part in found.provenance["parts"]] == sorted(map(list, cuts))


@pytest.mark.slow
def test_rows_within_reach_save_a_round(tmp_path: Path) -> None:
    matrix = sample()
    found, rounds = in_parts(
        matrix, even(300, 4), tmp_path, fetch=lambda rows: np.asarray(matrix.data[rows])
    )
    assert rounds == 2
    check_analyses(found, whole(matrix, Options()))


def test_the_order_of_the_states_changes_no_bit(tmp_path: Path) -> None:
    stored = first_files(sample(), even(300, 9), tmp_path)
    there, back = Packer(), Packer()
    assert there.pack(merge_first(stored).statistics) == back.pack(
        merge_first(stored[::-1]).statistics
    )
    for name, array in there.arrays.items():
        assert array.tobytes() == back.arrays[name].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.slow
def test_single_rows_come_as_they_are_stored(dtype: Any, tmp_path: Path) -> None:
    matrix = Matrix(gaussian(302, 200, 5).astype(dtype), **labels(200))
    found, _ = in_parts(matrix, even(200, 3), tmp_path)
    check_analyses(found, whole(matrix, Options()), 1e-6)


@pytest.mark.parametrize("sections", [("cosine",), ("frequency", "subspace"), ("tokens",)])
@pytest.mark.slow
def test_sections(sections: tuple[str, ...], tmp_path: Path) -> None:
    found, _ = in_parts(sample(), even(300, 3), tmp_path, sections=sections)
    check_analyses(found, whole(sample(), Options(), sections=sections))


def test_an_order_without_counts() -> None:
    """A part does not know how many rows follow it."""
    ranks = Frequency("rank", np.arange(300, 0, -1.0), "row order")
    matrix = replace(sample(), frequency=ranks)
    states = [
        first_round(
            replace(cut_out, frequency=Frequency("rank", np.arange(100, 0, -1.0), "row order")),
            describe_part(cut_out, first_row=start),
        )
        for start in range(0, 300, 100)
        for cut_out in [thirds(matrix, start)]
    ]
    plan = merged(states)
    np.testing.assert_array_equal(plan.matrix.frequency.counts, ranks.counts)  # type: ignore[union-attr]


def thirds(matrix: Matrix, start: int) -> Matrix:
    """A hundred rows as a file of their own."""
    tokens = matrix.tokens or ()
    return Matrix(
        matrix.data[start : start + 100],
        name=f"rows{start}.npy",
        tokens=tokens[start : start + 100] or None,
        frequency=matrix.frequency,
    )


def merged(states: list[FirstState]) -> MergePlan:
    state = states[0]
    for other in states[1:]:
        state.merge(other)
    return make_plan(state)


def in_memory(plan: MergePlan, pieces: list[tuple[Matrix, int]]) -> Analysis:
    """Whatever rounds are left, on several matrices with their first rows."""
    gathers = True
    while gathers:
        plan = extend_plan(plan)
        task, gathers = make_task(plan), plan.only_gathers
        seconds = [second_round(task, m, describe_part(m, first_row=first)) for m, first in pieces]
        for other in seconds[1:]:
            seconds[0].merge(other)
        plan = add_rows(plan, seconds[0].rows)
    return finish(plan, seconds[0].statistics)


@pytest.mark.slow
def test_files_that_each_hold_some_rows() -> None:
    matrix = Matrix(gaussian(303, 300, 6) + 0.2, **labels(300))
    pieces = [
        (replace(thirds(matrix, start), frequency=None, tokens=None), start)
        for start in (200, 0, 100)
    ]
    plan = merged([first_round(m, describe_part(m, first_row=first)) for m, first in pieces])
    known = replace(plan.matrix, tokens=matrix.tokens, frequency=matrix.frequency)
    found = in_memory(replace(plan, matrix=known), pieces)
    check_analyses(found, whole(matrix, Options()))
    assert found.provenance["file"] == "rows0.npy and 2 more"
    assert found.provenance["stored_shape"] == [300, 6]


def test_one_round_gives_what_needs_no_more() -> None:
    matrix = replace(sample(), output=None)
    plan = make_plan(first_round(matrix, describe_part(matrix)))
    found = finish_after_one_round(plan)
    assert found.analysis is not None
    expected = whole(matrix, Options(), sections=("spectrum", "hidden"))
    for value in expected.scalars:
        mine = found.analysis.scalar(value.name)
        assert mine is not None
        assert mine.undefined == value.undefined
        if value.value is not None:
            assert mine.value == pytest.approx(value.value, rel=1e-12)
        if value.reference is not None:
            assert mine.reference == pytest.approx(value.reference, rel=1e-12)
    assert found.missing == (
        "projection",
        "cosine",
        "isotropy",
        "coordinates",
        "frequency",
        "tokens",
    )
    assert set(found.missing) <= set(found.analysis.absent)


def test_one_round_may_give_nothing() -> None:
    matrix = Matrix(gaussian(304, 50, 3))
    plan = make_plan(first_round(matrix, describe_part(matrix), sections=("isotropy",)))
    found = finish_after_one_round(plan)
    assert found.analysis is None
    assert found.missing == ("isotropy",)


# Parts that are not whole -------------------------------------------------------------------------


def states_of(*cuts: tuple[int, int], total: int | None = 100) -> list[FirstState]:
    matrix = Matrix(gaussian(305, 100, 3), name="W.npy")
    return [first_round(matrix, describe_part(matrix, a, b, total=total)) for a, b in cuts]


@pytest.mark.parametrize(
    ("cuts", "says"),
    [
        ([(0, 40), (50, 100)], "rows 40 to 49 are missing"),
        ([(10, 100)], "rows 0 to 9 are missing"),
        ([(0, 60)], "rows 60 to 99 are missing"),
        ([(0, 60), (50, 100)], "W.npy: its rows 50 to 59 are also in another part"),
        ([(0, 100), (0, 100)], "also in another part"),
        ([(0, 100), (20, 30)], "also in another part"),
        ([(0, 0), (100, 100)], "rows 0 to 99 are missing"),
    ],
)
def test_rows_that_are_missing_or_there_twice(cuts: list[tuple[int, int]], says: str) -> None:
    with pytest.raises(EmbgeoError, match=says):
        merged(states_of(*cuts))


def test_parts_of_matrices_of_different_lengths() -> None:
    states = [*states_of((0, 50)), *states_of((50, 100), total=101)]
    with pytest.raises(EmbgeoError, match=r"cut out of 101 rows, W\.npy out of 100"):
        merged(states)


def test_only_empty_parts() -> None:
    with pytest.raises(EmbgeoError, match="empty"):
        merged(states_of((0, 0), total=None))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tokens": None}, "no tokens"),
        ({"frequency": None}, "no counts"),
        ({"frequency": Frequency("rank", np.arange(300, 0, -1.0), "")}, "sorted by frequency"),
        ({"output": Matrix(gaussian(306, 300, 4))}, "of 4 columns, that of W has 5"),
    ],
)
def test_parts_that_contradict_each_other(change: dict[str, Any], says: str) -> None:
    one, other = sample(), replace(sample(), **change)
    states = [
        first_round(one, describe_part(one, 0, 100, total=300)),
        first_round(other, describe_part(other, 100, total=300)),
    ]
    with pytest.raises(EmbgeoError, match=says):
        merged(states)


def test_rows_that_changed_between_the_rounds() -> None:
    matrix = sample()
    plan = extend_plan(make_plan(first_round(matrix, describe_part(matrix))))
    changed = replace(matrix, data=np.array(matrix.data))
    changed.data[20, 3] += 1e-9
    with pytest.raises(EmbgeoError, match="not those of the first round"):
        second_round(make_task(plan), changed, describe_part(changed))


@pytest.mark.parametrize("W", [gaussian(307, 300, 7), gaussian(308, 300, 6).astype(np.float32)])
def test_other_rows_than_the_plan_is_about(W: Any) -> None:
    plan = extend_plan(make_plan(first_round(sample(), describe_part(sample()))))
    with pytest.raises(EmbgeoError, match="the plan is about 6 of float64"):
        second_round(make_task(plan), Matrix(W), describe_part(Matrix(W)))


def test_gathered_rows_of_another_matrix(tmp_path: Path) -> None:
    matrix, path = sample(), tmp_path / "plan.npz"
    save_plan(extend_plan(make_plan(first_round(matrix, describe_part(matrix)))), path)
    stored = files.read(path, ("plan",))
    state = second_round(read_task(stored), matrix, describe_part(matrix))
    assert state.rows.entries is not None
    wider = np.hstack([state.rows.entries, state.rows.entries])
    forged = replace(state, rows=replace(state.rows, entries=wider))
    save_second(forged, path, tmp_path / "t.npz")
    second = files.read(tmp_path / "t.npz", ("second",))
    with pytest.raises(EmbgeoError, match="rows of another matrix"):
        merge_second(read_plan(stored), stored.identity, [second])


def test_an_output_projection_that_a_part_does_not_find() -> None:
    plan = extend_plan(make_plan(first_round(sample(), describe_part(sample()))))
    tied = replace(sample(), output=None)
    with pytest.raises(EmbgeoError, match="no output projection of 5 columns"):
        second_round(make_task(plan), tied, describe_part(tied))


@pytest.mark.slow
def test_a_part_where_input_and_output_are_equal_by_chance() -> None:
    """Such a part was taken for a tied one; the others know better."""
    W = gaussian(309, 90, 4) + 0.3
    output = np.where(np.arange(90)[:, None] < 30, W, gaussian(310, 90, 4))
    matrix = Matrix(W, output=Matrix(output))
    tied = replace(matrix, output=None, origin=Origin(tied_by="they are equal"))
    pieces = [(tied, 0, 30), (matrix, 30, 90)]
    state = merged([first_round(m, describe_part(m, a, b, total=90)) for m, a, b in pieces])
    plan = state
    gathers = True
    while gathers:
        plan = extend_plan(plan)
        gathers = plan.only_gathers
        seconds = [second_round(make_task(plan), m, describe_part(m, a, b)) for m, a, b in pieces]
        seconds[0].merge(seconds[1])
        plan = add_rows(plan, seconds[0].rows)
    check_analyses(finish(plan, seconds[0].statistics), whole(matrix, Options()))


# What is said about the whole ---------------------------------------------------------------------


def test_notes_of_single_parts_are_few() -> None:
    def noted(number: int) -> Matrix:
        notes = ("of all", f"of part {number}")
        return replace(Matrix(gaussian(311, 40, 3)), origin=Origin(notes=notes))

    states = [
        first_round(noted(k), describe_part(noted(k), 2 * k, 2 * k + 2, total=40))
        for k in range(20)
    ]
    notes = merged(states).matrix.origin.notes
    assert notes[:2] == ("of all", "rows 0 to 1: of part 0")
    assert notes[-1] == "12 more notes of single parts"
    assert len(notes) == 10


def test_too_many_single_rows_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family that would gather half of the matrix is not worth the rest of the analysis."""
    monkeypatch.setattr("embgeo.distributed.plans.MOST_GATHERED", 60 * 3 * 8)
    n = 1200
    matrix = Matrix(gaussian(312, n, 3), **labels(n))
    plan = make_plan(first_round(matrix, describe_part(matrix), options=Options(pairs=20)))
    found = in_memory(plan, [(matrix, 0)])
    left_out = [note for note in found.notes if note.code == "parts"]
    assert any("frequency (probe)" in note.text for note in left_out)
    assert found.scalar("frequency.probe_auc") is None
    assert found.scalar("cosine.positive_share") is not None


def test_a_token_with_an_equals_sign_is_asked_for() -> None:
    """A part cannot tell whether ``a=b`` is one token."""
    tokens = ("a", "a=b", "c", "b", *(f"t{i}" for i in range(36)))
    matrix = Matrix(gaussian(313, 40, 3), tokens=tokens)
    options = Options(show_neighbors=(("a", ("b",)), ("c", ("b", "t1"))))
    plan = make_plan(first_round(matrix, describe_part(matrix), options=options))
    assert plan.setup.options.show_neighbors == (("a=b", ()), ("c", ("b", "t1")))


def test_labels_for_the_whole_line_up(tmp_path: Path) -> None:
    bare = Matrix(gaussian(314, 20, 3))
    plan = make_plan(first_round(bare, describe_part(bare)))
    tokens, counts = tmp_path / "tokens.txt", tmp_path / "counts.tsv"
    tokens.write_text("".join(f"t{i}\n" for i in range(20)))
    counts.write_text("".join(f"t{i}\t{i}\n" for i in range(20)))
    known = label_plan(plan, Source(tokens=tokens, counts=counts)).matrix
    assert known.tokens == tuple(f"t{i}" for i in range(20))
    assert known.frequency is not None
    np.testing.assert_array_equal(known.frequency.counts, np.arange(20.0))
    ranked = label_plan(plan, Source(rank_order=True)).matrix.frequency
    assert ranked is not None
    assert ranked.kind == "rank"
    tokens.write_text("one\n")
    with pytest.raises(EmbgeoError, match="1 tokens for 20 rows"):
        label_plan(plan, Source(tokens=tokens))


def test_labels_that_the_parts_have_already() -> None:
    plan = make_plan(first_round(sample(), describe_part(sample())))
    assert plan.matrix.tokens
    assert label_plan(plan, Source(tokens="none")).matrix.tokens is None
    with pytest.raises(EmbgeoError, match="have their own"):
        label_plan(plan, Source(rank_order=True))


def test_states_of_different_kinds_of_measuring(tmp_path: Path) -> None:
    matrix = sample()
    base = first_files(matrix, [(0, 150)], tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    differences: list[tuple[Matrix, dict[str, Any], str]] = [
        (matrix, {"sections": ("cosine",)}, "sections"),
        (matrix, {"options": Options(seed=1)}, "seed: 1 here, 0 there"),
        (matrix, {"reference": False}, "isotropic rows"),
        (replace(matrix, data=matrix.data[:, :5]), {}, "columns: 5 here, 6 there"),
        (replace(matrix, data=matrix.data.astype(np.float32)), {}, "float32 here, float64 there"),
    ]
    for changed, wanted, says in differences:
        with pytest.raises(EmbgeoError, match=says):
            merge_first([*base, *first_files(changed, [(150, 300)], other, **wanted)])


def test_states_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embgeo.distributed.part.code_version", lambda: "9.9+abc")
    stored = first_files(sample(), [(0, 300)], tmp_path)
    with pytest.raises(EmbgeoError, match=r"made by embgeo 9\.9\+abc, this is 0\."):
        merge_first(stored)
    assert files.read(stored[0].path).kind == "first"


def test_code_between_two_releases_has_versions_of_its_own(tmp_path: Path) -> None:
    module = tmp_path / "stats" / "moments.py"
    module.parent.mkdir()
    module.write_bytes(b"total = 1\n")
    before = hash_code(tmp_path)
    module.write_bytes(b"total = 1\r\n")
    assert hash_code(tmp_path) == before
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "scatter.py").write_bytes(b"")
    assert hash_code(tmp_path) == before
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "cosine.py").write_bytes(b"")
    after = hash_code(tmp_path)
    assert after != before
    module.write_bytes(b"total = 2\n")
    assert hash_code(tmp_path) != after
    assert re.fullmatch(rf"{embgeo.__version__}\+[0-9a-f]{{12}}", code_version())


def test_dead_output_rows_leave_no_distance_without_a_further_pass(tmp_path: Path) -> None:
    X, Y = gaussian(311, 120, 3), gaussian(312, 120, 3)
    Y[7] *= 1e-12
    found, _ = in_parts(Matrix(X, output=Matrix(Y)), even(120, 3), tmp_path)
    assert found["subspace.distance"].undefined.startswith(
        "1 damaged row of the output matrix: the matrix was measured in parts"
    )
