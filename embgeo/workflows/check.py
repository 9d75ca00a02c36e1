"""``embgeo.check``: rules about saved analyses, and about matrices that are measured for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import Comparison
from embgeo.core.arguments import as_texts
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import put_over
from embgeo.core.quantities import QUANTITIES, quantities_of, require_known, track
from embgeo.io.remote.names import is_remote
from embgeo.result.analysis import Analysis
from embgeo.rules.check import Outcome
from embgeo.rules.presets import read_preset
from embgeo.rules.rule import Place, Rule
from embgeo.rules.rule_value import LEVEL, VERDICT, deviations
from embgeo.rules.settings import (
    GateSettings,
    RuleEntry,
    find_gate,
    find_options,
    read_gate,
    refuse_both,
)
from embgeo.workflows.analyze import is_path
from embgeo.workflows.gate import Gate, is_unmeasured, load_saved
from embgeo.workflows.request import AnalysisRequest

if TYPE_CHECKING:
    from embgeo.core.progress import Progress


def check(
    *sources: Any,
    rules: str | Sequence[str] = (),
    preset: str | None = None,
    baseline: Any = None,
    level: float | None = None,
    allow_undefined: bool = False,
    command: str = "",
    progress: Progress | None = None,
    **settings: Any,
) -> Outcome:
    """Check rules about embedding matrices.

    Parameters
    ----------
    *sources : path, Analysis or whatever holds a matrix
        Saved analyses and tracks, analyses, checkpoints, or what :func:`embgeo.analyze` takes.
        Matrices are measured in the sections that the rules name.
    rules : str or sequence of str
        Such as ``"cosine.mean <= 0.1"`` or ``"isotropy.i1 drop <= 5%, warn"`` (docs/gate.md).
    preset : str, optional
        Name of a preset whose rules are added: "finetune-ready".
    baseline : path or Analysis, optional
        What drop, rise and change compare with: a baseline file, an analysis, saved or not, or a
        checkpoint.
    level : float, optional
        Confidence level at which a sampled value has to pass; 0.95 by default.
    allow_undefined : bool
        Whether values that are not defined are allowed for every rule, as with ", allow undefined".
    command : str
        Recorded in the provenance of new analyses.
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
        If a rule cannot be parsed or checks nothing, or an option does not apply.
    EmbgeoError
        If a source cannot be read or measured.
    """
    texts = as_texts(rules, "rules")
    gate = plan_gate(
        texts,
        sources,
        baseline,
        level,
        settings,
        preset=preset,
        allow_undefined=allow_undefined,
    )
    return gate.check(command, progress)


def plan_gate(
    rules: Sequence[str],
    sources: Sequence[Any] = (),
    baseline: Any = None,
    level: float | None = None,
    given: Mapping[str, Any] | None = None,
    settings: GateSettings | None = None,
    preset: str | None = None,
    allow_undefined: bool = False,
) -> Gate:
    """A gate from arguments and settings; nothing is measured.

    Arguments add to the rules of the settings and override everything else in them.
    """
    settings, given = settings or GateSettings(), given or {}
    parsed = [parse_entry(entry, settings) for entry in settings.rules]
    parsed += [Rule.parse(text) for text in rules]
    for name in dict.fromkeys(one for one in (settings.preset, preset) if one is not None):
        parsed += read_preset(name)
    if allow_undefined or settings.allow_undefined:
        parsed = [replace(rule, allow_undefined=True) for rule in parsed]
    items = [Path(one) if is_path(one) else one for one in sources]
    items = items or [settings_path(settings, name) for name in settings.sources]
    if not items:
        way_out = "name a saved analysis or a checkpoint"
        raise BadOption("there is nothing to check", way_out=way_out)
    if baseline is None and settings.baseline is not None:
        baseline = settings_path(settings, settings.baseline)
    elif is_path(baseline):
        baseline = Path(baseline)
    level = next(one for one in (level, settings.level, LEVEL) if one is not None)
    deviations(level)  # refuses an invalid level
    request = AnalysisRequest.of(**put_over(settings.analyze, given))
    opened = tuple(map(load_saved, items))
    measured = all(isinstance(one, Analysis | Comparison) for one in opened)
    if given and measured and (baseline is None or not is_unmeasured(baseline)):
        raise BadOption(
            "is about checkpoints, and a saved analysis is measured already",
            where=", ".join(map(argument, given)),
            way_out="name the checkpoint, or leave the option out",
        )
    saved = {v.name for one in opened if isinstance(one, Analysis) for v in one.values()}
    known = {VERDICT, *QUANTITIES, *quantities_of(track), *saved}
    for rule in parsed:
        require_known(rule.name, known, rule.place.named)
    files = tuple(p for p in (*items, baseline, settings.path) if isinstance(p, Path))
    return Gate(tuple(parsed), opened, baseline, level, request, files)


def gate_settings(config: Path | None = None, search: bool = True) -> GateSettings:
    """The settings of a file, or of the current folder."""
    if config is None:
        return find_gate(Path.cwd()) if search else GateSettings()
    refuse_both(search)
    found = read_gate(config)
    return found if found.path is not None else GateSettings(analyze=find_options(config))


def parse_entry(entry: RuleEntry, settings: GateSettings) -> Rule:
    """A rule of the settings; its table may add to its text."""
    place = Place("" if settings.path is None else shorten_path(settings.path), entry.line)
    rule = Rule.parse(entry.rule, place)
    if rule.tensor and entry.tensor:
        raise BadOption(f"{entry.rule!r} has two tensors", where=place.named)
    return replace(
        rule,
        tensor=rule.tensor or entry.tensor,
        warn=rule.warn or entry.warn,
        allow_undefined=rule.allow_undefined or entry.allow_undefined,
    )


def settings_path(settings: GateSettings, name: str) -> Path:
    return Path(name if is_remote(name) else shorten_path(settings.resolve_path(name)))


def shorten_path(path: Path) -> str:
    """A path relative to the current folder, the same in every checkout."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()
