"""Bytes that lie elsewhere: a slice fetches nothing, and what is read is what was asked for."""

import numpy as np

from embgeo.io.bounded.maps import Ranged, view

CONTENT = np.arange(64, dtype=np.uint8)


def test_a_slice_of_a_slice_reads_only_its_own_bytes() -> None:
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> np.ndarray:
        asked.append((start, stop))
        return CONTENT[start:stop]

    whole = Ranged(read, 8, 40)
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
