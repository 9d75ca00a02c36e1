"""The recipes of docs/scale.md, run as they stand there with stand-ins for Spark and Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import embgeo  # noqa: E402
from embgeo.core.matrix import Frequency, Matrix  # noqa: E402
from tests.support.documents import ROOT, blocks  # noqa: E402
from tests.support.matrices import gaussian  # noqa: E402

N, D = 120, 5
RECIPES = blocks(ROOT / "docs" / "scale.md", "python")


def make_parts() -> list[Any]:
    """A table in three partitions, one of them empty."""
    W = gaussian(12, N, D) + 0.3
    table = pa.table(
        {
            "word": [f"w{i}" for i in range(N)],
            "n": np.arange(N, 0, -1),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(W.ravel()), D),
        }
    )
    return [table[:50], table[50:50], table[50:]]


class Spark:
    """What the recipe uses of a DataFrame and of an RDD of rows."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def count(self) -> int:
        return sum(map(len, self.parts))

    def mapInArrow(self, task: Callable[..., Iterable[Any]], schema: str) -> Any:
        assert schema == "state binary"
        batches = [batch for part in self.parts for batch in task(iter(part.to_batches()))]
        rows = [row for batch in batches for row in batch.to_pylist()]
        return type("Result", (), {"rdd": Rows(type("Row", (), row) for row in rows)})


class Rows(list[Any]):
    def map(self, function: Callable[[Any], Any]) -> Rows:
        return Rows(map(function, self))

    def treeReduce(self, merge: Callable[[Any, Any], Any]) -> Any:
        return reduce(merge, self[::-1])


class Ray(Spark):
    """What the recipe uses of a Dataset."""

    def map_batches(self, measure: Any, *, batch_format: str, batch_size: None) -> Ray:
        assert (batch_format, batch_size) == ("pyarrow", None)
        return Ray([measure(part) for part in self.parts])

    def take_all(self) -> list[Any]:
        return [row for part in self.parts for row in part.to_pylist()]


def make_bag(parts: list[Any]) -> Any:
    bag, delayed = pytest.importorskip("dask.bag"), pytest.importorskip("dask").delayed
    return bag.from_delayed([delayed([part]) for part in parts])


@pytest.mark.parametrize(
    ("number", "make"), [(0, Spark), (1, Ray), (2, make_bag)], ids=["Spark", "Ray", "dask"]
)
@pytest.mark.slow
def test_a_recipe_gives_the_numbers_of_the_matrix(
    number: int, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = make_parts()
    exec(RECIPES[number], {"table": make(parts)})
    found = embgeo.load_analysis("result.embgeo")
    assert found.provenance["n"] == N
    order = np.concatenate([range(50), range(50, N)])
    if found.tokens is not None and found.tokens[0] != "w0":
        order = np.concatenate([range(50, N), range(50)])
    W = gaussian(12, N, D) + 0.3
    counts = np.arange(N, 0, -1.0)[order]
    tokens = tuple(f"w{i}" for i in order)
    frequency = Frequency("counts", counts, "the column n")
    expected = embgeo.analyze(Matrix(W[order], "table", tokens=tokens, frequency=frequency))
    for scalar in expected.scalars:
        value = getattr(found.scalar(scalar.name), "value", None)
        known = None if scalar.value is None else pytest.approx(scalar.value, rel=1e-9, abs=1e-12)
        assert value == known, scalar.name
