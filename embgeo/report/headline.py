"""The headline of a page: at most about a dozen words, without numbers of the geometry."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from embgeo.core.special import classify_token
from embgeo.core.suspects import REASONS, Suspects
from embgeo.core.text import capital, join_words
from embgeo.diagnosis.finding import State
from embgeo.result.analysis import Analysis

#: What is wrong, in the order of the headline; the first two are said.
FAULTS = {
    "cone": "narrow cone",
    "spectrum": "collapsed spectrum",
    "two-sided": "rows along few lines",
    "clusters": "separate clusters",
    "coordinate": "dominant coordinates",
    "isotropy": "anisotropic partition function",
}
MOST_FAULTS = 2
#: Expected suspects that lie in one place; others are as training left them.
TOGETHER = frozenset({"mean", "duplicate", "near_identical", "clump"})


def headline_of(analysis: Analysis) -> str:
    states = {finding.key: finding.state for finding in analysis.verdict.findings}
    return write_headline(states, analysis.suspects)


def write_headline(states: Mapping[str, State], suspects: Sequence[Suspects]) -> str:
    """Write what is wrong, or what is usual; `states` are those of the findings by key.

    >>> write_headline({"cone": "degenerate", "frequency": "degenerate"}, ())
    'Narrow cone: rare tokens crowd on one side.'
    >>> write_headline({"cone": "healthy", "spectrum": "mild"}, ())
    'Mildly degenerate: collapsed spectrum.'
    >>> write_headline({"cone": "healthy", "spectrum": "healthy", "frequency": "healthy"}, ())
    'Healthy.'
    """
    found = [states[key] for key in FAULTS if states.get(key) in ("mild", "degenerate")]
    worst = max(found, default="healthy", key=("healthy", "mild", "degenerate").index)
    apart = states.get("frequency") in ("mild", "degenerate")
    rows = [own.rows[own.serious] for own in suspects]
    faulty = len(np.unique(np.concatenate(rows))) if rows else 0
    tokens = [f"{faulty:,} faulty token{'' if faulty == 1 else 's'}"] if faulty else []
    if found:
        faults = [name for key, name in FAULTS.items() if states.get(key) == worst][:MOST_FAULTS]
        text = join_words([*faults, *tokens])
        if worst == "mild":
            return f"Mildly degenerate: {text}{'; rare tokens lie apart' if apart else ''}."
        return f"{capital(text)}{': rare tokens crowd on one side' if apart else ''}."
    if "undecided" in (states.get("cone"), states.get("spectrum")):
        return f"Undecided{', with ' + tokens[0] if tokens else ': too little is known'}."
    if "initialization" in states:
        return "Untrained: the rows look like an initialization."
    if apart:
        lead = f"{tokens[0]}, and" if tokens else "Not degenerate, but"
        return f"{lead} rare tokens lie apart from frequent ones."
    return f"Healthy, except for {tokens[0]}." if tokens else f"Healthy.{explain_usual(suspects)}"


def explain_usual(suspects: Sequence[Suspects]) -> str:
    """Say what is usual of tokens that no text uses, if anything is."""
    kinds = Counter(
        (classify_token(token) or "reserved", own.reason in TOGETHER)
        for own in suspects
        if REASONS[own.reason].serious and own.tokens is not None
        for token, serious in zip(own.tokens, own.serious.tolist(), strict=True)
        if not serious
    )
    if not kinds:
        return ""
    [((kind, together), count)] = kinds.most_common(1)
    does = "sit together" if together else "are untrained"
    return f" {count:,} {kind} tokens {does}, as usual."
