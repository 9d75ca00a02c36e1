"""The tables of a study's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Precision = Literal["float32", "tf32", "bf16"]


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The text; see `embgeo.training.data.load_corpus`.

    Attributes
    ----------
    path : str
        A file or a folder.
    unit : {"stream", "sentences"}, optional
    min_count, size : int, optional
        How often a token occurs in the training split to have a row; how many rows at most.
    tokenizer : str, optional
        A ``tokenizer.json``.
    tokens : int, optional
        Only the first so many of the training split.
    """

    path: str = ""
    unit: str | None = None
    min_count: int | None = None
    size: int | None = None
    tokenizer: str | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The architecture by name, and its settings, which it knows itself."""

    name: str = "awd-lstm"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """How weights move; what is None has the default of `embgeo.training.optimization`.

    Attributes
    ----------
    kind : {"adamw", "adam", "sgd"}
    lr : float
        The highest of the schedule.
    weight_decay, betas, eps, momentum
        Of the optimizer, as far as it has them.
    schedule : {"constant", "one-cycle", "epoch-decay"}
    warm_up, start, end : float
        Of one-cycle: the share of the run in which the rate rises, and its factors at both ends.
    after, rate : int, float
        Of epoch-decay: epochs with the full rate, and the factor of each epoch from then on.
    asgd : bool
        Average from the moment on that the validation loss no longer falls (NT-ASGD).
    window : int
        Evaluations, the last ones, that NT-ASGD does not compare with.
    average : float
        Share of the run, at its end, whose weights are averaged for evaluation; 0 for none.
    """

    kind: Literal["adamw", "adam", "sgd"] = "adamw"
    lr: float | None = None
    weight_decay: float | None = None
    betas: tuple[float, float] | None = None
    eps: float | None = None
    momentum: float | None = None
    schedule: Literal["constant", "one-cycle", "epoch-decay"] = "constant"
    warm_up: float | None = None
    start: float | None = None
    end: float | None = None
    after: int | None = None
    rate: float | None = None
    asgd: bool = False
    window: int = 5
    average: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How long, on how much at once, and on what.

    Attributes
    ----------
    epochs : int
    steps : int, optional
        Optimizer steps after which the run ends, if `epochs` do not end it before.
    batch, bptt : int
        Streams side by side over all processes, and the steps back in time.
    random_lengths : bool
        Windows of random length, and a learning rate in proportion (AWD-LSTM).
    sum_over_steps : bool
        The loss is summed over the steps of a window and averaged over streams, as learning rates
        and clipping of older recipes expect; otherwise the mean over all positions.
    clip : float
        Largest norm of the gradient; 0 for none.
    accumulate : int
        Windows to one step of the optimizer.
    precision : {"float32", "tf32", "bf16"}
        tf32 has an effect on CUDA only; bf16 is autocast.
    device : str
        auto, cpu, cuda, cuda:1, mps, …
    threads : int, optional
        Of the CPU; by default as many as torch takes. Sums are rounded otherwise with others, so
        that a run gives the same bytes only with as many.
    keep : {"last", "best"}
        Which weights the run ends with: the last ones, or those with the lowest validation loss.
    log_every : int
        Steps between two lines of training loss.
    save_seconds : float
        Time between two saves of the state; the end of an epoch is always one.
    save_steps : int, optional
        Steps between two saves.
    budget : float, optional
        Seconds that all runs of the comparison may take; `epochs` was fitted to them.
    sinks : tuple of str
        Where the numbers go besides ``metrics.jsonl``: tensorboard, wandb.
    """

    epochs: int = 1
    steps: int | None = None
    batch: int = 20
    bptt: int = 35
    random_lengths: bool = False
    sum_over_steps: bool = False
    clip: float = 0.0
    accumulate: int = 1
    precision: Precision = "float32"
    device: str = "auto"
    threads: int | None = None
    keep: Literal["last", "best"] = "last"
    log_every: int = 50
    save_seconds: float = 120.0
    save_steps: int | None = None
    budget: float | None = None
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """What is measured on the other splits.

    Attributes
    ----------
    every : int, optional
        Steps between two evaluations on the validation split; by default once an epoch.
    batch, bptt : int
    popular : float
        Share of the types, most frequent first, that count as popular.
    test : bool
        Evaluate the test split at the end, if there is one.
    cache, dynamic : bool
        At the end also with a continuous cache, and by dynamic evaluation.
    """

    every: int | None = None
    batch: int = 10
    bptt: int = 70
    popular: float = 0.2
    test: bool = True
    cache: bool = False
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class GeometrySettings:
    """Steps between two measurements of the embedding; none while training by default."""

    every: int | None = None
