"""The settings of a study or of one run, read from TOML and written as TOML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_type_hints

from embgeo.core.errors import BadOption
from embgeo.io.bounded.settings import (
    Where,
    parse_document,
    parse_table,
    parse_value,
    read_document,
    refuse_unknown,
    to_toml,
)
from embgeo.training.checks import nonnegative, rates, several, share, whole
from embgeo.training.merging import SHARED_BY_MODELS, merge_tables


def checked(default: Any, check: Callable[[str, Any], object]) -> Any:
    """A field whose value, unless it is None, has to pass a check."""
    return field(default=default, metadata={"check": check})


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
    """The architecture by name, and its settings, which it knows itself.

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
    """How weights move; what is None has the default of `embgeo.training.optimization`.

    Attributes
    ----------
    kind : {"adamw", "adam", "sgd"}
    lr : float
        The highest of the schedule.
    weight_decay, betas, eps, momentum
        Of the optimizer, as far as it has them.
    decay : {"matrices", "all"}
        What `weight_decay` holds for. "matrices": the weight matrices of layers, which leaves out
        biases, gains of norms, and embeddings (input, output and positions, plain or factored).
        "all": everything that is trained, as AWD-LSTM was published.
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
    decay: Literal["matrices", "all"] = "matrices"
    schedule: Literal["constant", "one-cycle", "epoch-decay"] = "constant"
    warm_up: float | None = None
    start: float | None = None
    end: float | None = None
    after: int | None = None
    rate: float | None = None
    asgd: bool = False
    window: int = checked(5, whole)
    average: float = checked(0.0, share)


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
    patience : int, optional
        Evaluations in a row without a lower validation loss after which the run ends; with
        ``keep = "best"``.
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

    epochs: int = checked(1, whole)
    steps: int | None = checked(None, whole)
    batch: int = checked(20, whole)
    bptt: int = checked(35, whole)
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
    save_seconds: float = checked(120.0, nonnegative)
    save_steps: int | None = checked(None, whole)
    budget: float | None = None
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """What is measured on the other splits.

    Attributes
    ----------
    every : int, optional
        Steps between two evaluations on the validation split; by default once an epoch.
    batch : int
    tokens : int, optional
        Only the first so many of each split. By default all of them; in a run whose `steps` are
        given, as many as a quarter of the tokens that it trains on, and 20,000 at least.
    bptt : int, optional
        Tokens of a window: 70 for models that carry a state over, for which it changes nothing.
        Models without a state see their window alone; for them it is `bptt` of the training,
        since they have learned nothing of positions beyond.
    stride : int, optional
        Tokens from one window to the next, for models without a state: windows overlap, and each
        token is scored once, with as much context as its window has. By default `bptt`.
    popular : float
        Share of the types, most frequent first, that count as popular.
    test : bool
        Evaluate the test split at the end, if there is one.
    cache, dynamic : bool
        At the end also with a continuous cache, and by dynamic evaluation.
    """

    every: int | None = checked(None, whole)
    batch: int = checked(10, whole)
    tokens: int | None = checked(None, several)
    bptt: int | None = checked(None, whole)
    stride: int | None = checked(None, whole)
    popular: float = checked(0.2, share)
    test: bool = True
    cache: bool = False
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class GeometrySettings:
    """Steps between two measurements of the embedding; none while training by default."""

    every: int | None = checked(None, whole)


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """Learning rates of which each method takes the best.

    Attributes
    ----------
    lr : tuple of float
        Each is tried with the first seed; that with the lowest perplexity on the validation split
        takes the place of `OptimizerSettings.lr` in all runs of the method.
    """

    lr: tuple[float, ...] = checked((), rates)


#: The settings of a comparison, in its folder.
STUDY_SETTINGS_NAME = "train.toml"

#: Settings that come with the package, in the order of their cost.
PRESETS = ("tiny-cpu", "overfit-cpu", "ptb-inan", "wt2-fast", "wt2-paper")


@dataclass(frozen=True, slots=True)
class StudySettings:
    """All settings of a study; with one method and one seed, those of a run.

    Attributes
    ----------
    compare : tuple of str
        Names of methods.
    seeds : tuple of int
    method : dict
        Settings of methods by name, where they are not the usual ones: ``[method.cosreg]``. With
        ``base`` or ``parts`` they define a method; see `embgeo.training.methods.definitions`.
    """

    compare: tuple[str, ...] = ("mle",)
    seeds: tuple[int, ...] = (0,)
    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    geometry: GeometrySettings = field(default_factory=GeometrySettings)
    tune: TuneSettings = field(default_factory=TuneSettings)
    method: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def one(self, method: str, seed: int) -> StudySettings:
        """The settings of one run of the comparison."""
        own = {method: self.method[method]} if method in self.method else {}
        return replace(self, compare=(method,), seeds=(seed,), method=own, tune=TuneSettings())

    @property
    def runs_per_method(self) -> int:
        """One for each seed; a rate that is tried with the first seed and chosen counts once."""
        return len(self.seeds) + max(0, len(self.tune.lr) - 1)

    def tables(self) -> dict[str, Any]:
        """As TOML has it: tables of plain values, without what is not set."""
        found: dict[str, Any] = {"compare": list(self.compare), "seeds": list(self.seeds)}
        for entry in fields(self):
            if is_dataclass(section := getattr(self, entry.name)):
                found[entry.name] = to_toml(section)
        shared = {name: getattr(self.model, name) for name in SHARED_BY_MODELS}
        found["model"] = {"name": self.model.name, **shared, **to_toml(self.model.settings)}
        if self.method:
            found["method"] = to_toml(self.method)
        if not self.tune.lr:
            del found["tune"]
        return found

    def updated(self, changes: Mapping[str, Any]) -> StudySettings:
        """With other values, such as ``{"training": {"epochs": 3}}``.

        ``None`` takes a setting back to its default.

        Raises
        ------
        BadOption
            As of :func:`from_tables`.
        """
        return from_tables(merge_tables(self.tables(), changes))

    def text(self) -> str:
        """As a TOML document.

        Raises
        ------
        BadOption
            The package that writes TOML is missing.
        """
        try:
            import tomli_w
        except ImportError as error:
            raise BadOption(
                "settings are written with tomli-w, which is not installed",
                way_out="pip install 'embgeo[train]'",
            ) from error
        return tomli_w.dumps(self.tables())


def read_settings(path: Path) -> StudySettings:
    """Settings from a file.

    Raises
    ------
    UnreadableFile
        Missing, or no TOML.
    BadOption
        An unknown key, or a value of the wrong type.
    """
    return parse_settings(read_document(path, "give a file of settings in TOML"), path)


def parse_settings(text: str, where: Where) -> StudySettings:
    """Settings from a TOML document; `where` is named in errors."""
    return from_tables(parse_document(text, where, "correct it there"), where)


def load_preset(name: str) -> StudySettings:
    """Settings that come with the package.

    Raises
    ------
    BadOption
        There is none of this name.
    """
    if name not in PRESETS:
        raise BadOption(f"no preset {name!r}", way_out=f"there are {', '.join(PRESETS)}")
    file = resources.files("embgeo.training") / "presets" / f"{name}.toml"
    return parse_settings(file.read_text(encoding="utf-8"), f"preset {name}")


def from_tables(tables: Mapping[str, Any], where: Where = None) -> StudySettings:
    """Settings from tables of plain values.

    Raises
    ------
    BadOption
        An unknown key, or a value of the wrong type.
    """
    hints = get_type_hints(StudySettings)
    refuse_unknown(tables, hints, "settings", where)
    parsed = {name: _parse_entry(name, value, hints[name], where) for name, value in tables.items()}
    return StudySettings(**parsed)


def _parse_entry(name: str, value: Any, hint: Any, where: Where) -> Any:
    if name in ("compare", "seeds"):
        return parse_value(value, hint, name, where)
    _require_table(name, value, where)
    if name == "method":
        for method, own in value.items():
            _require_table(f"method.{method}", own, where)
        return dict(value)
    if name == "model":  # which knows its settings itself
        common = ("name", *SHARED_BY_MODELS)
        own = {key: entry for key, entry in value.items() if key not in common}
        value = {k: v for k, v in value.items() if k in common} | {"settings": own}
    return parse_table(hint, value, f"[{name}]", where)


def _require_table(name: str, value: Any, where: Where) -> None:
    if not isinstance(value, Mapping):
        raise BadOption(f"{name} is no table", where=where, way_out=f"write [{name}]")
