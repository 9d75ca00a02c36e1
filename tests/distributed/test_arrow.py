"""A table of Arrow batches in another engine, compared with the matrix in one piece."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from embgeo.core.errors import EmbgeoError  # noqa: E402
from embgeo.core.matrix import Frequency, Matrix  # noqa: E402
from embgeo.distributed.arrow import (  # noqa: E402
    WITHOUT_ORDER,
    ArrowColumns,
    PartTask,
    Run,
    analyze_batches,
)
from embgeo.measure.analyze import analyze  # noqa: E402
from tests.support.in_parts import check_analyses  # noqa: E402
from tests.support.matrices import gaussian  # noqa: E402

N, D = 240, 6


def make_table(W: np.ndarray) -> Any:
    """The rows with their numbers, tokens and counts."""
    n = len(W)
    return pa.table(
        {
            "id": np.arange(n),
            "word": [f"w{i}" for i in range(n)],
            "n": 1 + np.arange(n)[::-1] ** 2,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(W.ravel()), W.shape[1]),
        }
    )


def in_parts(table: Any, cuts: list[int], seed: int = 0) -> Run:
    """An engine that takes the parts, and merges their states, in another order each time."""
    generator = random.Random(seed)

    def run(task: Any, merge: Callable[[bytes, bytes], bytes]) -> bytes:
        parts = [
            table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)
        ]
        generator.shuffle(parts)
        states = [
            state
            for part in parts
            for batch in task(iter(part.to_batches(max_chunksize=17)))
            for state in batch.column("state").to_pylist()
        ]
        while len(states) > 1:
            first, second = (states.pop(generator.randrange(len(states))) for _ in range(2))
            states.append(merge(first, second))
        return states[0]

    return run


def whole(W: np.ndarray, **wanted: Any) -> Any:
    counts = 1.0 + np.arange(len(W))[::-1] ** 2
    tokens = tuple(f"w{i}" for i in range(len(W)))
    frequency = Frequency("counts", counts, "the column n")
    return analyze(Matrix(W, "table", tokens=tokens, frequency=frequency), **wanted)


def sample(dtype: Any = np.float64) -> np.ndarray:
    return np.asarray(gaussian(11, N, D) + 0.3, dtype=dtype)


@pytest.mark.parametrize("cuts", [[], [100], [1, 2, 90, 90, 239]])
def test_numbered_rows_are_the_matrix(cuts: list[int]) -> None:
    W = sample()
    W[[3, 70]] = 0.0
    found = analyze_batches(
        in_parts(make_table(W), cuts), "vector", row="id", token="word", count="n"
    )
    check_analyses(found, whole(W))
    assert [part["rows"] for part in found.provenance["parts"]][-1][1] == N


def test_without_numbers_every_order_gives_the_same_answer() -> None:
    W, wanted = sample(), {"sections": WITHOUT_ORDER}
    table = make_table(W)
    found, again = (
        analyze_batches(in_parts(table, [50, 120], seed), "vector", count="n", **wanted)
        for seed in (1, 2)
    )
    check_analyses(again, found)
    # Of the same rows in the order of the parts' hashes.
    order = np.concatenate([np.arange(*part) for part in original_parts(found, W, [50, 120])])
    counts = 1.0 + np.arange(N)[::-1] ** 2
    frequency = Frequency("counts", counts[order], "the column n")
    *others, note = found.notes
    assert "order of the hashes" in note.text
    expected = analyze(Matrix(W[order], "table", frequency=frequency), **wanted)
    check_analyses(replace(found, notes=tuple(others)), expected)


def original_parts(found: Any, W: np.ndarray, cuts: list[int]) -> list[tuple[int, int]]:
    """Which rows each part of the result was, by their number."""
    lengths = {b - a: (a, b) for a, b in pairwise([0, *cuts, len(W)])}
    return [lengths[stop - start] for start, stop in (p["rows"] for p in found.provenance["parts"])]


def test_damaged_rows_are_left_out_of_a_repeated_first_pass() -> None:
    W = sample()
    W[[5, 200]] *= 1e-12
    found = analyze_batches(
        in_parts(make_table(W), [80]), "vector", row="id", token="word", count="n"
    )
    check_analyses(found, whole(W))
    assert found.provenance["damaged"]["small"] == 2


def replaced(table: Any, name: str, column: Any) -> Any:
    return table.set_column(table.schema.names.index(name), name, column)


BAD: dict[str, tuple[Callable[[Any], Any], dict[str, str], str]] = {
    "no such column": (lambda t: t, {"vector": "vectr"}, "no single column 'vectr'"),
    "text in place of vectors": (lambda t: t, {"vector": "word"}, "not lists of floating-point"),
    "text in place of numbers": (lambda t: t, {"row": "word"}, "holds string, not whole numbers"),
    "a row without a vector": (
        lambda t: replaced(t, "vector", pa.array([None, *t["vector"].to_pylist()[1:]])),
        {},
        "row 0 has no vector",
    ),
    "vectors of two lengths": (
        lambda t: replaced(t, "vector", pa.array([*t["vector"].to_pylist()[:-1], [1.0]])),
        {},
        "has 1 numbers",
    ),
    "rows in disorder": (
        lambda t: replaced(t, "id", pa.array(t["id"].to_pylist()[::-1])),
        {},
        "not numbered one after the other",
    ),
    "a row without a count": (
        lambda t: replaced(t, "n", pa.array([*range(130), None, *range(109)])),
        {"count": "n"},
        "row 30 has a missing number",
    ),
    "a count below 0": (
        lambda t: replaced(t, "n", pa.array([*range(130), -1, *range(109)])),
        {"count": "n"},
        "row 30 has a count below 0",
    ),
    "a count beyond float64": (
        lambda t: replaced(t, "n", pa.array([2**63, *range(N - 1)], pa.uint64())),
        {"count": "n"},
        "row 0 has a count below 0 or above",
    ),
    "numbers of rows beyond int64": (
        lambda t: replaced(t, "id", pa.array(range(2**64 - N, 2**64), pa.uint64())),
        {},
        "not numbered one after the other",
    ),
    "rows that are missing": (lambda t: t.slice(5), {}, "rows 0 to 4 are missing"),
}


@pytest.mark.parametrize(("change", "columns", "says"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused(
    change: Callable[[Any], Any], columns: dict[str, str], says: str
) -> None:
    table = change(make_table(sample()))
    with pytest.raises(EmbgeoError, match=says):
        analyze_batches(in_parts(table, [100]), **{"vector": "vector", "row": "id", **columns})


def test_parts_with_the_same_rows_need_numbers() -> None:
    W = np.concatenate([sample()[:100]] * 2)
    run = in_parts(make_table(W).select(["vector", "id"]), [100])
    with pytest.raises(EmbgeoError, match="two parts of the table hold the same rows"):
        analyze_batches(run, "vector")
    assert analyze_batches(run, "vector", row="id").provenance["stored_shape"] == [200, D]


FAULTS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "lost": lambda states: states[:-1],
    "twice": lambda states: [*states, states[0]],
    "one lost, one twice": lambda states: [*states[:-1], states[0]],
}


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("row", ["id", ""])
def test_a_pass_that_saw_a_part_twice_or_not_is_refused(
    number: int, fault: Callable[[list[Any]], list[Any]], row: str
) -> None:
    """The parts of the first pass, and those of the second."""
    assert find_refusal(number, fault, row).startswith("3 parts were counted, a pass saw")


def test_a_run_that_lost_requested_rows_is_refused() -> None:
    assert "other rows than the ones that were requested" in find_refusal(3, FAULTS["lost"], "id")


def find_refusal(number: int, fault: Callable[[list[Any]], list[Any]], row: str) -> str:
    """What is said of a fault of one of the runs: parts counted, first pass, rows, second pass."""
    table = make_table(sample())
    parts = [table[:50], table[50:120], table[120:]]
    passes = 0

    def run(task: Any, merge: Callable[[bytes, bytes], bytes]) -> bytes:
        nonlocal passes
        passes += 1
        states = [next(task(part.to_batches()))["state"][0].as_py() for part in parts]
        return reduce(merge, fault(states) if passes == number else states)

    with pytest.raises(EmbgeoError) as refused:
        analyze_batches(run, "vector", row=row, sections=["cosine", "isotropy"])
    assert passes == number
    return str(refused.value)


def test_a_part_that_no_pass_saw_is_missed_by_the_number_of_rows() -> None:
    run = in_parts(make_table(sample())[:200], [100])
    wanted = {"row": "id", "sections": ["spectrum"]}
    with pytest.raises(EmbgeoError, match="the parts hold 200 rows, the table 240"):
        analyze_batches(run, "vector", total=N, **wanted)
    assert analyze_batches(run, "vector", total=200, **wanted).provenance["n"] == 200


def test_tables_with_empty_chunks() -> None:
    table = make_table(sample())
    vectors = table["vector"].chunks
    holed = replaced(table, "vector", pa.chunked_array([vectors[0][:0], *vectors, vectors[0][:0]]))
    states = list(PartTask(ArrowColumns("vector"))([holed]))
    assert pickle.loads(states[0]["state"][0].as_py()).matrices.popitem()[1].n == N


def test_parts_that_were_measured_otherwise_do_not_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(sample())
    single = table["vector"].combine_chunks().cast(pa.list_(pa.float32(), D))
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(N * 7)), 7)
    for column, says in ((single, "float32 here, float64 in"), (wide, "7 here, 6 in")):
        parts = [table[:9], replaced(table, "vector", column)[9:]]

        def run(task: Any, merge: Callable[[bytes, bytes], bytes], parts: Any = parts) -> bytes:
            found = (next(task(part.to_batches()))["state"][0].as_py() for part in parts)
            return reduce(merge, found)

        with pytest.raises(EmbgeoError, match=says):
            analyze_batches(run, "vector", row="id")
    monkeypatch.setattr("embgeo.distributed.reader.VERSION", "0.0")
    with pytest.raises(EmbgeoError, match="table: measured by embgeo"):
        analyze_batches(in_parts(table, [9]), "vector", row="id")


def test_rows_that_change_between_passes_are_refused() -> None:
    tables: Iterator[Any] = iter([make_table(sample()), make_table(sample() + 1.0)])

    def run(task: Any, merge: Any) -> bytes:
        return in_parts(next(tables), [100])(task, merge)

    with pytest.raises(EmbgeoError, match="differ from the pass before"):
        analyze_batches(run, "vector")


def test_sections_that_name_rows_need_names() -> None:
    run = in_parts(make_table(sample()), [])
    with pytest.raises(EmbgeoError, match="tokens: needs names of rows"):
        analyze_batches(run, "vector", sections=["spectrum", "tokens"])


@pytest.mark.parametrize("kind", ["list", "tensor"])
def test_float32_lists_of_any_kind(kind: str) -> None:
    W = sample(np.float32)
    table = make_table(W)
    column = pa.array(W.tolist(), pa.list_(pa.float32()))
    if kind == "tensor":
        lists = table["vector"].combine_chunks()
        column = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [D]), lists)
    other = replaced(table, "vector", pa.chunked_array([column]))
    found, expected = (
        analyze_batches(in_parts(one, [7]), "vector", row="id", sections=["spectrum", "cosine"])
        for one in (other, table)
    )
    assert found.provenance["dtype"] == "float32"
    assert found.scalars == expected.scalars
