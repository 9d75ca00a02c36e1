"""``benchmarks/inan_subspace.py``: Figure 1 of Inan et al. 2017."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.numpy import load_file  # noqa: E402

import embgeo  # noqa: E402
from benchmarks.inan_subspace import DEFAULTS, UntiedLstm, main, train_point  # noqa: E402

SMALL = DEFAULTS | {"hidden": 6, "epochs": 30, "batch": 4, "bptt": 10, "lr": 3e-2}


def distance(weights: dict[str, np.ndarray]) -> float:
    """√(mean sin²θ), the slow way."""
    U, Q = (
        np.linalg.qr(weights[f"{one}.weight"].astype(float))[0] for one in ("encoder", "decoder")
    )
    cosines = np.clip(np.linalg.svd(U.T @ Q, compute_uv=False), 0.0, 1.0)
    return float(np.sqrt(np.mean(1.0 - cosines**2)))


def trained(folder: Path, beta: float, seed: int = 0, **settings: float) -> dict[str, np.ndarray]:
    """Train on rows of a vocabulary of 40, each often enough to be learned."""
    text = np.random.default_rng(0).integers(0, 40, 400)
    train_point(SMALL | settings, beta, 10.0, text, 40, folder, seed=seed)
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_the_augmented_loss_draws_the_output_space_to_the_input(tmp_path: Path) -> None:
    plain, aligned = (trained(tmp_path / str(beta), beta) for beta in (0.0, 1.0))
    for weights in (plain, aligned):
        norms = np.linalg.norm(weights["encoder.weight"], axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-5)
    assert distance(plain) > 0.8
    assert distance(aligned) < 0.5 * distance(plain)


def test_equal_seeds_give_equal_numbers(tmp_path: Path) -> None:
    one, same, other = (
        trained(tmp_path / f"{place}", 0.5, seed, epochs=1) for place, seed in enumerate((0, 0, 1))
    )
    for name, weights in one.items():
        np.testing.assert_array_equal(weights, same[name])
        assert not np.array_equal(weights, other[name])


def test_a_training_that_diverges_says_so_and_saves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="the training diverged; lower --lr"):
        trained(tmp_path / "wild", 0.0, epochs=1, lr=1e39)
    assert not (tmp_path / "wild").exists()


def test_the_loss_is_that_of_the_paper() -> None:
    """β·J_aug·τ²|V| + (1 − β)·J, with J_aug the mean of KL(ỹ‖ŷ)."""
    from embgeo.training.methods import AugmentedLoss, Step

    torch.manual_seed(0)
    model, tau = UntiedLstm(12, 5), 3.0
    targets = torch.tensor([[1, 4], [7, 1], [0, 11]])
    logits, _ = model(torch.tensor([[0, 1], [1, 4], [7, 1]]), None)
    L = model.embedding().detach()
    wanted = torch.softmax(L[targets] @ L.T / tau, -1)
    given = torch.softmax(logits.detach() / tau, -1)
    kl = (wanted * (wanted.log() - given.log())).sum(-1).mean()
    augmented = AugmentedLoss(model.embedding, gamma=1.0 / tau, tau=tau)
    assert augmented(Step(logits=logits, targets=targets)).item() == pytest.approx(
        kl.item(), rel=1e-4
    )


@pytest.mark.slow
def test_sweeps_are_trained_measured_drawn_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.random.default_rng(1).integers(0, 60, (80, 10))
    data, out = tmp_path / "words.txt", tmp_path / "out"
    data.write_text("".join(" ".join(f"w{row}" for row in line) + "\n" for line in rows.tolist()))
    given = ["--data", str(data), "--out", str(out), "--tokens", "300", "--hidden", "4"]
    given += ["--epochs", "1", "--batch", "4", "--betas", "0,1", "--taus", "2,20"]
    main(given)
    assert "tau  subspace distance" in capsys.readouterr().out
    points = json.loads((out / "experiment.json").read_text("utf-8"))["points"]
    of_sweeps = [("beta", 0.0), ("beta", 1.0), ("tau", 2.0), ("tau", 20.0)]
    assert [(p["sweep"], p["value"]) for p in points] == of_sweeps
    for point in points:
        home = out / point["folder"]
        own = distance(load_file(home / "model.safetensors"))
        assert point["distance"] == pytest.approx(own, abs=1e-6)
        assert point["distance"] == embgeo.load_analysis(home)["subspace.distance"].value
    for parameter in ("beta", "tau"):
        csv = out / "figures" / parameter / "sweep.csv"
        assert len(csv.read_text("utf-8").splitlines()) == 3
    stamps = {p: p.stat().st_mtime_ns for p in out.rglob("model.safetensors")}
    missing = out / points[1]["folder"]
    (missing / "analysis.json").unlink()
    main(given)
    changed = [p.parent for p, at in stamps.items() if p.stat().st_mtime_ns != at]
    assert changed == [missing]
    with pytest.raises(SystemExit, match="with other settings"):
        main([*given, "--lr", "0.5"])
