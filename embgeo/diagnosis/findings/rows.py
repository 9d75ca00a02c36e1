"""Are rows damaged? Damaged rows of input and output, and rows that training never touched."""

from collections.abc import Mapping
from typing import Any

from embgeo.core.quantities import clump, tokens
from embgeo.core.text import capital, join_words, show_token
from embgeo.core.values import Quantity
from embgeo.diagnosis import finding
from embgeo.diagnosis.question import Answer, Question

#: Special tokens that the sentence names, at most.
NAMED = 3


def answer(a: finding.Numbers) -> Answer:
    damage = a.provenance.get("damaged")
    if not isinstance(damage, Mapping):
        raise finding.Undecided("this analysis does not say which rows are damaged")
    idle = _idle_clause(a, damage)
    clauses = [text for text in (_input_clause(damage), _output_clause(damage)) if text]
    state: finding.State = "degenerate" if clauses else "mild" if idle else "healthy"
    if state == "healthy":
        return state, ["No damaged rows."], "no damaged rows"
    clause = ", and ".join(clauses) or idle
    parts = [*_lead(clause, damage), *_describe(a, damage), "."]
    if clauses and idle:
        parts.append(f" {capital(idle)}.")
    if damage["small"] > finding.count_kept(a) > 0:
        parts.append(
            " They are most of the rows, and norms alone cannot show whether they are damaged or "
            f"the {finding.count_kept(a):,} longer ones."
        )
    if damage.get("short"):
        parts.append(
            " Short rows that are more than 5% of all stay in every number; "
            f"--min-norm {damage['short_limit']:.1g} leaves them out."
        )
    elif _count_untouched(a):
        untouched = finding.need(a, tokens.UNTOUCHED_ROWS)
        share = finding.format_percent(float(untouched) / max(1, finding.count_kept(a)))
        parts += [
            " The shorter ",
            finding.quote(untouched),
            f" rows ({share}) stay in every number.",
        ]
    return state, parts, clause


def _lead(clause: str, damage: Mapping[str, Any]) -> list[finding.Part]:
    """Begin the sentence: the clause, or what shows that rows were never trained."""
    untrained = _count_untrained(damage)
    if not untrained or clause != _never_trained(untrained):
        return [capital(clause)]
    has = "row still has its" if untrained == 1 else "rows still have their"
    return [f"{untrained:,} {has} initial norm: never trained"]


def has_short_rows(a: finding.Numbers) -> bool:
    """Tell whether some rows are far shorter than all others, but too many to leave out."""
    damage = a.provenance.get("damaged")
    short = isinstance(damage, Mapping) and bool(damage.get("short"))
    return short or bool(_count_untouched(a))


def _count_untouched(a: finding.Numbers) -> int:
    """Count rows that look like an initialization; a cone of the others names them itself."""
    return 0 if _count(a, clump.SCATTERED_ROWS) else _count(a, tokens.UNTOUCHED_ROWS)


def names_many_rows(a: finding.Numbers) -> bool:
    """Tell whether rows that are constant, or equal to the mean row, are 1% of those kept."""
    kept = int(a.provenance.get("kept") or 0)
    named = max(_count(a, tokens.CONSTANT_ROWS), _count(a, tokens.MEAN_ROWS))
    return 0 < kept <= 100 * named


def _count_untrained(damage: Mapping[str, Any]) -> int:
    """Count damaged rows with initial values; files of earlier versions do not count them."""
    return int(damage.get("initial", 0))


def _count_dead(damage: Mapping[str, Any]) -> int:
    every = damage["zero"] + damage["nonfinite"] + damage["small"]
    return int(every - damage["padding"] - _count_untrained(damage))


def _input_clause(damage: Mapping[str, Any]) -> str:
    """Return ``79 rows are damaged, among them <|im_start|>, which the chat template uses``."""
    rows = _count_dead(damage)
    if not rows:
        return ""
    word = "not finite" if rows == damage["nonfinite"] else "damaged"
    if rows == damage.get("perhaps_initial"):
        word = f"damaged or {'was' if rows == 1 else 'were'} never trained"
    text = f"{_rows_are(rows)} {word}"
    used = [one for one in damage["named"] if one["template"]]
    named = [show_token(one["token"], one.get("row")) for one in (used or damage["named"])[:NAMED]]
    if not named:
        return text
    which = ", which the chat template uses" if used else ""
    return f"{text}, among them {join_words(named)}{which}"


def _output_clause(damage: Mapping[str, Any]) -> str:
    rows = damage["output"]
    return f"{_rows_are(rows, 'of the output matrix ')} damaged" if rows else ""


def _rows_are(rows: int, of: str = "") -> str:
    return f"{rows:,} row {of}is" if rows == 1 else f"{rows:,} rows {of}are"


def _count(a: finding.Numbers, quantity: Quantity) -> int:
    scalar = finding.find_scalar(a, quantity)
    return 0 if scalar is None else int(scalar)


def _idle_clause(a: finding.Numbers, damage: Mapping[str, Any]) -> str:
    """Return rows with initial or collapsed values, and short ones; empty if there are none."""
    untrained = _count_untrained(damage)
    constant, mean = _count(a, tokens.CONSTANT_ROWS), _count(a, tokens.MEAN_ROWS)
    clauses = []
    if untrained:
        clauses.append(_never_trained(untrained))
    if constant:
        clauses.append(f"{_rows_are(constant)} constant")
    if mean:
        clauses.append(f"{mean:,} row{' equals' if mean == 1 else 's equal'} the mean row")
    if short := damage.get("short"):
        decades = finding.format_short(damage["short_decades"])
        clauses.append(f"{_rows_are(short)} shorter than all others by {decades} decades")
    elif untouched := _count_untouched(a):
        clauses.append(f"{_never_trained(untouched)} and look like an initialization")
    return join_words(clauses)


def _never_trained(rows: int) -> str:
    return f"{rows:,} row{' was' if rows == 1 else 's were'} never trained"


def _describe(a: finding.Numbers, damage: Mapping[str, Any]) -> list[finding.Part]:
    """Say why rows count as damaged: their distance from the others, and the median norm."""
    parts: list[finding.Part] = []
    gap, median = (
        finding.find_scalar(a, tokens.DAMAGED_GAP),
        finding.find_scalar(a, tokens.NORM_MEDIAN),
    )
    if gap is not None:
        small = damage["small"]
        if small:
            norms = "1 norm is " if small == 1 else f"{small:,} norms are "
            lead = ", " if small == _count_untrained(damage) else f"; {norms}"
            parts += [lead, finding.quote_short(gap, " decades"), " below all others"]
            parts.append(_explain_length(damage))
        elif _count_dead(damage):
            parts.append(_name_kinds(damage))
    if median is not None:
        parts += [" (median norm ", finding.quote_short(median), ")"]
    return parts


def _name_kinds(damage: Mapping[str, Any]) -> str:
    """Get ``: 2 exactly zero, 1 not finite``, for rows that no gap between norms makes damaged."""
    zero, nonfinite = damage["zero"] - damage["padding"], damage["nonfinite"]
    if not zero:
        return ""
    return f": {zero:,} exactly zero, {nonfinite:,} not finite" if nonfinite else ": exactly zero"


def _explain_length(damage: Mapping[str, Any]) -> str:
    """Explain why rows of this norm were never trained."""
    perhaps = int(damage.get("perhaps_initial", 0))
    untrained = _count_untrained(damage) or perhaps
    if not untrained:
        return ""
    which = "" if untrained == damage["small"] else f"{untrained:,} of them "
    doubt = ", which can be chance for so few rows of so few dimensions" if perhaps else ""
    return f", {which}as word2vec and fastText initialize rows{doubt}"


QUESTION = Question(
    "rows",
    "Are rows damaged?",
    answer,
    shown="decided",
    one_dimension=True,
    any_size=True,
    why="A token whose row is damaged reaches the model as nothing, or as rounding noise that a "
    "normalization layer scales up; prompts with such tokens mislead it (Land and Bartolo 2024).",
    advice="Before fine-tuning, train these rows, or give them values of ordinary length: embgeo "
    "repair MODEL -o NEW draws them from the mean and covariance of the others. embgeo gate "
    "--preset finetune-ready checks the rows of a model in continuous integration.",
)
