"""The tables of the settings, one class each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from embgeo.training.checks import (
    checked,
    each_once,
    natural,
    nonnegative,
    positive,
    several,
    share,
    whole,
)

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
    bpe : int, optional
        Rows of a byte-level tokenizer that is learned from the training split, in place of words.
    tokens : int, optional
        Number of tokens of the training split to use, from its start.
    shuffle : bool
        Whether the training split of a text without splits is shuffled in pieces of some 1,000
        tokens; with one seed for all runs.
    """

    path: str = ""
    unit: str | None = None
    min_count: int | None = None
    size: int | None = None
    tokenizer: str | None = None
    bpe: int | None = None
    tokens: int | None = None
    shuffle: bool = True


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Task by name, and its settings, which the task defines."""

    name: str = "lm"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Architecture by name, and its settings, which the architecture defines.

    Attributes
    ----------
    name : str
    bias_init : {"zeros", "log-counts"}
        What the output bias of any architecture starts at. "log-counts": the logarithm of each
        token's share of the training split, which makes a unigram model of the start. From zeros,
        a bias cannot get there in a short training, and the geometry of the embedding is mostly
        the frequencies that the bias does not carry.
    """

    name: str = "awd-lstm"
    bias_init: Literal["zeros", "log-counts"] = "zeros"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Optimizer and schedule; None means the default of `embgeo.training.optimization`.

    Attributes
    ----------
    kind : {"adamw", "adam", "sgd"}
    lr : float
        The highest of the schedule.
    weight_decay, betas, eps, momentum
        Of the optimizer, as far as it has them.
    embedding_lr : float, optional
        The rate of the embeddings (input, output and positions) in terms of `lr`; by default 1.
    decay : {"matrices", "weights", "all"}
        What `weight_decay` holds for. "matrices": the weight matrices of layers, which leaves out
        biases, gains of norms, and embeddings (input, output and positions, plain or factored).
        "weights": these embeddings, too, where they are plain.
        "all": everything that is trained, as AWD-LSTM was published.
    schedule : {"constant", "one-cycle", "epoch-decay", "inverse-sqrt", "linear", "cosine"}
    warm_up, start, end : float
        Of one-cycle: the share of the run in which the rate rises, and its factors at both ends;
        `end` of linear and cosine, too.
    after, rate : int, float
        Of epoch-decay: epochs with the full rate, and the factor of each epoch from then on.
    warm_up_steps : int
        Of inverse-sqrt and cosine: steps of the optimizer in which the rate rises.
    asgd : bool
        Average from the moment on that the validation loss no longer falls (NT-ASGD).
    window : int
        Evaluations, the last ones, that NT-ASGD does not compare with.
    finetune : int, optional
        Epochs of a second stage at most, at the full rate, that begins from the averaged weights
        and averages from its first step on; it ends once the validation loss no longer falls. 0
        for none.
    average : float
        Share of the run, at its end, whose weights are averaged for evaluation; 0 for none.
    """

    kind: Literal["adamw", "adam", "sgd"] = "adamw"
    lr: float | None = None
    weight_decay: float | None = None
    betas: tuple[float, float] | None = None
    eps: float | None = None
    momentum: float | None = None
    embedding_lr: float | None = checked(None, positive)
    decay: Literal["matrices", "weights", "all"] = "matrices"
    schedule: Literal[
        "constant", "one-cycle", "epoch-decay", "inverse-sqrt", "linear", "cosine"
    ] = "constant"
    warm_up: float | None = None
    start: float | None = None
    end: float | None = None
    after: int | None = None
    rate: float | None = None
    warm_up_steps: int | None = None
    asgd: bool = False
    window: int = checked(5, whole)
    finetune: int | None = checked(None, natural)
    average: float = checked(0.0, share)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Length, batches and device of the training.

    Attributes
    ----------
    epochs : int
    steps : int, optional
        Optimizer steps after which the run ends, if `epochs` do not end it before.
    batch, bptt : int
        Streams side by side over all processes, and the steps back in time.
    windows : {"streams", "random"}, optional
        "streams": each window of a stream follows on the one before, with its state; by default.
        "random": each epoch cuts the text at other places, and takes the windows in an order that
        is drawn, each from an empty state.
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
    patience : int, optional
        Evaluations in a row without a lower validation loss after which the run ends; with
        ``keep = "best"``.
    keep : {"last", "best"}
        Which weights the run ends with: the last ones, or those with the lowest validation loss.
    log_every : int
        Steps between two lines of training loss.
    log_updates : bool, optional
        Whether these lines also say how long the gradient of each matrix is, before clipping, and
        by which share of its length the step changes it.
    save_seconds : float
        Time between two saves of the state; the end of an epoch is always one.
    save_steps : int, optional
        Steps between two saves.
    budget : float, optional
        Seconds that all runs of the comparison may take; `epochs` was fitted to them.
    sinks : tuple of str
        Where the numbers go besides ``metrics.jsonl``: tensorboard, wandb.
    start : str, optional
        A finished run whose weights a run begins with, or a folder with one of the same method and
        seed.
    """

    epochs: int = checked(1, whole)
    steps: int | None = checked(None, whole)
    batch: int = checked(20, whole)
    bptt: int = checked(35, whole)
    windows: Literal["streams", "random"] | None = None
    random_lengths: bool = False
    sum_over_steps: bool = False
    clip: float = checked(0.0, nonnegative)
    accumulate: int = checked(1, whole)
    precision: Precision = "float32"
    device: str = "auto"
    threads: int | None = checked(None, whole)
    keep: Literal["last", "best"] = "last"
    patience: int | None = checked(None, whole)
    log_every: int = checked(50, whole)
    log_updates: bool | None = None
    save_seconds: float = checked(120.0, nonnegative)
    save_steps: int | None = checked(None, whole)
    budget: float | None = None
    sinks: tuple[str, ...] = ()
    start: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Evaluation on the validation and test splits.

    Attributes
    ----------
    every : int, optional
        Steps between two evaluations on the validation split; by default once an epoch.
    batch : int
    tokens : int, optional
        Number of tokens of each split to evaluate, from its start. By default all of them; in a
        run whose `steps` are given, as many as a quarter of the tokens that it trains on, and
        20,000 at least.
    bptt : int, optional
        Tokens of a window: 70 for recurrent models, for which it changes nothing. Others see their
        window alone, or a memory next to it; for them it is `bptt` of the training, since they
        have learned nothing of positions beyond.
    stride : int, optional
        Tokens from one window to the next, for models without a state: windows overlap, and each
        token is scored once, with as much context as its window has. By default `bptt`.
    memory, clamp : int, optional
        For models with a memory: how many tokens it holds, and the distance that larger ones count
        as; by default those of the training. A model trained with a memory of 0 keeps it.
    same_length : bool, optional
        For models with a memory: whether each token sees no more tokens than the memory holds.
    popular : float
        Share of the types, most frequent first, that count as popular.
    test : bool
        Evaluate the test split at the end, if there is one.
    cache, dynamic : bool
        At the end also with a continuous cache, and by dynamic evaluation.
    logit_rank : bool, optional
        At the end also the rank of the log-probabilities of 4·(d + 2) contexts.
    """

    every: int | None = checked(None, whole)
    batch: int = checked(10, whole)
    tokens: int | None = checked(None, several)
    bptt: int | None = checked(None, whole)
    stride: int | None = checked(None, whole)
    memory: int | None = checked(None, natural)
    clamp: int | None = checked(None, whole)
    same_length: bool | None = None
    popular: float = checked(0.2, share)
    test: bool = True
    cache: bool = False
    dynamic: bool = False
    logit_rank: bool | None = None


@dataclass(frozen=True, slots=True)
class GeometrySettings:
    """Steps between two measurements of the embedding; none while training by default."""

    every: int | None = checked(None, whole)


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """Learning rates to choose from, for each method.

    Attributes
    ----------
    lr : tuple of float
        Each is tried with the first seed; that with the lowest perplexity on the validation split
        takes the place of `OptimizerSettings.lr` in all runs of the method.
    """

    lr: tuple[float, ...] = checked((), each_once(positive))
