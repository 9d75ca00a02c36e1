"""What a run records besides its scores: memory, movement of rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.loop import facts  # noqa: E402
from embgeo.training.study.run_result import collect_numbers  # noqa: E402
from tests.support.training_runs import CPU, corpus, run, settings, trainer_of  # noqa: E402


@pytest.mark.parametrize("method", ["mle", "untied", "sc-exp"])
def test_movement_is_the_mean_over_rows_of_a_group(tmp_path: Path, method: str) -> None:
    config = settings(method, training={"steps": 3})
    result = run(config, tmp_path)
    (before,) = [trainer_of(complete_settings(settings("mle"))).model]
    old = before.get_input_embeddings().weight.detach().double()
    new = load_file(tmp_path / "model.safetensors")["embedding.weight"].double()
    moved = (new - old).norm(dim=1) / old.norm(dim=1)
    counts = torch.from_numpy(corpus().vocabulary.counts)
    frequent = facts.popular_rows(counts)
    rare = ~frequent & (counts > 0)
    own = result.of_rows["input"]
    assert own["movement.frequent"] == pytest.approx(float(moved[frequent].mean()))
    assert own["movement.rare"] == pytest.approx(float(moved[rare].mean()))
    probed = facts.probe_classes(new[frequent].numpy(), new[rare].numpy())
    assert own.get("frequency.kernel_probe_auc") == pytest.approx(probed)
    assert set(result.of_rows) == ({"input", "output"} if method == "untied" else {"input"})
    assert collect_numbers(result, {})["training.peak_memory"] == result.peak_memory / 1e6  # type: ignore[operator]


def test_the_kernel_probe_is_that_of_scikit_learn_and_sees_what_no_line_separates() -> None:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(0)
    inner, outer = generator.standard_normal((2, 60, 3))
    outer *= 4.0 / np.linalg.norm(outer, axis=1, keepdims=True)
    found = facts.probe_classes(inner, outer)
    assert found is not None
    assert found > 0.95
    order = np.random.default_rng(0)
    X = np.concatenate([inner[order.permutation(60)], outer[order.permutation(60)]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y, fold, areas = np.repeat([0.0, 1.0], 60), np.tile(np.arange(60) % 5, 2), []
    for number in range(5):
        rest, held = fold != number, fold == number
        ridge = KernelRidge(alpha=1.0, kernel="rbf", gamma=1.0 / 6.0)
        ridge.fit(X[rest], y[rest] - y[rest].mean())
        areas.append(roc_auc_score(y[held], ridge.predict(X[held])))
    assert found == pytest.approx(np.mean(areas), abs=1e-9)
    same = facts.probe_classes(*generator.standard_normal((2, 400, 3)))
    assert same == pytest.approx(0.5, abs=0.08)
    assert facts.probe_classes(inner[:9], outer) is None


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="not Linux")
def test_the_peak_of_memory_is_that_since_the_reset() -> None:
    block = np.ones(2**26, dtype=np.uint8)
    high = facts.read_peak(CPU)
    del block
    facts.reset_peak(CPU)
    low = facts.read_peak(CPU)
    assert high is not None
    assert low is not None
    assert high - low > 2**25


def test_the_peak_of_a_gpu_is_what_torch_held(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", asked.append)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 7 + device.index)
    device = torch.device("cuda:1")
    facts.reset_peak(device)
    assert asked == [device]
    assert facts.read_peak(device) == 8
    assert facts.read_peak(torch.device("mps")) is None
