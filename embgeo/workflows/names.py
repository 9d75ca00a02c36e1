"""What results are called where nobody names them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from embgeo.comparison.originals import saved_folder


def default_name(path: Path) -> str:
    """The file's name without its last suffix; of a folder or a member of an archive, its own."""
    if str(path) == "-":
        return "stdin"
    _, _, member = str(path).partition("::")
    resolved = Path(member if member and not path.exists() else path).resolve()
    return (resolved.name if resolved.is_dir() else resolved.stem) or "analysis"


def result_name(path: Path) -> str:
    """The name of a saved analysis by its folder, else that of the checkpoint."""
    folder = saved_folder(path)
    if folder is None:
        return default_name(path)
    return folder.resolve().name.removesuffix(".embgeo") or "analysis"


def comparison_folder(paths: Sequence[Path], track: bool) -> Path:
    """``baseline-vs-other.embgeo`` here; a track is named by its first and last checkpoint."""
    names = [result_name(path)[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")
