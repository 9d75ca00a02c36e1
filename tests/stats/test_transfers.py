"""What goes to a device and how often it is waited for, counted on a pretend device."""

from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

from embgeo.core.matrix import Matrix  # noqa: E402
from embgeo.core.options import Options  # noqa: E402
from embgeo.core.progress import Progress  # noqa: E402
from embgeo.measure.analyze import analyze  # noqa: E402
from embgeo.stats.backend import executor  # noqa: E402
from embgeo.stats.backend.torch import TorchBackend  # noqa: E402
from embgeo.stats.resources import Resources  # noqa: E402

D, BLOCK, BLOCKS = 24, 100, 6
ATEN = torch.ops.aten
#: Kernels whose result has to be known before the next one begins.
WAITS = [ATEN._local_scalar_dense.default, ATEN.nonzero.default, ATEN._unique2.default]

Counts = tuple[Counter[str], Counter[str], Counter[str]]


def count(memory: int, **options: Any) -> Counts:
    """Count blocks sent, arrays sent and times waited for the device, by stage of an analysis.

    In a process of its own: torch knows the device as long as a process lasts.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        return alone.submit(count_here, memory, options).result()


def count_here(memory: int, options: dict[str, Any]) -> Counts:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return count_with(monkeypatch, memory, options)


def count_with(monkeypatch: pytest.MonkeyPatch, memory: int, options: dict[str, Any]) -> Counts:
    from tests.support import pretend_device

    blocks, sent, waited = Counter[str](), Counter[str](), Counter[str]()
    stage = [""]
    call, upload = pretend_device.call_kernel, TorchBackend.upload

    def count_kernel(func: Any, args: Any, kwargs: Any) -> Any:
        here = any(
            isinstance(leaf, pretend_device.Pretended) for leaf in pretend_device.tree_leaves(args)
        )
        if func is ATEN._to_copy.default and "device" in kwargs:
            waited[stage[0]] += here
            sent[stage[0]] += torch.device(kwargs["device"]).type == pretend_device.NAME
        waited[stage[0]] += here and func in WAITS
        return call(func, args, kwargs)

    def count_block(self: TorchBackend, *given: Any) -> Any:
        blocks[stage[0]] += 1
        return upload(self, *given)

    def open_device(_name: str, _memory: int) -> TorchBackend:
        return TorchBackend("pretend", "pretend:0", has_float64=True, memory=memory)

    class Here:
        """Reads ahead in this thread, as the modes of torch hold in one thread."""

        submit = staticmethod(lambda work, *given: _done(work(*given)))

    monkeypatch.setattr(pretend_device, "call_kernel", count_kernel)
    monkeypatch.setattr(TorchBackend, "upload", count_block)
    monkeypatch.setattr(executor, "open_device", open_device)
    monkeypatch.setattr(executor, "ThreadPoolExecutor", lambda _threads: nullcontext(Here))
    monkeypatch.setattr(executor, "MOST_ROWS", BLOCK)
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", 0)
    rows = np.random.default_rng(0).standard_normal((BLOCK * BLOCKS, D)).astype(np.float32)
    with pretend_device.pretend():
        found = analyze(
            Matrix(rows + 0.4),
            options=Options(**options),
            reference=False,
            resources=Resources(device="pretend"),
            progress=Progress(
                start=lambda what, _rows: stage.__setitem__(0, what.split(" ", 1)[1])
            ),
        )
    assert found.provenance["device"] == "pretend"
    return blocks, sent, waited


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_each_block_is_sent_once_and_stays_where_there_is_room() -> None:
    blocks, sent, waited = count(2**30)
    assert blocks == {"first pass": BLOCKS}
    assert waited["first pass"] <= 20 * BLOCKS
    assert waited["second pass"] <= 45 * BLOCKS
    assert sent["second pass"] <= 25 * BLOCKS


def test_each_pass_sends_each_block_once_where_there_is_none() -> None:
    blocks, _, _ = count(120_000)
    assert blocks["first pass"] == blocks["second pass"] >= BLOCKS


def test_a_tile_of_pairs_sends_nothing_and_waits_for_four_numbers() -> None:
    _, sent, waited = count(2**30, pairs=None)
    tiles = BLOCKS * (BLOCKS + 1) // 2
    assert sent["all pairs"] <= 2 * BLOCKS + 2  # indices of blocks, and the empty histogram
    assert waited["all pairs"] <= 6 * tiles
