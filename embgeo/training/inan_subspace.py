"""Figure 1 of Inan et al. 2017: the augmented loss aligns the output space with the input space.

The loss is β·J_aug·τ²|V| + (1 − β)·J. The model is an untied two-layer LSTM without regularization,
whose input embedding has rows of norm 1; the text has 20,000 contiguous words. One sweep varies β
at one temperature, the other the temperature at β = 1. The distance between the column spaces of
input embedding and output weights is measured on the saved models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.training.data import Batches, columns
from embgeo.training.loop.checkpoint import MODEL_NAME, write
from embgeo.training.methods import AugmentedLoss, Step
from embgeo.training.optimization import apply_factor, build_optimizer, build_schedule
from embgeo.training.sections import Positive, Unit, Whole

NAME = "inan-subspace"
SOURCE = "Inan et al. 2017, §6.1 and Fig. 1"
DEVIATIONS = (
    "Adam with a one-cycle learning rate, the gradient clipped: the paper does not say how it "
    "trains here",
    "rows of the input embedding are divided by their norm wherever they are used",
    "the target ỹ of the augmented loss is detached",
    "the 20,000 words are the first of the text; the paper draws the place at random",
)


@dataclass(frozen=True, slots=True)
class InanSubspace:
    """Settings of the experiment; the defaults are from the paper where it states them."""

    #: Contiguous words to train on.
    tokens: Whole = 20_000
    #: Units of each of the two layers, and width of the embedding.
    hidden: Whole = 300
    epochs: Whole = 50
    batch: Whole = 10
    bptt: Whole = 20
    #: The highest learning rate of the run.
    lr: Positive = 1e-2
    #: Largest norm of the gradient.
    clip: Positive = 1.0
    #: The temperature of the sweep over β.
    tau: Positive = 10.0
    #: Empty for no sweep of β.
    betas: tuple[Unit, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    #: Temperatures at β = 1; empty for no sweep.
    taus: tuple[Positive, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

    def check(self) -> None:
        """Refuse settings that make no sense."""
        for name, values in (("betas", self.betas), ("taus", self.taus)):
            if len(set(values)) < len(values):
                raise BadOption(f"{name} is {list(values)}", way_out="give each once")
        if not self.betas and not self.taus:
            raise BadOption("nothing is swept", where="betas and taus", way_out="give some values")

    def count_steps(self, tokens: int) -> int:
        """Count the windows of all epochs."""
        return self.epochs * -(-(tokens // self.batch - 1) // self.bptt)

    def points(self) -> tuple[Point, ...]:
        """Return every training of the sweeps, each once."""
        of_beta = [Point("beta", beta, beta, self.tau) for beta in self.betas]
        of_tau = [Point("tau", tau, 1.0, tau) for tau in self.taus]
        return (*of_beta, *of_tau)


@dataclass(frozen=True, slots=True)
class Point:
    """One training of a sweep."""

    sweep: str
    #: The value of the parameter that the sweep varies.
    value: float
    beta: float
    tau: float

    @property
    def folder(self) -> str:
        """Folder of its files, relative to the folder of the experiment."""
        short = f"{self.value:g}"
        exact = short if float(short) == self.value else repr(self.value)
        return f"{self.sweep}/{self.sweep}={exact}"


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
    settings: InanSubspace,
    point: Point,
    rows: npt.NDArray[np.int64],
    n_tokens: int,
    folder: Path,
    *,
    seed: int = 0,
    device: str = "cpu",
    advance: Callable[[int], None] = lambda _steps: None,
) -> float:
    """Train one point of a sweep and save its model as ``model.safetensors``.

    The file holds ``encoder.weight`` (rows of norm 1) and ``decoder.weight``.

    `rows`: the text, as rows of the vocabulary. `n_tokens`: size of the vocabulary. `folder`:
    created if it does not exist. `advance`: called after a step. Returns the mean cross-entropy of
    the last epoch, in nats.
    """
    torch.manual_seed(seed)
    model = UntiedLstm(n_tokens, settings.hidden).to(device)
    augmented = AugmentedLoss(model.embedding, gamma=1.0 / point.tau, tau=point.tau)
    batches = Batches(columns(rows, settings.batch), settings.bptt, seed=seed)
    total = settings.count_steps(len(rows))
    optimizer = build_optimizer("adam", [{"params": list(model.parameters())}], {"lr": settings.lr})
    schedule = build_schedule("one-cycle", {"warm_up": 0.1})
    scale = point.beta * point.tau**2 * n_tokens
    losses: list[float] = []
    done = 0
    for epoch in range(settings.epochs):
        losses, state = [], None
        for window in batches:
            inputs, targets = window.inputs.to(device), window.targets.to(device)
            logits, state = model(inputs, None if window.first else state)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            losses.append(loss.item())
            step = Step(logits=logits, targets=targets)
            objective = (1.0 - point.beta) * loss
            if scale:
                objective = objective + scale * augmented(step)
            optimizer.zero_grad()
            objective.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            apply_factor(optimizer, schedule(done, total, epoch))
            optimizer.step()
            done += 1
            advance(1)
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise EmbgeoError(
            "the training diverged: weights are not finite", where=folder, way_out="lower lr"
        )
    save(model, folder)
    return float(np.mean(losses))


def save(model: UntiedLstm, folder: Path) -> None:
    """Save both matrices, as ``model.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        "encoder.weight": model.embedding().detach().cpu().contiguous(),
        "decoder.weight": model.decoder.weight.detach().cpu().contiguous(),
    }
    write(folder / MODEL_NAME, to_bytes(weights))
