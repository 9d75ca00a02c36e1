"""The cheap tier: against plain computations, for each type, in parts, and over processes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.callbacks import Monitor, row_watch  # noqa: E402
from embgeo.callbacks.row_watch import CHECKS, RowWatch, find_weight  # noqa: E402
from embgeo.core.errors import BadOption  # noqa: E402
from tests.support.processes import in_two_processes  # noqa: E402

N, D = 50, 6
LIVE = "live.norm_median"


def weight(dtype: Any = torch.float32) -> Any:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((N, D))).to(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("columns", [D, 5, 8])
def test_numbers_are_those_of_the_rows(dtype: str, columns: int) -> None:
    W = torch.cat([weight(), weight()], dim=1)[:, :columns].to(getattr(torch, dtype))
    W[3], W[4, 1] = 0.0, float("nan")
    counts = np.random.default_rng(2).permutation(N)
    found = RowWatch(counts).check_rows(W)
    norms = np.linalg.norm(W.double().numpy(), axis=1)
    alive = np.sort(norms[np.isfinite(norms) & (norms > 0)])
    expected = {
        "live.zero_rows": 1,
        "live.nonfinite_rows": 1,
        "live.norm_min": alive[0],
        "live.norm_median": alive[(len(alive) - 1) // 2],
        "live.norm_max": alive[-1],
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    rarest = np.sort(norms[np.argsort(counts)][:5])[2]
    assert found["live.norm_decile_1"] == pytest.approx(rarest, rel=1e-6, nan_ok=True)
    assert "live.unchanged_rows" not in found


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_rows_that_never_change_are_counted_bit_by_bit(dtype: str) -> None:
    W, watch = weight(getattr(torch, dtype)), RowWatch()
    watch.check_rows(W)
    assert watch.check_rows(W)["live.unchanged_rows"] == N
    W[7, 2] = torch.nextafter(W[7, 2].float(), torch.tensor(9.0)) if dtype == "float32" else 8.0
    W[9, 0] = -W[9, 0]
    assert watch.check_rows(W)["live.unchanged_rows"] == N - 2
    W[9, 0] = -W[9, 0]  # back again, and still one that changed
    assert watch.check_rows(W)["live.unchanged_rows"] == N - 2


def test_each_look_reads_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_watch, "SMALL", 0)
    W, watch = weight(), RowWatch()
    watch.check_rows(W)
    W *= 10.0
    seen = [watch.check_rows(W) for _ in range(CHECKS)]
    assert seen[0]["live.norm_max"] > 5 * seen[0]["live.norm_median"]
    assert "live.unchanged_rows" not in seen[0]
    assert seen[-1]["live.unchanged_rows"] == 0
    whole = RowWatch().check_rows(W)
    assert {name: seen[-1][name] for name in whole} == whole


def test_no_copy_of_the_weight_is_kept() -> None:
    watch = RowWatch()
    watch.check_rows(weight())
    held = [one for one in vars(watch).values() if isinstance(one, torch.Tensor)]
    assert all(one.shape == (N,) for one in held)


@pytest.mark.slow
def test_the_embedding_of_a_compiled_model_is_found() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(N, D), torch.nn.Linear(D, D))
    assert find_weight(torch.compile(model, backend="eager")) is model[0].weight


def test_the_cheap_tier_is_for_torch() -> None:
    with pytest.raises(BadOption, match="for torch models"):
        find_weight(np.eye(3))


# --- Rules ------------------------------------------------------------------------------------


def test_rules_are_checked_at_looks_and_at_measurements() -> None:
    rules = ["live.zero_rows == 0", "tokens.damaged_rows == 0", "live.norm_median rise <= 50%"]
    monitor = Monitor(["cosine.mean"], rules=rules, rows_every=1, every=2, on_breach="stop")
    W = weight()
    values = monitor.observe(W, 0)
    assert {f"embgeo/{LIVE}", "embgeo/cosine.mean", "embgeo/tokens.damaged_rows"} <= set(values)
    assert not monitor.stop
    assert monitor.observe(W, 0) == {}
    W[5] = 0.0
    with pytest.warns(UserWarning, match=r"step 1: live.zero_rows is 1, has to be exactly 0"):
        assert "embgeo/cosine.mean" not in monitor.observe(W, 1)
    assert monitor.stop
    with pytest.warns(UserWarning, match=r"step 2: tokens.damaged_rows is 1"):
        monitor.observe(W, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.observe(W, 3)  # said before
    W *= 2.0
    with pytest.warns(UserWarning, match=r"live.norm_median rose"):
        monitor.observe(W, 5)
    assert len(monitor.alarm.breaches) == 3


def test_a_warning_stops_nothing() -> None:
    monitor = Monitor(rules=["live.zero_rows > 0"], rows_every=1)
    with pytest.warns(UserWarning, match="has to be more than 0"):
        monitor.observe(weight(), 1)
    assert not monitor.stop


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rules": ["live.zero_row == 0"]}, "did you mean live.zero_rows"),
        ({"rules": "live.zero_rows == 0"}, "rules is one text"),
        ({"rules": ["wte: live.zero_rows == 0"]}, "is a tensor"),
        ({"on_breach": "panic"}, '"warn" or "stop"'),
        ({"rows_every": 0}, "rows_every is 0"),
        ({"rules": ["live.zero_rows == 0"]}, "rows_every"),
    ],
)
def test_rules_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption, match=says):
        Monitor(**options)


SHARDED = """
import torch
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh

from embgeo.callbacks import Monitor
from embgeo.callbacks.row_watch import RowWatch

torch.distributed.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(1.0, 36.0).reshape(7, 5)
whole[2] = 0.0
sharded, watch = distribute_tensor(whole, mesh, [Shard(0)]), RowWatch(list(range(7)))
assert watch.check_rows(sharded) == RowWatch(list(range(7))).check_rows(whole)
assert watch.check_rows(sharded)["live.unchanged_rows"] == 7
if torch.distributed.get_rank() == 1:
    sharded.to_local()[0] += 1
assert watch.check_rows(sharded)["live.unchanged_rows"] == 6
monitor = Monitor(rules=["live.zero_rows == 0"], rows_every=1, on_breach="stop")
monitor._sound = lambda *_: None
monitor.observe(sharded, 1, report=torch.distributed.get_rank() == 0)
assert monitor.stop
print("agreed", flush=True)
torch.distributed.destroy_process_group()
"""


@pytest.mark.nightly
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without it")
def test_a_weight_whose_rows_are_sharded() -> None:
    assert in_two_processes(SHARDED).count("agreed") == 2
