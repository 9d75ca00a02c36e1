"""The tables of the settings, one structure each."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from embgeo.core.errors import BadOption
from embgeo.files.settings import parse_table
from embgeo.training.limits import (
    POPULAR,
    Memory,
    Natural,
    Nonnegative,
    Rows,
    Settings,
    Share,
    Whole,
    choose,
)
from embgeo.training.schedules import SCHEDULES, Schedule

T = TypeVar("T", bound=Settings)


class DataSettings(Settings, frozen=True):
    """The text; see `embgeo.training.data.load_corpus`.

    Attributes
    ----------
    path : str
        A file or a folder.
    min_count, size : int, optional
        Fewest occurrences in the training split for a token to have a row; most rows.
    bpe : int, optional
        Rows of a byte-level tokenizer to learn from the training split, in place of words. The text
        is then a stream: ``<|endoftext|>`` precedes each article of WikiText and follows each file.
    tokens, skip : int, optional
        Number of tokens of the training split to use, behind the first `skip`.
    shuffle : bool
        Whether to shuffle the training split of a text without splits in pieces of about 1,000
        tokens; all runs use the same seed.
    """

    path: str = ""
    min_count: Whole | None = None
    size: Rows | None = None
    bpe: Annotated[int, Meta(ge=257, le=2**20)] | None = None
    tokens: Annotated[int, Meta(ge=100, le=10**12)] | None = None
    skip: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    shuffle: bool = True


class TaskSettings(Settings, frozen=True):
    """Task by name, and its settings, which the task defines."""

    name: str = "lm"
    settings: Mapping[str, Any] = {}


class ModelSettings(Settings, frozen=True):
    """Architecture by name, and its settings, which the architecture defines.

    Attributes
    ----------
    name : str
    bias_init : {"zeros", "log-counts"}
        Initial output bias of any architecture. "log-counts": the logarithm of each token's share
        of the training split, so that training starts as a unigram model. Starting at zeros, the
        bias does not reach it in a short training, and the embedding carries the frequencies.
    """

    name: str = "awd-lstm"
    bias_init: Literal["zeros", "log-counts"] = "zeros"
    settings: Mapping[str, Any] = {}


class Adam(Settings, frozen=True):
    """Adam with weight decay that is decoupled from the gradient.

    Inside of the gradient, Adam would divide the decay by the size of the gradient, so that rows
    that are hardly ever updated would shrink by the learning rate at each step. In `Sgd` both are
    the same.

    Attributes
    ----------
    lr : float
        The highest learning rate of the schedule.
    weight_decay : float
        Decay of the weights in a step, as a share of them times the rate.
    betas, eps : tuple of float, float
        Parameters of Adam.
    """

    lr: Nonnegative = 1e-3
    weight_decay: Nonnegative = 0.01
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Nonnegative = 1e-8


class Sgd(Settings, frozen=True):
    """Plain SGD, by default as AWD-LSTM is trained.

    Attributes
    ----------
    lr : float
        The highest learning rate of the schedule.
    weight_decay : float
        Decay of the weights in a step, as a share of them times the rate.
    asgd : bool
        Average the weights once the validation loss no longer falls (NT-ASGD).
    window : int
        Number of latest evaluations that NT-ASGD does not compare with.
    finetune : int
        At most this many epochs of a second stage at the full rate, which starts from the
        averaged weights, averages from its first step, and ends once the validation loss no longer
        falls; 0 for none.
    """

    lr: Nonnegative = 30.0
    weight_decay: Nonnegative = 1.2e-6
    asgd: bool = False
    window: Whole = 5
    finetune: Natural = 0

    def __post_init__(self) -> None:
        if self.finetune and not self.asgd:
            raise BadOption(
                "finetune is the second stage of averaged SGD",
                way_out="set asgd = true in [optimizer]",
            )


OPTIMIZERS: dict[str, type[Adam] | type[Sgd]] = {"adamw": Adam, "sgd": Sgd}


class OptimizerSettings(Settings, frozen=True):
    """Optimizer and schedule by name, and the settings of both.

    Attributes
    ----------
    kind : {"adamw", "sgd"}
        Weight decay is decoupled from the gradient.
    schedule : {"constant", "one-cycle", "epoch-decay", "inverse-sqrt", "linear", "cosine"}
    decay : {"matrices", "all"}
        Which parameters `weight_decay` applies to. "matrices": weight matrices of layers, but not
        biases, gains of norms, or embeddings (input, output and positions, plain or factored).
        "all": every parameter, as in the published AWD-LSTM.
    average : float
        Share of the run, at its end, over which weights are averaged for evaluation; 0 for none.
    """

    kind: Literal["adamw", "sgd"] = "adamw"
    schedule: Literal[
        "constant", "one-cycle", "epoch-decay", "inverse-sqrt", "linear", "cosine"
    ] = "constant"
    decay: Literal["matrices", "all"] = "matrices"
    average: Share = 0.0
    settings: Mapping[str, Any] = {}

    @property
    def algorithm(self) -> Adam | Sgd:
        """The optimizer, with its settings."""
        return self._take(OPTIMIZERS[self.kind])

    @property
    def factor(self) -> Schedule:
        """The schedule, with its settings."""
        return self._take(SCHEDULES[self.schedule])

    @property
    def finetune(self) -> int:
        """Epochs of a second stage at most."""
        chosen = self.algorithm
        return chosen.finetune if isinstance(chosen, Sgd) else 0

    def _take(self, kind: type[T]) -> T:
        return parse_table(kind, choose(self.settings, kind), "[optimizer]")


class TrainingSettings(Settings, frozen=True):
    """Length, batches and device of the training.

    Attributes
    ----------
    epochs : int
        Passes over the training split.
    steps : int, optional
        Optimizer steps after which the run ends, if `epochs` do not end it before.
    batch, bptt : int
        Streams side by side over all processes, and the steps back in time.
    windows : {"streams", "random"}, optional
        "streams", the default: each window continues the one before it, with its state. "random":
        each epoch cuts the text at other places, and shuffles the windows, each without a state.
    random_lengths : bool
        Windows of random length, and a learning rate in proportion (AWD-LSTM).
    sum_over_steps : bool
        Sum the loss over the steps of a window and average it over streams, as learning rates and
        clipping of older recipes expect; otherwise average over all positions.
    clip : float
        Largest norm of the gradient; 0 for none.
    accumulate : int
        Windows per step of the optimizer.
    precision : {"float32", "tf32", "bf16"}
        tf32 has an effect on CUDA only; bf16 is autocast.
    device : str
        auto, cpu, cuda, cuda:1, mps, …
    threads : int, optional
        CPU threads; by default torch decides. Another number rounds sums differently: runs are
        equal bit for bit only with the same number.
    patience : int, optional
        Evaluations in a row without a lower validation loss that stop a run, which ends once as
        many again have shown that more patience changes nothing; with ``keep = "best"``.
    keep : {"last", "best"}
        Which weights the run keeps: the last ones, or the ones with the lowest validation loss.
    log_every : int
        Steps between two lines of training loss.
    save_seconds : float
        Time between two saves of the state.
    save_steps : int, optional
        Steps between two saves.
    """

    epochs: Whole = 1
    steps: Whole | None = None
    batch: Rows = 20
    bptt: Rows = 35
    windows: Literal["streams", "random"] | None = None
    random_lengths: bool = False
    sum_over_steps: bool = False
    clip: Nonnegative = 0.0
    accumulate: Annotated[int, Meta(ge=1, le=2**16)] = 1
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    device: str = "auto"
    #: Millions of threads end the process.
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = None
    keep: Literal["last", "best"] = "last"
    patience: Whole | None = None
    log_every: Whole = 50
    save_seconds: Nonnegative = 120.0
    save_steps: Whole | None = None


class EvaluationSettings(Settings, frozen=True):
    """Evaluation on the validation and test splits.

    Attributes
    ----------
    every : int, optional
        Steps between two evaluations on the validation split; by default once an epoch.
    batch : int
        Streams, documents or sentences that are evaluated side by side.
    tokens : int, optional
        Number of tokens of each split to evaluate, from its start. By default all; with
        `TrainingSettings.steps`, a quarter of the tokens that the run trains on, at least 20,000.
    bptt : int, optional
        Tokens of a window. By default 70 for recurrent models, whose scores do not depend on it.
        Other models see only their window, and perhaps a memory: by default `bptt` of the training,
        because they have not learned later positions.
    stride : int, optional
        Tokens from one window to the next, for models without a state: windows overlap, and each
        token is scored once, with as much context as its window has. By default `bptt`.
    memory, clamp : int, optional
        For models with a memory: its number of tokens, and the distance to which longer ones are
        clamped; by default as in training. A model trained with a memory of 0 has none.
    same_length : bool, optional
        For models with a memory: whether each token sees no more tokens than the memory holds.
    popular : float
        Share of the types, most frequent first, that count as frequent.
    test : bool
        Evaluate the test split at the end, if there is one.
    cache, dynamic : bool
        Also evaluate with a continuous cache, and dynamically, at the end.
    """

    every: Whole | None = None
    batch: Rows = 10
    tokens: Annotated[int, Meta(ge=2, le=10**12)] | None = None
    bptt: Rows | None = None
    stride: Rows | None = None
    memory: Memory | None = None
    clamp: Rows | None = None
    same_length: bool | None = None
    popular: Share = POPULAR
    test: bool = True
    cache: bool = False
    dynamic: bool = False


class GeometrySettings(Settings, frozen=True):
    """Steps between two measurements of the embedding; none while training by default."""

    every: Whole | None = None
