"""Tracks: the checkpoints that paths and patterns name, their order, and their kept analyses."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.comparison.steps import Steps, steps_of
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.version import VERSION
from embgeo.io.remote.cache import find_cached, is_offline
from embgeo.io.remote.names import HubName, as_written, is_remote, read_hub_name
from embgeo.result.analysis import load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.workflows.analyze import measure_requested
from embgeo.workflows.folders import default_name, result_name
from embgeo.workflows.request import AnalysisRequest

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress
    from embgeo.core.source import Source
    from embgeo.result.analysis import Analysis


@dataclass(frozen=True, slots=True)
class TrackPlan:
    """The checkpoints of a run by rising step."""

    #: As the user names them.
    paths: tuple[Path, ...]
    steps: Steps
    #: Commits of revisions on the Hub when they were listed.
    commits: Mapping[Path, str] = field(default_factory=dict)

    def fetch(self, source: Source) -> tuple[Path, ...]:
        """What to read for each step.

        Revisions of the same commit, or with the same SHA-256 of all weights, are fetched once.
        """
        from embgeo.io.remote.fetching import keep_revision

        seen: dict[str, Path] = {}
        folders: dict[Path, Path] = {}
        read = []
        for path in self.paths:
            name, commit = read_hub_name(path), self.commits.get(path, "")
            if name is not None and commit:
                if commit not in seen:
                    seen[commit] = _find_weights(replace(name, revision=commit), source, folders)
                keep_revision(name, source, commit)
            read.append(seen.get(commit, path))
        return tuple(read)


def plan_track(paths: Sequence[Path], track: bool, every: int | None = None) -> TrackPlan | None:
    """The checkpoints of a track by rising step; None without `track`.

    ``*``, ``?`` and ``[…]`` in a path, or in the revision of a model on the Hub, are a pattern.
    """
    where = argument("every")
    way_out = f"add {argument('track')}"
    refuse_if(every is not None and not track, where, "is about a track", way_out)
    refuse_if(every is not None and every < 1, where, "takes 1 or more", "give 2 for half")
    if not track:
        return None
    commits: dict[Path, str] = {}
    found: dict[Path, None] = {}
    for path in paths:
        matched = _list_matches(path)
        found |= dict.fromkeys(matched)
        commits |= {one: commit for one, commit in matched.items() if commit}
    named = list(found)
    from embgeo.io.model_facts import training_step

    steps = steps_of(named, training_step)
    order = steps.order
    if every is not None:
        order = [*order[:-1:every], *order[-1:]]
    values = tuple(steps.values[i] for i in order)
    source = steps.source
    if commits and is_offline():
        source += ", of the revisions that are in a cache"
    return TrackPlan(tuple(named[i] for i in order), Steps(values, source), commits)


def _list_matches(path: Path) -> dict[Path, str]:
    """The paths that a pattern matches, with the commits of revisions; a plain path itself."""
    text = as_written(path)
    if not glob.has_magic(text):
        return {path: ""}
    if not is_remote(path):
        matches = {path: ""} if path.exists() else {Path(one): "" for one in glob.glob(text)}
    else:
        matches = _list_revisions(path, text)
    if not matches:
        raise BadOption("matches nothing", where=text, way_out="check the pattern")
    return matches


def _list_revisions(path: Path, text: str) -> dict[Path, str]:
    hub = read_hub_name(path)
    if hub is None or not glob.has_magic(hub.revision):
        cause = "a pattern is for revisions of the Hub, as in hf://org/name@step*"
        raise BadOption(cause, where=text, way_out="name each file")
    from embgeo.io.remote.hub import list_revisions

    return {
        Path(replace(hub, revision=revision).text): commit
        for revision, commit in list_revisions(hub).items()
    }


def _find_weights(name: HubName, source: Source, folders: dict[Path, Path]) -> Path:
    """The name of a commit, or of an earlier one with the same weights.

    `folders` maps the folders of earlier commits to their names; this one is added.
    """
    from embgeo.io.remote.fetching import fetch_into_cache

    folder = find_cached(name, source) or fetch_into_cache(name.text, source, known=list(folders))
    return folders.setdefault(folder, Path(name.text))


def steps_folder(folder: Path, plan: TrackPlan | None) -> Path | None:
    """The folder of the analyses of all steps: next to the result, named by the first step."""
    if plan is None:
        return None
    return folder.absolute().parent / f"{result_name(plan.paths[0])[:60]}.steps"


def measure_kept(
    matrix: Matrix,
    request: AnalysisRequest,
    home: Path | None,
    command: str,
    progress: Progress | None,
) -> Analysis:
    """Analyze a step, unless its analysis is kept in `home`, under a hash of all options."""
    if home is None or not matrix.origin.sha256:
        return measure_requested(matrix, request, command, progress)
    name = default_name(Path(matrix.origin.path))[:60]
    folder = home / f"{name}-{_identify(matrix, request)}"
    if (folder / JSON_NAME).is_file():
        try:
            return load_analysis(folder)
        except EmbgeoError:  # damaged
            pass
    analysis = measure_requested(matrix, request, command, progress)
    analysis.save(folder)
    return analysis


def _identify(matrix: Matrix, request: AnalysisRequest) -> str:
    """A hash of everything that decides the numbers of an analysis."""
    origin = matrix.origin
    hidden = None if matrix.hidden is None else matrix.hidden.origin.sha256
    facts = (
        VERSION,
        (origin.sha256, origin.tensor, origin.rows, origin.transposed, origin.notes, hidden),
        (matrix.tokens, matrix.special, matrix.vocabulary_size, matrix.unreachable),
        {reason: rows.tolist() for reason, rows in matrix.masked.items()},
        None if matrix.frequency is None else matrix.frequency.source,
        sorted((name, str(value)) for name, value in request.source.collect_changes().items()),
        asdict(request.options_for(matrix)),
        (request.sections, request.reference, getattr(request.resources, "device", "cpu")),
    )
    digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass"))
    if matrix.frequency is not None:
        digest.update(matrix.frequency.counts.tobytes())
    return digest.hexdigest()[:12]
