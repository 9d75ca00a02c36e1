"""Settings as tables of plain values, one laid over the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Settings of [model] that do not depend on the architecture.
SHARED_BY_MODELS = ("bias_init",)

#: Of [optimizer], what goes to the optimizer and what to the schedule.
OF_OPTIMIZER = ("lr", "weight_decay", "betas", "eps", "momentum")
OF_SCHEDULE = ("warm_up", "start", "end", "after", "rate", "warm_up_steps")

#: A setting that chooses, and what belongs to the choice; None for all but what models share.
CHOICES: tuple[tuple[str, str, tuple[str, ...] | None], ...] = (
    ("data", "tokenizer", ("size", "min_count", "bpe")),
    ("data", "bpe", ("size", "min_count", "tokenizer", "unit")),
    ("task", "name", None),
    ("model", "name", None),
    ("optimizer", "kind", (*OF_OPTIMIZER, "embedding_lr")),
    ("optimizer", "schedule", OF_SCHEDULE),
)


def merge_tables(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some of their values replaced; None takes a key away.

    Where another model, optimizer or schedule is chosen, the settings of the one before go; with a
    tokenizer, which has a vocabulary of its own, those of the vocabulary.
    """
    merged = dict(tables)
    for name, key, belonging in CHOICES:
        table, new = merged.get(name), changes.get(name)
        if not isinstance(table, Mapping) or not isinstance(new, Mapping):
            continue
        if new.get(key, table.get(key)) != table.get(key):
            kept = set(SHARED_BY_MODELS) if belonging is None else {*table} - {*belonging}
            merged[name] = {k: v for k, v in table.items() if k in kept}
    return _replace_values(merged, changes)


def _replace_values(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = _replace_values(inner if isinstance(inner, Mapping) else {}, value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged
