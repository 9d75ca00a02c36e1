"""What settings choose by name: models, tasks and methods, a structure each, without torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from embgeo.core.errors import BadOption
from embgeo.training.limits import (
    POPULAR,
    Few,
    Memory,
    Nonnegative,
    Pair,
    Positive,
    Proper,
    Ratio,
    Rows,
    Settings,
    Share,
    Texts,
    Width,
)

Norm = Literal["before", "after"]


# --- Models ---------------------------------------------------------------------------------------


class LanguageModelSettings(Settings, frozen=True):
    """What all language models have."""

    #: Whether the embedding and the output layer share one matrix.
    tied: bool = True
    #: Whether the output layer has a bias.
    bias: bool = True


class Recurrent(LanguageModelSettings, frozen=True):
    """LSTM layers."""

    #: Columns of the embedding, and units of the last layer.
    d: Width = 400
    #: Units of the other layers.
    hidden: Width = 1150
    #: Recurrent layers.
    layers: Few = 3
    #: Share of tokens whose embedding is zero throughout a window of training.
    embedding_dropout: Share = 0.1
    #: Dropout of the input of the first layer, between layers, and of the output layer's input,
    #: constant throughout a window.
    input_dropout: Share = 0.65
    hidden_dropout: Share = 0.2
    output_dropout: Share = 0.4
    #: Softmaxes of the output; more than one are a mixture (Yang et al. 2018).
    experts: Few = 1
    #: Units of the last layer of a mixture; d by default.
    last: Width | None = None
    #: Dropout of the input of the softmaxes of a mixture.
    latent_dropout: Share = 0.0

    def __post_init__(self) -> None:
        if self.experts == 1 and (self.last is not None or self.latent_dropout):
            raise BadOption(
                "last and latent_dropout belong to a mixture of softmaxes",
                way_out="set experts to 2 or more",
            )


class AwdLstm(Recurrent, frozen=True):
    """Defaults published for WikiText-2; for Penn Treebank, two dropouts differ."""

    CLASS = "models.awd_lstm.AwdLstm"

    #: Dropout of single recurrent weights.
    weight_dropout: Share = 0.5
    #: Weight of the mean square of the last layer's states after dropout (AR).
    alpha: Nonnegative = 2.0
    #: Weight of the mean square of their change from token to token before dropout (TAR).
    beta: Nonnegative = 1.0


class VdLstm(LanguageModelSettings, frozen=True):
    """Two LSTM layers of a published size."""

    CLASS = "models.vd_lstm.VdLstm"

    #: Defaults of the other settings: 200, 650 or 1,500 units and columns, and the dropout and
    #: initialization of this size.
    size: Literal["small", "medium", "large"] = "small"
    #: Columns of the embedding, and units of the last layer.
    d: Width | None = None
    #: Units of the other layers.
    hidden: Width | None = None
    #: Recurrent layers.
    layers: Few = 2
    #: Dropout of embedded tokens and of the states of each layer; 0.3, 0.5 or 0.65 by size. For
    #: WikiText-2 the paper has 0.2 (small) and 0.4 (medium).
    dropout: Share | None = None
    #: All weights are uniform in ±bound; 0.1, 0.05 or 0.04 by size.
    bound: Nonnegative | None = None


class VdRhn(LanguageModelSettings, frozen=True):
    """Defaults published for Penn Treebank with tied matrices."""

    CLASS = "models.vd_rhn.VdRhn"

    #: Columns of the embedding, and units of all layers.
    d: Width = 830
    #: Highway layers.
    layers: Few = 1
    #: Highway steps of a layer at each token.
    depth: Few = 10
    #: Share of tokens whose embedding is zero throughout a window of training.
    embedding_dropout: Share = 0.25
    #: Dropout of the input of each layer, of its state on the way into each step, and of the
    #: output layer's input.
    input_dropout: Share = 0.75
    state_dropout: Share = 0.25
    output_dropout: Share = 0.75
    #: Weights and biases are uniform in ±bound, those of the embedding included.
    bound: Nonnegative = 0.04


class Blocks(LanguageModelSettings, frozen=True):
    """Blocks of attention and a feed-forward layer."""

    #: Columns of the embedding, and features of all blocks.
    d: Width = 256
    #: Blocks of attention and feed-forward layer.
    layers: Few = 4
    #: A divisor of d.
    heads: Few = 4
    #: Units of the feed-forward layers; 4·d by default.
    feedforward: Width | None = None


class Transformer(Blocks, frozen=True):
    """The decoder of the first Transformer, alone."""

    CLASS = "models.transformer.Transformer"

    bias: bool = False
    #: Dropout of embedded tokens, attention weights, and outputs of attention and feed-forward
    #: layers.
    dropout: Share = 0.1

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        require_even(self.d)


class TransformerXL(Blocks, frozen=True):
    """A Transformer with a memory of earlier windows."""

    CLASS = "models.transformer_xl.TransformerXL"

    d: Width = 410
    heads: Few = 10
    #: The number of tokens before a window that attention sees, without a gradient.
    memory: Memory = 150
    #: Dropout of embedded tokens, positions, and outputs of attention and feed-forward layers.
    dropout: Share = 0.1

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        require_even(self.d)


class Llama(Blocks, frozen=True):
    """The Transformer of LLaMA."""

    CLASS = "models.llama.Llama"

    bias: bool = False
    #: Heads of queries, each with an even number of features.
    heads: Few = 4
    #: Heads of keys and values, a divisor of `heads`; by default `heads`.
    kv_heads: Few | None = None
    #: Units of the feed-forward layers; by default 8·d/3, rounded up to a multiple of 32.
    feedforward: Width | None = None
    #: Dropout of embedded tokens, and of outputs of attention and feed-forward layers.
    dropout: Share = 0.0

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads, rotary=True)
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise BadOption(
                f"kv_heads is {self.kv_heads}", way_out=f"give a number that divides {self.heads}"
            )


class Rcnn(Settings, frozen=True):
    """Classes of documents."""

    CLASS = "tasks.classification.Rcnn"

    #: Columns of the embedding.
    d: Width = 100
    #: Units of each recurrent layer, and of the layer before the maximum.
    context: Width = 100
    hidden: Width = 100
    #: Dropout of embedded tokens.
    dropout: Share = 0.5


class TranslationModelSettings(Settings, frozen=True):
    """What models of translation have."""

    #: Which matrices are shared: all three, target and output, or none.
    tied: Literal["three-way", "decoder", "none"] = "three-way"
    #: Whether the output layer has a bias.
    bias: bool = False


class EncoderDecoder(TranslationModelSettings, frozen=True):
    """The Transformer for translation."""

    CLASS = "models.encoder_decoder.EncoderDecoder"

    #: Columns of the embedding and of all states.
    d: Width = 512
    #: Blocks of the encoder and of the decoder; heads of each attention.
    layers: Few = 6
    heads: Few = 8
    #: Units of the feed-forward layers.
    feedforward: Width = 2048
    #: Dropout of embedded tokens, attention weights, units of feed-forward layers, and the output
    #: of each layer.
    dropout: Share = 0.1
    #: Whether to normalize before each layer, or after each addition as published.
    norm: Norm = "after"

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        require_even(self.d)


class LstmEncoderDecoder(TranslationModelSettings, frozen=True):
    """LSTM layers for translation."""

    CLASS = "models.lstm_encoder_decoder.LstmEncoderDecoder"

    bias: bool = True
    #: Columns of the embedding and units of all layers.
    d: Width = 1024
    #: Layers of the encoder, whose first one reads in both directions, and of the decoder; from 2.
    layers: Annotated[int, Meta(ge=2, le=1024)] = 8
    #: Dropout of the input of each layer.
    dropout: Share = 0.2
    #: All weights are uniform in ±bound.
    bound: Nonnegative = 0.04


class SkipGram(Settings, frozen=True):
    """Vectors of words and of their neighbors."""

    CLASS = "tasks.skip_gram.SkipGram"

    #: Columns of both matrices.
    d: Width = 100


def check_heads(d: int, heads: int, *, rotary: bool = False) -> None:
    """Refuse heads that do not divide the features of a model."""
    if d % heads or (rotary and d // heads % 2):
        even = " into even numbers" if rotary else ""
        raise BadOption(f"heads is {heads}", way_out=f"give a number that divides {d}{even}")


def require_even(d: int) -> None:
    if d % 2:
        raise BadOption(f"d is {d}", way_out="give an even number, for sinusoidal positions")


#: Every language model by name, to which plug-ins add.
MODELS: dict[str, type[Settings]] = {
    "awd-lstm": AwdLstm,
    "vd-lstm": VdLstm,
    "vd-rhn": VdRhn,
    "transformer": Transformer,
    "transformer-xl": TransformerXL,
    "llama": Llama,
}


# --- Tasks ----------------------------------------------------------------------------------------


class TaskSettings(Settings, frozen=True):
    """The base of all tasks, whose models have these names."""

    MODELS: ClassVar[Mapping[str, type[Settings]]]


class LanguageModeling(TaskSettings, frozen=True):
    """Predict each token of a text."""

    CLASS = "tasks.language_model.LanguageModeling"
    MODELS = MODELS

    #: Weight of the mean of (ln Z)² over the positions, for Z = Σ exp(logit), which keeps logits
    #: from a common drift; 0 for none. Chowdhery et al., "PaLM", 2022, §5, use 1e-4.
    z_loss: Nonnegative = 0.0
    #: Share of each target that label smoothing spreads over all tokens, the target included.
    #: Scores have none.
    smoothing: Share = 0.0


class Classification(TaskSettings, frozen=True):
    """Predict the class of a document."""

    CLASS = "tasks.classification.ClassificationTask"
    MODELS: ClassVar = {"rcnn": Rcnn}

    #: Tokens of a document to read, from its start.
    length: Rows = 100
    #: Whether to leave out headers and quoted lines of posts, which give newsgroups away.
    strip: bool = False
    #: Patterns of classes to merge, such as ``"comp.*|sci.crypt"``; documents of other classes are
    #: left out. Empty: no class is merged.
    merge: Texts = ()


class Translation(TaskSettings, frozen=True):
    """Translate a sentence."""

    CLASS = "tasks.translation.TranslationTask"
    MODELS: ClassVar = {
        "encoder-decoder": EncoderDecoder,
        "lstm-encoder-decoder": LstmEncoderDecoder,
    }

    #: Languages, as file names end: ``train.de`` and ``train.en``.
    source: str = "de"
    target: str = "en"
    #: How the file names of the test split begin; empty for the first of several.
    test: str = ""
    #: Tokens of a side at most, with its end; longer pairs are not trained on.
    length: Rows = 100
    #: Share of the target probability that all tokens get alike.
    smoothing: Share = 0.1
    #: Hypotheses of the beam search.
    beam: Few = 4
    #: α of the length penalty of the search.
    penalty: Nonnegative = 0.6
    #: Which penalty: ((5 + tokens)/6)^α of Wu et al. 2016, as Vaswani et al. have it, or tokens^α
    #: of fairseq, which for α = 1 gives the mean of ln p over the tokens.
    penalty_form: Literal["gnmt", "power"] = "gnmt"
    #: Tokens that a translation may have beyond the length of its source.
    more: Memory = 50
    #: Whether both languages share a vocabulary.
    joint: bool = True

    def __post_init__(self) -> None:
        for name in ("source", "target", "test"):
            value = getattr(self, name)
            if Path(value).name != value:  # it becomes a part of names of files
                raise BadOption(f"{name} is {value!r}", way_out="give a name")
        if self.source == self.target:
            raise BadOption(
                f"target is {self.target!r}",
                way_out="give another language than that of source",
            )


class SkipGramTask(TaskSettings, frozen=True):
    """Predict the neighbors of a word."""

    CLASS = "tasks.skip_gram.SkipGramTask"
    MODELS: ClassVar = {"skip-gram": SkipGram}

    #: A folder with published sets of word similarity (``EN-WS-353-ALL.txt`` …).
    wordsim: str = ""
    #: The largest distance of the words of a pair.
    window: Few = 5
    #: Negatives of a pair.
    negatives: Width = 5
    #: Negatives that all pairs of a batch share.
    shared: Rows = 64
    #: Negatives are drawn in proportion to this power of the counts.
    power: Nonnegative = 0.75
    #: Words with a larger share of the text are subsampled; 0 for none.
    subsample: Nonnegative = 1e-3


#: Every task by name, to which plug-ins add.
TASKS: dict[str, type[TaskSettings]] = {
    "lm": LanguageModeling,
    "classification": Classification,
    "translation": Translation,
    "skipgram": SkipGramTask,
}


# --- Methods --------------------------------------------------------------------------------------


class Factorization(Settings, frozen=True):
    """Factors without any penalty."""

    CLASS = "methods.factored.Factorization"


class Tying(Settings, frozen=True):
    """One matrix."""

    CLASS = "methods.tying.Tying"


class CosReg(Settings, frozen=True):
    """Cosine regularization."""

    CLASS = "methods.cosreg.CosReg"

    #: The strength γ.
    gamma: Nonnegative = 1.0


class Orthogonal(Settings, frozen=True):
    """Factors with orthonormal columns."""

    #: λ1 of U and λ2 of V.
    frobenius: Pair = (1.0, 1.0)
    #: λ3 of U and λ4 of V.
    spectral: Pair = (1.0, 1.0)


class SpectrumControl(Orthogonal, frozen=True):
    """A prior of the singular values."""

    CLASS = "methods.spectrum_control.SpectrumControl"

    #: The decay of the prior.
    prior: Literal["exponential", "polynomial"] = "exponential"
    #: λ_e or λ_p; the paper's grid is 0.1, 1, 10, 100.
    strength: Nonnegative = 1.0
    #: γ; by default 1 for the exponential prior and 0.6 for the polynomial one.
    gamma: Positive | None = None
    #: σ*_d/σ*_1 of the exponential prior, which determines c2; by default 0.1. The polynomial
    #: prior has no such setting: its ratio is d^(−γ).
    tail_ratio: Ratio | None = None
    #: "fixed": ‖σ*‖ equals ‖Σ‖ at the start, which holds W at its initial norm. "free": the c1
    #: that fits Σ best at each step, so that the penalty is on the shape of the decay alone. A
    #: number: c1 itself.
    c1: Positive | Literal["fixed", "free"] = "fixed"
    #: (λ1, λ2) and (λ3, λ4), with the paper's grid of 0.01, 0.1, 1, 10, of which 0.01 had the
    #: lowest validation perplexity in `benchmarks/results/campaign-grids.md`.
    frobenius: Pair = (0.01, 0.01)
    spectral: Pair = (0.01, 0.01)

    def __post_init__(self) -> None:
        if self.prior == "polynomial" and self.tail_ratio is not None:
            raise BadOption(
                "the polynomial prior has no tail_ratio: it is d^(−gamma)",
                way_out="give gamma alone",
            )


class SpectralNorm(Orthogonal, frozen=True):
    """A largest singular value."""

    CLASS = "methods.spectral_norm.SpectralNorm"


class DOptimal(Orthogonal, frozen=True):
    """A largest singular value, and the others near it."""

    CLASS = "methods.spectral_norm.DOptimal"

    #: The strength λ.
    lambda_: Nonnegative = 1.0


class Frage(Settings, frozen=True):
    """A discriminator of rare and frequent rows."""

    CLASS = "methods.frage.Frage"

    #: Of `attach`: share of the tokens, most frequent first, that form the class of frequent rows.
    share: Proper = POPULAR
    #: The strength λ; 0.1 in the paper.
    lambda_: Nonnegative = 0.1
    #: Units of the discriminator's hidden layer; by default none, a logistic regression. The paper
    #: has none for language models and translation, else 1.5·d.
    hidden: Width | None = None
    #: Learning rate of the discriminator's optimizer (Adam). At 1e-3 it stays far from its
    #: optimum: on fixed rows its loss was 0.949, where 1e-2 reached 0.515 and 1e-1 0.397.
    lr: Positive = 1e-2
    #: Rows for model and discriminator in a step, drawn anew for each; 3,000 in the paper for
    #: skip-gram. By default all.
    sample: Rows | None = None


class AugmentedLoss(Settings, frozen=True):
    """Predictions like the target's neighbors."""

    CLASS = "methods.augmented_loss.AugmentedLoss"

    #: γ; the paper takes 0.5 to 0.8 for Penn Treebank, 1.0 to 1.5 for WikiText-2.
    gamma: Nonnegative = 0.65
    #: The temperature τ; 20 in the paper.
    tau: Positive = 20.0


class AdversarialSoftmax(Settings, frozen=True):
    """The smallest logit near a row."""

    CLASS = "methods.adversarial_softmax.AdversarialSoftmax"

    #: ε; 0.005 published for training, 0.028 for finetuning.
    epsilon: Nonnegative = 0.005
