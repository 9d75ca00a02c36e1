"""Claims of the papers that runs can confirm or refute."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.training.study import published
from embgeo.training.study.published import PaperClaim
from embgeo.training.study.record import Role
from embgeo.training.study.word_similarity import SETS

#: The test perplexity if every run has one, else the validation perplexity.
PERPLEXITY = "perplexity"
TRANSLATION = "translation"
#: Not "untied": then the effect of tying would count as the method's.
BASELINE = "mle"

TIME = "training.microseconds_per_token"
CLASSIFICATION, SKIP_GRAM = "classification", "skipgram"
#: The tasks whose models predict tokens.
TOKENS = ("lm", TRANSLATION)

GAO = "Gao et al. 2019"
WANG = "Wang et al. 2020"
GONG = "Gong et al. 2018"
INAN = "Inan et al. 2017"
STOLLENWERK = "Stollenwerk & Stollenwerk 2025"

SPECTRUM_CONTROL = ("sc-exp", "sc-poly")

#: The model of spectrum control and its rivals, without their penalty.
FACTORED = "factored"
#: The papers on tying compare with a model with two matrices.
UNTIED = "untied"


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper about a method."""

    key: str
    text: str
    source: str
    #: The claim is decided for each of them that was trained.
    methods: tuple[str, ...]
    #: Name of the number that decides, or `PERPLEXITY`.
    number: str
    change: Literal["lower", "higher"]
    #: The reference; the claim cannot be decided without it.
    against: str = BASELINE
    #: Whether differences are taken of logarithms: for perplexities and times.
    relative: bool = False
    #: If `relative`: the claim puts the number below (above) this many times the other.
    factor: float = 1.0
    published: tuple[PaperClaim, ...] = ()
    #: The matrix that the number is measured on; None for numbers of the whole model.
    role: Role | None = None
    #: Whether the method minimizes this number: then the claim only shows that the implementation
    #: works, and is not counted as a test.
    sanity: bool = False
    tasks: tuple[str, ...] = ("lm",)

    @property
    def limit(self) -> float:
        """The difference that separates claims that hold from claims that do not."""
        return math.log(self.factor) if self.relative else 0.0


def _both(claim: Claim) -> tuple[Claim, Claim]:
    """Make a claim about a method with factors, against the plain model and the factors alone.

    The papers compare with the plain model, and so credit the method with its factors. What the
    penalty itself does is the difference from the same factors without it.
    """
    return (
        replace(claim, text=f"{claim.text} (against the plain model, as published)"),
        replace(
            claim,
            key=f"{claim.key}-penalty",
            text=f"{claim.text} (against its factors alone)",
            against=FACTORED,
            published=(),
        ),
    )


#: About language models, whose differences are of logarithms, and about translation.
_of_perplexity = partial(Claim, number=PERPLEXITY, change="lower", relative=True)
_of_bleu = partial(Claim, number="test.bleu", change="higher", tasks=(TRANSLATION,))

#: Scores that FRAGE improves: name, title, table, published numbers, task.
_FRAGE = (
    ("accuracy", "text classification (accuracy)", 4, published.ACCURACY, CLASSIFICATION),
    ("macro_f1", "text classification (macro-F1)", 4, (published.NEWSGROUPS,), CLASSIFICATION),
    *(
        (name, f"word similarity ({SETS[name][0]})", 1, (paper,), SKIP_GRAM)
        for name, paper in published.WORD_SIMILARITY.items()
    ),
)

# A table: what each claim says, where, of which methods, and the number and direction that decide.
# fmt: off
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cosreg-cosine", "CosReg widens the cone: the mean cosine of two rows falls",
        f"{GAO}, §5 and Fig. 2(a)", ("cosreg",), cosine.MEAN.name, "lower", role="output",
        sanity=True, tasks=TOKENS,
    ),
    Claim(
        "cosreg-spectrum",
        "CosReg makes the singular values more uniform: the effective rank rises",
        f"{GAO}, §6.3 and Fig. 2(b)", ("cosreg",), spectrum.EFFECTIVE_RANK.name, "higher",
        role="output", tasks=TOKENS,
    ),
    Claim(
        "cosreg-isotropy",
        "CosReg spreads the rows over all directions: I1 rises, at mean norm 1",
        f"{GAO}, §6.3 (uniform around the origin), in Wang et al.'s measure", ("cosreg",),
        isotropy.I1_UNIT.name, "higher", role="output", tasks=TOKENS,
    ),
    _of_perplexity(
        "cosreg-perplexity", "CosReg improves perplexity", f"{GAO}, Table 1", ("cosreg",),
        published=published.COSREG,
    ),
    Claim(
        "sc-prior",
        "Spectrum control brings the singular values to its prior (the exponential one)",
        f"{WANG}, §4 and Fig. 1", ("sc-exp",), "spectrum.from_exponential_prior", "lower",
        role="output", against=FACTORED, sanity=True, tasks=TOKENS,
    ),
    Claim(
        "sc-prior-polynomial",
        "Spectrum control brings the singular values to its prior (the polynomial one)",
        f"{WANG}, §4 and Fig. 1", ("sc-poly",), "spectrum.from_polynomial_prior", "lower",
        role="output", against=FACTORED, sanity=True, tasks=TOKENS,
    ),
    *_both(Claim(
        "sc-i1", "Spectrum control raises I1", f"{WANG}, Table 3", SPECTRUM_CONTROL,
        isotropy.I1_MEAN_SIGN.name, "higher", published=published.I1, role="output", tasks=TOKENS,
    )),
    *_both(Claim(
        "sc-i2", "Spectrum control lowers I2", f"{WANG}, Table 3", SPECTRUM_CONTROL,
        isotropy.I2_MEAN_SIGN.name, "lower", published=published.I2, role="output", tasks=TOKENS,
    )),
    *_both(_of_perplexity(
        "sc-perplexity", "Spectrum control improves perplexity (the exponential prior)",
        f"{WANG}, Table 1", ("sc-exp",), published=published.SPECTRUM_CONTROL,
    )),
    *_both(_of_perplexity(
        "sc-perplexity-polynomial", "Spectrum control improves perplexity (the polynomial prior)",
        f"{WANG}, Table 8", ("sc-poly",), published=published.SPECTRUM_CONTROL_POLYNOMIAL,
    )),
    _of_perplexity(
        "sc-over-cosreg", "Spectrum control improves perplexity more than CosReg does",
        f"{WANG}, Table 1", SPECTRUM_CONTROL, published=published.SPECTRUM_CONTROL_OVER_COSREG,
        against="cosreg",
    ),
    Claim(
        "sc-time", "Spectrum control takes at most 1.24 times as long",
        f"{WANG}, Table 7 (1.15 to 1.24)", SPECTRUM_CONTROL, TIME, "lower", relative=True,
        factor=1.24, published=published.TIME, tasks=TOKENS,
    ),
    Claim(
        "frage-probe",
        "FRAGE mixes rare and frequent words: a fresh probe tells them apart less well",
        f"{GONG}, §4 and Fig. 3 (there to be seen; the probe is ours)", ("frage",),
        frequency.PROBE_AUC.name, "lower", role="input", tasks=(*TOKENS, CLASSIFICATION, SKIP_GRAM),
    ),
    *(
        Claim(
            f"frage-{score.replace('_', '-')}",
            f"FRAGE improves {what}",
            f"{GONG}, Table {table}",
            ("frage",),
            f"test.{score}",
            "higher",
            published=papers,
            tasks=(task,),
        )
        for score, what, table, papers, task in _FRAGE
    ),
    Claim(
        "frage-neighbors", "FRAGE gives rare words fewer rare neighbors", f"{GONG}, §3 and Table 5",
        ("frage",), frequency.NEIGHBOR_RARITY_RARE.name, "lower", role="input", tasks=TOKENS,
    ),
    _of_perplexity(
        "frage-perplexity", "FRAGE improves perplexity", f"{GONG}, Table 2", ("frage",),
        published=published.FRAGE,
    ),
    _of_perplexity(
        "al-perplexity", "The augmented loss (AL) improves perplexity", f"{INAN}, Table 1", ("al",),
        published=published.AL, against=UNTIED,
    ),
    _of_perplexity(
        "re-perplexity", "Reusing the embedding (RE) improves perplexity",
        f"{INAN}, Tables 1 and 3", ("re",), published=published.RE, against=UNTIED,
    ),
    _of_perplexity(
        "real-perplexity", "Both together (REAL) improve perplexity", f"{INAN}, Table 1", ("real",),
        published=published.REAL, against=UNTIED,
    ),
    _of_perplexity(
        "real-over-al", "REAL is better than the augmented loss alone", f"{INAN}, Table 1",
        ("real",), published=published.REAL_OVER_AL, against="al",
    ),
    _of_perplexity(
        "real-over-re", "REAL is better than reusing the embedding alone", f"{INAN}, Table 1",
        ("real",), published=published.REAL_OVER_RE, against="re",
    ),
    Claim(
        "al-subspace", "The augmented loss draws the output space to that of the input",
        f"{INAN}, §6.1 and Fig. 1 (there without regularization, at a share β of the loss)",
        ("al",), subspace.DISTANCE.name, "lower", against=UNTIED, published=(published.SUBSPACE,),
    ),
    *_both(_of_perplexity(
        "spectral-norm-perplexity", "Spectral normalization alone worsens perplexity",
        f"{WANG}, Table 6", ("spectral-norm",), published=published.SPECTRAL_NORM, change="higher",
    )),
    *_both(_of_perplexity(
        "d-optimal-perplexity",
        "Spectral normalization with the D-optimal regularizer worsens perplexity",
        f"{WANG}, Table 6", ("d-optimal",), published=published.D_OPTIMAL, change="higher",
    )),
    _of_perplexity(
        "adversarial-perplexity", "The adversarial softmax improves perplexity",
        "Wang D. et al. 2019", ("adversarial",), published=(published.ADVERSARIAL,),
    ),
    Claim(
        "coupled-adam-cosine", "Coupled Adam removes the common direction: the mean cosine falls",
        STOLLENWERK, ("coupled-adam",), cosine.MEAN.name, "lower", role="output",
    ),
    Claim(
        "coupled-adam-isotropy",
        "Coupled Adam spreads the rows over all directions: I1 rises, at mean norm 1",
        f"{STOLLENWERK}, Tables 1 and 2 (there of rows as stored)", ("coupled-adam",),
        isotropy.I1_UNIT.name, "higher", published=published.COUPLED_ADAM_ISOTROPY, role="output",
    ),
    Claim(
        "coupled-adam-mean-norm",
        "Coupled Adam keeps the mean row at the origin: its norm falls, as a share of the rows'",
        f"{STOLLENWERK}, §4.3 and Table 1", ("coupled-adam",), spectrum.MEAN_NORM_RATIO.name,
        "lower", published=published.COUPLED_ADAM_MEAN_NORM, role="output",
    ),
    Claim(
        "coupled-adam-perplexity", "Coupled Adam improves perplexity, on large enough datasets",
        f"{STOLLENWERK}, Tables 1 and 2", ("coupled-adam",), PERPLEXITY, "lower", relative=True,
        published=published.COUPLED_ADAM_PERPLEXITY,
    ),
    _of_bleu(
        "cosreg-bleu", "CosReg improves translation (BLEU)", f"{GAO}, Table 2", ("cosreg",),
        published=published.COSREG_BLEU,
    ),
    *_both(_of_bleu(
        "sc-bleu", "Spectrum control (the exponential prior) improves translation (BLEU)",
        f"{WANG}, Tables 4, 5 and 8", ("sc-exp",), published=published.SPECTRUM_CONTROL_BLEU,
    )),
    *_both(_of_bleu(
        "sc-bleu-polynomial", "Spectrum control (the polynomial prior) improves translation (BLEU)",
        f"{WANG}, Table 8", ("sc-poly",), published=published.SPECTRUM_CONTROL_POLYNOMIAL_BLEU,
    )),
    _of_bleu(
        "frage-bleu", "FRAGE improves translation (BLEU)", f"{GONG}, Table 3", ("frage",),
        published=published.FRAGE_BLEU,
    ),
    _of_bleu(
        "adversarial-bleu", "The adversarial softmax improves translation (BLEU)",
        f"{WANG}, Table 4", ("adversarial",), published=published.ADVERSARIAL_BLEU,
    ),
)
# fmt: on
