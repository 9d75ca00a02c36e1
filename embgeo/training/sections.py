"""The tables of the settings, one structure each."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from embgeo.core.errors import BadOption
from embgeo.files.settings import parse_table
from embgeo.training.limits import (
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
    """The text; see `embgeo.training.data.load_corpus`."""

    #: A file or a folder.
    path: str = ""
    #: Fewest occurrences in the training split for a token to have a row; most rows.
    min_count: Whole | None = None
    size: Rows | None = None
    #: Rows of a byte-level tokenizer to learn from the training split, in place of words. The text
    #: is then a stream: ``<|endoftext|>`` precedes each article of WikiText and follows each file.
    bpe: Annotated[int, Meta(ge=257, le=2**20)] | None = None
    #: Number of tokens of the training split to use, from its start. Of documents and pairs of
    #: sentences, in an order that is drawn with seed 0, those that lie in this part whole. For word
    #: vectors: words of the text.
    tokens: Annotated[int, Meta(ge=100, le=10**12)] | None = None


class TaskSettings(Settings, frozen=True):
    """Task by name, and its settings, which the task defines."""

    #: What is trained for.
    name: str = "lm"
    settings: Mapping[str, Any] = {}


class ModelSettings(Settings, frozen=True):
    """Architecture by name, and its settings, which the architecture defines."""

    #: The architecture.
    name: str = "awd-lstm"
    #: Initial output bias of any architecture. "log-counts": the logarithm of each token's share
    #: of the training split, so that training starts as a unigram model. Starting at zeros, the
    #: bias does not reach it in a short training, and the embedding carries the frequencies.
    bias_init: Literal["zeros", "log-counts"] = "zeros"
    settings: Mapping[str, Any] = {}


class Adam(Settings, frozen=True):
    """Adam with weight decay that is decoupled from the gradient.

    Inside of the gradient, Adam would divide the decay by the size of the gradient, so that rows
    that are hardly ever updated would shrink by the learning rate at each step. In `Sgd` both are
    the same.
    """

    #: The highest learning rate of the schedule.
    lr: Nonnegative = 1e-3
    #: Decay of the weights in a step, as a share of them times the rate.
    weight_decay: Nonnegative = 0.01
    #: Parameters of Adam.
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Nonnegative = 1e-8


class Sgd(Settings, frozen=True):
    """Plain SGD, by default as AWD-LSTM is trained."""

    #: The highest learning rate of the schedule.
    lr: Nonnegative = 30.0
    #: Decay of the weights in a step, as a share of them times the rate.
    weight_decay: Nonnegative = 1.2e-6
    #: Average the weights once the validation loss no longer falls (NT-ASGD).
    asgd: bool = False
    #: Number of latest evaluations that NT-ASGD does not compare with.
    window: Whole = 5
    #: At most this many epochs of a second stage at the full rate, which starts from the averaged
    #: weights, averages from its first step, and ends once the validation loss no longer falls; 0
    #: for none.
    finetune: Natural = 0

    def __post_init__(self) -> None:
        if self.finetune and not self.asgd:
            raise BadOption(
                "finetune is the second stage of averaged SGD",
                way_out="set asgd = true in [optimizer]",
            )


OPTIMIZERS: dict[str, type[Adam] | type[Sgd]] = {"adamw": Adam, "sgd": Sgd}


class OptimizerSettings(Settings, frozen=True):
    """Optimizer and schedule by name, and the settings of both."""

    #: Weight decay is decoupled from the gradient.
    kind: Literal["adamw", "sgd"] = "adamw"
    #: How the learning rate changes.
    schedule: Literal[
        "constant", "one-cycle", "epoch-decay", "inverse-sqrt", "linear", "cosine"
    ] = "constant"
    #: Which parameters `weight_decay` applies to. "matrices": weight matrices of layers, but not
    #: biases, gains of norms, or embeddings (input, output and positions, plain or factored).
    #: "all": every parameter, as in the published AWD-LSTM.
    decay: Literal["matrices", "all"] = "matrices"
    #: Share of the run, at its end, over which weights are averaged for evaluation; 0 for none.
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
    """Length, batches and device of the training."""

    #: Passes over the training split.
    epochs: Whole = 1
    #: Optimizer steps after which the run ends, if `epochs` do not end it before.
    steps: Whole | None = None
    #: Streams side by side over all processes, and the steps back in time.
    batch: Rows = 20
    bptt: Rows = 35
    #: "streams", the default: each window continues the one before it, with its state. "random":
    #: each epoch cuts the text at other places, and shuffles the windows, each without a state.
    windows: Literal["streams", "random"] | None = None
    #: Windows of random length, and a learning rate in proportion (AWD-LSTM).
    random_lengths: bool = False
    #: Sum the loss over the steps of a window and average it over streams, as learning rates and
    #: clipping of older recipes expect; otherwise average over all positions.
    sum_over_steps: bool = False
    #: Largest norm of the gradient; 0 for none.
    clip: Nonnegative = 0.0
    #: Windows per step of the optimizer.
    accumulate: Annotated[int, Meta(ge=1, le=2**16)] = 1
    #: tf32 has an effect on CUDA only; bf16 is autocast.
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    #: auto, cpu, cuda, cuda:1, mps, …
    device: str = "auto"
    # Millions of threads would end the process.
    #: CPU threads; by default torch decides. Another number rounds sums differently: runs are
    #: equal bit for bit only with the same number.
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = None
    #: Which weights the run keeps: the last ones, or the ones with the lowest validation loss.
    keep: Literal["last", "best"] = "last"
    #: Evaluations in a row without a lower validation loss that stop a run, which ends once as
    #: many again have shown that more patience changes nothing; with ``keep = "best"``.
    patience: Whole | None = None
    #: Steps between two lines of training loss.
    log_every: Whole = 50
    #: Time between two saves of the state.
    save_seconds: Nonnegative = 120.0
    #: Steps between two saves.
    save_steps: Whole | None = None


class EvaluationSettings(Settings, frozen=True):
    """Evaluation on the validation and test splits."""

    #: Steps between two evaluations on the validation split; by default once an epoch.
    every: Whole | None = None
    #: Streams, documents or sentences that are evaluated side by side.
    batch: Rows = 10
    #: Number of tokens of each split to evaluate, from its start. By default all; with
    #: `TrainingSettings.steps`, a quarter of the tokens that the run trains on, at least 20,000.
    tokens: Annotated[int, Meta(ge=2, le=10**12)] | None = None
    #: Tokens of a window. By default 70 for recurrent models, whose scores do not depend on it.
    #: Other models see only their window, and perhaps a memory: by default `bptt` of the training,
    #: because they have not learned later positions.
    bptt: Rows | None = None
    #: Tokens from one window to the next, for models without a state: windows overlap, and each
    #: token is scored once, with as much context as its window has. By default `bptt`.
    stride: Rows | None = None
    #: For models with a memory: its number of tokens, and the distance to which longer ones are
    #: clamped; by default as in training. A model trained with a memory of 0 has none.
    memory: Memory | None = None
    clamp: Rows | None = None
    #: For models with a memory: whether each token sees no more tokens than the memory holds.
    same_length: bool | None = None
    #: Evaluate the test split at the end, if there is one.
    test: bool = True
    #: Also evaluate with a continuous cache, and dynamically, at the end.
    cache: bool = False
    dynamic: bool = False


class GeometrySettings(Settings, frozen=True):
    """The embedding of a model while it trains."""

    #: Steps between two measurements of the embedding; by default none while training.
    every: Whole | None = None
