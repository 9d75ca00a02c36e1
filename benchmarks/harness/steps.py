"""Training steps of several models by turns, as a table of tokens a second over a peer's."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from embgeo.training.loop.distributed import numerics

S = TypeVar("S")
Steps = dict[str, Callable[[], object]]


def compare_speed(
    about: str | None,
    sizes: Mapping[str, S],
    check: Callable[[S, str], None],
    prepare: Callable[[S, str], tuple[Steps, float]],
) -> None:
    """Read the command line, check the answers of a size, and print the table.

    `prepare` gives the steps, that of the peer first, and the tokens of one.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--size", choices=sizes, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    size, device = sizes[options.size], options.device
    with numerics("float32", torch.device(device)):
        check(size, device)
        steps, tokens = prepare(size, device)
        times = time_steps(steps, device, max(2, options.rounds))
    print(f"{size}, {device}, torch {torch.__version__}, {options.rounds} rounds\n")
    show(times, tokens, next(iter(steps)))


def require(what: str, found: Tensor, expected: Tensor) -> None:
    difference = float((found - expected).detach().abs().max())
    if not difference <= 1e-3 * float(expected.detach().abs().max()):
        raise SystemExit(f"the {what} of ours and of the peer are {difference:.2g} apart")


def seconds(step: Callable[[], object], device: str) -> float:
    if device == "cpu":
        start = time.process_time()
        step()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def time_steps(steps: Steps, device: str, rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each step; the first rounds are not kept."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for number in range(warm_up + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            spent = seconds(steps[name], device)
            if number >= warm_up:
                found[name].append(spent)
    return found


def show(times: dict[str, list[float]], tokens: float, peer: str) -> None:
    print("| model | tokens a second | over the peer's | quartiles |")
    print("|---|---|---|---|")
    for name, spent in times.items():
        ratios = sorted(theirs / own for theirs, own in zip(times[peer], spent, strict=True))
        low, middle, high = statistics.quantiles(ratios, n=4)
        rate = tokens / statistics.median(spent)
        print(f"| {name} | {rate:,.0f} | {middle:.3f} | {low:.3f} – {high:.3f} |")
