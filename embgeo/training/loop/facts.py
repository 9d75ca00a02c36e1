"""What a run records besides its scores: peak memory, movement of rows, deviations."""

from itertools import chain, zip_longest
from pathlib import Path

import torch
from torch import Tensor

from embgeo.training.loop.trainer import Trainer
from embgeo.training.methods.method import list_embeddings
from embgeo.training.methods.popular import popular_rows
from embgeo.training.settings import StudySettings
from embgeo.training.study.record import ROLES
from embgeo.training.tasks import Dataset

#: No publication states how the output bias starts.
BIAS_DEVIATION = (
    "the output bias starts at the log frequencies of the training split; the papers start it "
    "at zero or do not say"
)

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


def measure_movement(
    trainer: Trainer, dataset: Dataset, config: StudySettings
) -> dict[str, dict[str, float]]:
    """Measure how far the rows of frequent and of rare tokens have moved, by role of the matrix.

    The model before its first step is built again, as it depends on the seed alone.
    """
    counts = torch.from_numpy(dataset.vocabulary.counts)
    with torch.random.fork_rng(devices=[]):
        before = trainer.task.build(config, trainer.method, dataset)
    frequent = popular_rows(counts, config.evaluation.popular)
    found = {}
    pairs = zip_longest(list_embeddings(before), list_embeddings(trainer.model))
    for role, (old, new) in zip(ROLES, pairs, strict=False):
        if old is not None and new is not None and len(old) == len(counts) == len(new):
            moved = move_of_rows(old.detach().float().cpu(), new.detach().float().cpu())
            groups = {"frequent": frequent, "rare": ~frequent & (counts > 0)}
            found[str(role)] = {
                name: float(moved[rows].mean()) for name, rows in groups.items() if bool(rows.any())
            }
    return found


def move_of_rows(before: Tensor, after: Tensor) -> Tensor:
    """Return ‖w − w₀‖/‖w₀‖ of each row."""
    lengths = torch.linalg.vector_norm(before.double(), dim=1).clamp(min=1e-30)
    moved: Tensor = torch.linalg.vector_norm(after.double() - before.double(), dim=1) / lengths
    return moved


def list_deviations(trainer: Trainer) -> tuple[str, ...]:
    """List deviations of a run from the publications: method, model, initialization."""
    has_bias = getattr(trainer.model.get_output_embeddings(), "bias", None) is not None
    started = has_bias and trainer.config.model.bias_init == "log-counts"
    parts = [getattr(type(part), "DEVIATIONS", ()) for part in trainer.model.modules()]
    found = dict.fromkeys((*trainer.method.deviations, *chain(*parts)))
    return (*found, BIAS_DEVIATION) if started else tuple(found)
