"""What a look of the cheap tier costs a training step, on a CPU or a GPU.

    python benchmarks/live.py [--rows 32000] [--columns 1024] [--tokens 1024] [--layers 4]
                              [--device cpu] [--dtype float32]

The step is that of a transformer with a tied embedding of this size and cross-entropy over all
tokens of a batch, with Adam. A look and a reading of the whole weight (its norm) alternate with it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from embgeo.callbacks.row_watch import CHECKS, RowWatch


class Model(torch.nn.Module):
    """Embedding, layers, logits."""

    def __init__(self, rows: int, columns: int, layers: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(rows, columns)
        layer = torch.nn.TransformerEncoderLayer(
            columns, max(1, columns // 64), 4 * columns, batch_first=True, dropout=0.0
        )
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = self.layers(self.embedding(ids)) @ self.embedding.weight.T
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())


def measure(work: Callable[[], object], device: str) -> float:
    """Seconds of one call; of the processor where it works there."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    if device != "cpu":
        torch.cuda.synchronize()
    start = clock()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("rows", 32_000), ("columns", 1024), ("tokens", 1024), ("layers", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Model(options.rows, options.columns, options.layers)
    model = model.to(options.device, getattr(torch, options.dtype))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ids = torch.randint(options.rows, (-(-options.tokens // 128), 128), device=options.device)
    weight = model.embedding.weight.detach()
    watch = RowWatch(torch.arange(options.rows).tolist())

    def step() -> None:
        optimizer.zero_grad()
        model(ids).backward()
        optimizer.step()

    work: dict[str, Callable[[], object]] = {
        "step": step,
        "reading the weight once": lambda: torch.linalg.vector_norm(weight),
        "look": lambda: watch.check_rows(weight),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    step()
    print(f"first look: {1e3 * measure(work['look'], options.device):.1f} ms")
    for turn in range(options.steps + 2 * CHECKS):
        for name, call in work.items():
            if name != "step" or turn < options.steps:
                seconds[name].append(measure(call, options.device))
    middle = {name: statistics.median(own) for name, own in seconds.items()}
    for name, value in middle.items():
        print(f"{name}: {1e3 * value:,.2f} ms")
    share = middle["look"] / middle["step"]
    print(f"{options.rows:,} × {options.columns:,}: a look is {100 * share:.3f}% of a step")


if __name__ == "__main__":
    main()
