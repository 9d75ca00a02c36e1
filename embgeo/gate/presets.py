"""Rules that answer a common question, by name."""

from __future__ import annotations

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import argument
from embgeo.core.quantities import tokens
from embgeo.gate.rule import Rule

#: Rules as a user would write them.
PRESETS: dict[str, tuple[str, ...]] = {
    # What a fine-tuning relies on: tokens of the chat template that were trained, no numbers that
    # spread as NaN, a row for each token, and the matrices that the configuration promises.
    "finetune-ready": (
        f"{tokens.SPECIAL_DAMAGED_ROWS.name} == 0, allow undefined",
        f"{tokens.NONFINITE_ROWS.name} == 0",
        f"{tokens.MISSING_ROWS.name} == 0, allow undefined",
        f"{tokens.TIED_AS_CONFIGURED.name} == 1, allow undefined",
        f"{tokens.DAMAGED_ROWS.name} == 0, warn",
        f"{tokens.OUTPUT_DAMAGED_ROWS.name} == 0, warn, allow undefined",
    ),
}


def read_preset(name: str) -> tuple[Rule, ...]:
    """The rules of a preset."""
    if name not in PRESETS:
        raise refuse_name("preset", name, PRESETS, argument("preset"))
    return tuple(Rule.parse(text) for text in PRESETS[name])
