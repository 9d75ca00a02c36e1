"""Which tokens stand out? By the list of suspects."""

from collections import Counter

import numpy as np

from embgeo.core.quantities import suspects as q
from embgeo.core.special import classify_token
from embgeo.core.suspects import REASONS, Reason, Suspects, describe_group, list_rows
from embgeo.core.text import capital, show_token
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

#: Reasons for which rows are left out of all other numbers.
DEAD: frozenset[Reason] = frozenset({"nonfinite", "zero", "damaged"})
#: Reasons of rows that no model can tell from others.
ALIKE: tuple[Reason, ...] = ("mean", "duplicate", "near_identical")
#: Tokens named of each reason, at most.
IN_SENTENCE = 5


def answer(a: finding.Numbers) -> Answer:
    finding.need(a, q.ZERO)
    faults = find_faults(a)
    if not faults:
        return "healthy", ["No token stands out for a serious reason."]
    is_dead = not DEAD.isdisjoint(faults)
    state: finding.State = "degenerate" if is_dead else limits.ALIKE.state(measure_alike(a))
    parts: list[finding.Part] = []
    for reason, own in faults.items():
        text, quantity = capital(describe_group(reason, own)), q.COUNTS.get(reason)
        named = [show_token(token, row) for _, row, token in list_rows(own)]
        more = ", …" if len(named) > IN_SENTENCE else ""
        parts.append(text if quantity is None else finding.Quote(quantity.name, text))
        parts.append(_describe_clump(a, own) if reason == "clump" else "")
        parts.append(f": {', '.join(named[:IN_SENTENCE])}{more}. ")
    dead, kept = sum(map(len, faults.get("damaged", []))), finding.count_kept(a)
    if dead > kept > 0:
        parts.append(
            "Damaged rows are most of the rows, and norms alone cannot show whether they are "
            f"damaged or the {kept:,} longer ones. "
        )
    return state, [*parts[:-1], str(parts[-1]).rstrip()]


def find_faults(a: finding.Numbers) -> dict[Reason, list[Suspects]]:
    """Find the serious suspects by reason, and clumps of hardly trained tokens."""
    found: dict[Reason, list[Suspects]] = {}
    for own in a.suspects:
        serious = own if own.reason == "clump" else own.take(own.serious)
        if len(serious):
            found.setdefault(own.reason, []).append(serious)
    return {reason: found[reason] for reason in REASONS if reason in found}


def measure_alike(a: finding.Numbers) -> float:
    """Measure the share of the kept rows that no model can tell from others."""
    rows = [own.serious.sum() for own in a.suspects if own.side == "input" and own.reason in ALIKE]
    return float(sum(rows)) / max(1, finding.count_kept(a))


def _describe_clump(a: finding.Numbers, suspects: list[Suspects]) -> str:
    """Describe share, mean cosine inside and kinds of token: `` (5.9% of the rows, …)``.

    The mean of unit rows is at least as long as its part along the mean direction.
    """
    clump, count = suspects[0], len(suspects[0])
    said = [f"{finding.format_percent(count / max(count, finding.count_kept(a)))} of the rows"]
    if clump.values is not None and count > 1:
        along = float(np.cos(np.radians(clump.values)).sum())
        least = (along**2 - count) / (count * (count - 1.0))
        said.append(f"mean cosine inside at least {finding.format_short(least)}")
    kinds = Counter(classify_token(token) or "other" for token in clump.tokens or ())
    said += [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    return f" ({', '.join(said)})"


def advise(a: finding.Numbers) -> str:
    helps = dict.fromkeys(REASONS[reason].help for reason in find_faults(a))
    return " ".join(f"{capital(text)}." for text in helps)


QUESTION = Question(
    "suspects",
    "Which tokens stand out?",
    answer,
    shown="decided",
    one_dimension=True,
    any_size=True,
    why="A token whose row is damaged or was never trained reaches the model as nothing, as noise, "
    "or as any other such token; prompts with it mislead the model (Land and Bartolo 2024).",
    advice=advise,
)
