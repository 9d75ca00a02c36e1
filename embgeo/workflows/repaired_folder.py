"""The repaired copy of a model: edited files are written, all others are linked."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import EmbgeoError, argument, looking_at
from embgeo.io.bounded.companions import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.io.bounded.guard import refuse
from embgeo.io.bounded.maps import map_file
from embgeo.row_repair.places import Edit, read_edited
from embgeo.workflows.folders import ELSEWHERE, find_nearest, is_occupied, write_whole

#: Environment variables that name folders of the Hugging Face cache.
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
#: SHA-256 of a file before and after.
Hashes = tuple[str, str]


def check_target(out: Path, model: Path) -> None:
    """Refuse, before anything is computed, a folder that must not be written to."""
    with looking_at(out, ELSEWHERE):
        own, source = out.resolve(), model.resolve()
    cause = ""
    if source == own or source in own.parents:
        cause = "is the model itself, which is never changed in place"
    elif _is_in_cache(own):
        cause = "lies in the Hugging Face cache, whose files are those of the Hub"
    elif is_occupied(out):
        cause = "exists and is not empty"
    refuse_if(bool(cause), str(out), cause, ELSEWHERE)


def _is_in_cache(folder: Path) -> bool:
    named = [Path(value) for name in _CACHES if (value := os.environ.get(name))]
    caches = [*(path.resolve() for path in named), Path.home() / ".cache" / "huggingface"]
    parts = (folder, *folder.parents)
    return any(cache in parts for cache in caches) or any(
        part.name.startswith("models--") for part in parts
    )


def list_model_files(model: Path) -> list[Path]:
    """The relative paths of the files of a model, without hidden ones."""
    if model.is_file():
        return [Path(model.name)]
    found = []
    for home, folders, names in os.walk(model):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(home) / name for name in names if not name.startswith(".")]
    files = sorted(path for path in found if path.is_file())
    for path in files:
        if is_foreign_link(path):
            raise refuse(path, FOREIGN_LINK, COPY_IT)
    return [path.relative_to(model) for path in files]


def write_copy(
    model: Path,
    out: Path,
    edits: Mapping[Path, Sequence[Edit]],
    finish: Callable[[Path, Mapping[Path, Hashes]], object],
    *,
    link: bool = True,
) -> None:
    """Make `out`, whole or not at all, from a model's folder or file.

    Files without `edits` are hard links if `link` is true and the file system allows it, else
    copies. ``finish(folder, hashes)`` adds further files, given the hashes of the edited ones.
    """
    root = model if model.is_dir() else model.parent
    files = list_model_files(model)

    written = {name for name in files if not link or root / name in edits}
    check_space(root, files, written, find_nearest(out.absolute().parent))

    def fill(fresh: Path) -> None:
        hashes = {}
        for name in files:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            if root / name in edits:
                hashes[name] = write_edited(root / name, fresh / name, edits[root / name])
            elif link:
                link_or_copy(root / name, fresh / name)
            else:
                shutil.copyfile(root / name, fresh / name)
        finish(fresh, hashes)

    write_whole(out, fill)


def check_space(root: Path, files: Sequence[Path], written: Set[Path], home: Path) -> None:
    """EmbgeoError if the disk has no room for the files that are written or copied."""
    device = home.stat().st_dev
    status = {name: (root / name).stat() for name in files}
    copied = [n for n in files if n in written or status[n].st_dev != device]
    needed = sum(status[name].st_size for name in copied)
    free = shutil.disk_usage(home).free
    if needed > free:
        raise EmbgeoError(
            f"needs {format_room(needed)}, and {format_room(free)} are free",
            where=home,
            way_out="free some space, or choose a folder on the file system of the model with "
            f"{argument('out')}, where files are linked",
        )


def format_room(size: int) -> str:
    """``"7.5 GB"``, and less than one in MB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.3f} MB"


def write_edited(source: Path, target: Path, edits: Sequence[Edit]) -> Hashes:
    """Copy a file with edits; return the hashes of both."""
    data = map_file(source)
    before, after = hashlib.sha256(), hashlib.sha256()
    with target.open("wb") as stream:
        plain, edited = (read_edited(data, some, 0, len(data)) for some in ((), edits))
        for old, new in zip(plain, edited, strict=True):
            before.update(old)
            after.update(new)
            stream.write(new)
        stream.flush()
        os.fsync(stream.fileno())
    shutil.copymode(source, target)
    return before.hexdigest(), after.hexdigest()


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link, or a copy if the file system does not allow one."""
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source.resolve(), target)
