"""Figure 1 of Inan et al. 2017, §6.1: the augmented loss aligns the output space with the input.

    python benchmarks/inan_subspace.py --data TEXT [--betas 0,0.5,1] [--taus 1,10] [--out FOLDER]

The loss is β·J_aug·τ²|V| + (1 − β)·J. The model is an untied two-layer LSTM without regularization,
whose input embedding has rows of norm 1; the text has 20,000 contiguous words. One sweep varies β
at one temperature, the other the temperature at β = 1. The distance between the column spaces of
input embedding and output weights is measured on the saved models; finished ones are kept.

Not as published, or not stated: Adam with a one-cycle learning rate, the gradient clipped; rows of
the input embedding are divided by their norm wherever they are used; the target ỹ is detached; the
words are the first of the text, where the paper draws the place at random.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

import embgeo
from embgeo.core.text import align
from embgeo.core.values import format_number
from embgeo.training.data import Batches, columns, load_corpus
from embgeo.training.methods import AugmentedLoss, Step
from embgeo.training.optimization.optimizers import apply_factor, build_optimizer
from embgeo.training.schedules import OneCycle
from embgeo.training.sections import Adam, DataSettings
from embgeo.training.study.spread import spread

DISTANCE = "subspace.distance"
#: Settings; the first two and the last two are those of the paper.
DEFAULTS: dict[str, Any] = {
    "tokens": 20_000, "hidden": 300, "epochs": 50, "batch": 10, "bptt": 20, "lr": 1e-2, "clip": 1.0,
    "tau": 10.0, "betas": [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
    "taus": [1.0, 2.0, 5.0, 10.0, 20.0, 50.0],
}  # fmt: skip


class UntiedLstm(nn.Module):
    """A two-layer LSTM with an input embedding of rows of norm 1 and an output of its own."""

    def __init__(self, n_tokens: int, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(n_tokens, hidden)
        self.rnn = nn.LSTM(hidden, hidden, num_layers=2)
        self.decoder = nn.Linear(hidden, n_tokens, bias=False)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def embedding(self) -> Tensor:
        """Return the input embedding with rows of norm 1."""
        return F.normalize(self.encoder.weight, dim=1)

    def forward(
        self, inputs: Tensor, state: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the logits, shape (T, B, N), and the state to carry on."""
        raw, (h, c) = self.rnn(F.embedding(inputs, self.embedding()), state)
        return self.decoder(raw), (h.detach(), c.detach())


def train_point(
    settings: Mapping[str, Any],
    beta: float,
    tau: float,
    rows: npt.NDArray[np.int64],
    n_tokens: int,
    folder: Path,
    *,
    seed: int = 0,
    device: str = "cpu",
) -> None:
    """Train with β and τ on rows of a vocabulary of `n_tokens`, and save ``model.safetensors``.

    The file holds ``encoder.weight`` (rows of norm 1) and ``decoder.weight``.
    """
    torch.manual_seed(seed)
    model = UntiedLstm(n_tokens, settings["hidden"]).to(device)
    augmented = AugmentedLoss(model.embedding, gamma=1.0 / tau, tau=tau)
    batches = Batches(columns(rows, settings["batch"]), settings["bptt"], seed=seed)
    total = settings["epochs"] * sum(1 for _ in batches)
    chosen = Adam(lr=settings["lr"], weight_decay=0.0)
    optimizer = build_optimizer(chosen, [{"params": list(model.parameters())}])
    schedule = OneCycle(warm_up=0.1)
    scale = beta * tau**2 * n_tokens
    done = 0
    for epoch in range(settings["epochs"]):
        state = None
        for window in batches:
            inputs, targets = window.inputs.to(device), window.targets.to(device)
            logits, state = model(inputs, None if window.first else state)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            step = Step(logits=logits, targets=targets)
            objective = (1.0 - beta) * loss
            if scale:
                objective = objective + scale * augmented(step)
            optimizer.zero_grad()
            objective.backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings["clip"])
            apply_factor(optimizer, schedule(done, total, epoch))
            optimizer.step()
            done += 1
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise SystemExit(f"{folder}: the training diverged; lower --lr")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {"encoder.weight": model.embedding(), "decoder.weight": model.decoder.weight}
    weights = {name: w.detach().cpu().contiguous() for name, w in weights.items()}
    save_file(weights, folder / "model.safetensors")


def list_points(settings: Mapping[str, Any]) -> list[tuple[str, float, float, float]]:
    """List every training: the parameter that its sweep varies, its value, β and τ."""
    of_beta = [("beta", beta, beta, settings["tau"]) for beta in settings["betas"]]
    return of_beta + [("tau", tau, 1.0, tau) for tau in settings["taus"]]


def measure_point(folder: Path) -> embgeo.Analysis:
    """Analyze a model, and save the analysis, which marks the point as finished."""
    model = folder / "model.safetensors"
    matrix = embgeo.load(model, tensor="encoder.weight", output="decoder.weight")
    found = embgeo.analyze(matrix, sections=("subspace", "spectrum"), reference=False)
    found.save(folder)
    return found


def run_sweeps(
    settings: Mapping[str, Any], data: Path, out: Path, seeds: int, device: str
) -> list[dict[str, Any]]:
    """Train and measure every point that is not finished, and return their numbers."""
    chosen = DataSettings(path=str(data), min_count=1, tokens=settings["tokens"])
    corpus = load_corpus(chosen)
    record, points = out / "experiment.json", []
    identity = {"settings": dict(settings), "files": dict(corpus.files)}
    if record.exists() and json.loads(record.read_text("utf-8"))["identity"] != identity:
        raise SystemExit(f"{out} holds the experiment with other settings or on another text")
    out.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        for parameter, value, beta, tau in list_points(settings):
            home = out / parameter / f"{parameter}={value!r}" / f"seed-{seed}"
            if not (home / "analysis.json").is_file():
                size = len(corpus.vocabulary)
                train_point(settings, beta, tau, corpus.train, size, home, seed=seed, device=device)
                measure_point(home)
            scalar = embgeo.load_analysis(home).scalar(DISTANCE)
            print(f"{parameter} = {value:g}, seed {seed}: distance {scalar.text}", flush=True)
            points.append(
                {"sweep": parameter, "value": value, "seed": seed, "distance": scalar.value}
                | {"chance": scalar.reference, "folder": home.relative_to(out).as_posix()}
            )
            record.write_text(json.dumps({"identity": identity, "points": points}, indent=1))
    return points


def draw_sweeps(points: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw the distance against each parameter, as ``embgeo figures`` does."""
    for parameter in ("beta", "tau"):
        own = [one for one in points if one["sweep"] == parameter]
        if len({one["value"] for one in own}) > 1:
            homes = [out / one["folder"] for one in own]
            to, formats = out / "figures" / parameter, ("pdf", "svg")
            embgeo.figures(*homes, figure="sweep", format=formats, parameter=parameter, out=to)


def tabulate(points: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table for each sweep."""
    for parameter in ("beta", "tau"):
        own = [one for one in points if one["sweep"] == parameter]
        rows = [[parameter, "subspace distance", "chance"]]
        for value in dict.fromkeys(one["value"] for one in own):
            at = [one for one in own if one["value"] == value]
            held = spread([one["distance"] for one in at])
            assert held is not None
            rows.append([f"{value:g}", held.text, format_number(at[0]["chance"] or 0.0)])
        yield from align(rows) if own else ()


def parse_list(text: str) -> list[float]:
    """Parse ``0,0.5,1``; empty for no sweep."""
    return [float(part) for part in text.split(",") if part]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a text, or a folder with splits")
    parser.add_argument("--out", type=Path, default=Path("inan-subspace"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    for name, value in DEFAULTS.items():
        kind = parse_list if isinstance(value, list) else type(value)
        parser.add_argument(f"--{name}", type=kind, default=value)
    options = parser.parse_args(given)
    settings = {name: getattr(options, name) for name in DEFAULTS}
    points = run_sweeps(settings, options.data, options.out, options.seeds, options.device)
    draw_sweeps(points, options.out)
    print(*tabulate(points), sep="\n")


if __name__ == "__main__":
    main()
