"""The operations of a backend: numpy's, torch's, and the plain formula."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats.backend.backend import HOST
from embgeo.stats.backend.torch import open_device
from tests.support.devices import MEMORY, SINGLE, WIDE
from tests.support.matrices import gaussian
from tests.support.sampling import each_value

BACKENDS = {"numpy": HOST, **{name: open_device(name, MEMORY) for name in (WIDE, SINGLE)}}
each = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
W = gaussian(120, n=700, d=6)
NARROW = W.astype(np.float32)


@each
def test_arrays_go_there_and_back(backend):
    there = backend.put(NARROW)
    assert backend.put(there) is there
    assert there.dtype == backend.xp.float32
    np.testing.assert_array_equal(backend.to_host(there), NARROW)
    wide = backend.widen(there)
    assert wide.dtype == backend.wide.xp.float64
    np.testing.assert_array_equal(backend.wide.to_host(wide), NARROW.astype(np.float64))
    back = backend.put(wide, backend.xp.float32)
    np.testing.assert_array_equal(backend.to_host(back), NARROW)
    assert backend.to_host(None) is None


def test_a_device_without_float64_leaves_it_to_numpy():
    assert BACKENDS[SINGLE].wide is HOST
    assert BACKENDS[WIDE].wide is BACKENDS[WIDE]
    assert HOST.wide is HOST


@pytest.mark.parametrize("name", [WIDE, SINGLE])
def test_a_constant_is_moved_once_and_goes_with_its_array(name):
    backend = open_device(name, MEMORY)
    queries = W[:3].astype(np.float32)
    elsewhere = backend.constant(queries)
    assert backend.constant(queries) is elsewhere
    backend.release()
    assert backend.constant(queries) is not elsewhere
    del queries
    assert not backend._constants


@each
def test_sums_in_float64(backend):
    rows = np.repeat(np.float32([[1.0, 2.0**-24]]), 1000, axis=0)
    total = backend.wide.to_host(backend.sum64(backend.put(rows)))
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, [1000, 1000 * 2.0**-24], rtol=1e-6)
    wide = backend.wide.to_host(backend.wide.sum64(backend.wide.put(W)))
    np.testing.assert_allclose(wide, W.sum(axis=0), rtol=1e-13)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices_are_added_to(backend, dtype):
    place = backend if dtype is np.float32 else backend.wide
    rows = place.put(W.astype(dtype))
    gram = place.empty_gram(6, rows.dtype)
    for _ in range(2):
        place.add_gram(rows, gram)
    found = np.triu(place.to_host(gram))
    precise = 1e-13 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(found, np.triu(2 * W.T @ W), rtol=precise, atol=700 * precise)


@each
def test_triangular_factors(backend):
    place = backend.wide
    r = place.put(W[:0])
    for rows in (W[:4], W[4:], W[:1]):
        r = place.stack_rows(r, place.put(rows))
    r = place.to_host(r)
    assert np.array_equal(r, np.triu(r))
    np.testing.assert_allclose(r.T @ r, W.T @ W + np.outer(W[0], W[0]), rtol=1e-12)


@each_value
@each
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("rows", [NARROW, gaussian(9, n=40, d=300)], ids=["narrow", "wide"])
def test_largest_entries(backend, k, rows):
    there = backend.put(rows)
    falling = -np.sort(-rows, axis=1)
    kth = backend.to_host(backend.kth_largest(there, k))
    np.testing.assert_array_equal(kth, falling[:, k - 1])
    columns = backend.to_host(backend.topk(there, k))
    largest = np.take_along_axis(rows, columns, axis=1)
    np.testing.assert_array_equal(-np.sort(-largest, axis=1), falling[:, :k])


@each
def test_counts_of_a_histogram(backend):
    values = np.float32([-1.0, -0.9, -0.1, 0.1, 0.6, 0.99, 1.0])
    counts = backend.to_host(backend.histogram(backend.put(values), 4))
    assert counts.dtype == np.int64
    assert counts.tolist() == [2, 1, 1, 3]


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_words_are_the_stored_bits(backend, dtype):
    place = backend if dtype is np.float32 else backend.wide
    words = place.to_host(place.words(place.put(W.astype(dtype))))
    assert words.dtype == np.int64
    np.testing.assert_array_equal(words, W.astype(dtype).view(np.uint32))


@each
def test_extremes_pass_on_a_nan(backend):
    rows = NARROW[:3].copy()
    rows[1, 2], rows[2, 0] = np.nan, -np.inf
    high, low = backend.extremes(backend.put(rows))
    np.testing.assert_array_equal(high, rows.max(axis=1))
    np.testing.assert_array_equal(low, rows.min(axis=1))


@each
@pytest.mark.parametrize("width", [0, 1, 700, 2**30])
def test_slices_are_all_rows_once(backend, width):
    parts = [np.arange(700)[part] for part in backend.slices(700, width)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(700))
    assert max(map(len, parts)) * width <= max(backend.chunk, width)
    assert backend.slices(0, width) == []
