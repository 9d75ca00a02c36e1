"""The settings of models, tasks and methods, one structure each, without torch.

`CLASS` names what takes the settings: a class of `embgeo.training`, which is imported when it is
used, or that of a plug-in itself.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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


class ModelSettings(Settings, frozen=True):
    """What all models have.

    Attributes
    ----------
    d : int
        Columns of the embedding.
    """

    CLASS: ClassVar[Any]

    d: Width


class LanguageModelSettings(ModelSettings, frozen=True):
    """What all language models have.

    Attributes
    ----------
    tied : bool
        Whether the embedding and the output layer share one matrix.
    bias : bool
        Whether the output layer has a bias.
    """

    tied: bool = True
    bias: bool = True


class Recurrent(LanguageModelSettings, frozen=True):
    """LSTM layers.

    Attributes
    ----------
    d : int
        Columns of the embedding, and units of the last layer.
    hidden : int
        Units of the other layers.
    layers : int
        Recurrent layers.
    embedding_dropout : float
        Share of tokens whose embedding is zero throughout a window of training.
    input_dropout, hidden_dropout, output_dropout : float
        Dropout of the input of the first layer, between layers, and of the output layer's input,
        constant throughout a window.
    experts : int
        Softmaxes of the output; more than one are a mixture (Yang et al. 2018).
    last : int, optional
        Units of the last layer of a mixture; d by default.
    latent_dropout : float
        Dropout of the input of the softmaxes of a mixture.
    """

    d: Width = 400
    hidden: Width = 1150
    layers: Few = 3
    embedding_dropout: Share = 0.1
    input_dropout: Share = 0.65
    hidden_dropout: Share = 0.2
    output_dropout: Share = 0.4
    experts: Few = 1
    last: Width | None = None
    latent_dropout: Share = 0.0

    def __post_init__(self) -> None:
        if self.experts == 1 and (self.last is not None or self.latent_dropout):
            raise BadOption(
                "last and latent_dropout belong to a mixture of softmaxes",
                way_out="set experts to 2 or more",
            )


class AwdLstm(Recurrent, frozen=True):
    """Defaults published for WikiText-2; for Penn Treebank, two dropouts differ.

    Attributes
    ----------
    weight_dropout : float
        Dropout of single recurrent weights.
    alpha : float
        Weight of the mean square of the last layer's states after dropout (AR).
    beta : float
        Weight of the mean square of their change from token to token before dropout (TAR).
    """

    CLASS = "models.awd_lstm.AwdLstm"

    weight_dropout: Share = 0.5
    alpha: Nonnegative = 2.0
    beta: Nonnegative = 1.0


class VdLstm(LanguageModelSettings, frozen=True):
    """Two LSTM layers of a published size.

    Attributes
    ----------
    size : {"small", "medium", "large"}
        Defaults of the other settings: 200, 650 or 1,500 units and columns, and the dropout and
        initialization of this size.
    d : int, optional
        Columns of the embedding, and units of the last layer.
    hidden : int, optional
        Units of the other layers.
    layers : int
        Recurrent layers.
    dropout : float, optional
        Dropout of embedded tokens and of the states of each layer; 0.3, 0.5 or 0.65 by size. For
        WikiText-2 the paper has 0.2 (small) and 0.4 (medium).
    bound : float, optional
        All weights are uniform in ±bound; 0.1, 0.05 or 0.04 by size.
    """

    CLASS = "models.vd_lstm.VdLstm"

    size: Literal["small", "medium", "large"] = "small"
    d: Width | None = None  # type: ignore[assignment]
    hidden: Width | None = None
    layers: Few = 2
    dropout: Share | None = None
    bound: Nonnegative | None = None


class VdRhn(LanguageModelSettings, frozen=True):
    """Defaults published for Penn Treebank with tied matrices.

    Attributes
    ----------
    d : int
        Columns of the embedding, and units of all layers.
    layers : int
        Highway layers.
    depth : int
        Highway steps of a layer at each token.
    embedding_dropout : float
        Share of tokens whose embedding is zero throughout a window of training.
    input_dropout, state_dropout, output_dropout : float
        Dropout of the input of each layer, of its state on the way into each step, and of the
        output layer's input.
    bound : float
        Weights and biases are uniform in ±bound, those of the embedding included.
    """

    CLASS = "models.vd_rhn.VdRhn"

    d: Width = 830
    layers: Few = 1
    depth: Few = 10
    embedding_dropout: Share = 0.25
    input_dropout: Share = 0.75
    state_dropout: Share = 0.25
    output_dropout: Share = 0.75
    bound: Nonnegative = 0.04


class Transformer(LanguageModelSettings, frozen=True):
    """A Transformer language model.

    Attributes
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        A divisor of d.
    feedforward : int, optional
        Units of the feed-forward layers; 4·d by default.
    dropout : float
        Dropout of embedded tokens, attention weights, and outputs of attention and feed-forward
        layers.
    norm : {"before", "after"}
        Whether to normalize before each layer, or after each addition as Vaswani et al. do.
    positions : {"learned", "sinusoidal"}
        "sinusoidal" as Vaswani et al.: rows of a norm of about 1, multiplied by √d.
    context : int
        The number of learned positions, which limits windows; sinusoidal ones have no limit.
    activation : {"gelu", "relu"}
        Of the feed-forward layers: GELU as Radford et al., or ReLU as Vaswani et al.
    """

    CLASS = "models.transformer.Transformer"

    d: Width = 256
    layers: Few = 4
    heads: Few = 4
    feedforward: Width | None = None
    dropout: Share = 0.1
    norm: Norm = "before"
    positions: Literal["learned", "sinusoidal"] = "learned"
    context: Rows = 512
    activation: Literal["gelu", "relu"] = "gelu"
    bias: bool = False

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        if self.positions == "sinusoidal":
            require_even(self.d)


class TransformerXL(LanguageModelSettings, frozen=True):
    """A Transformer with a memory of earlier windows.

    Attributes
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        A divisor of d.
    feedforward : int, optional
        Units of the feed-forward layers; 4·d by default.
    memory : int
        The number of tokens before a window that attention sees, without a gradient.
    dropout : float
        Dropout of embedded tokens, positions, and outputs of attention and feed-forward layers.
    """

    CLASS = "models.transformer_xl.TransformerXL"

    d: Width = 410
    layers: Few = 4
    heads: Few = 10
    feedforward: Width | None = None
    memory: Memory = 150
    dropout: Share = 0.1

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        require_even(self.d)


class Llama(LanguageModelSettings, frozen=True):
    """The Transformer of LLaMA.

    Attributes
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        Heads of queries, each with an even number of features.
    kv_heads : int, optional
        Heads of keys and values, a divisor of `heads`; by default `heads`.
    feedforward : int, optional
        Units of the feed-forward layers; by default 8·d/3, rounded up to a multiple of 32.
    dropout : float
        Dropout of embedded tokens, and of outputs of attention and feed-forward layers.
    """

    CLASS = "models.llama.Llama"

    d: Width = 256
    layers: Few = 4
    heads: Few = 4
    kv_heads: Few | None = None
    feedforward: Width | None = None
    dropout: Share = 0.0
    bias: bool = False

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads, rotary=True)
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise BadOption(
                f"kv_heads is {self.kv_heads}", way_out=f"give a number that divides {self.heads}"
            )


class Rcnn(ModelSettings, frozen=True):
    """Classes of documents.

    Attributes
    ----------
    d : int
        Columns of the embedding.
    context, hidden : int
        Units of each recurrent layer, and of the layer before the maximum.
    dropout : float
        Dropout of embedded tokens.
    """

    CLASS = "tasks.classification.Rcnn"

    d: Width = 100
    context: Width = 100
    hidden: Width = 100
    dropout: Share = 0.5


class TranslationModelSettings(ModelSettings, frozen=True):
    """What models of translation have.

    Attributes
    ----------
    tied : {"three-way", "decoder", "none"}
        Which matrices are shared: all three, target and output, or none.
    bias : bool
        Whether the output layer has a bias.
    """

    tied: Literal["three-way", "decoder", "none"] = "three-way"
    bias: bool = False


class EncoderDecoder(TranslationModelSettings, frozen=True):
    """The Transformer for translation.

    Attributes
    ----------
    d, feedforward : int
        Columns of the embedding and of all states; units of the feed-forward layers.
    layers, heads : int
        Blocks of the encoder and of the decoder; heads of each attention.
    dropout : float
        Dropout of embedded tokens, attention weights, units of feed-forward layers, and the output
        of each layer.
    norm : {"before", "after"}
        Whether to normalize before each layer, or after each addition as published.
    """

    CLASS = "models.encoder_decoder.EncoderDecoder"

    d: Width = 512
    layers: Few = 6
    heads: Few = 8
    feedforward: Width = 2048
    dropout: Share = 0.1
    norm: Norm = "after"

    def __post_init__(self) -> None:
        check_heads(self.d, self.heads)
        require_even(self.d)


class LstmEncoderDecoder(TranslationModelSettings, frozen=True):
    """LSTM layers for translation.

    Attributes
    ----------
    d : int
        Columns of the embedding and units of all layers.
    layers : int
        Layers of the encoder, whose first one reads in both directions, and of the decoder; from 2.
    dropout : float
        Dropout of the input of each layer.
    bound : float
        All weights are uniform in ±bound.
    """

    CLASS = "models.lstm_encoder_decoder.LstmEncoderDecoder"

    d: Width = 1024
    layers: Annotated[int, Meta(ge=2, le=1024)] = 8
    dropout: Share = 0.2
    bound: Nonnegative = 0.04
    bias: bool = True


class SkipGram(ModelSettings, frozen=True):
    """Vectors of words and of their neighbors.

    Attributes
    ----------
    d : int
        Columns of both matrices.
    """

    CLASS = "tasks.skip_gram.SkipGram"

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

    CLASS: ClassVar[Any]
    MODELS: ClassVar[Mapping[str, type[Settings]]]


class LanguageModeling(TaskSettings, frozen=True):
    """Predict each token of a text.

    Attributes
    ----------
    z_loss : float
        Weight of the mean of (ln Z)² over the positions, for Z = Σ exp(logit), which keeps logits
        from a common drift; 0 for none. Chowdhery et al., "PaLM", 2022, §5, use 1e-4.
    smoothing : float
        Share of each target that label smoothing spreads over all tokens, the target included.
        Scores have none.
    """

    CLASS = "tasks.language_model.LanguageModeling"
    MODELS = MODELS

    z_loss: Nonnegative = 0.0
    smoothing: Share = 0.0


class Classification(TaskSettings, frozen=True):
    """Predict the class of a document.

    Attributes
    ----------
    length : int
        Tokens of a document to read, from its start.
    strip : bool
        Whether to leave out headers and quoted lines of posts, which give newsgroups away.
    merge : sequence of str
        Patterns of classes to merge, such as ``"comp.*|sci.crypt"``; documents of other classes are
        left out. Empty: no class is merged.
    """

    CLASS = "tasks.classification.ClassificationTask"
    MODELS: ClassVar = {"rcnn": Rcnn}

    length: Rows = 100
    strip: bool = False
    merge: Texts = ()


class Translation(TaskSettings, frozen=True):
    """Translate a sentence.

    Attributes
    ----------
    source, target : str
        Languages, as file names end: ``train.de`` and ``train.en``.
    test : str
        How the file names of the test split begin; empty for the first of several.
    length : int
        Tokens of a side at most, with its end; longer pairs are not trained on.
    smoothing : float
        Share of the target probability that all tokens get alike.
    beam : int
        Hypotheses of the beam search.
    penalty : float
        α of the length penalty of the search.
    penalty_form : {"gnmt", "power"}
        Which penalty: ((5 + tokens)/6)^α of Wu et al. 2016, as Vaswani et al. have it, or tokens^α
        of fairseq, which for α = 1 gives the mean of ln p over the tokens.
    more : int
        Tokens that a translation may have beyond the length of its source.
    joint : bool
        Whether both languages share a vocabulary.
    """

    CLASS = "tasks.translation.TranslationTask"
    MODELS: ClassVar = {
        "encoder-decoder": EncoderDecoder,
        "lstm-encoder-decoder": LstmEncoderDecoder,
    }

    source: str = "de"
    target: str = "en"
    test: str = ""
    length: Rows = 100
    smoothing: Share = 0.1
    beam: Few = 4
    penalty: Nonnegative = 0.6
    penalty_form: Literal["gnmt", "power"] = "gnmt"
    more: Memory = 50
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
    """Predict the neighbors of a word.

    Attributes
    ----------
    wordsim : str
        A folder with published sets of word similarity (``EN-WS-353-ALL.txt`` …).
    window : int
        The largest distance of the words of a pair.
    negatives : int
        Negatives of a pair.
    shared : int
        Negatives that all pairs of a batch share.
    power : float
        Negatives are drawn in proportion to this power of the counts.
    subsample : float
        Words with a larger share of the text are subsampled; 0 for none.
    """

    CLASS = "tasks.skip_gram.SkipGramTask"
    MODELS: ClassVar = {"skip-gram": SkipGram}

    wordsim: str = ""
    window: Few = 5
    negatives: Width = 5
    shared: Rows = 64
    power: Nonnegative = 0.75
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

    CLASS: ClassVar[Any] = "methods.factored.Factorization"


class Tying(Settings, frozen=True):
    """One matrix."""

    CLASS: ClassVar[Any] = "methods.tying.Tying"


class CosReg(Settings, frozen=True):
    """Cosine regularization.

    Attributes
    ----------
    gamma : float
        The strength γ.
    """

    CLASS: ClassVar[Any] = "methods.cosreg.CosReg"

    gamma: Nonnegative = 1.0


class Orthogonal(Settings, frozen=True):
    """Factors with orthonormal columns.

    Attributes
    ----------
    frobenius : tuple of float
        λ1 of U and λ2 of V.
    spectral : tuple of float
        λ3 of U and λ4 of V.
    """

    CLASS: ClassVar[Any]

    frobenius: Pair = (1.0, 1.0)
    spectral: Pair = (1.0, 1.0)


class SpectrumControl(Orthogonal, frozen=True):
    """A prior of the singular values.

    Attributes
    ----------
    prior : {"exponential", "polynomial"}
    strength : float
        λ_e or λ_p; the paper's grid is 0.1, 1, 10, 100.
    gamma : float, optional
        γ; by default 1 for the exponential prior and 0.6 for the polynomial one.
    tail_ratio : float, optional
        σ*_d/σ*_1 of the exponential prior, which determines c2; by default 0.1. The polynomial
        prior has no such setting: its ratio is d^(−γ).
    c1 : {"fixed", "free"} or float
        "fixed": ‖σ*‖ equals ‖Σ‖ at the start, which holds W at its initial norm. "free": the c1
        that fits Σ best at each step, so that the penalty is on the shape of the decay alone. A
        number: c1 itself.
    frobenius, spectral : tuple of float
        (λ1, λ2) and (λ3, λ4), with the paper's grid of 0.01, 0.1, 1, 10, of which 0.01 had the
        lowest validation perplexity in `benchmarks/results/campaign-grids.md`.
    """

    CLASS = "methods.spectrum_control.SpectrumControl"

    prior: Literal["exponential", "polynomial"] = "exponential"
    strength: Nonnegative = 1.0
    gamma: Positive | None = None
    tail_ratio: Ratio | None = None
    c1: Positive | Literal["fixed", "free"] = "fixed"
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
    """A largest singular value, and the others near it.

    Attributes
    ----------
    lambda_ : float
        The strength λ.
    """

    CLASS = "methods.spectral_norm.DOptimal"

    lambda_: Nonnegative = 1.0


class Frage(Settings, frozen=True):
    """A discriminator of rare and frequent rows.

    Attributes
    ----------
    share : float
        Of `attach`: share of the tokens, most frequent first, that form the class of frequent rows.
    lambda_ : float
        The strength λ; 0.1 in the paper.
    hidden : int, optional
        Units of the discriminator's hidden layer; by default none, a logistic regression. The paper
        has none for language models and translation, else 1.5·d.
    lr : float
        Learning rate of the discriminator's optimizer (Adam). At 1e-3 it stays far from its
        optimum: on fixed rows its loss was 0.949, where 1e-2 reached 0.515 and 1e-1 0.397.
    sample : int, optional
        Rows for model and discriminator in a step, drawn anew for each; 3,000 in the paper for
        skip-gram. By default all.
    """

    CLASS: ClassVar[Any] = "methods.frage.Frage"

    share: Proper = POPULAR
    lambda_: Nonnegative = 0.1
    hidden: Width | None = None
    lr: Positive = 1e-2
    sample: Rows | None = None


class AugmentedLoss(Settings, frozen=True):
    """Predictions like the target's neighbors.

    Attributes
    ----------
    gamma : float
        γ; the paper takes 0.5 to 0.8 for Penn Treebank, 1.0 to 1.5 for WikiText-2.
    tau : float
        The temperature τ; 20 in the paper.
    """

    CLASS: ClassVar[Any] = "methods.augmented_loss.AugmentedLoss"

    gamma: Nonnegative = 0.65
    tau: Positive = 20.0


class AdversarialSoftmax(Settings, frozen=True):
    """The smallest logit near a row.

    Attributes
    ----------
    epsilon : float
        ε; 0.005 published for training, 0.028 for finetuning.
    """

    CLASS: ClassVar[Any] = "methods.adversarial_softmax.AdversarialSoftmax"

    epsilon: Nonnegative = 0.005
