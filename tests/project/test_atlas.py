"""The atlas of real matrices: its numbers, its readers, its page."""

from __future__ import annotations

import json
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchmarks import atlas
from benchmarks.atlas_files import DECODERS

LISTED = tomllib.loads(atlas.LIST.read_text(encoding="utf-8"))


def draw(n: int, d: int) -> atlas.Array:
    return np.random.default_rng(37).standard_normal((n, d))


def test_numbers_of_isotropic_rows() -> None:
    found = atlas.look(draw(2000, 20))
    assert abs(found["cosine"]) < 0.005
    assert found["cosine spread"] == pytest.approx(20**-0.5, rel=0.02)
    assert found["top share of unit rows"] < found["edge"]
    assert found["wide"] == found["zero"] == found["equal"] == found["twins"] == 0


def test_numbers_of_planted_rows() -> None:
    rows = draw(500, 10) + 3.0
    rows[7], rows[8], rows[9, 1] = 0.0, rows[20], np.nan
    rows[:, 4] *= 20
    rows[:400, 4] = -rows[:400, 4]
    found = atlas.look(rows)
    assert (found["zero"], found["not finite"], found["dead"], found["equal"]) == (1, 1, 2, 1)
    assert found["wide"] == 1
    assert found["wide share"] > 0.9
    kept = np.delete(rows, [7, 9], axis=0)
    unit = kept / np.linalg.norm(kept, axis=1)[:, None]
    exact = (unit.sum(axis=0) @ unit.sum(axis=0) - 498) / (498 * 497)
    assert found["cosine"] == pytest.approx(exact, abs=0.005)
    power = np.linalg.svd(kept, compute_uv=False) ** 2
    assert found["top share"] == pytest.approx(power[0] / power.sum())


def test_a_row_and_its_multiple_are_twins() -> None:
    rows = np.concatenate([draw(50, 8), 2 * draw(50, 8)])
    assert atlas.look(rows)["twins"] == 1.0


def write_thinc(path: Path) -> atlas.Array:
    rows = draw(5, 3).astype("<f4")
    table = {
        b"nd": True,
        b"type": "<f4",
        b"kind": b"",
        b"shape": [5, 3],
        b"data": rows.tobytes(),
    }
    other = {b"nd": True, b"type": "<f4", b"shape": [1, 1], b"data": b"\0\0\0\0"}
    nodes = [{"name": "maxout"}, {"name": "hashembed"}]
    stored = {"nodes": nodes, "attrs": [], "params": [{"W": other}, {"E": table}]}
    path.write_bytes(msgspec.msgpack.encode(stored))
    return rows


def write_sphinx(path: Path) -> atlas.Array:
    """Two codebooks of four Gaussians, of features of three and two dimensions; the second one."""
    rng = np.random.default_rng(1)
    parts = [[rng.standard_normal((4, width)).astype("<f4") for width in (3, 2)] for _ in "ab"]
    numbers = np.concatenate([part.ravel() for book in parts for part in book])
    head = np.array([2, 2, 4, 3, 2, numbers.size], "<i4").tobytes()
    path.write_bytes(b's3\nversion 1.0\nendhdr\nD3"\x11' + head + numbers.tobytes() + b"sum.")
    return np.concatenate([book[1] for book in parts])


def test_hash_tables_of_spacy_are_read(tmp_path: Path) -> None:
    rows = write_thinc(tmp_path / "model")
    assert np.array_equal(DECODERS["thinc"](tmp_path / "model", "0"), rows)


def test_acoustic_models_are_read(tmp_path: Path) -> None:
    rows = write_sphinx(tmp_path / "means")
    assert np.array_equal(DECODERS["sphinx"](tmp_path / "means", "1"), rows)


def test_lists_bits_and_arrays_are_read(tmp_path: Path) -> None:
    rows = draw(4, 6)
    lists = tmp_path / "lists.txt"
    lists.write_text("".join(f"op{i}:{json.dumps(row.tolist())},\n" for i, row in enumerate(rows)))
    assert np.array_equal(DECODERS["named lists"](lists, ""), rows)
    np.save(tmp_path / "bits.npy", (rows > 0).reshape(4, 2, 3))
    assert np.array_equal(DECODERS["bits"](tmp_path / "bits.npy", ""), rows > 0)
    signs = tmp_path / "signs.csv"
    signs.write_text('ipa,syl,son\na,+,-\n",",0,+\n', encoding="utf-8")
    assert np.array_equal(DECODERS["signs"](signs, ""), [[1, -1], [0, 1]])
    np.savez(tmp_path / "arrays.npz", one=rows[:, None])
    assert np.array_equal(DECODERS["array"](tmp_path / "arrays.npz", "one"), rows)


def test_quantized_word_vectors_are_read(tmp_path: Path) -> None:
    """Five words of two pieces of three numbers, each one of four codes."""
    books, codes = draw(8, 3).astype("<f4").reshape(2, 4, 3), np.arange(10, dtype="u1") % 4
    stored = np.array([5, 6, 2, 4], "<u4").tobytes() + codes.tobytes() + books.tobytes()
    (tmp_path / "pq.bin").write_bytes(stored)
    with tarfile.open(tmp_path / "navec.tar", "w") as archive:
        archive.add(tmp_path / "pq.bin", "pq.bin")
    rows = DECODERS["navec"](tmp_path / "navec.tar", "")
    expected = [np.concatenate([books[0, a], books[1, b]]) for a, b in codes.reshape(5, 2)]
    assert np.array_equal(rows, expected)


@pytest.mark.slow
def test_the_page_is_made_of_a_package_and_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same bytes twice; a file of other bytes is left out with that as the reason."""
    np.save(tmp_path / "rows.npy", draw(60, 5) + 1)
    with zipfile.ZipFile(tmp_path / "a_pack-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(tmp_path / "rows.npy", "inside/rows.npy")
    digest = atlas.digest(tmp_path / "rows.npy")
    common = f'kind = "Rows"\nexpert = "A *cone*."\nstate = "degenerate"\nsha256 = "{digest}"\n'
    listed = tmp_path / "atlas.toml"
    listed.write_text(
        f'[[matrix]]\nname = "packed"\nsource = "a-pack==1.0"\nfile = "inside/rows.npy"\n{common}'
        f'[[matrix]]\nname = "plain"\nsource = "shared"\nfile = "rows.npy"\n{common}'
        f'[[matrix]]\nname = "other"\nsource = "shared"\nfile = "atlas.toml"\n{common}'
        '[[absent]]\npackage = "b"\nwhy = "no weights"\n'
    )
    monkeypatch.setattr(atlas, "MEASURED", ("spectrum", "cosine"))
    monkeypatch.setattr(atlas, "LIST", listed)
    monkeypatch.setattr(atlas, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(atlas, "TABLES", tmp_path / "tables.md")
    monkeypatch.setattr(sys, "argv", ["atlas.py", str(tmp_path), "--real", str(tmp_path)])
    atlas.main()
    written = [(tmp_path / name).read_bytes() for name in ("page.md", "tables.md")]
    sys.argv.append("--saved")
    atlas.main()
    assert [(tmp_path / name).read_bytes() for name in ("page.md", "tables.md")] == written
    page, tables = (text.decode() for text in written)
    assert "2 of 1 kinds" in page
    assert "| Rows | 2 | 2 |" in page
    assert tables.count("A \\*cone\\*.") == 2
    assert "| packed (a-pack) | 60 × 5 |" in tables
    assert "other: other bytes" in tables
    assert "| b | no weights |" in tables
    assert "other bytes" in capsys.readouterr().err


def test_every_listed_matrix_is_judged_by_hand() -> None:
    for one in LISTED["matrix"]:
        entry = atlas.Entry(**one)
        assert entry.expert.endswith("."), entry.name
        assert entry.state in ("healthy", "mild", "degenerate", "undecided"), entry.name
        assert entry.decode in ("", "transposed", *DECODERS), entry.name


def test_the_tables_hold_what_is_listed_and_explain_what_differs() -> None:
    tables = atlas.TABLES.read_text(encoding="utf-8")
    page = atlas.PAGE.read_text(encoding="utf-8")
    names = [one["name"] for one in LISTED["matrix"]]
    assert len(names) == len(set(names)) >= 25
    assert len({one["kind"] for one in LISTED["matrix"]}) >= 10
    for name in names:
        assert f"\n| {atlas.cell(name)}" in tables, name
    differing = [line for line in tables.splitlines() if "**Differs:**" in line]
    assert differing
    assert differing == [
        line for line in page.splitlines() if line in tables and "**Differs" in line
    ]
    assert "not explained" not in tables
