"""Claims of the papers that runs can confirm or refute: the table ``claims.toml``, read."""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

from embgeo.training.study.numbers import is_relative
from embgeo.training.study.record import Role

#: The test perplexity if every run has one, else the validation perplexity.
PERPLEXITY = "perplexity"
#: Not "untied": then the effect of tying would count as the method's.
BASELINE = "mle"
#: The model of spectrum control and its rivals, without their penalty.
FACTORED = "factored"

TIME = "training.microseconds_per_token"


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

    @property
    def text(self) -> str:
        where = f"{self.number}, {self.corpus}, {self.model}, {self.table}"
        return f"{self.before:g} → {self.after:g} ({where})"

    def difference(self, *, relative: bool) -> float:
        """Return after − before, or the difference of logarithms if `relative`."""
        return math.log(self.after / self.before) if relative else self.after - self.before


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
    #: If `relative`: the claim puts the number below (above) this many times the other.
    factor: float = 1.0
    #: The matrix that the number is measured on; None for numbers of the whole model.
    role: Role | None = None
    #: Whether the method minimizes this number, or nearly so: then the claim only shows that the
    #: implementation works, and is not counted as a test.
    sanity: bool = False
    #: Whether the number is an AUC, of which max(AUC, ½) counts: a probe below one half has learned
    #: nothing that holds for other rows, and is no better a disguise than one at chance.
    folded: bool = False
    tasks: tuple[str, ...] = ("lm",)
    published: tuple[PaperClaim, ...] = ()
    #: The score of a run that compares with the published numbers, if another one decides.
    score: str = ""

    @property
    def relative(self) -> bool:
        """Whether differences are taken of logarithms."""
        return self.number == PERPLEXITY or is_relative(self.number)

    @property
    def limit(self) -> float:
        """The difference that separates claims that hold from claims that do not."""
        return math.log(self.factor) if self.relative else 0.0


def read_claims() -> Iterator[Claim]:
    """Yield the claims of the table in their order."""
    text = (resources.files(__package__) / "claims.toml").read_text("utf-8")
    document = tomllib.loads(text)
    for own in document["claims"]:
        table = document["numbers"].get(own["number"], {}) | own
        number = table.pop("printed", "test perplexity")
        papers = [read_paper(number, row, document["models"]) for row in table.pop("published", ())]
        factors = table.pop("factors", False)
        table |= {name: tuple(table[name]) for name in ("methods", "tasks") if name in table}
        claim = Claim(**table, published=tuple(papers))
        if not factors:
            yield claim
            continue
        yield replace(claim, text=f"{claim.text} (against the plain model, as published)")
        yield replace(
            claim,
            key=f"{claim.key}-penalty",
            text=f"{claim.text} (against its factors alone)",
            against=FACTORED,
            published=(),
        )


def read_paper(number: str, row: list[Any], models: Mapping[str, Any]) -> PaperClaim:
    before, after, name, table = row
    own = models[name]
    trained = tuple(own.get("trained", ("", "")))
    task = own.get("task", "lm")
    return PaperClaim(before, after, number, own["title"], own["corpus"], table, task, trained)


CLAIMS: tuple[Claim, ...] = tuple(read_claims())
