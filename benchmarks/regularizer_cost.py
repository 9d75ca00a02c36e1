"""What each method costs a training step: times next to those of the baseline, and memory.

    python benchmarks/regularizer_cost.py [--size tiny|reduced|wt2] [--device cpu|cuda]
                                          [--precision float32|tf32|bf16] [--rounds K]
                                          [--only NAME …] [--memory]

Timed are whole steps of the loop of `embgeo train`, with AWD-LSTM under AdamW. The methods take
turns, one step each, in an order that moves on with every round, so that a busy machine slows all
of them alike; a ratio is the median over rounds of a method's step over its baseline's of the same
round, with its quartiles. On a CPU, times are those of the processor, which other programs disturb
less. All start from the same weights and see the same batches. Before any time is taken, each is
checked: the same cross-entropy as its baseline, and the penalty that the obvious computation gives
where there is one.

Two baselines: a tied model, and an untied one for the methods of Inan et al. that are compared with
it (AL, RE, REAL). With ``--memory``, each runs in a process of its own and its peak is shown, that
of the device if that is a GPU, or else (on Linux) what was added to the interpreter and torch. The
size ``tiny`` says little about a real one: there, constant costs of small kernels weigh most.
``reduced`` is AWD-LSTM on WikiText-2 at half the width, a quarter of the vocabulary and of the
batch.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.harness.steps import show_ratios, time_steps
from benchmarks.harness.zipf import zipf_corpus
from embgeo.training.data import Corpus
from embgeo.training.loop.distributed import ProcessGroup, numerics
from embgeo.training.loop.facts import read_peak, reset_peak
from embgeo.training.loop.loop import Trainer
from embgeo.training.methods import METHODS
from embgeo.training.settings import from_tables


@dataclass(frozen=True)
class Size:
    """Of the model and of a batch."""

    n: int
    d: int
    hidden: int
    layers: int
    batch: int
    bptt: int


SIZES = {
    "tiny": Size(2_000, 64, 128, 2, 8, 20),
    "reduced": Size(8_320, 200, 575, 3, 20, 70),
    # AWD-LSTM on WikiText-2: 5,600 tokens a step.
    "wt2": Size(33_278, 400, 1_150, 3, 80, 70),
}

#: What the project asks for at the size of WikiText-2.
BOUNDS = {
    "cosreg": 1.03,
    "sc-exp": 1.08,
    "sc-poly": 1.08,
    "frage": 1.05,
    "al": 1.4,
    "re": 1.0,
    "real": 1.4,
}


def corpus_of(size: Size) -> Corpus:
    """Enough for four windows."""
    return zipf_corpus(size.n, size.batch * (size.bptt * 4 + 1))


def make_loop(name: str, size: Size, device: str, precision: str) -> Trainer:
    """The training of one method, before its first step."""
    config = from_tables(
        {
            "compare": [name],
            "model": {"d": size.d, "hidden": size.hidden, "layers": size.layers},
            "training": {
                "batch": size.batch,
                "bptt": size.bptt,
                "clip": 0.25,
                "device": device,
                "precision": precision,
                "epochs": 1_000_000,
            },
        }
    )
    return Trainer(config, corpus_of(size), torch.device(device), ProcessGroup())


def baseline(name: str) -> str:
    """The plain model with as many matrices as the method's reference has: what a step costs."""
    return "untied" if METHODS[name].reference == "untied" else "mle"


def check(loops: dict[str, Trainer], size: Size) -> None:
    """Stop unless each method starts where its baseline does, with the penalty it is to have.

    RE and REAL start as the tied model.
    """
    started = {name: cross_entropy(trainer, size) for name, trainer in loops.items()}
    for name, trainer in loops.items():
        base = "mle" if METHODS[name].tied else baseline(name)
        if base in started:
            require(name, "cross-entropy", started[name], started[base])
        if name == "cosreg":
            model: Any = trainer.model
            unit = F.normalize(model.get_output_embeddings().weight.detach().double(), dim=1)
            total = unit.sum(dim=0)
            expected = (total @ total - len(unit)) / len(unit) ** 2
            require(name, "penalty", trainer.regularizer().detach(), expected)


@torch.no_grad()
def cross_entropy(trainer: Trainer, size: Size) -> Tensor:
    """Of a few tokens, without dropout."""
    ids = torch.arange(21, device=trainer.device).unsqueeze(1) % size.n
    with trainer.evaluated() as model:
        logits = model.head(model(ids[:-1]).hidden)
    return F.cross_entropy(logits.flatten(0, 1), ids[1:].flatten())


def require(name: str, what: str, found: Tensor, expected: Tensor) -> None:
    if not torch.isclose(found.double(), expected.double(), rtol=1e-3, atol=1e-7):
        raise SystemExit(f"{name}: its {what} is {float(found)}, it should be {float(expected)}")


def peak(name: str, options: argparse.Namespace) -> float:
    """MiB at the peak of three steps in a process of its own."""
    command = [sys.executable, __file__, "--size", options.size, "--device", options.device]
    command += ["--precision", options.precision, "--peak-of", name]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(run.stdout)


def show_peak(name: str, size: Size, device: str, precision: str) -> None:
    place = torch.device(device)
    reset_peak(place)
    before = read_peak(place) or 0
    trainer = make_loop(name, size, device, precision)
    for _ in range(3):
        trainer.step()
    print(((read_peak(place) or 0) - before) / 2**20)


def show(times: dict[str, list[float]], memory: dict[str, float]) -> None:
    print("| method | step | over its baseline | quartiles | asked for at wt2 | memory over it |")
    print("|---|---|---|---|---|---|")
    for name, own in times.items():
        base = baseline(name)
        bound = f"≤ {BOUNDS[name]:g}" if name in BOUNDS else ""
        share = f"{memory[name] / memory[base]:.2f}" if name in memory else ""
        print(
            f"| {name} | {1e3 * statistics.median(own):.1f} ms | {show_ratios(own, times[base])} | "
            f"{bound} | {share} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=METHODS)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = SIZES[options.size]
    with numerics(options.precision, torch.device(options.device)):
        if options.peak_of:
            show_peak(options.peak_of, size, options.device, options.precision)
            return
        chosen = set(options.only or METHODS) | {"mle", "untied"}
        names = [name for name in METHODS if name in chosen]
        loops = {name: make_loop(name, size, options.device, options.precision) for name in names}
        check(loops, size)
        steps = {name: trainer.step for name, trainer in loops.items()}
        # The gradients of one method are no memory of the others.
        times = time_steps(
            steps,
            options.device,
            max(2, options.rounds),
            lambda name: loops[name].optimizer.zero_grad(set_to_none=True),
        )
    loops.clear()
    steps.clear()
    gc.collect()
    memory = {name: peak(name, options) for name in times} if options.memory else {}
    print(f"{size}, {options.device}, {options.precision}, torch {torch.__version__}, ", end="")
    print(f"{options.rounds} rounds\n")
    show(times, memory)


if __name__ == "__main__":
    main()
