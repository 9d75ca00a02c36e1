"""What a claim of a paper is: a number, a method, and where the method moves the number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embgeo.training.study.published import PaperClaim
from embgeo.training.study.training import Role

#: Stands for the test perplexity where every run has one, else for that of the validation split.
PERPLEXITY = "perplexity"
TRANSLATION = "translation"
#: Not "untied": next to that, tying would count as the method's doing.
BASELINE = "mle"


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that a paper says of a method.

    Attributes
    ----------
    source : str
        Where the claim is published.
    methods : tuple of str
        Of each of them that was trained, the claim is looked at.
    number : str
        Name of the number that decides, or `PERPLEXITY`.
    change : {"lower", "higher"}
        The direction in which, by the claim, the method moves it.
    against : str
        The method that it is compared with; without that one the claim cannot be decided.
    relative : bool
        Differences are those of logarithms: for perplexities and times.
    factor : float
        Where `relative`: the claim puts the number below (above) this many times the other.
    role : Role or None
        The matrix whose number it is, that which the methods act on; None for numbers of a model
        as a whole.
    sanity : bool
        Whether the method minimizes this very number: then the claim says that it works as built,
        and is not counted among the tests.
    tasks : tuple of str
        The tasks that it is about.
    """

    key: str
    text: str
    source: str
    methods: tuple[str, ...]
    number: str
    change: Literal["lower", "higher"]
    against: str = BASELINE
    relative: bool = False
    factor: float = 1.0
    published: tuple[PaperClaim, ...] = ()
    role: Role | None = None
    sanity: bool = False
    tasks: tuple[str, ...] = ("lm",)


def claim_perplexity(
    key: str,
    text: str,
    source: str,
    methods: tuple[str, ...],
    reported: tuple[PaperClaim, ...],
    against: str = BASELINE,
    change: Literal["lower", "higher"] = "lower",
) -> Claim:
    """A claim about the perplexity of language models, whose differences are of logarithms."""
    return Claim(key, text, source, methods, PERPLEXITY, change, against, True, published=reported)


def claim_bleu(
    key: str,
    text: str,
    source: str,
    methods: tuple[str, ...],
    reported: tuple[PaperClaim, ...],
    against: str = BASELINE,
) -> Claim:
    """A claim that a method improves translation."""
    return Claim(
        key,
        f"{text} improves translation (BLEU)",
        source,
        methods,
        "test.bleu",
        "higher",
        against,
        published=reported,
        tasks=(TRANSLATION,),
    )
