"""``embgeo train --experiment inan-subspace``: Figure 1 of Inan et al. 2017."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.numpy import load_file  # noqa: E402

from embgeo.cli.app import run  # noqa: E402
from embgeo.core.errors import BadOption, EmbgeoError  # noqa: E402
from embgeo.io.bounded.settings import parse_table  # noqa: E402
from embgeo.result.analysis import load_analysis  # noqa: E402
from embgeo.training.inan_subspace import (  # noqa: E402
    InanSubspace,
    Point,
    UntiedLstm,
    train_point,
)

SMALL = InanSubspace(
    tokens=400, hidden=6, epochs=30, batch=4, bptt=10, lr=3e-2, betas=(0.0, 1.0), taus=()
)


def text() -> np.ndarray:
    """Rows of a vocabulary of 40, each often enough to be learned."""
    return np.random.default_rng(0).integers(0, 40, 400)


def distance(W: np.ndarray, V: np.ndarray) -> float:
    """√(mean sin²θ), the slow way."""
    U, _ = np.linalg.qr(W.astype(np.float64))
    Q, _ = np.linalg.qr(V.astype(np.float64))
    cosines = np.clip(np.linalg.svd(U.T @ Q, compute_uv=False), 0.0, 1.0)
    return float(np.sqrt(np.mean(1.0 - cosines**2)))


def trained(point: Point, folder: Path, settings: InanSubspace = SMALL) -> dict[str, np.ndarray]:
    train_point(settings, point, text(), 40, folder)
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_the_augmented_loss_draws_the_output_space_to_the_input(tmp_path: Path) -> None:
    found = []
    for beta in (0.0, 1.0):
        weights = trained(Point("beta", beta, beta, 10.0), tmp_path / str(beta))
        norms = np.linalg.norm(weights["encoder.weight"], axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-5)
        found.append(distance(weights["encoder.weight"], weights["decoder.weight"]))
    assert found[0] > 0.8
    assert found[1] < 0.5 * found[0]


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    short = InanSubspace(tokens=400, hidden=4, epochs=1, batch=4, bptt=10)
    point = Point("beta", 0.5, 0.5, 10.0)
    for name in ("one", "other"):
        train_point(short, point, text(), 40, tmp_path / name)
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other")]
    assert files[0] == files[1]
    train_point(short, point, text(), 40, tmp_path / "third", seed=1)
    assert (tmp_path / "third" / "model.safetensors").read_bytes() != files[0]


def test_every_step_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    short = InanSubspace(tokens=400, hidden=4, epochs=2, batch=4, bptt=10)
    train_point(short, Point("tau", 2.0, 1.0, 2.0), text(), 40, tmp_path, advance=told.append)
    assert sum(told) == short.count_steps(400) == 20


def test_a_training_that_diverges_says_so_and_saves_nothing(tmp_path: Path) -> None:
    wild = InanSubspace(tokens=400, hidden=4, epochs=1, batch=4, bptt=10, lr=1e39)
    with pytest.raises(EmbgeoError, match=r"the training diverged: .*; lower lr"):
        train_point(wild, Point("beta", 0.0, 0.0, 10.0), text(), 40, tmp_path / "wild")
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


def test_points_of_both_sweeps() -> None:
    points = InanSubspace(betas=(0.0, 0.5), taus=(2.0,), tau=7.0).points()
    assert [(p.folder, p.beta, p.tau) for p in points] == [
        ("beta/beta=0", 0.0, 7.0),
        ("beta/beta=0.5", 0.5, 7.0),
        ("tau/tau=2", 1.0, 2.0),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden": 0},
        {"tau": -1.0},
        {"betas": (1.5,)},
        {"betas": (0.0, 0.5, 0.0)},
        {"taus": (0.0,)},
        {"betas": (), "taus": ()},
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadOption):
        parse_table(InanSubspace, settings, "--set", None).check()


# --- The command ----------------------------------------------------------------------------------

ARGUMENTS = (
    "--set", "tokens=300", "--set", "hidden=4", "--set", "epochs=1", "--set", "batch=4",
    "--set", "betas=0,1", "--set", "taus=2, 20", "--set", "experiment.bptt=10",
)  # fmt: skip


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).integers(0, 60, (80, 10))
    lines = (" ".join(f"w{row}" for row in line) for line in rows.tolist())
    Path("words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_one_command_trains_measures_and_draws(
    words: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["train", "--experiment", "inan-subspace", "--data", "words.txt", *ARGUMENTS]
    assert run([*given, "-o", "out"]) == 0
    told = capsys.readouterr()
    assert "4/4  tau = 20, seed 0: distance" in told.err
    assert "input against output embedding at τ = 10" in told.out
    record = json.loads((words / "out" / "experiment.json").read_text("utf-8"))
    assert [(p["sweep"], p["value"]) for p in record["points"]] == [
        ("beta", 0.0), ("beta", 1.0), ("tau", 2.0), ("tau", 20.0),
    ]  # fmt: skip
    assert record["deviations"]
    for point in record["points"]:
        home = words / "out" / point["folder"]
        weights = load_file(home / "model.safetensors")
        own = distance(weights["encoder.weight"], weights["decoder.weight"])
        assert point["distance"] == pytest.approx(own, abs=1e-6)
        scalar = load_analysis(home).scalar("subspace.distance")
        assert scalar is not None
        assert scalar.value == point["distance"]
    for parameter in ("beta", "tau"):
        made = words / "out" / "figures" / parameter
        assert {path.name for path in made.iterdir()} == {
            "sweep.csv", "sweep.json", "sweep.pdf", "sweep.svg",
        }  # fmt: skip
        assert len((made / "sweep.csv").read_text("utf-8").splitlines()) == 3


@pytest.mark.slow
def test_an_experiment_is_resumed_and_kept_apart_from_others(
    words: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["train", "--experiment", "inan-subspace", "--data", "words.txt", *ARGUMENTS, "-q"]
    given += ["--set", "taus=", "-o", "out"]
    assert run(given) == 0
    assert run(given) == 2
    assert "holds runs; resume them with --resume" in capsys.readouterr().err
    (words / "out" / "beta" / "beta=1" / "seed-0" / "analysis.json").unlink()
    again: list[float] = []
    train = train_point

    def counted(*arguments: object, **options: object) -> float:
        again.append(arguments[1].value)  # type: ignore[attr-defined]
        return train(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("embgeo.training.inan_subspace.train_point", counted)
    assert run([*given, "--resume"]) == 0
    assert again == [1.0]
    assert run([*given, "--resume", "--set", "hidden=5"]) == 2
    assert "other settings" in capsys.readouterr().err


def test_a_dry_run_of_an_experiment(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["train", "--experiment", "inan-subspace", "--data", "words.txt", *ARGUMENTS]
    assert run([*given, "--dry-run"]) == 0
    assert "4 trainings of " in capsys.readouterr().out
    assert run([*given, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trainings"] == 4
    assert {path.name for path in words.iterdir()} == {"words.txt"}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--set", "batch=9999"], "are too few for 9,999 streams"),
        (["--set", "betas=a"], "is not a list of numbers"),
        (["--set", "model.hidden=4"], "model.hidden is not a setting of the experiment"),
        (["--set", "hiden=4"], "did you mean hidden?"),
        (["--set", "tokens=20"], "20 tokens are too few"),
    ],
)
@pytest.mark.usefixtures("words")
def test_mistakes(extra: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["train", "--experiment", "inan-subspace", "--data", "words.txt", *extra, "-o", "out"]
    assert run(given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not Path("out").exists()


def test_values_that_look_alike_have_folders_of_their_own() -> None:
    folders = [Point("tau", tau, 1.0, tau).folder for tau in (2.0, 0.1, 1e6, 1000001.0)]
    assert folders == ["tau/tau=2", "tau/tau=0.1", "tau/tau=1e+06", "tau/tau=1000001.0"]
