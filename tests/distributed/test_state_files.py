"""Files of states and plans: what comes back, and what hostile ones cause."""

from __future__ import annotations

import contextlib
import json
import zipfile
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.matrix import FinalNorm, Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.special import SpecialToken
from embgeo.distributed import describe_part, extend_plan, files, first_round, make_plan
from embgeo.distributed.merging import find_plan, merge_first
from embgeo.distributed.packing import RECORDS, Packer, Unpackable, Unpacker
from embgeo.distributed.part import (
    Elsewhere,
    MeasuringSetup,
    cut,
    sha256_of_rows,
    share,
    without_entries,
)
from embgeo.distributed.plans import read_plan, save_plan
from embgeo.distributed.rounds import read_task
from embgeo.distributed.rows import Gathered, RowsMissing, SeenNorms, StoredRows, read_norms
from embgeo.distributed.states import save_first
from embgeo.numerics.block_rotation import BlockRotation
from embgeo.numerics.eigen import Eigen
from embgeo.stats.block import Block
from tests.stats.test_monoid_laws import MAKERS, ROWS, N, feed, same, seen
from tests.stats.test_monoid_laws import cut as pieces
from tests.support.matrices import gaussian
from tests.support.sampling import sample_cases

LARGE = 10**6


def sent(value: Any) -> Any:
    """The value after its way through JSON and arrays."""
    packer = Packer()
    plain = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    arrays = {name: np.array(array) for name, array in packer.arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return Unpacker(arrays.__getitem__, LARGE).unpack(plain)


# Statistics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rows"), sample_cases(product(MAKERS, ROWS), 3))
def test_a_statistic_goes_on_as_if_it_had_stayed(name: str, rows: str) -> None:
    parts = pieces(rows, 14)
    copy = sent(seen(name, *parts[0]))
    same(copy, seen(name, *parts[0]))
    # What was read from a file is a map that nobody may write to: it is merged, not fed.
    joined = copy.blank()
    joined.merge(copy)
    for index, block in parts[1:]:
        feed(joined, index, block)
    same(joined, seen(name, *pieces(rows, N)[0]))


@pytest.mark.parametrize("name", MAKERS)
def test_what_a_statistic_was_made_with_comes_back(name: str) -> None:
    statistic = MAKERS[name][1]()
    copy = sent(statistic)
    assert type(copy) is type(statistic)
    assert copy.key == statistic.key
    copy = copy.blank()  # what was read is a map that nobody may write to
    for index, block in pieces("plain", 7):
        feed(copy, index, block)
    same(copy, seen(name, *pieces("plain", N)[0]))


def test_every_record_is_packed_in_some_test() -> None:
    tested = {type(value).__name__ for value in VALUES} | {k.__name__ for k, _ in MAKERS.values()}
    assert tested >= set(RECORDS)


# Plain values -------------------------------------------------------------------------------------

STAND_IN: Any = Elsewhere((40, 3), "bfloat16")
VALUES = (
    None,
    True,
    0,
    2**70,
    -0.0,
    1e-323,
    float("inf"),
    "\ud800 lone, \x00 nul and \u2028",
    (1, ("a", None), []),
    {"reason": np.arange(5)},
    {("log partition", "x"): 1.5},
    slice(2, None),
    np.arange(3, 9),
    np.array([4, 6, 7]),
    np.array([3], dtype=np.uint64),
    np.zeros((0, 4)),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(6.0).reshape(2, 3).astype(ml_dtypes.bfloat16),
    np.array([True, False]),
    Eigen(np.ones(2), np.eye(2)),
    BlockRotation(
        np.zeros((1, 0), np.float32),
        [(slice(0, 1), slice(0, 0), np.ones((1, 1), np.float32))],
    ),
    Options(show_neighbors=(("a", ("b", "c")),), pairs=None),
    STAND_IN,
    Matrix(
        STAND_IN,
        tokens=tuple("ab" * 20),
        frequency=Frequency("counts", np.arange(40.0), "made"),
        masked={"padding": np.array([3])},
        final_norm=FinalNorm("ln", np.ones(3), np.zeros(3)),
        origin=Origin(path="W.npy", notes=("one",), rows=(0, 40)),
    ),
    Origin(),
    Frequency("rank", np.ones(2), ""),
    FinalNorm(absent="none"),
    SpecialToken("<s>", None, ("bos", "template")),
    describe_part(Matrix(gaussian(400, 9, 3)), 2, 5, total=9),
    MeasuringSetup("0.1", ("cosine",), Options(), True, 3, "bfloat16"),
)


def equal(one: Any, other: Any) -> bool:
    """Equal in type and value, through and through."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if type(one).__name__ in RECORDS:
        names = RECORDS[type(one).__name__].__dataclass_fields__  # type: ignore[attr-defined]
        return all(equal(getattr(one, n), getattr(other, n)) for n in names)
    return bool(one == other) and str(one) == str(other)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back(value: Any) -> None:
    assert equal(sent(value), value)


def test_arrays_that_are_shared_stay_shared() -> None:
    array = gaussian(401, 3, 3)
    one, (other,) = sent((array, [{"x": array}]))
    assert one is other["x"]


def test_what_has_no_plain_form_is_refused_when_it_is_saved() -> None:
    with pytest.raises(TypeError, match="Path"):
        Packer().pack(Path("x"))


@pytest.mark.parametrize(
    "plain",
    [
        {"array": "a9"},
        {"array": 3},
        {"array": "a0", "dtype": "finfo"},
        {"array": "a0", "dtype": "float8_nope"},
        {"range": [0, LARGE + 1]},
        {"range": [5, 0]},
        {"range": ["0", 3]},
        {"float": "1.5"},
        {"slice": ["a", 1, 2]},
        {"record": "Popen", "of": {}},
        {"record": "Census", "of": {}},
        {"record": "Census", "of": {"merge": 1, "largest": 1, "_zero": [], "_nonfinite": []}},
        {"record": "Census", "of": {"__class__": 1}},
        {"record": "Eigen", "of": {"values": 1}},
        {"record": "StatePart", "of": {"file": "x"}},
        {"nothing": 1},
        {},
    ],
)
def test_plain_data_that_no_packer_makes(plain: Any) -> None:
    unpacker = Unpacker({"a0": np.zeros(3, np.uint8)}.__getitem__, LARGE)
    with pytest.raises((Unpackable, LookupError)):
        unpacker.unpack(plain)


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    matrix = Matrix(gaussian(402, 40, 3), name="W.npy")
    path = tmp_path / "s.npz"
    save_first(first_round(matrix, describe_part(matrix, total=40)), path)
    return path


@pytest.fixture
def plan(state: Path) -> Path:
    path = state.parent / "plan.npz"
    save_plan(extend_plan(make_plan(merge_first([files.read(state)]))), path)
    return path


def rewritten(path: Path, change: dict[str, bytes | None]) -> Path:
    """The archive with some members replaced, or left out."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | change).items():
            if content is not None:
                archive.writestr(name, content)
    return path


def with_header(path: Path, change: Any) -> Path:
    """The archive with another header."""
    with np.load(path) as stored:
        header = json.loads(stored["header"].tobytes())
    change(header)
    target = path.with_name("header.npy")
    np.save(target, np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    return rewritten(path, {"header.npy": target.read_bytes()})


def read_whole(path: Path) -> None:
    stored = files.read(path)
    with files.consistent(path):
        if stored.kind == "first":
            make_plan(merge_first([stored]))
        else:
            read_task(stored)
            extend_plan(read_plan(stored))


def test_equal_states_are_equal_bytes(state: Path) -> None:
    before = state.read_bytes()
    matrix = Matrix(gaussian(402, 40, 3), name="W.npy")
    save_first(first_round(matrix, describe_part(matrix, total=40)), state)
    assert state.read_bytes() == before
    assert [p.name for p in state.parent.iterdir()] == ["s.npz"]


def test_a_state_is_no_pickle(state: Path) -> None:
    with np.load(state, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "fiub" for name in stored.files)


def test_where_nothing_can_be_written(state: Path) -> None:
    with pytest.raises(EmbgeoError, match="cannot be written"):
        files.write(state / "under-a-file.npz", "first", {})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 and nothing", "damaged"),
        (b"\x80\x04\x95 a pickle", "not a state or plan of embgeo; make one with"),
        (b"P", "not a state or plan of embgeo"),
    ],
)
def test_files_that_are_no_archives(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "s.npz"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=says):
        files.read(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="there is no such file"):
        files.read(tmp_path / "s.npz")


def test_some_other_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", a=np.zeros(3))
    with pytest.raises(UnreadableFile, match="not a state or plan"):
        files.read(tmp_path / "s.npz")


def test_a_file_of_another_kind(state: Path, plan: Path) -> None:
    with pytest.raises(UnreadableFile, match="holds the first round of a part, not a plan"):
        files.read(state, ("plan",))
    with pytest.raises(UnreadableFile, match="holds a plan, not the first round"):
        files.read(plan, ("first",))


def test_a_later_format(state: Path) -> None:
    def later(header: dict[str, Any]) -> None:
        header["format_version"] = 99

    with pytest.raises(UnreadableFile, match="format version 99, this embgeo reads 2"):
        files.read(with_header(state, later))
    files.check_replaceable(with_header(state, later))


HEADERS: dict[str, Any] = {
    "no JSON": lambda header: header.clear(),
    "unknown kind": lambda header: header.update(kind="third"),
    "no content": lambda header: header.update(content=[]),
    "missing content": lambda header: header["content"].popitem(),
    "content of another type": lambda header: header["content"].update(setup=1, matrix=1),
    "unknown record": lambda header: header["content"].update(setup={"record": "Popen", "of": {}}),
    "bare numbers for lists": lambda header: header["content"].update(
        states=3, statistics=3, pieces=3, parts=3
    ),
    "no states": lambda header: header["content"].update(states=[], first=[]),
    "a census of text": lambda header: header["content"].update(census="x"),
    "huge range": lambda header: header["content"].update(
        needed={"range": [0, 10**14]}, pieces={"range": [0, 10**14]}
    ),
}


@pytest.mark.parametrize("kind", ["state", "plan"])
@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
@pytest.mark.slow
def test_hostile_headers(kind: str, change: Any, request: pytest.FixtureRequest) -> None:
    path = with_header(request.getfixturevalue(kind), change)
    with pytest.raises(EmbgeoError) as caught:
        read_whole(path)
    assert "\n" not in str(caught.value)


def claim_rows(header: dict[str, Any]) -> None:
    for part in (header["content"].get("pieces") or [{"tuple": header["content"]["parts"]}])[:1]:
        part["tuple"][0]["of"]["stop"] = 10**12
    if "matrix" in header["content"]:
        header["content"]["matrix"]["of"]["data"]["of"]["shape"]["tuple"][0] = 10**12


def claim_columns(header: dict[str, Any]) -> None:
    header["content"]["setup"]["of"]["d"] = 10**12


@pytest.mark.parametrize("kind", ["state", "plan"])
@pytest.mark.parametrize("claim", [claim_rows, claim_columns])
def test_a_size_that_the_file_cannot_have(
    kind: str, claim: Any, request: pytest.FixtureRequest
) -> None:
    """It would take all memory before anything contradicts it."""
    path = with_header(request.getfixturevalue(kind), claim)
    with pytest.raises(UnreadableFile, match=files.NOT_OURS):
        read_whole(path)


@pytest.mark.parametrize("kind", ["state", "plan"])
@pytest.mark.slow
def test_every_array_may_be_damaged(kind: str, request: pytest.FixtureRequest) -> None:
    """Left out, of another shape, of another type, or with flipped bits: one line each time."""
    path = request.getfixturevalue(kind)
    whole = path.read_bytes()
    with np.load(path) as stored:
        names = [name for name in stored.files if name != "header"]
    assert names
    for name in names:
        for change in (None, np.zeros((1, 1, 1)), np.array(["x"]), np.array([True])):
            path.write_bytes(whole)
            other = path.with_name("other.npy")
            if change is not None:
                np.save(other, change)
            rewritten(path, {f"{name}.npy": None if change is None else other.read_bytes()})
            with contextlib.suppress(EmbgeoError):
                read_whole(path)


def test_bits_that_flip(state: Path) -> None:
    content = bytearray(state.read_bytes())
    with zipfile.ZipFile(state) as archive:
        arrays = [member for member in archive.infolist() if member.filename != "header.npy"]
        at = max(arrays, key=lambda member: member.file_size).header_offset + 220
    content[at] ^= 1
    state.write_bytes(bytes(content))
    with pytest.raises(UnreadableFile, match="checksum"):
        read_whole(state)


def test_a_file_that_is_cut_off(state: Path) -> None:
    content = state.read_bytes()
    for length in range(1, len(content), 97):
        state.write_bytes(content[:length])
        with pytest.raises(UnreadableFile):
            read_whole(state)


def test_a_plan_that_is_another_one_now(plan: Path) -> None:
    def second(content: dict[str, Any]) -> files.Stored:
        whole = files.read(plan)
        return files.Stored(plan.with_name("t.npz"), "second", "", content, whole.size)

    remembered = {"plan": files.read(plan).identity, "plan_path": str(plan)}
    assert find_plan([second(remembered)]).path == plan
    matrix = Matrix(gaussian(403, 40, 3), name="W.npy")
    save_plan(extend_plan(make_plan(first_round(matrix, describe_part(matrix)))), plan)
    for content in (remembered, {"plan": "x", "plan_path": 3}, {}):
        with pytest.raises(UnreadableFile, match="its plan is missing"):
            find_plan([second(content)])


def test_a_part_reads_the_norms_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.distributed.rows.PIECE_ROWS", 16)
    W = gaussian(402, 40, 3)
    W[[16, 39]] = 0.0
    matrix = Matrix(W)
    whole = make_plan(first_round(matrix, describe_part(matrix)))
    save_plan(extend_plan(whole, lambda rows: np.asarray(W[rows])), tmp_path / "plan.npz")
    stored = files.read(tmp_path / "plan.npz", ("plan",))
    expected = SeenNorms.of(whole.first)
    assert expected is not None
    for start, stop, rows in ((0, 16, range(16)), (15, 17, range(32)), (33, 40, range(32, 40))):
        found = read_norms(stored, start, stop)
        assert found is not None
        assert found.index.tolist() == [row for row in rows if row not in (16, 39)]
        np.testing.assert_array_equal(
            found.values, expected.values[np.isin(expected.index, found.index)]
        )
    again = SeenNorms.of(read_plan(stored).first)
    assert again is not None
    np.testing.assert_array_equal(again.values, expected.values)
    rows = np.arange(17, 39)
    assert again.other_row(Block(rows, W[rows])) is None
    assert again.other_row(Block(rows, W[rows] * np.where(rows > 30, 1.00001, 1)[:, None])) == 31


def test_norms_without_their_rows() -> None:
    for index in (np.array([1, 2]), np.array([2, 1, 3]), np.zeros((3, 1), np.int64)):
        with pytest.raises(ValueError, match="norms"):
            SeenNorms(index, np.ones(3))


# Rows and parts ----------------------------------------------------------------------------------


def test_gathered_rows_are_indexed_like_the_matrix() -> None:
    W = gaussian(404, 50, 3)
    index = np.array([2, 3, 4, 11, 40])
    gathered = Gathered((50, 3), W.dtype, StoredRows(index, W[index]))
    np.testing.assert_array_equal(gathered[np.array([40, 2, 2])], W[[40, 2, 2]])
    np.testing.assert_array_equal(gathered[2:5], W[2:5])
    assert gathered[np.zeros(0, np.int64)].shape == (0, 3)
    with pytest.raises(RowsMissing):
        gathered[4:6]


def test_rows_are_fetched_once() -> None:
    W = gaussian(405, 50, 3)
    asked: list[list[int]] = []

    def fetch(rows: Any) -> Any:
        asked.append(rows.tolist())
        return W[rows]

    gathered = Gathered((50, 3), W.dtype, StoredRows(), fetch)
    np.testing.assert_array_equal(gathered[np.array([7, 3])], W[[7, 3]])
    np.testing.assert_array_equal(gathered[3:8], W[3:8])
    assert asked == [[3, 7], [4, 5, 6]]


def test_rows_without_their_numbers() -> None:
    with pytest.raises(ValueError, match="numbers"):
        StoredRows(np.array([1, 2]), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="numbers"):
        StoredRows(np.array([2, 1]), np.zeros((2, 2)))


def test_parts_are_even_and_whole() -> None:
    for n in (1, 7, 100):
        cuts = [share(f"{i}/8", n) for i in range(1, 9)]
        assert cuts[0][0] == 0
        assert cuts[-1][1] == n
        assert all(one[1] == other[0] for one, other in pairwise(cuts))
        sizes = [b - a for a, b in cuts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "-1/4", "1/4/2", "a/b", "١/٢", ""])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(EmbgeoError, match="I/P"):
        share(text, 100)


def test_a_cut_keeps_what_belongs_to_the_rows() -> None:
    matrix = Matrix(
        gaussian(406, 20, 3),
        tokens=tuple(map(str, range(20))),
        frequency=Frequency("counts", np.arange(20.0), ""),
        masked={"early": np.array([1]), "both": np.array([2, 8])},
        output=Matrix(gaussian(407, 20, 2)),
    )
    piece = cut(matrix, 5, 12)
    assert piece.tokens == tuple(map(str, range(5, 12)))
    assert piece.frequency is not None
    assert piece.output is not None
    np.testing.assert_array_equal(piece.frequency.counts, np.arange(5.0, 12.0))
    np.testing.assert_array_equal(piece.output.data, gaussian(407, 20, 2)[5:12])
    assert {k: v.tolist() for k, v in piece.masked.items()} == {"both": [3]}
    stand_in = without_entries(piece)
    assert (stand_in.n, stand_in.d, stand_in.dtype) == (7, 3, "float64")
    with pytest.raises(EmbgeoError, match="not available"):
        stand_in.take(np.array([0]))


def test_the_digest_is_of_the_rows() -> None:
    import hashlib

    W = gaussian(408, 30, 4).astype(ml_dtypes.bfloat16)
    assert sha256_of_rows(W[3:9]) == hashlib.sha256(W[3:9].tobytes()).hexdigest()
    assert sha256_of_rows(np.asfortranarray(W)[3:9]) == sha256_of_rows(W[3:9])
