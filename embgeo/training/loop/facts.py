"""What a run records besides its scores: memory, frequent and rare rows, deviations."""

import platform
from importlib.metadata import version
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from torch import Tensor, nn

from embgeo.core.arrays import FloatArray
from embgeo.core.version import VERSION
from embgeo.numerics.scores import auc
from embgeo.training.data.vocabulary import Dataset
from embgeo.training.methods import Method
from embgeo.training.methods.method import list_embeddings
from embgeo.training.methods.popular import popular_rows
from embgeo.training.sections import ModelSettings
from embgeo.training.study.numbers import KERNEL_PROBE
from embgeo.training.study.record import ROLES

#: No publication states how the output bias starts.
BIAS_DEVIATION = (
    "the output bias starts at the log frequencies of the training split; the papers start it "
    "at zero or do not say"
)

#: Folds of the probe, and rows of a class that it reads at most.
FOLDS, MOST_ROWS = 5, 1_000

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak(device: torch.device) -> None:
    """Begin to measure the peak of memory anew."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        _CLEAR.write_text("5")  # on Linux: the peak of the resident set
    except OSError:
        return


def read_peak(device: torch.device) -> int | None:
    """Return the peak of memory in bytes: what torch held on a GPU, or the process on Linux."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type != "cpu" or not _STATUS.is_file():
        return None
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
    return 1024 * int(lines["VmHWM"].split()[0])


def measure_rows(
    before: nn.Module, after: nn.Module, counts: Tensor
) -> dict[str, dict[str, float]]:
    """Measure frequent and rare rows of each matrix, by role: their movement, and a kernel probe.

    `before`, `after`: the model before its first step and after its last.
    """
    frequent = popular_rows(counts)
    groups = {"frequent": frequent, "rare": ~frequent & (counts > 0)}
    found: dict[str, dict[str, float]] = {}
    pairs = zip_longest(list_embeddings(before), list_embeddings(after))
    for role, (old, new) in zip(ROLES, pairs, strict=False):
        if old is None or new is None or not len(old) == len(counts) == len(new):
            continue
        start, end = (w.detach().float().cpu().double() for w in (old, new))
        # ‖w − w₀‖/‖w₀‖ of each row.
        moved = (end - start).norm(dim=1) / start.norm(dim=1).clamp(min=1e-30)
        own = {
            f"movement.{name}": float(moved[rows].mean())
            for name, rows in groups.items()
            if bool(rows.any())
        }
        classes = [new.detach()[rows].double().cpu().numpy() for rows in groups.values()]
        probed = probe_classes(*classes)
        found[str(role)] = own if probed is None else {**own, KERNEL_PROBE.name: probed}
    return found


def probe_classes(frequent: FloatArray, rare: FloatArray) -> float | None:
    """Return how well a probe that is not linear tells rare rows from frequent ones: its AUC.

    The mean over `FOLDS` stratified folds of the AUC of kernel ridge regression, with the kernel
    exp(−‖x − y‖²/2d) of columns of mean 0 and variance 1, and a penalty of 1. Each class has
    `MOST_ROWS` rows at most, drawn with seed 0. None for a class with fewer than two rows a fold.
    """
    generator = np.random.default_rng(0)
    chosen = [one[generator.permutation(len(one))[:MOST_ROWS]] for one in (frequent, rare)]
    if min(map(len, chosen)) < 2 * FOLDS:
        return None
    X, label = np.concatenate(chosen), np.repeat([0.0, 1.0], [len(one) for one in chosen])
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2.0 * X.shape[1]))
    fold = np.concatenate([np.arange(len(one)) % FOLDS for one in chosen])
    areas = []
    for number in range(FOLDS):
        held, rest = fold == number, fold != number
        # Classes of the same weight: the regression is of the label without its mean.
        target = label[rest] - label[rest].mean()
        weights = solve(K[np.ix_(rest, rest)] + np.eye(int(rest.sum())), target, assume_a="pos")
        areas.append(auc(K[np.ix_(held, rest)] @ weights, label[held] > 0.0)[0])
    return float(np.mean(areas))


def list_deviations(method: Method, model: Any, settings: ModelSettings) -> tuple[str, ...]:
    """List deviations of a run from the publications: method, model, initialization."""
    has_bias = getattr(model.get_output_embeddings(), "bias", None) is not None
    started = has_bias and settings.bias_init == "log-counts"
    parts = [getattr(type(part), "DEVIATIONS", ()) for part in model.modules()]
    found = dict.fromkeys((*method.deviations, *chain(*parts)))
    return (*found, BIAS_DEVIATION) if started else tuple(found)


def count_parameters(model: nn.Module) -> int:
    """Number of trained parameters; tied ones count once."""
    return sum(p.numel() for p in model.parameters())


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Describe the data, for a result."""
    return {
        "name": dataset.name,
        "unit": dataset.unit,
        "rows": len(dataset.vocabulary),
        "tokens": dict(dataset.sizes),
        "files": dict(dataset.files),
        "notes": list(dataset.notes),
    }


def list_versions() -> dict[str, str]:
    """List versions of the packages that numbers depend on."""
    packages = {name: version(name) for name in ("torch", "numpy", "safetensors")}
    return {"python": platform.python_version(), "embgeo": VERSION, **packages}
