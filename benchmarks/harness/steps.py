"""Steps of training that take turns, and the ratios of their times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch


def time_step(step: Callable[[], object], device: str) -> float:
    """Seconds of a step: of the processor on a CPU, else of the clock."""
    if device == "cpu":
        start = time.process_time()
        step()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def time_steps(
    steps: Mapping[str, Callable[[], object]],
    device: str,
    rounds: int,
    between: Callable[[str], object] = lambda _: None,
    warm_up: int = 2,
) -> dict[str, list[float]]:
    """Seconds of each step; the first rounds are not kept. `between` follows each step, untimed."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for number in range(warm_up + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            spent = time_step(steps[name], device)
            between(name)
            if number >= warm_up:
                found[name].append(spent)
    return found


def show_ratios(above: Sequence[float], below: Sequence[float]) -> str:
    """Median of the ratios of both, round by round, and their quartiles, as cells of a table."""
    ratios = (one / other for one, other in zip(above, below, strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} | {low:.3f} – {high:.3f}"
