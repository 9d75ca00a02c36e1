"""Parquet, Arrow and Feather files, made by pyarrow."""

from __future__ import annotations

import importlib.util
from dataclasses import astuple
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import FileStamp
from embgeo.core.source import Source
from embgeo.files.guard import Damaged
from embgeo.io.formats import arrow
from embgeo.io.load import open_checkpoint, open_source
from embgeo.io.model.checkpoint import Tensor
from embgeo.io.model.rows import RowsOnDemand
from tests.support.binary_files import arrays, check_refused, quick
from tests.support.refusals import refusal
from tests.support.sampling import each_value, sample_cases

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is built without Parquet")
feather: Any = pytest.importorskip("pyarrow.feather", reason="pyarrow is built without Feather")

here = pytest.mark.usefixtures("workers_here")
N, D = 120, 6
VECTORS = np.random.default_rng(3).normal(size=(N, D)).astype("f4")
WORDS = [f"wörd{row}" for row in range(N)]
COUNTS = list(range(3 * N, 2 * N, -1))


def fixed() -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), D)


COLUMNS = {
    "fixed": fixed,
    "list": lambda: pa.array(VECTORS.tolist(), pa.list_(pa.float32())),
    "large": lambda: pa.array(VECTORS.tolist(), pa.large_list(pa.float32())),
    "tensor": lambda: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [D]), fixed()
    ),
}


def table(kind: str = "fixed", **more: Any) -> Any:
    return pa.table({"id": list(range(N)), "text": WORDS, "emb": COLUMNS[kind](), **more})


def write_parquet(path: Path, value: Any) -> None:
    pq.write_table(value, path, row_group_size=50)


def write_feather(path: Path, value: Any) -> None:
    feather.write_feather(value, path, compression="uncompressed")


def write_compressed(path: Path, value: Any) -> None:
    feather.write_feather(value, path, compression="zstd", chunksize=50)


def write_stream(path: Path, value: Any) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, value.schema) as out:
        out.write_table(value, max_chunksize=50)


def vectors_in(path: Path) -> Tensor:
    """The only column that is read; the others say why they are not."""
    (found,) = (tensor for tensor in open_checkpoint(path).tensors if len(tensor.shape) == 2)
    return found


WRITERS = [write_parquet, write_feather, write_compressed, write_stream]


@pytest.mark.parametrize(("kind", "write"), sample_cases(product(COLUMNS, WRITERS), 7))
@pytest.mark.slow
def test_a_column_of_vectors(tmp_path: Path, kind: str, write: Any) -> None:
    path = tmp_path / "a"
    write(path, table(kind, count=COUNTS))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    assert matrix.data.dtype == np.float32
    assert matrix.tokens == tuple(WORDS)
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS
    assert matrix.frequency.source == "column count of the file"
    assert not matrix.data.flags.writeable


@pytest.mark.parametrize(
    ("wrong", "problem"), [(-1, "row 1 has the count -1"), (None, "row 1 has no count")]
)
@pytest.mark.slow
def test_a_column_with_an_impossible_count_is_left_out_with_a_note(
    tmp_path: Path, wrong: int | None, problem: str
) -> None:
    path = tmp_path / "vectors.parquet"
    write_parquet(path, table("fixed", count=[COUNTS[0], wrong, *COUNTS[2:]]))

    matrix = embgeo.load(path)

    assert matrix.frequency is None or matrix.frequency.kind != "counts"
    assert f"column count is not used as counts: {problem}" in matrix.origin.notes


@pytest.mark.parametrize(
    ("dtype", "write"), sample_cases(product(["float16", "float32", "float64"], WRITERS), 5)
)
@here
@pytest.mark.slow
def test_types(tmp_path: Path, dtype: str, write: Any) -> None:
    path, values = tmp_path / "a", VECTORS.astype(dtype)
    write(path, pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), D)}))
    ((name, found),) = arrays(open_checkpoint(path)).items()
    assert name == "e"
    np.testing.assert_array_equal(found, values)


@each_value
@here
@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        pa.array([row.tobytes() for row in VECTORS], pa.binary()),
        pa.array([row.tobytes() for row in VECTORS], pa.binary(4 * D)),
        pa.array([str(row.tolist()) for row in VECTORS]),
        pa.array([[{"index": 1, "value": 0.5}]] * N),
        pa.array([[[1.0], [2.0]]] * N),
        pa.array((100 * VECTORS).astype("i1").tolist(), pa.list_(pa.int8())),
    ],
    ids=["bytes", "fixed bytes", "text", "sparse", "lists of lists", "codes"],
)
@pytest.mark.parametrize("write", [write_parquet, write_feather])
def test_what_cannot_be_read_stops_and_nothing_takes_its_place(
    tmp_path: Path, column: Any, write: Any
) -> None:
    x = VECTORS[:, 0].astype("f8")
    beside = pa.array(VECTORS[:, :3].tolist(), pa.list_(pa.float32()))
    for more in ({"umap_x": x, "umap_y": x}, {"projection": beside}):
        write(tmp_path / "a", pa.table({"word": WORDS, "embedding": column, **more}))
        with refusal():
            embgeo.load(tmp_path / "a")


@here
@pytest.mark.parametrize("texts", [[str(row.tolist()) for row in VECTORS], WORDS], ids=["v", "w"])
def test_a_text_column_of_any_name_stops_if_it_holds_vectors(
    tmp_path: Path, texts: list[str]
) -> None:
    beside = pa.array(VECTORS[:, :3].tolist(), pa.list_(pa.float32()))
    write_parquet(tmp_path / "a", pa.table({"word": WORDS, "data": texts, "projection": beside}))
    if texts is WORDS:
        assert embgeo.load(tmp_path / "a").d == 3
        return
    with refusal():
        embgeo.load(tmp_path / "a")


@here
def test_several_columns_of_numbers_are_no_matrix(tmp_path: Path) -> None:
    columns = {f"d{k}": VECTORS[:, k] for k in range(D)}
    write_parquet(tmp_path / "a", pa.table({"word": WORDS, **columns}))
    with refusal():
        embgeo.load(tmp_path / "a")


@here
@pytest.mark.slow
def test_which_column_labels_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_parquet(path, table(language=["en"] * N))
    checkpoint = open_checkpoint(path)
    assert checkpoint.tokens is None
    assert "several columns hold text" in checkpoint.notes[0]
    write_feather(path, table(Word=pa.array([w.upper() for w in WORDS]).dictionary_encode()))
    assert open_checkpoint(path).tokens == tuple(w.upper() for w in WORDS)


@here
@pytest.mark.slow
def test_two_columns_of_vectors_are_two_tensors(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_parquet(path, table(output=fixed()))
    one, two = (t for t in open_checkpoint(path).tensors if len(t.shape) == 2)
    assert (one.name, two.name) == ("emb", "output")
    assert one.ranges is not None
    assert two.ranges is not None
    assert one.ranges.identity != two.ranges.identity
    assert embgeo.load(path, tensor="output").data.shape == (N, D)


@here
@pytest.mark.slow
def test_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_parquet(path, table().slice(0, 0))
    assert vectors_in(path).shape == (0, D)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0, 2.0], [3.0]]),
        pa.array([[1.0, 2.0], None]),
        pa.array([[1.0, 2.0], [3.0, None]]),
        pa.array([[[1.0]], [[2.0]]]),
        pa.array([{"x": 1.0}, {"x": 2.0}]),
    ],
)
@pytest.mark.parametrize("write", sample_cases([write_parquet, write_feather], 2))
@here
@pytest.mark.slow
def test_columns_that_are_no_matrix(tmp_path: Path, column: Any, write: Any) -> None:
    path = tmp_path / "a"
    write(path, pa.table({"e": column}))
    check_refused(arrow, path)


@pytest.mark.parametrize("write", sample_cases(WRITERS, 2))
@here
@pytest.mark.slow
def test_cut_files_are_refused(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "a"
    write(path, table())
    content = path.read_bytes()
    for share in (0.02, 0.4, 0.9):
        path.write_bytes(content[: int(len(content) * share)])
        check_refused(arrow, path)


@pytest.mark.parametrize("write", sample_cases([write_compressed, write_parquet], 2))
@pytest.mark.slow
def test_one_row_that_unfolds_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """A row group, or a batch, of a single row of 50 million zeros."""
    pytest.importorskip("resource", reason="this system does not limit memory")
    zeros = np.zeros(50_000_000, dtype="f4")
    path = tmp_path / "a"
    write(path, pa.table({"e": pa.ListArray.from_arrays([0, len(zeros)], zeros)}))
    assert path.stat().st_size < 2**20
    monkeypatch.setattr("embgeo.io.formats.arrow._MOST_MEMORY", 150 * 2**20)
    with quick(10):
        check_refused(arrow, path)


@here
@pytest.mark.slow
def test_more_rows_than_the_bytes_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embgeo.io.formats.arrow._RATIO_FREE_BYTES", 2**20)
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(8 * 10**5, dtype="f4")), 8)
    path = tmp_path / "a"
    pq.write_table(pa.table({"e": zeros}), path, compression="zstd")
    check_refused(arrow, path)


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    for write in (write_parquet, write_feather):
        write(path, table())
        check_refused(arrow, path)


@here
@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_ranges_of_rows(tmp_path: Path, kind: str) -> None:
    """Of row groups of 50, 50 and 20 rows."""
    path = tmp_path / "x.parquet"
    write_parquet(path, table(kind))
    tensor = vectors_in(path)
    assert tensor.ranges is not None
    edges = (0, 1, 49, 50, 51, 99, 100, 119, 120)
    for start, stop in product(edges, edges):
        if start <= stop:
            np.testing.assert_array_equal(tensor.ranges.read(start, stop), VECTORS[start:stop])
    np.testing.assert_array_equal(embgeo.load(path, rows="40:110").data, VECTORS[40:110])


@here
def test_ranges_of_rows_that_come_in_several_batches(tmp_path: Path) -> None:
    """A batch of rows this wide has 256 of the 600 of a row group."""
    wide = np.random.default_rng(4).normal(size=(700, 2048)).astype("f4")
    column = pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), 2048)
    pq.write_table(pa.table({"emb": column}), tmp_path / "x.parquet", row_group_size=600)
    tensor = vectors_in(tmp_path / "x.parquet")
    assert tensor.ranges is not None
    for start, stop in ((0, 1), (255, 257), (300, 310), (513, 600), (590, 610), (0, 700)):
        np.testing.assert_array_equal(tensor.ranges.read(start, stop), wide[start:stop])


@here
@pytest.mark.parametrize("write", [write_parquet, write_feather])
def test_a_file_that_another_replaced_is_not_read_on(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "x"
    write(path, table())
    tensor = vectors_in(path)
    np.testing.assert_array_equal(tensor.open(), VECTORS)
    write(tmp_path / "new", table()[::-1])
    (tmp_path / "new").replace(path)
    with refusal():
        tensor.open()


@pytest.mark.slow
def test_a_range_decodes_its_row_groups_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, table().drop_columns(["text", "id"]))
    meta = pq.ParquetFile(path).metadata
    first = meta.row_group(0).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[first : first + 20] = b"\xff" * 20
    path.write_bytes(content)
    np.testing.assert_array_equal(embgeo.load(path, rows="50:120").data, VECTORS[50:])
    for rows in (None, "49:120"):
        with refusal():
            embgeo.load(path, rows=rows)


def test_a_damaged_row_group_moves_no_rows_of_the_next(tmp_path: Path) -> None:
    """Lengths of lists are in the first bytes of its page; with some rows fewer it can be read."""
    path, out = tmp_path / "x.parquet", tmp_path / "out"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table("list").select(["emb"]), path, row_group_size=50, **plain)
    content = path.read_bytes()
    first = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    matrix = {"name": "emb", "place": 0, "width": D, "dtype": "float32"}
    refused = 0
    for place, change in product(range(first, first + 60), (4, 0x40)):
        path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
        try:
            arrow.write_values(astuple(FileStamp.of(path)), str(out), matrix, 30, 70, None)
        except (Damaged, pa.ArrowException, OSError, ValueError):
            refused += 1
        else:
            found = np.fromfile(out, "f4").reshape(-1, D)
            np.testing.assert_array_equal(found[20:], VECTORS[50:70])
    assert 0 < refused < 120


@here
def test_row_groups_that_lie_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, table())

    class Lying:
        num_rows, num_row_groups = N, 2

        def row_group(self, _number: int) -> Any:
            return type("Group", (), {"num_rows": 50})

    monkeypatch.setattr(pq.ParquetFile, "metadata", property(lambda _self: Lying()))
    with refusal():
        open_checkpoint(path)


@here
def test_rows_on_demand_are_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, table())
    whole = open_source(Source(path), on_demand=True)
    assert isinstance(whole.data, RowsOnDemand)
    assert whole.tokens == tuple(WORDS)
    rows = np.array([119, 3, 3, 60])
    np.testing.assert_array_equal(whole.data[rows], VECTORS[rows])
    np.testing.assert_array_equal(whole.data[rows[:0]], VECTORS[:0])
    for one in (slice(10, 20), slice(None), slice(5, 100, 7), slice(20, 10), slice(-5, None)):
        np.testing.assert_array_equal(whole.data[one], VECTORS[one])
    asked: list[tuple[int, int]] = []
    other = open_source(Source(path), on_demand=True).data
    assert isinstance(other, RowsOnDemand)
    read = other._read
    other._read = lambda start, stop: asked.append((start, stop)) or read(start, stop)  # type: ignore[func-returns-value]
    for one in (slice(30, 90), slice(40, 50), slice(30, 90), slice(80, 91)):
        np.testing.assert_array_equal(other[one], VECTORS[one])
    assert asked == [(30, 90), (80, 91)]


@here
def test_single_rows_decode_their_row_groups_alone(tmp_path: Path) -> None:
    """Of three row groups the one in the middle is damaged."""
    path = tmp_path / "x.parquet"
    write_parquet(path, table().select(["emb"]))
    first = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[first : first + 20] = b"\xff" * 20
    path.write_bytes(content)
    W = open_source(Source(path), on_demand=True).data
    rows = np.array([119, 3, 3, 49, 100])
    np.testing.assert_array_equal(W[rows], VECTORS[rows])
    with refusal():
        W[np.array([3, 60, 119])]


@here
def test_single_rows_of_many_files_and_batches(tmp_path: Path) -> None:
    wide = np.arange(1300 * 2048, dtype="f4").reshape(1300, 2048)
    for place, (a, b) in enumerate(((0, 0), (0, 600), (600, 650), (650, 1300))):
        column = pa.FixedSizeListArray.from_arrays(pa.array(wide[a:b].ravel()), 2048)
        file = tmp_path / f"{place}.parquet"
        pq.write_table(pa.table({"emb": column}), file, row_group_size=300, use_dictionary=False)
    W = open_source(Source(tmp_path), on_demand=True).data
    for seed, n in ((0, 1), (1, 5), (2, 900)):
        rows = np.random.default_rng(seed).integers(0, 1300, n)
        np.testing.assert_array_equal(W[rows], wide[rows])
    rows = np.array([700, 1200])  # of one file
    np.testing.assert_array_equal(W[rows], wide[rows])


def write_dataset(folder: Path) -> Path:
    """The table in three files, one of them without rows."""
    folder.mkdir()
    whole = table("fixed", count=COUNTS)
    half = len(WORDS) // 2
    for place, part in enumerate((whole[:half], whole[half:half], whole[half:])):
        write_parquet(folder / f"part-{place:05}.parquet", part)
    return folder


@here
@pytest.mark.slow
def test_a_dataset_of_many_files_is_one_matrix(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data")
    matrix = embgeo.load(folder)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    assert matrix.tokens == tuple(WORDS)
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS
    assert "rows of 3 files in the order of their names" in matrix.origin.notes
    other = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(6)), 3)})
    write_parquet(folder / "part-00009.parquet", other)
    with refusal():
        embgeo.load(folder)


NOT_ONE_TABLE: dict[str, tuple[Any, Any, Any]] = {
    "columns of other names": (table(), table().rename_columns(["id", "text", "e"]), write_parquet),
    "a stream of Arrow": (table(), table(), write_stream),
    "rows without numbers": (
        table("list"),
        table().set_column(2, "emb", pa.array([[]] * N, pa.list_(pa.float32()))),
        write_parquet,
    ),
}


@here
@pytest.mark.parametrize(("first", "second", "write"), NOT_ONE_TABLE.values(), ids=NOT_ONE_TABLE)
def test_files_that_are_not_one_table(tmp_path: Path, first: Any, second: Any, write: Any) -> None:
    write_parquet(tmp_path / "1.parquet", first[:60])
    write(tmp_path / "2.parquet", second[60:])
    with refusal():
        embgeo.load(tmp_path)


@here
def test_files_without_rows_say_nothing_of_the_table(tmp_path: Path) -> None:
    """An engine writes them for empty partitions; of lists they do not know the length."""
    for place, part in enumerate((table("list")[:0], table("list"), table("list")[:0])):
        write_parquet(tmp_path / f"{place}.parquet", part)
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    assert matrix.tokens == tuple(WORDS)


@here
@pytest.mark.parametrize("limit", [500, 10**6])
def test_texts_that_are_too_long_name_no_rows(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "SIDE_FILE_BYTES", limit)
    table = pa.table({"text": ["long " * 9 + word for word in WORDS], "v": fixed()})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    matrix = embgeo.load(tmp_path / "x.parquet")
    np.testing.assert_array_equal(matrix.take(np.arange(N)), VECTORS)
    short = "the texts of column text take more than 0.0004768 MiB and do not name the rows"
    assert (short in matrix.origin.notes) is (limit == 500)
    assert (matrix.tokens is None) is (limit == 500)


@pytest.mark.usefixtures("workers_here")
def test_both_sides_of_what_a_table_may_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_parquet(path, table())
    monkeypatch.setattr("embgeo.io.formats.arrow._MOST_RATIO", 0)
    for free in (VECTORS.nbytes, VECTORS.nbytes - 1):
        monkeypatch.setattr("embgeo.io.formats.arrow._RATIO_FREE_BYTES", free)
        if free == VECTORS.nbytes:
            found = {t.name: t for t in open_checkpoint(path).tensors}
            assert found["emb"].ranges is not None
            np.testing.assert_array_equal(found["emb"].ranges.read(60, 70), VECTORS[60:70])
            np.testing.assert_array_equal(found["emb"].open(), VECTORS)
            assert (found["id"].shape, found["id"].dtype, found["id"].ranges) == (
                (N,),
                "int64",
                None,
            )
            np.testing.assert_array_equal(found["id"].open(), np.arange(N))
        else:
            check_refused(arrow, path)
    write_parquet(path, table().select(["id"]))
    monkeypatch.setattr("embgeo.io.formats.arrow._RATIO_FREE_BYTES", N)
    assert open_checkpoint(path).tensors[0].shape == (N,)
    monkeypatch.setattr("embgeo.io.formats.arrow._RATIO_FREE_BYTES", N - 1)
    check_refused(arrow, path)


def test_the_digest_sees_the_footer_and_every_sampled_page() -> None:
    """A file of 64 pages of 4 KiB, of which every second one is looked at."""
    size = 64 * 4096
    footer = (1000).to_bytes(4, "little") + b"PAR1"
    plain = np.frombuffer(bytes(size - 8) + footer, np.uint8)
    digest = arrow._hash_samples(plain)
    seen = {}
    for at in (0, 4095, 4096, 2 * 4096, 40 * 4096 + 7, 41 * 4096, size - 1008, size - 9):
        changed = plain.copy()
        changed[at] ^= 1
        seen[at] = arrow._hash_samples(changed) != digest
    assert seen == {at: at not in (4096, 41 * 4096) for at in seen}
