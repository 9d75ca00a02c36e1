"""What each regulariser costs a training step: times beside those of the baseline, and memory.

    python benchmarks/regularizer_cost.py [--size tiny|wt2] [--device cpu|cuda] [--rounds K]
                                          [--only NAME …] [--memory]

Baseline and methods take turns, one step each, in an order that moves on with every round, so that
a busy machine slows all of them alike; a ratio is the median over rounds of a method's step over
the baseline's of the same round, with its quartiles. All start from the same weights and see the
same batch. Before any time is taken, each is checked: the same cross-entropy as its baseline, and
the penalty that the obvious computation gives where there is one.

Two baselines: a tied model, and an untied one for the methods of Inan et al. that are compared
with it (RE, AL, REAL). With ``--memory``, each runs in a process of its own and its peak is shown
(of the device, if that is a GPU). The default size says little about a real one: there, constant
costs of small kernels weigh most.
"""

from __future__ import annotations

import argparse
import copy
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.train.regularizers import (
    AdversarialSoftmax,
    AugmentedLoss,
    CosReg,
    CoupledAdam,
    DOptimal,
    Frage,
    MomentMatch,
    Regularizer,
    Setup,
    Several,
    SpectralNorm,
    SpectrumControl,
    Step,
    Tying,
)


@dataclass(frozen=True)
class Size:
    """Of the model and of a batch."""

    n: int
    d: int
    hidden: int
    layers: int
    batch: int
    length: int


SIZES = {
    "tiny": Size(2_000, 64, 128, 2, 8, 20),
    # AWD-LSTM on WikiText-2: 5,600 tokens a step.
    "wt2": Size(33_278, 400, 1_150, 3, 80, 70),
}


class Model(nn.Module):
    """An LSTM language model whose last layer is as wide as the embedding."""

    def __init__(self, size: Size, *, tied: bool) -> None:
        super().__init__()
        widths = [size.d, *[size.hidden] * (size.layers - 1), size.d]
        self.embed = nn.Embedding(size.n, size.d)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        self.rnns = nn.ModuleList(nn.LSTM(a, b, batch_first=True) for a, b in pairwise(widths))
        self.head = nn.Linear(size.d, size.n, bias=not tied)
        if tied:
            self.head.weight = self.embed.weight

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def set_input_embeddings(self, layer: nn.Module) -> None:
        self.embed = layer  # type: ignore[assignment]

    def set_output_embeddings(self, layer: nn.Module) -> None:
        self.head = layer  # type: ignore[assignment]

    def forward(self, ids: Tensor) -> Tensor:
        states: Tensor = self.embed(ids)
        for rnn in self.rnns:
            states = rnn(states)[0]
        return states


Make = Callable[[Any, Setup], Regularizer | None]


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    make: Make
    tied: bool = True
    #: What the project asks for at the size of WikiText-2.
    bound: float | None = None
    #: Whether the first cross-entropy is that of the baseline.
    same_start: bool = True
    coupled: bool = False


def real(model: Any, setup: Setup) -> Regularizer:
    return Several([Tying.attach(model), AugmentedLoss.attach(model, setup)])


METHODS = (
    Method("baseline", lambda _m, _s: None),
    Method("cosreg", CosReg.attach, bound=1.03),
    Method("sc-exp", SpectrumControl.attach, bound=1.08),
    Method("sc-poly", lambda m, s: SpectrumControl.attach(m, s, prior="polynomial"), bound=1.08),
    Method("spectral-norm", SpectralNorm.attach, same_start=False),
    Method("d-optimal", DOptimal.attach, same_start=False),
    Method("frage", Frage.attach, bound=1.05),
    Method("moment-match", MomentMatch.attach),
    Method("adversarial-softmax", AdversarialSoftmax.attach, same_start=False),
    Method("coupled-adam", lambda _m, _s: None, coupled=True),
    Method("untied", lambda _m, _s: None, tied=False),
    Method("re", Tying.attach, tied=False, bound=1.0, same_start=False),
    Method("al", AugmentedLoss.attach, tied=False, bound=1.4),
    Method("real", real, tied=False, bound=1.4, same_start=False),
)


class Runner:
    """One method with its model, ready to take steps."""

    def __init__(self, method: Method, start: Model, setup: Setup, batch: tuple[Tensor, Tensor]):
        self.method = method
        self.model: Any = copy.deepcopy(start)
        self.reg = method.make(self.model, setup)
        self.inputs, self.targets = batch
        groups = self.reg.parameter_groups() if self.reg else []
        special = {id(p) for group in groups for p in group["params"]}
        groups.append({"params": [p for p in self.model.parameters() if id(p) not in special]})
        if method.coupled:
            self.optimizer: Any = CoupledAdam(groups, [self.model.head.weight])
        else:
            self.optimizer = torch.optim.AdamW(groups)
        if self.reg:
            self.reg.to(self.inputs.device)

    def losses(self) -> tuple[Tensor, Tensor | None]:
        hidden = self.model(self.inputs)
        step = Step(hidden, self.model.head(hidden), self.targets, self.inputs)
        if self.reg:
            step.logits = self.reg.logits(step)
        assert step.logits is not None
        ce = F.cross_entropy(step.logits.flatten(0, 1), self.targets.flatten())
        return ce, self.reg(step) if self.reg else None

    def step(self) -> None:
        ce, penalty = self.losses()
        loss = ce if penalty is None else ce + penalty
        self.optimizer.zero_grad()
        loss.backward()
        if self.reg:
            self.reg.before_step(1e-3)
        self.optimizer.step()
        if self.reg:
            self.reg.after_step(1e-3)


def prepared(size: Size, device: str, names: list[str]) -> list[Runner]:
    """A runner for each method, from the same start on the same batch."""
    torch.manual_seed(0)
    starts = {tied: Model(size, tied=tied).to(device) for tied in (True, False)}
    counts = (1e6 / torch.arange(1, size.n + 1)).round()
    drawn = torch.multinomial(counts, size.batch * (size.length + 1), replacement=True)
    ids = drawn.view(size.batch, size.length + 1).to(device)
    setup = Setup(counts=counts)
    return [
        Runner(method, starts[method.tied], setup, (ids[:, :-1], ids[:, 1:]))
        for method in METHODS
        if method.name in names
    ]


def check(runners: list[Runner]) -> None:
    """Stop unless each method starts where its baseline does, with the penalty it is to have."""
    with torch.no_grad():
        started = {runner.method.name: runner.losses() for runner in runners}
    for runner in runners:
        name = runner.method.name
        base = started.get("baseline" if runner.method.tied else "untied")
        if base is not None and runner.method.same_start:
            require(name, "cross-entropy", started[name][0], base[0])
        penalty = started[name][1]
        if name == "cosreg" and penalty is not None:
            unit = F.normalize(runner.model.head.weight.detach().double(), dim=1)
            total = unit.sum(dim=0)
            expected = (total @ total - len(unit)) / len(unit) ** 2
            require(name, "penalty", penalty, expected)


def require(name: str, what: str, found: Tensor, expected: Tensor) -> None:
    if not torch.isclose(found.double(), expected.double(), rtol=1e-3, atol=1e-7):
        raise SystemExit(f"{name}: its {what} is {float(found)}, it should be {float(expected)}")


def seconds(runner: Runner) -> float:
    if runner.inputs.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    runner.step()
    if runner.inputs.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def timed(runners: list[Runner], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each step by method; the first rounds are not kept."""
    found: dict[str, list[float]] = {runner.method.name: [] for runner in runners}
    for number in range(warm_up + rounds):
        turn = number % len(runners)
        for runner in runners[turn:] + runners[:turn]:
            spent = seconds(runner)
            if number >= warm_up:
                found[runner.method.name].append(spent)
    return found


def peak(name: str, size: str, device: str) -> float:
    """MiB at the peak of three steps in a process of its own."""
    command = [sys.executable, __file__, "--size", size, "--device", device, "--peak-of", name]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(run.stdout)


def show_peak(name: str, size: Size, device: str) -> None:
    (runner,) = prepared(size, device, [name])
    for _ in range(3):
        runner.step()
    if device == "cuda":
        print(torch.cuda.max_memory_allocated() / 2**20)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)


def show(times: dict[str, list[float]], memory: dict[str, float]) -> None:
    print("| method | step | over its baseline | quartiles | asked for at wt2 | memory |")
    print("|---|---|---|---|---|---|")
    for method in METHODS:
        if method.name not in times:
            continue
        name, base = method.name, "baseline" if method.tied else "untied"
        pairs = zip(times[name], times.get(base, times[name]), strict=True)
        ratios = sorted(own / theirs for own, theirs in pairs)
        low, middle, high = statistics.quantiles(ratios, n=4)
        bound = "" if method.bound is None else f"≤ {method.bound:g}"
        share = f"{memory[name] / memory.get(base, memory[name]):.2f}" if name in memory else ""
        print(
            f"| {name} | {1e3 * statistics.median(times[name]):.1f} ms | {middle:.3f} | "
            f"{low:.3f} – {high:.3f} | {bound} | {share} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=[method.name for method in METHODS])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = SIZES[options.size]
    if options.peak_of:
        show_peak(options.peak_of, size, options.device)
        return
    names = [method.name for method in METHODS]
    if options.only:
        names = ["baseline", "untied", *options.only]
    runners = prepared(size, options.device, names)
    check(runners)
    times = timed(runners, max(2, options.rounds))
    del runners
    memory = {}
    if options.memory:
        memory = {name: peak(name, options.size, options.device) for name in times}
    print(f"{size}, {options.device}, torch {torch.__version__}, {options.rounds} rounds\n")
    show(times, memory)


if __name__ == "__main__":
    main()
