"""Published numbers, each with its table and rows."""

import math
from dataclasses import dataclass

from embgeo.training.study.translation_outcomes import TOKENIZED_BLEU


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A published number without and with the method."""

    before: float
    after: float
    #: Title of the number.
    number: str
    model: str
    corpus: str
    #: The table with its two rows, or another source.
    table: str
    task: str = "lm"
    #: Names of model and corpus in the settings of runs; empty if there is no such model.
    trained: tuple[str, str] = ("", "")
    #: The score of a run that compares with the number, if it is not the one that decides.
    score: str = ""

    @property
    def text(self) -> str:
        where = f"{self.number}, {self.corpus}, {self.model}, {self.table}"
        return f"{self.before:g} → {self.after:g} ({where})"

    def difference(self, *, relative: bool) -> float:
        """Return after − before, or the difference of logarithms if `relative`."""
        if relative:
            return math.log(self.after / self.before)
        return self.after - self.before


def _wikitext(before: float, after: float, table: str) -> PaperClaim:
    model = "AWD-LSTM before finetuning"
    trained = ("awd-lstm", "wikitext-2")
    return PaperClaim(before, after, "test perplexity", model, "WikiText-2", table, trained=trained)


def _penn(before: float, after: float, table: str) -> PaperClaim:
    model = "VD-LSTM with 200 units"
    trained = ("vd-lstm", "ptb")
    return PaperClaim(
        before, after, "test perplexity", model, "Penn Treebank", table, trained=trained
    )


def _mixture(before: float, after: float, stage: str, corpus: str, name: str) -> PaperClaim:
    model = f"AWD-LSTM-MoS {stage}"
    trained = ("awd-lstm-mos", name)
    return PaperClaim(before, after, "test perplexity", model, corpus, "Table 2", trained=trained)


def _xl(before: float, after: float, number: str, model: str, table: str) -> PaperClaim:
    trained = ("transformer-xl", "wikitext-103")
    return PaperClaim(before, after, number, model, "WikiText-103", table, trained=trained)


COSREG = (_wikitext(66.0, 65.2, "Table 1, rows MLE and MLE-CosReg"),)
SPECTRUM_CONTROL = (_wikitext(66.0, 63.7, "Table 1, rows AWD-LSTM and ours"),)
SPECTRUM_CONTROL_POLYNOMIAL = (
    _wikitext(66.0, 64.2, "Tables 1 and 8, polynomial"),
    _xl(30.4, 29.5, "test perplexity", "Transformer-XL with 4 layers", "Table 2"),
    _xl(24.0, 23.2, "test perplexity", "Transformer-XL with 16 layers", "Table 2"),
)
SPECTRUM_CONTROL_OVER_COSREG = (_wikitext(65.2, 63.7, "Table 1, rows MLE-CosReg and ours"),)
SPECTRAL_NORM = (_wikitext(66.0, 72.5, "Table 6, rows AWD-LSTM and SN"),)
D_OPTIMAL = (_wikitext(66.0, 94.8, "Table 6, rows AWD-LSTM and SN + D-optimal"),)
FRAGE = (
    _wikitext(67.1, 64.8, "Table 2, which prints 67.1 where other papers have 66.0"),
    _mixture(55.97, 55.23, "before finetuning", "Penn Treebank", "ptb"),
    _mixture(54.44, 53.31, "with finetuning", "Penn Treebank", "ptb"),
    _mixture(63.33, 62.12, "before finetuning", "WikiText-2", "wikitext-2"),
    _mixture(61.45, 59.73, "with finetuning", "WikiText-2", "wikitext-2"),
)

ACCURACY = tuple(
    PaperClaim(before, after, "test accuracy", "RCNN", corpus, "Table 4")
    for corpus, before, after in (("IMDB", 0.9241, 0.9307), ("AG's News", 0.9047, 0.9173))
)
NEWSGROUPS = PaperClaim(
    0.9649,
    0.9693,
    "macro-F1",
    "RCNN",
    "four groups of 20 Newsgroups",
    "Table 4; the row before is that of Lai et al. 2015, there a macro-F1",
)


def _translation(before: float, after: float, model: str, corpus: str, table: str) -> PaperClaim:
    title = "tokenized BLEU"
    return PaperClaim(
        before, after, title, model, corpus, table, "translation", score=TOKENIZED_BLEU
    )


COSREG_BLEU = (
    _translation(27.3, 28.38, "Transformer base", "WMT14 en–de", "Table 2"),
    _translation(28.4, 28.94, "Transformer big", "WMT14 en–de", "Table 2"),
    _translation(31.0, 31.93, "Transformer base", "WMT14 de–en", "Table 2"),
)
SPECTRUM_CONTROL_BLEU = (
    _translation(34.01, 35.5, "Transformer", "IWSLT14 de–en", "Table 4"),
    _translation(27.3, 28.45, "Transformer base", "WMT14 en–de", "Table 5"),
    _translation(28.4, 29.32, "Transformer big", "WMT14 en–de", "Table 5"),
    _translation(27.3, 28.37, "Transformer base", "WMT14 en–de", "Tables 5 and 8, exponential"),
)
SPECTRUM_CONTROL_POLYNOMIAL_BLEU = (
    _translation(34.01, 35.4, "Transformer", "IWSLT14 de–en", "Tables 4 and 8, polynomial"),
    _translation(27.3, 28.45, "Transformer base", "WMT14 en–de", "Tables 5 and 8, polynomial"),
)
ADVERSARIAL_BLEU = (
    _translation(34.01, 35.18, "Transformer", "IWSLT14 de–en", "Table 4 of Wang et al. 2020"),
)
FRAGE_BLEU = (
    _translation(33.12, 33.97, "Transformer", "IWSLT14 de–en", "Table 3"),
    _translation(27.3, 28.36, "Transformer base", "WMT14 en–de", "Table 3"),
    _translation(28.4, 29.11, "Transformer big", "WMT14 en–de", "Table 3"),
)

WORD_SIMILARITY = {
    name: PaperClaim(before, after, "Spearman’s ρ", "skip-gram", "enwik9", "Table 1", "skipgram")
    for name, before, after in (
        ("rg65", 0.7563, 0.7878),
        ("ws353", 0.6674, 0.6935),
        ("rw", 0.5267, 0.5812),
    )
}

I1 = (
    _xl(0.24, 0.63, "I1", "Transformer-XL", "Table 3"),
    PaperClaim(0.31, 0.88, "I1", "Transformer", "IWSLT14 de–en", "Table 3", "translation"),
)
I2 = (
    _xl(0.037, 0.022, "I2", "Transformer-XL", "Table 3"),
    PaperClaim(0.031, 0.005, "I2", "Transformer", "IWSLT14 de–en", "Table 3", "translation"),
)
TIME = (
    PaperClaim(61.0, 70.0, "seconds an epoch", "AWD-LSTM", "WikiText-2", "Table 7"),
    _xl(2681.0, 3152.0, "seconds an epoch", "Transformer-XL", "Table 7"),
    PaperClaim(
        5991.0, 7421.0, "seconds an epoch", "Transformer", "WMT14 en–de", "Table 7", "translation"
    ),
)

AL = (_penn(87.3, 82.9, "Table 1, rows VD-LSTM and VD-LSTM + AL"),)
RE = (
    _penn(87.3, 85.1, "Table 1, rows VD-LSTM and VD-LSTM + RE"),
    PaperClaim(
        68.5,
        66.0,
        "test perplexity",
        "VD-RHN",
        "Penn Treebank",
        "Table 3, rows VD-RHN and VD-RHN + RE",
        trained=("vd-rhn", "ptb"),
    ),
)
REAL = (_penn(87.3, 82.7, "Table 1, rows VD-LSTM and VD-LSTM + REAL"),)
REAL_OVER_AL = (_penn(82.9, 82.7, "Table 1, rows VD-LSTM + AL and + REAL"),)
REAL_OVER_RE = (_penn(85.1, 82.7, "Table 1, rows VD-LSTM + RE and + REAL"),)
SUBSPACE = PaperClaim(
    1.0,
    0.06,
    "subspace distance",
    "2×300 LSTM",
    "20,000 words of Penn Treebank",
    "§6.1 and Fig. 1(a), β = 0 and β = 1 at τ = 10",
)
ADVERSARIAL = PaperClaim(
    54.44,
    52.97,
    "test perplexity",
    "AWD-LSTM-MoS with finetuning",
    "Penn Treebank",
    "the authors' README",
    trained=("awd-lstm-mos", "ptb"),
)


#: Quoted from a summary by others: the tables of all HTML editions of the paper are empty.
_QUOTED = "Table {}, as quoted in a summary by others"


def _open_web_text(before: float, after: float, number: str, size: str) -> PaperClaim:
    model, corpus = f"GPT-2 of {size} parameters", "OpenWebText, 20B tokens"
    return PaperClaim(before, after, number, model, corpus, _QUOTED.format(1))


def _slim_pajama(before: float, after: float, number: str, size: str, tokens: str) -> PaperClaim:
    model, corpus = f"Transformer of {size} parameters", f"SlimPajama, {tokens} tokens"
    return PaperClaim(before, after, number, model, corpus, _QUOTED.format(2))


def _perplexities(before: float, after: float) -> tuple[float, float, str]:
    """Return the perplexities of two losses, which are printed to two digits."""
    what = f"test perplexity, from the losses {before} and {after}"
    return round(math.exp(before), 2), round(math.exp(after), 2), what


COUPLED_ADAM_PERPLEXITY = (
    _open_web_text(*_perplexities(3.03, 2.97), "125M"),
    _open_web_text(*_perplexities(2.79, 2.75), "355M"),
    _open_web_text(*_perplexities(2.68, 2.65), "760M"),
    _slim_pajama(*_perplexities(2.46, 2.44), "1.3B", "26B"),
    _slim_pajama(*_perplexities(2.17, 2.16), "2.6B", "210B"),
)
COUPLED_ADAM_ISOTROPY = (
    _open_web_text(0.10, 0.83, "I1 of rows as stored", "125M"),
    _open_web_text(0.25, 0.95, "I1 of rows as stored", "355M"),
    _open_web_text(0.28, 0.94, "I1 of rows as stored", "760M"),
    _slim_pajama(0.22, 0.94, "I1 of rows as stored", "1.3B", "26B"),
    _slim_pajama(0.22, 0.97, "I1 of rows as stored", "2.6B", "210B"),
)
COUPLED_ADAM_MEAN_NORM = (
    _open_web_text(0.82, 0.03, "norm of the mean row", "125M"),
    _open_web_text(0.82, 0.02, "norm of the mean row", "355M"),
    _open_web_text(0.73, 0.01, "norm of the mean row", "760M"),
)
