"""Bytes that lie elsewhere: a slice fetches nothing, and what is read is what was asked for."""

from pathlib import Path

import numpy as np
import pytest

from embgeo.files.maps import Ranged, map_file, view
from embgeo.io.load import open_checkpoint
from embgeo.io.places import local
from tests.support.mutants import SAMPLES, Sample

CONTENT = np.arange(64, dtype=np.uint8)


def test_a_slice_of_a_slice_reads_only_its_own_bytes() -> None:
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> np.ndarray:
        asked.append((start, stop))
        return CONTENT[start:stop]

    whole = Ranged(read, Path, 8, 40)
    part = whole[4:][:12]
    assert (len(whole), len(part), len(whole[40:50])) == (32, 12, 0)
    assert not asked
    assert part.tobytes() == CONTENT[12:24].tobytes()
    assert bytes(part.data) == CONTENT[12:24].tobytes()
    rows = view(part, np.dtype("<u2"), (2, 2), offset=1)
    assert rows.tobytes() == CONTENT[14:22].tobytes()
    assert asked == [(12, 24)] * 3
    assert whole[:-30].tobytes() == CONTENT[8:10].tobytes()
    assert whole[5:2].tobytes() == b""


@pytest.mark.parametrize("seed", [s for s in SAMPLES if s.open != "."], ids=lambda s: s.name)
@pytest.mark.usefixtures("workers_here")
def test_every_format_reads_ranges_as_it_reads_a_map(
    seed: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed.needs:
        pytest.importorskip(seed.needs)
    (tmp_path / seed.file).write_bytes(seed.wrap(seed.make(tmp_path)))
    path, count = tmp_path / (seed.open or seed.file), 0
    expected = read(path)

    def as_ranges(file: Path, **_: bool) -> Ranged:
        nonlocal count
        count += 1
        data = map_file(file)
        return Ranged(lambda start, stop: data[start:stop], lambda: file, 0, len(data))

    monkeypatch.setattr(local, "map_file", as_ranges)
    assert read(path) == expected
    assert count


def read(path: Path) -> tuple[object, ...]:
    found = open_checkpoint(path)
    arrays = [
        (t.name, t.shape, t.dtype, t.open().tobytes()) for t in found.tensors if not t.problem
    ]
    return arrays, found.tokens, found.notes, found.files
