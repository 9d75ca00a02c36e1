"""``source.json`` in a stranger's model folder costs next to nothing, whatever it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embgeo.core.errors import UnreadableFile
from embgeo.core.source import Source
from embgeo.io.remote import source_record
from embgeo.io.remote.places import find_here
from embgeo.io.remote.source_record import SOURCE_RECORD, ReducedSource, read_source

RECORD = SOURCE_RECORD.to_json(ReducedSource("hf://org/name", "1" * 40, 1, 2, False, (), ()))


def write(folder: Path, **changed: Any) -> Path:
    (folder / "source.json").write_text(json.dumps(RECORD | changed))
    return folder


def test_a_record_is_read(tmp_path: Path) -> None:
    found = read_source(write(tmp_path))
    assert found is not None
    assert found.note.startswith("from hf://org/name, commit 111111111111: 0.00 MB of 0.00 MB")


@pytest.mark.parametrize(
    "changed",
    [{"read": 10**400, "size": 10**400}, {"read": -1}, {"read": 3}, {"size": "2"}, {"format": "x"}],
)
def test_what_is_not_a_record_is_passed_over(changed: dict[str, Any], tmp_path: Path) -> None:
    assert read_source(write(tmp_path, **changed)) is None


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    assert read_source(write(tmp_path, padding=" " * source_record._MOST_BYTES)) is None


def test_arrays_next_to_it_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "arrays.npz").write_bytes(b"PK\x03\x04 damaged")
    assert read_source(write(tmp_path)) is not None


def test_the_note_is_one_printable_line(tmp_path: Path) -> None:
    found = read_source(write(tmp_path, source="a\n\x1b[2J" * 1000, commit="\n"))
    assert found is not None
    assert found.note.isprintable()
    assert len(found.note) < 300


def test_sizes_beyond_numbers_in_a_cached_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out of the message for a model whose weights are not in the cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    snapshot = tmp_path / "models--org--name/snapshots" / ("1" * 40)
    snapshot.mkdir(parents=True)
    (tmp_path / "models--org--name/refs").mkdir()
    (tmp_path / "models--org--name/refs/main").write_text("1" * 40)
    (snapshot / "config.json").write_text(f'{{"vocab_size": 1{"0" * 400}, "hidden_size": 4}}')
    with pytest.raises(UnreadableFile, match=r"name it hf://org/name$"):
        find_here(Source("org/name"))
