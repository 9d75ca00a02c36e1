"""What is exported is read back by the programs that it is for."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from pyarrow import parquet

import embgeo
from embgeo.files.saved import csv_lines
from embgeo.publish.export import TARGETS
from embgeo.publish.export.columns import collect_columns, frequency, thin_rows
from embgeo.publish.export.projector import protobuf_text, tsv_cell
from embgeo.publish.export.target import Request, Target, Vectors
from embgeo.result.analysis import Analysis
from tests.support.refusals import refusal
from tests.support.sample_analysis import HOSTILE, sample

RECORD: dict[str, Any] = {
    "format": "embgeo.export",
    "command": "embgeo export",
    "versions": {"embgeo": "0"},
}
#: What UTF-8 cannot hold is spelled out; everything else comes back as it was.
READ_BACK = tuple(t.encode("utf-8", "backslashreplace").decode() for t in HOSTILE)


def named(name: str) -> Target:
    return next(t for t in TARGETS if t.name == name)


def exported(target: str, path: Path, analysis: Analysis, **chosen: Any) -> Path:
    named(target).write(Request(RECORD, analysis, **chosen), path)
    return path


def array_vectors(rows: Any, tokens: tuple[str, ...]) -> Vectors:
    matrix = np.asarray(rows, dtype=np.float64)
    labels = {"token": tokens, "count": tuple(range(len(matrix)))}
    return Vectors("W", *matrix.shape, lambda: iter([matrix[:2], matrix[2:]]), labels)


def ranked(analysis: Analysis) -> Analysis:
    """The same vocabulary, known by its order alone."""
    p = analysis.provenance
    said = {**p["frequency"], "kind": "rank"}
    counts = np.arange(p["n"], p["n"] - len(analysis.rows), -1.0)
    return replace(analysis, provenance={**p, "frequency": said}, counts=counts)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_same_bytes_twice_and_known_as_ours(target: Target, tmp_path: Path) -> None:
    vectors = array_vectors(np.eye(3), ("a", "b", "c"))
    request = Request(RECORD, sample(hostile=True), vectors)
    contents = []
    for name in ("first", "second"):
        path = tmp_path / name / f"x{target.suffix}"
        path.parent.mkdir()
        target.write(request, path)
        assert target.is_ours(path)
        files = sorted(p for p in path.parent.rglob("*") if p.is_file())
        contents.append([(p.name, p.read_bytes()) for p in files])
    assert contents[0] == contents[1]
    other = tmp_path / f"other{target.suffix}"
    assert not target.is_ours(other)
    other.write_bytes(b"row,token\nPAR1")
    assert not target.is_ours(other)


# --- CSV, Parquet, NPZ -----------------------------------------------------------------------


def test_csv_comes_back_with_every_hostile_token(tmp_path: Path) -> None:
    analysis = sample(hostile=True)
    path = exported("csv", tmp_path / "a.csv", analysis)
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(row["token"] for row in rows)[: len(HOSTILE)] == READ_BACK
    norm = next(c for c in analysis.columns if c.name == "tokens.norm")
    assert [float(row["tokens.norm"]) for row in rows] == norm.values.tolist()
    assert analysis.popular is not None
    assert [row["popular"] == "true" for row in rows] == analysis.popular.tolist()
    xy = np.array([[float(r[f"projection.svd2.{axis}"]) for axis in "xy"] for r in rows])
    assert np.array_equal(xy, next(p.xy for p in analysis.points if p.name == "projection.svd2"))
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(io.BytesIO(path.read_bytes()), parse_options=options)
    assert table.num_rows == len(rows)
    record = json.loads((tmp_path / "a.csv.provenance.json").read_text("ascii"))
    assert record == RECORD


def test_spreadsheets_run_no_formula_of_a_csv() -> None:
    for text, written in (
        ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
        ("@SUM(1+1)", "'@SUM(1+1)"),
        ("\t-2+HYPERLINK(1)", "'\t-2+HYPERLINK(1)"),
        ("='file:///x'#$a.A1", "'='file:///x'#$a.A1"),
        ("-ing", "-ing"),
        ("=", "="),
        ("+1", "+1"),
        ("@user", "@user"),
        (-1.5, "-1.5"),
    ):
        lines = b"".join(csv_lines(("token",), [(text,)])).decode()
        assert [row[0] for row in csv.reader(io.StringIO(lines, newline=""))] == ["token", written]


def test_parquet_comes_back_with_types_and_provenance(tmp_path: Path) -> None:
    analysis = sample(hostile=True)
    table = parquet.read_table(exported("parquet", tmp_path / "a.parquet", analysis))
    assert tuple(table["token"].to_pylist())[: len(HOSTILE)] == READ_BACK
    types = {field.name: str(field.type) for field in table.schema}
    assert types["row"] == types["count"] == "int64"
    assert types["popular"] == "bool"
    assert types["projection.svd2.x"] == types["tokens.norm"] == "double"
    assert json.loads(table.schema.metadata[b"embgeo"]) == RECORD


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refusal():
        exported("parquet", tmp_path / "a.parquet", sample())


def test_a_vocabulary_without_tokens_and_counts(tmp_path: Path) -> None:
    bare = replace(sample(counts=False), tokens=None)
    path = exported("csv", tmp_path / "a.csv", bare)
    with path.open(newline="", encoding="utf-8") as stream:
        names = next(csv.reader(stream))
    assert not {"token", "count", "rank", "popular"} & set(names)
    exported("parquet", tmp_path / "a.parquet", bare)


def test_ranks_are_ranks_and_counts_are_counts() -> None:
    found = frequency(ranked(sample()))
    assert found is not None
    name, values = found
    assert name == "rank"
    assert values[:3].tolist() == [1, 2, 3]
    assert values.dtype == np.int64
    shares = replace(sample(), counts=np.linspace(0.5, 0.0, 600))
    found = frequency(shares)
    assert found is not None
    assert found[1].dtype == np.float64
    assert frequency(sample(counts=False)) is None


# --- projector -------------------------------------------------------------------------------


def test_embgeo_reads_its_own_projector_files(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((len(HOSTILE), 5)).astype(np.float32)
    request = Request(RECORD, sample(), array_vectors(rows, HOSTILE))
    named("projector").write(request, tmp_path / "p")
    back = embgeo.load(tmp_path / "p" / "tensors.tsv", tokens=tmp_path / "p" / "metadata.tsv")
    assert np.array_equal(np.asarray(back.data), rows)
    assert back.frequency is not None
    assert back.frequency.counts.tolist() == list(range(len(HOSTILE)))
    # Three kinds of text are spelled out; every other token comes back letter by letter.
    assert back.tokens is not None
    spelled = [t for t, was in zip(back.tokens, HOSTILE, strict=True) if t != was]
    assert all("\\u" in t for t in spelled)
    same = {"line\nbreak", "tab\there", "carriage\rreturn", "\\u003c\\", "", "   ", " leading"}
    assert same <= set(back.tokens)


def test_lines_of_the_metadata_are_those_of_the_vectors(tmp_path: Path) -> None:
    tokens = (*HOSTILE, "\u2028", "\x0b", "\x0c", "\x85", "\x1c")
    vectors = array_vectors(np.zeros((len(tokens), 2)), tokens)
    named("projector").write(Request(RECORD, sample(), vectors), tmp_path / "p")
    text = (tmp_path / "p/metadata.tsv").read_bytes().decode("utf-8")
    lines = text.splitlines()  # the strictest reader: it ends lines at every separator
    assert lines[0] == "token\tcount"
    assert len(lines) == len(tokens) + 1
    assert {line.count("\t") for line in lines} == {1}
    assert (tmp_path / "p/tensors.tsv").read_bytes().count(b"\n") == len(tokens)


def test_one_column_has_no_header(tmp_path: Path) -> None:
    vectors = replace(array_vectors(np.eye(3), ()), labels={"token": ("a", "b", "c")})
    named("projector").write(Request(RECORD, sample(), vectors), tmp_path / "p")
    assert (tmp_path / "p/metadata.tsv").read_text() == "a\nb\nc\n"
    formula = replace(vectors, labels={"token": ("=cmd|'/c calc'!A1", "-ing", "=")})
    named("projector").write(Request(RECORD, sample(), formula), tmp_path / "f")
    assert (tmp_path / "f/metadata.tsv").read_text() == "'=cmd|'/c calc'!A1\n-ing\n=\n"


def test_the_configuration_is_a_protocol_buffer(tmp_path: Path) -> None:
    vectors = replace(array_vectors(np.eye(3), ("a", "b", "c")), name='W"\n日{}')
    named("projector").write(Request(RECORD, sample(), vectors, binary=True), tmp_path / "p")
    assert (tmp_path / "p/projector_config.pbtxt").read_text("ascii") == (
        "embeddings {\n"
        '  tensor_name: "W\\"\\012\\346\\227\\245{}"\n'
        '  tensor_path: "tensors.bytes"\n'
        "  tensor_shape: 3\n  tensor_shape: 3\n"
        '  metadata_path: "metadata.tsv"\n}\n'
    )


def test_protocol_buffers_take_the_text() -> None:
    text_format = pytest.importorskip("google.protobuf.text_format", reason="no protobuf")
    from google.protobuf.wrappers_pb2 import StringValue

    for token in READ_BACK:
        assert text_format.Parse(f"value: {protobuf_text(token)}", StringValue()).value == token


def test_thinning_keeps_rare_rows_in_their_share() -> None:
    rng = np.random.default_rng(0)
    counts = rng.permutation(np.floor(1e6 / np.arange(1, 10_001)))
    kept = thin_rows(counts, 10_000, 1000)
    assert len(kept) == len(set(kept.tolist())) == 1000
    assert (np.diff(kept) > 0).all()
    rare = counts < np.quantile(counts, 0.8)
    assert rare[kept].mean() == pytest.approx(rare.mean(), abs=0.01)
    assert counts[kept].max() == counts.max()
    assert thin_rows(None, 10, 3).tolist() == [0, 4, 9]
    assert thin_rows(None, 5, 100).tolist() == [0, 1, 2, 3, 4]
    assert thin_rows(None, 5, 1).tolist() == [0]


def test_text_between_tabs() -> None:
    for text, cell in (
        ("a", "a"),
        ("a\tb", "a\\tb"),
        ("\\", "\\\\"),
        ("\x1b", "\\\\u001b"),
        ("日 本", "日 本"),
    ):
        assert tsv_cell(text) == cell


def test_columns_are_in_one_order(tmp_path: Path) -> None:
    """Row, token and frequency before what was measured, then coordinates."""
    analysis = sample()
    path = exported("csv", tmp_path / "a.csv", analysis)
    expected = ["row", "token", "count", "popular", *(one.name for one in analysis.columns)]
    expected += [f"{one.name}.{axis}" for one in analysis.points for axis in "xy"]
    assert path.read_text("utf-8").split("\n", 1)[0].split(",") == expected
    assert list(collect_columns(analysis)) == expected
