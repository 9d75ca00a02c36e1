"""Names of results, from those of checkpoints and saved analyses."""

from collections.abc import Sequence
from pathlib import Path

from embgeo.io.remote.names import is_remote, short_name
from embgeo.workflows.saved_analysis import saved_folder


def default_name(path: Path) -> str:
    """Return the name of a folder or an archive's member, or of a file without its last suffix."""
    if str(path) == "-":
        return "stdin"
    if is_remote(path):
        return short_name(path)
    _, _, member = str(path).partition("::")
    resolved = Path(member if member and not path.exists() else path).resolve()
    return (resolved.name if resolved.is_dir() else resolved.stem) or "analysis"


def result_name(path: Path) -> str:
    """Return the name of the folder of a saved analysis, or of a checkpoint."""
    folder = saved_folder(path)
    if folder is None:
        return default_name(path)
    return folder.resolve().name.removesuffix(".embgeo") or "analysis"


def comparison_folder(paths: Sequence[Path], track: bool) -> Path:
    """Name a comparison: ``BASELINE-vs-OTHER.embgeo``, or ``FIRST-to-LAST.embgeo`` for a track."""
    names = [result_name(path)[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")
