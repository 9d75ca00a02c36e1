"""Quantities of training, in addition to those of an analysis."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import Quantity

_MERITY = "Merity et al. 2018; every language-modeling paper"
BITS_PER_BYTE = "bits_per_byte"
ACCURACY, MACRO_F1 = "accuracy", "macro_f1"
BLEU, CHRF = "bleu", "chrf"
#: BLEU of the tokens of a tokenized corpus, which papers publish.
TOKENIZED_BLEU = "tokenized_bleu"
#: Titles and publications of the sets of word similarity by the names of their scores.
SETS = {
    "ws353": ("WordSim-353", "Finkelstein et al. 2002"),
    "rg65": ("RG-65", "Rubenstein and Goodenough 1965"),
    "rw": ("Rare Words", "Luong et al. 2013"),
    "men": ("MEN", "Bruni et al. 2014"),
    "simlex": ("SimLex-999", "Hill et al. 2015"),
    "simverb": ("SimVerb-3500", "Gerz et al. 2016"),
    "ws353_sim": ("WordSim-353, similarity", "Agirre et al. 2009"),
    "ws353_rel": ("WordSim-353, relatedness", "Agirre et al. 2009"),
    "mturk287": ("MTurk-287", "Radinsky et al. 2011"),
    "mturk771": ("MTurk-771", "Halawi et al. 2012"),
    "mc30": ("MC-30", "Miller and Charles 1991"),
    "verb143": ("Verb-143", "Baker et al. 2014"),
    "yp130": ("YP-130", "Yang and Powers 2006"),
}
#: Suffix of scores that count pairs with an unknown word as cosine 0.
ALL = "_all"
#: The set that decides.
DECIDING = "ws353"


def of_splits(*facts: Quantity) -> tuple[Quantity, ...]:
    """Return the quantities for both splits.

    ``{split}`` in a meaning stands for the title of the split.
    """
    return tuple(
        replace(
            one,
            name=f"{split}.{one.name}",
            title=f"{one.title}, {title}",
            meaning=one.meaning.replace("{split}", title),
        )
        for split, title in (("valid", "validation"), ("test", "test"))
        for one in facts
    )


def loss_of(what: str, formula: str, source: str = "") -> Quantity:
    """Return the loss over what a task predicts."""
    meaning = f"Mean negative log-probability of {what}."
    return Quantity("loss", "Loss", meaning, formula, source, unit="nats", better="lower")


OF_LANGUAGE_MODELS = of_splits(
    Quantity(
        "perplexity",
        "Perplexity",
        "Between how many tokens the model hesitates on the {split} split: the exponential of the "
        "mean loss of a token. Only comparable over one and the same vocabulary.",
        "exp(−1/T Σ_t ln p(w_t | w_<t))",
        _MERITY,
        better="lower",
    ),
    loss_of("a token of the {split} split", "−1/T Σ_t ln p(w_t | w_<t)", _MERITY),
    *(
        Quantity(
            name,
            f"Perplexity of {word} words",
            f"Perplexity over the positions of the {{split}} split whose target is a {word} word.",
            f"exp of the mean loss over {word} targets",
            "after Gong et al. 2018",
            better="lower",
        )
        for name, word in (("rare", "rare"), ("popular", "frequent"))
    ),
    Quantity(
        "cache",
        "Perplexity with a continuous cache",
        "Perplexity on the {split} split where recent words are looked up by hidden state.",
        "p = λ·p_cache + (1 − λ)·p",
        "Grave et al. 2017",
        better="lower",
    ),
    Quantity(
        "dynamic",
        "Perplexity by dynamic evaluation",
        "Perplexity on the {split} split of a model that learns from it as it reads.",
        "gradient steps between windows",
        "Krause et al. 2017",
        better="lower",
    ),
    Quantity(
        "unigram",
        "Perplexity of a unigram model",
        "Perplexity of a model that predicts each token as often as it occurs in the training "
        "split, on the tokens of the {split} split that the language models predict. A model that "
        "is not below it has learned less than the frequencies.",
        "exp(−1/T Σ_t ln p(w_t)), p(w) = max(c_w, 1)/Σ_v max(c_v, 1)",
        better="lower",
    ),
    Quantity(
        BITS_PER_BYTE,
        "Bits per byte",
        "Bits that the model takes to encode a byte of the text of the {split} split. Comparable "
        "between tokenizers, on one and the same text.",
        "−Σ_t log₂ p(w_t | w_<t) / Σ_t bytes of w_t",
        "Gao L. et al. 2020 (The Pile)",
        unit="bits",
        better="lower",
    ),
)
OF_CLASSIFICATION = of_splits(
    Quantity(
        ACCURACY,
        "Accuracy",
        "Share of the documents of the {split} split that get their class.",
        "1/n Σ_i [ŷ_i = y_i]",
        better="higher",
    ),
    Quantity(
        MACRO_F1,
        "Macro-F1",
        "Mean over classes of the F1 of the {split} split, so that a rare class counts as much "
        "as a frequent one.",
        "1/C Σ_c 2·TP_c/(2·TP_c + FP_c + FN_c)",
        better="higher",
    ),
    loss_of("the class over the documents of the {split} split", "−1/n Σ_i ln p(y_i | x_i)"),
)
OF_TRANSLATION = of_splits(
    Quantity(
        BLEU,
        "BLEU",
        "BLEU of the translations of the {split} split, as sacreBLEU computes it; 0 to 100.",
        "100·BP·exp(1/4 Σ_n ln p_n)",
        better="higher",
    ),
    Quantity(
        TOKENIZED_BLEU,
        "Tokenized BLEU",
        "Cased BLEU of the translations of the {split} split over the tokens of the corpus, as "
        "multi-bleu.perl computes it; 0 to 100. Defined for tokenized corpora alone, and compared "
        "with published numbers, which are of tokens.",
        "100·BP·exp(1/4 Σ_n ln p_n)",
        better="higher",
    ),
    Quantity(
        CHRF,
        "chrF",
        "F-score of character n-grams of the translations of the {split} split, as sacreBLEU "
        "computes it; 0 to 100.",
        better="higher",
    ),
    loss_of(
        "a token of the reference translations of the {split} split, without label smoothing",
        "−1/n Σ_t ln p(y_t | y_<t, x)",
    ),
)


OF_SIMILARITY: tuple[Quantity, ...] = (
    *(
        Quantity(
            f"test.{name}{end}",
            f"{title}{more}",
            f"Spearman’s rank correlation of the cosines of the word pairs of {title} and of what "
            f"people say of them; {how}",
            "ρ(cos(u_a, u_b), gold)",
            source,
            better="higher",
        )
        for name, (title, source) in SETS.items()
        for end, more, how in (
            ("", "", "pairs with a word that is not in the vocabulary are left out."),
            (
                ALL,
                ", all pairs",
                "a pair with a word that is not in the vocabulary has the cosine 0.",
            ),
        )
    ),
    Quantity(
        "valid.loss",
        "Loss, validation",
        "Mean loss of pairs of words of the validation documents, the same each time.",
        "−ln σ(u·v) − k·mean_s ln σ(−u·v_s)",
        "Mikolov et al. 2013, Eq. 4",
        unit="nats",
        better="lower",
    ),
)
SECONDS = Quantity(
    "training.seconds",
    "Seconds of the run",
    "From the first step to the last evaluation, as the clock on the wall has it.",
    unit="s",
)
SECONDS_PER_TOKEN = Quantity(
    "training.microseconds_per_token",
    "Time per token",
    "Time of a training step over its tokens, or over the pairs or documents of other "
    "tasks, the median over the log of the run; what else ran on the machine at that time is in "
    "it.",
    "median of 1 / (tokens a second)",
    unit="µs",
)
PARAMETERS = Quantity(
    "training.parameters",
    "Parameters",
    "Numbers that are trained; a tied matrix counts once.",
)
PEAK = Quantity(
    "training.peak_memory",
    "Peak memory",
    "The memory that torch held on the GPU at most; of a run on a CPU, the resident memory of the "
    "process, with the interpreter and torch.",
    unit="MB",
    better="lower",
)
MOVEMENT = tuple(
    Quantity(
        f"movement.{name}",
        f"Movement of {name} rows",
        f"How far the rows of {name} tokens have moved in training, as a multiple of their length "
        "before it.",
        "mean ‖w − w₀‖/‖w₀‖",
        "after Gong et al. 2018, §3",
    )
    for name in ("frequent", "rare")
)
KERNEL_PROBE = Quantity(
    "frequency.kernel_probe_auc",
    "Probe AUC, kernel",
    "How well a probe that is not linear separates frequent from rare tokens by their rows alone, "
    "on rows it was not fitted to. 0.5: not at all; 1: perfectly. Below 0.5 it separates them the "
    "wrong way round.",
    "mean over 5 stratified folds of the ROC AUC of kernel ridge regression, "
    "k(x, y) = exp(−‖x − y‖²/2d) of standardized columns",
    "after Gong et al. 2018 (FRAGE), §4 (its discriminator)",
)
PRIOR = {
    kind: Quantity(
        f"spectrum.from_{kind}_prior",
        f"Distance from the {kind} prior",
        f"How far the singular values lie from the {kind} prior of spectrum control, both scaled "
        "to length 1. 0: they follow it.",
        "‖σ/‖σ‖ − σ*/‖σ*‖‖",
        "Wang et al. 2020, §4",
    )
    for kind in ("exponential", "polynomial")
}

#: All quantities of this module.
QUANTITIES: tuple[Quantity, ...] = (
    *OF_LANGUAGE_MODELS,
    SECONDS,
    SECONDS_PER_TOKEN,
    PARAMETERS,
    PEAK,
    *MOVEMENT,
    KERNEL_PROBE,
    *PRIOR.values(),
)

#: Names of scores in ``result.json``.
OF_A_SPLIT = tuple(dict.fromkeys(q.name.partition(".")[2] for q in OF_LANGUAGE_MODELS))
#: Scores whose differences are taken of logarithms.
PERPLEXITIES = tuple(name for name in OF_A_SPLIT if name not in ("loss", BITS_PER_BYTE))


def is_relative(name: str) -> bool:
    """Tell whether a number is compared by logarithms, as perplexities and costs are."""
    return name.startswith("training.") or name.partition(".")[2] in PERPLEXITIES


#: Defaults of priors: γ, and the ratio of the last singular value to the first.
GAMMA = {"exponential": 1.0, "polynomial": 0.6}
TAIL_RATIO = 0.1


def prior(kind: str, d: int, settings: Mapping[str, Any]) -> FloatArray:
    """Return σ*_k of spectrum control, k = 1 … d, with σ*_1 = 1: exp(−c2·(k^γ − 1)) or k^(−γ).

    `settings` of the method may have ``gamma`` and ``tail_ratio`` (σ*_d, in place of c2).
    """
    gamma = float(settings.get("gamma") or GAMMA[kind])
    k = np.arange(1, d + 1, dtype=np.float64)
    if kind == "polynomial":
        return np.asarray(k**-gamma)
    grown = k**gamma - 1.0
    ratio = float(settings.get("tail_ratio") or TAIL_RATIO)
    return np.asarray(np.exp(math.log(ratio) * grown / max(grown[-1], 1e-300)))


def prior_distance(sigma: FloatArray, target: FloatArray) -> float:
    """Return ‖σ/‖σ‖ − σ*/‖σ*‖‖, for σ in falling order; between 0 and √2."""
    ordered = np.sort(np.asarray(sigma, dtype=np.float64))[::-1]
    expected = np.sort(target)[::-1]
    length = float(np.linalg.norm(ordered))
    if not length > 0.0 or len(ordered) != len(expected):
        return math.nan
    return float(np.linalg.norm(ordered / length - expected / np.linalg.norm(expected)))
