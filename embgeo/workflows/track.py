"""Tracks: the checkpoints that paths and patterns name, their steps, and kept analyses."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path

from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.settings import Positive, parse_value
from embgeo.core.source import Source
from embgeo.core.version import VERSION
from embgeo.io.places.cache import is_offline, own_cache
from embgeo.io.places.names import as_written, is_remote, read_hub_name
from embgeo.measure.provenance import versions
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.stats.resources import Resources
from embgeo.workflows.analyze import measure

#: A number in a path, with the word in front of it and the letter behind it, as in 10k and 1M.
NUMBER = re.compile(
    r"(?:([A-Za-z_]+)[-_=.]*)?(\d+(?:[eE]\d{1,2}(?!\d))?)(?:([kKmM])(?![A-Za-z0-9]))?"
)
FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
#: Names of steps, the best first.
WORDS = (
    "step", "steps", "iteration", "iter", "update", "updates", "batch", "epoch", "checkpoint",
    "ckpt",
)  # fmt: skip

ReadStep = Callable[[Path], "tuple[float, str] | None"]


@dataclass(frozen=True, slots=True)
class Steps:
    """One step for each file, and the origin of the steps in words."""

    values: tuple[float, ...]
    source: str

    @property
    def order(self) -> list[int]:
        """Places of the files, by rising step."""
        return sorted(range(len(self.values)), key=self.values.__getitem__)


def steps_of(paths: Sequence[Path], read: ReadStep) -> Steps:
    """Return the steps of checkpoints of one run.

    `read` returns the step in a file with the name of its entry, or None.
    """
    named = from_names([str(path) for path in paths])
    if named is not None:
        return named
    held = [read(path) for path in paths]
    missing = [path for path, step in zip(paths, held, strict=True) if step is None]
    if missing:
        raise BadOption(
            "neither its name nor the file states its step",
            where=as_written(missing[0]),
            way_out="name checkpoints by their step, as in ckpt-500.pt",
        )
    known = [step for step in held if step is not None]
    values = tuple(value for value, _ in known)
    refuse_equal(paths, values)
    entries = dict.fromkeys(entry for _, entry in known)
    return Steps(values, f"the entry {' or '.join(map(repr, entries))} of the checkpoints")


def refuse_equal(paths: Sequence[Path], values: Sequence[float]) -> None:
    seen: dict[float, Path] = {}
    for path, value in zip(paths, values, strict=True):
        if value in seen:
            raise BadOption(
                f"is of the same step ({value:,.15g}) as {as_written(seen[value])}",
                where=as_written(path),
                way_out="name each step once",
            )
        seen[value] = path


def from_names(names: Sequence[str]) -> Steps | None:
    """Return the number that distinguishes the names; None if there is none.

    If several numbers differ, one that is called a step (an iteration, …) is preferred, then the
    last one. None where numbers that may be steps put the names in other orders, as in dates.

    >>> from_names(["run2/ckpt-500.pt", "run2/ckpt-1000.pt"]).values
    (500.0, 1000.0)
    """
    found = [list(NUMBER.finditer(name)) for name in names]
    if not names or len({len(numbers) for numbers in found}) != 1 or not found[0]:
        return None
    columns = [
        column
        for column in zip(*found, strict=True)
        if len({value_of(match) for match in column}) == len(names)
    ]
    if not columns:
        return None
    # Beside a number that is called a step, others are scores, such as losses.
    columns = [c for c in columns if rank_of(word_of(c[0])) < len(WORDS)] or columns
    orders = {tuple(sorted(range(len(names)), key=lambda i: value_of(c[i]))) for c in columns}
    if len(orders) > 1:
        return None
    column = min(reversed(columns), key=lambda c: rank_of(word_of(c[0])))
    word = word_of(column[0])
    called = f" after {word!r}" if word else ""
    return Steps(tuple(value_of(m) for m in column), f"the number{called} in the names")


def value_of(match: re.Match[str]) -> float:
    return float(match[2]) * FACTORS[(match[3] or "").lower()]


def word_of(match: re.Match[str]) -> str:
    return (match[1] or "").strip("_").lower()


def rank_of(word: str) -> int:
    """Return the place in `WORDS` of a word or its ending (global_step); lower is better."""
    ranks = (rank for rank, name in enumerate(WORDS) if f"_{word}".endswith(f"_{name}"))
    return next(ranks, len(WORDS))


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a run by rising step."""

    #: As the user names them.
    paths: tuple[Path, ...]
    steps: Steps
    #: Commits of revisions on the Hub when they were listed.
    commits: Mapping[Path, str] = field(default_factory=dict)


def fetch_checkpoints(run: Checkpoints) -> tuple[Path, ...]:
    """Return what to read for each step.

    Revisions of the same commit, or with the same SHA-256 of all weights, are fetched once.
    """
    from embgeo.io.places.kept import keep_revision, open_kept

    seen: dict[str, Path] = {}
    alike: dict[object, Path] = {}
    read = []
    for path in run.paths:
        name, commit = read_hub_name(path), run.commits.get(path, "")
        if name is not None and commit:
            if commit not in seen:
                at = replace(name, revision=commit).text
                weights = open_kept(at).weights
                is_stated = all(one.sha256 for one in weights.values())
                key = repr(sorted(weights.items())) if is_stated else commit
                seen[commit] = alike.setdefault(key, Path(at))
            keep_revision(name, commit)
        read.append(seen.get(commit, path))
    return tuple(read)


def list_checkpoints(paths: Sequence[Path], every: int | None = None) -> Checkpoints:
    """List the checkpoints of a track by rising step.

    ``*``, ``?`` and ``[…]`` in a path, or in the revision of a model on the Hub, are a pattern. A
    folder alone stands for the files or folders in it whose names differ in a number.
    """
    every = parse_value(every, Positive | None, argument("every"))
    commits: dict[Path, str] = {}
    found: dict[Path, None] = {}
    if len(paths) == 1 and not is_remote(paths[0]) and paths[0].is_dir():
        paths = _list_folder(paths[0])
    for path in paths:
        matched = _list_matches(path)
        found |= dict.fromkeys(matched)
        commits |= {one: commit for one, commit in matched.items() if commit}
    named = list(found)
    from embgeo.io.formats.training_step import training_step

    steps = steps_of(named, training_step)
    order = steps.order
    if every is not None:
        order = [*order[:-1:every], *order[-1:]]
    values = tuple(steps.values[i] for i in order)
    source = steps.source
    if commits and is_offline():
        source += ", of the revisions that are in a cache"
    return Checkpoints(tuple(named[i] for i in order), Steps(values, source), commits)


def _list_folder(folder: Path) -> list[Path]:
    """List the most entries of a folder whose names are alike but for numbers, and no shards."""
    alike: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if re.search(r"\d", path.name) and "-of-" not in path.name:
            alike.setdefault(re.sub(r"\d+", "*", path.name), []).append(path)
    found = max(alike.values(), key=len, default=[])
    if len(found) < 2:
        way_out = f"name its checkpoints, as in {folder / 'step-*'}"
        raise BadOption("holds no checkpoints named by step", where=folder, way_out=way_out)
    return found


def _list_matches(path: Path) -> dict[Path, str]:
    """List the paths that a pattern matches, with the commits of revisions; a plain path itself."""
    text = as_written(path)
    if not glob.has_magic(text):
        return {path: ""}
    if not is_remote(path):
        matches = {path: ""} if path.exists() else {Path(one): "" for one in glob.glob(text)}
    else:
        matches = _list_revisions(path, text)
    if not matches:
        raise BadOption("matches nothing", where=text)
    return matches


def _list_revisions(path: Path, text: str) -> dict[Path, str]:
    hub = read_hub_name(path)
    if hub is None or not glob.has_magic(hub.revision):
        cause = "a pattern is for revisions of the Hub, as in hf://org/name@step*"
        raise BadOption(cause, where=text, way_out="name each file")
    from embgeo.io.places.hub import list_revisions

    return {
        Path(replace(hub, revision=revision).text): commit
        for revision, commit in list_revisions(hub).items()
    }


def measure_kept(
    matrix: Matrix,
    *,
    keep: bool,
    source: Source,
    options: Options,
    sections: Sequence[str] | None,
    reference: bool,
    resources: Resources | None,
    command: str,
    progress: Progress | None,
) -> Analysis:
    """Analyze a step; with `keep`, take its analysis from embgeo's cache, or put it there."""
    folder = None
    if keep and matrix.origin.sha256:
        device = "cpu" if resources is None else resources.device
        facts = (source.collect_changes(), asdict(options), sections, reference, device)
        folder = own_cache() / "steps" / identify(matrix, facts)
        with suppress(OSError, EmbgeoError):  # missing or damaged
            return load_analysis(folder)
    analysis = measure(
        matrix,
        options,
        sections=sections,
        reference=reference,
        resources=resources,
        command=command,
        progress=progress,
        page=False,
    )
    if folder is not None:
        with suppress(OSError, EmbgeoError):  # nothing can be kept
            analysis.save(folder)
    return analysis


#: The packages of embgeo that numbers do not depend on.
_WITHOUT_NUMBERS = (
    "callbacks",
    "charts",
    "cli",
    "publish",
    "report",
    "row_repair",
    "rules",
    "training",
)


def identify(matrix: Matrix, how: object) -> str:
    """Return a hash of everything that decides the numbers of an analysis."""
    origin = matrix.origin
    hidden = None if matrix.hidden is None else matrix.hidden.origin.sha256
    facts = (
        (VERSION, digest_code(), sorted(versions().items())),
        (
            origin.path,
            origin.sha256,
            origin.tensor,
            origin.rows,
            origin.transposed,
            origin.notes,
            hidden,
        ),
        (matrix.tokens, matrix.special, matrix.vocabulary_size, matrix.unreachable),
        {reason: rows.tolist() for reason, rows in matrix.masked.items()},
        None if matrix.frequency is None else matrix.frequency.source,
        how,
    )
    digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass"))
    if matrix.frequency is not None:
        digest.update(matrix.frequency.counts.tobytes())
    return digest.hexdigest()[:32]


@cache
def digest_code() -> str:
    """Return the SHA-256 of the source files that numbers depend on."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home)
        if name.parts[0] not in _WITHOUT_NUMBERS:
            digest.update(f"{name.as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
