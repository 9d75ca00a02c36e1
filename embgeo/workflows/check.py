"""Checking rules: saved analyses as they are, everything else measured as far as rules need it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import Comparison
from embgeo.core.arguments import as_texts
from embgeo.core.errors import BadOption, argument
from embgeo.core.fields import OptionField, option_fields, read_table
from embgeo.core.options import Options
from embgeo.core.quantities import QUANTITIES, quantities_of, require_known, track
from embgeo.core.source import Source
from embgeo.gate.check import Outcome
from embgeo.gate.presets import read_preset
from embgeo.gate.rule import Place, Rule
from embgeo.gate.rule_value import LEVEL, VERDICT, deviations
from embgeo.gate.settings import GateSettings, RuleEntry, find_gate, read_gate
from embgeo.io.remote.names import is_remote
from embgeo.result.analysis import Analysis
from embgeo.workflows.analyze import is_path
from embgeo.workflows.gate import Gate, is_unmeasured, loaded
from embgeo.workflows.request import AnalysisRequest, split_settings

if TYPE_CHECKING:
    from embgeo.core.progress import Progress

#: Options that add lists, which no rule is about.
LISTS = ("asked",)


def check(
    *sources: Any,
    rules: str | Sequence[str] = (),
    preset: str | None = None,
    baseline: Any = None,
    level: float | None = None,
    command: str = "",
    progress: Progress | None = None,
    **settings: Any,
) -> Outcome:
    """Check rules about embedding matrices.

    Parameters
    ----------
    *sources : path, Analysis or whatever holds a matrix
        Saved analyses and tracks, analyses, checkpoints, or what :func:`embgeo.analyze` takes; of
        what is not analyzed yet only the sections that rules name are measured.
    rules : str or sequence of str
        Such as ``"cosine.mean <= 0.1"`` or ``"isotropy.i1 drop <= 5%, warn"`` (docs/gate.md).
    preset : str, optional
        Name of rules in addition: "finetune-ready".
    baseline : path or Analysis, optional
        What drop, rise and change compare with: a baseline file, a saved analysis, an analysis
        or a checkpoint.
    level : float, optional
        Confidence that a sampled value has to pass with; 0.95.
    command : str
        Recorded in the provenance of what is measured.
    progress : Progress, optional
    **settings
        Arguments of :func:`embgeo.load` and fields of :class:`embgeo.Options`, for checkpoints.

    Returns
    -------
    Outcome
        ``outcome.passed``, and ``outcome.checks`` with a sentence for each rule.

    Raises
    ------
    BadOption
        A rule that is none, is about nothing or checks nothing, or an option that does not fit.
    EmbgeoError
        If a source cannot be read or measured.
    """
    texts = as_texts(rules, "rules")
    gate = plan_gate(texts, sources, baseline, level, settings, preset=preset)
    return gate.check(command, progress)


def plan_gate(
    rules: Sequence[str],
    sources: Sequence[Any] = (),
    baseline: Any = None,
    level: float | None = None,
    given: Mapping[str, Any] | None = None,
    settings: GateSettings | None = None,
    preset: str | None = None,
) -> Gate:
    """What is to be checked, refused as far as that needs nothing measured.

    `rules`: in addition to those of the settings. `sources`: in place of those of the settings.
    `given`: options of loading and measuring that were named; they go before those of the settings.
    """
    settings, given = settings or GateSettings(), given or {}
    parsed = [rule_of_settings(entry, settings) for entry in settings.rules]
    parsed += [Rule.parse(text) for text in rules]
    for name in dict.fromkeys(one for one in (settings.preset, preset) if one is not None):
        parsed += read_preset(name)
    items = [Path(one) if is_path(one) else one for one in sources]
    items = items or [settings_path(settings, name) for name in settings.sources]
    if not items:
        raise BadOption(
            "there is nothing to check", way_out="name a saved analysis or a checkpoint"
        )
    if baseline is None and settings.baseline is not None:
        baseline = settings_path(settings, settings.baseline)
    elif is_path(baseline):
        baseline = Path(baseline)
    level = level if level is not None else settings.level
    level = LEVEL if level is None else level
    deviations(level)
    request = merged_request(given, settings)
    opened = tuple(map(loaded, items))
    saved = [one for one in opened if isinstance(one, Analysis)]
    measured = [one for one in opened if isinstance(one, Analysis | Comparison)]
    if given and len(measured) == len(opened) and (baseline is None or not is_unmeasured(baseline)):
        raise BadOption(
            "is about checkpoints, and a saved analysis is measured already",
            where=", ".join(map(argument, given)),
            way_out="name the checkpoint, or leave the option out",
        )
    known = {
        VERDICT,
        *QUANTITIES,
        *quantities_of(track),
        *(value.name for one in saved for value in one.values()),
    }
    for rule in parsed:
        require_known(rule.name, known, rule.place.named)
    files = tuple(p for p in (*items, baseline, settings.path) if isinstance(p, Path))
    return Gate(tuple(parsed), opened, baseline, level, request, files)


def merged_request(given: Mapping[str, Any], settings: GateSettings) -> AnalysisRequest:
    """The options that were named, over those of the settings."""
    table: dict[str, Any] = {}
    if settings.path is not None:
        table = read_table(settings.analyze, gate_options(), settings.path)
    (own, measuring), (rest, others) = split_settings(given), split_settings(table)
    source = Source(**own).over(Source(**rest))
    return AnalysisRequest.of(**source.collect_changes(), **(others | measuring))


def gate_options() -> dict[str, OptionField]:
    """The options of loading and measuring that the settings of a gate may hold."""
    known = {**option_fields(Source), **option_fields(Options)}
    return {name: option for name, option in known.items() if name not in LISTS}


def gate_settings(config: Path | None = None, search: bool = True) -> GateSettings:
    """The settings of a file, or those that hold in the current folder."""
    if config is None:
        return find_gate(Path.cwd()) if search else GateSettings()
    if not search:
        both = f"{argument('config')} and {argument('no_config')}"
        raise BadOption(f"{both} exclude each other", way_out="give one of them")
    found = read_gate(config)
    if found.path is None:
        raise BadOption("has no settings for the gate", where=config, way_out="write [gate]")
    return found


def rule_of_settings(entry: RuleEntry, settings: GateSettings) -> Rule:
    """A rule of the settings; what its table says comes in addition to its text."""
    place = Place("" if settings.path is None else shorten_path(settings.path), entry.line)
    rule = Rule.parse(entry.text, place)
    if rule.tensor and entry.tensor:
        raise BadOption(f"{entry.text!r} has two tensors", where=place.named)
    return replace(
        rule,
        tensor=rule.tensor or entry.tensor,
        warn=rule.warn or entry.warn,
        allow_undefined=rule.allow_undefined or entry.allow_undefined,
    )


def settings_path(settings: GateSettings, name: str) -> Path:
    return Path(name if is_remote(name) else shorten_path(settings.resolve_path(name)))


def shorten_path(path: Path) -> str:
    """A file by its path from here, which another checkout has too."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()
