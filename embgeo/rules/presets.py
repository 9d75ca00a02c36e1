"""Named sets of rules."""

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import argument
from embgeo.core.quantities import tokens
from embgeo.rules.rule import Rule

PRESETS: dict[str, tuple[str, ...]] = {
    # Fine-tuning needs trained rows for the tokens of the chat template, finite numbers, a row for
    # each token, and the matrices that the configuration names. Only an output matrix may be
    # missing: a tied model has none.
    "finetune-ready": (
        f"{tokens.SPECIAL_DAMAGED_ROWS.name} == 0",
        f"{tokens.NONFINITE_ROWS.name} == 0",
        f"{tokens.MISSING_ROWS.name} == 0",
        f"{tokens.TIED_AS_CONFIGURED.name} == 1",
        f"{tokens.DAMAGED_ROWS.name} == 0",
        f"{tokens.OUTPUT_DAMAGED_ROWS.name} == 0, warn, allow undefined",
    ),
}


def read_preset(name: str) -> tuple[Rule, ...]:
    """Read the rules of a preset."""
    if name not in PRESETS:
        raise refuse_name("preset", name, PRESETS, argument("preset"))
    return tuple(Rule.parse(text) for text in PRESETS[name])
