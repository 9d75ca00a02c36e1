"""Padding by its place, and how many rows samples hold, on either side of each limit."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from embgeo.core.matrix import Frequency
from embgeo.core.options import Options
from embgeo.core.special import SpecialToken
from embgeo.metrics import dimension
from embgeo.metrics.facts import Facts, note_shown
from embgeo.metrics.frequency import Popularity, rank_by_frequency
from embgeo.metrics.neighbors import draw_class_queries
from embgeo.metrics.pairs import measure_positive_halves

N = 100


def padding(zero: list[int], **more: Any) -> list[int]:
    facts = Facts(n=N, d=4, zero=np.array(zero), **more)
    return [row for row in zero if facts.is_padding(row)]


def test_zero_rows_at_the_ends_are_padding() -> None:
    for zero, expected in (
        ([0], [0]),
        ([99], [99]),
        ([97, 98, 99], [97, 98, 99]),
        ([0, 98, 99], [0, 98, 99]),
        ([1], [1]),
        ([0, 1, 99], [0, 1, 99]),
        ([2], []),
        ([40], []),
        ([96, 98, 99], [98, 99]),
        # With 4 of 99 or 98 rows between zero as well, the ends are padding …
        ([0, 20, 40, 60, 80], [0]),
        ([0, 20, 40, 60, 80, 99], [0, 99]),
        # … and with 5, a single row at an end may be zero by chance; two together are not.
        ([0, 20, 40, 60, 80, 90], []),
        ([0, 20, 40, 60, 80, 90, 99], []),
        ([0, 20, 40, 60, 80, 90, 98, 99], [98, 99]),
        # All of the rows are the tail.
        (list(range(N)), list(range(N))),
    ):
        assert padding(zero) == expected


def test_padding_never_occurs_and_has_no_other_token() -> None:
    counts = np.zeros(N)
    counts[0] = 1.0
    assert padding([0, 99], frequency=Frequency("counts", counts, "file")) == [99]
    ranked = Frequency("rank", np.arange(N, 0.0, -1.0), "file")
    assert padding([0, 99], frequency=ranked) == [0, 99]
    tokens = [f"t{row}" for row in range(N)]
    tokens[7] = "[PAD]"
    assert padding([0, 7, 99], tokens=tokens) == [7]
    special = (SpecialToken("t3", 3, ("pad", "eos")), SpecialToken("t4", 4, ("eos",)))
    assert padding([3, 4], tokens=tokens, special=special) == [3]


def test_queries_hold_a_quarter_of_a_million_entries_and_those_of_a_class_half_of_that() -> None:
    counts = Frequency("counts", np.arange(4_000.0), "file")
    for d, size, of_class in ((8, 600, 500), (512, 512, 256), (1000, 300, 200)):
        facts = Facts(n=4_000, d=d, kept=np.arange(4_000), frequency=counts)
        assert len(dimension.draw_queries(facts, facts.kept)) == size
        queries = draw_class_queries(facts, rank_by_frequency(facts))
        assert [len(rows) for rows in queries] == [of_class, of_class]


def test_the_edge_moves_by_a_fourth_of_the_smaller_class() -> None:
    for edge, step in ((40, 10), (60, 10), (80, 5), (3, 0)):
        order = np.arange(N)
        known = Popularity(order, order < edge, np.ones(N), np.ones(N), "")
        assert known.edge_step == step


def test_a_table_that_shows_all_has_no_note() -> None:
    assert [note_shown(n, "tokens", 3) for n in (3, 4)] == ["", "4 tokens, 3 are shown"]


def test_no_halves_of_pairs_that_nobody_asked_for() -> None:
    """Nor without groups, nor of a single row: nothing is read."""
    rows, nothing = np.arange(100), cast("Any", None)
    for n, groups, pairs in ((100, rows % 16, 0), (100, None, 5), (1, rows[:1], 5)):
        options = Options(pairs=pairs)
        facts = Facts(n=n, d=0, kept=rows[:n], groups=groups, options=options)
        assert measure_positive_halves(facts, nothing, nothing, None) is None


def test_pairs_are_unordered() -> None:
    for m, pairs in ((1, 0), (2, 1), (5, 10)):
        assert Facts(n=m, d=2, kept=np.arange(m)).pairs == pairs
