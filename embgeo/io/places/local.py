"""Folders on this machine, and the configuration in them."""

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from embgeo.files.guard import Damaged, Missing, cannot_read, short
from embgeo.files.links import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.files.maps import Bytes, map_file
from embgeo.files.small_files import is_plain_name, read_object
from embgeo.io.model.facts import ModelFacts, facts_of

#: Levels and folders that are searched for weights below a folder without any.
_DEEPEST, _MOST_FOLDERS = 6, 1000


class LocalFolder:
    """The files of a folder on this machine; a `Folder`."""

    is_here = True

    def __init__(self, path: Path, named: str = "") -> None:
        self.path = path
        #: Of the file that the user names, which may be a link; other files have to be inside.
        self.named = named

    @cached_property
    def sizes(self) -> dict[str, int]:
        try:
            with os.scandir(self.path) as entries:
                found = {one.name: one.stat().st_size for one in entries if one.is_file()}
        except OSError as error:
            raise cannot_read(self.path, error) from error
        return dict(sorted(found.items()))

    def open(self, name: str) -> Bytes:
        return map_file(self.path / name, inside=name != self.named)

    def open_named(self, name: str, what: str) -> Bytes:
        if not is_plain_name(name):
            raise Damaged(
                f"the index names the {what} {short(name)}, which is not a plain file name"
            )
        path = self.path / name
        if not path.is_file():
            cause = f"the {what} {short(name)} is missing"
            raise Missing(cause)
        if is_foreign_link(path):
            raise Damaged(f"the {what} {name} {FOREIGN_LINK}", COPY_IT)
        return map_file(path, inside=True)

    def siblings(self) -> dict[str, "LocalFolder"]:
        above = self.path.absolute().parent
        return {one.name: LocalFolder(one) for one in _list_folders(above)}

    def find_below(self, holds: Callable[[str], bool]) -> list["LocalFolder"]:
        """Find the folders below with a file of which `holds` is true, level by level."""
        found: list[LocalFolder] = []
        level = [self.path]
        for _ in range(_DEEPEST):
            inner = [entry for one in level for entry in _list_folders(one)][:_MOST_FOLDERS]
            level = []
            for one in map(LocalFolder, inner):
                if any(map(holds, one.sizes)):
                    found.append(one)
                else:
                    level.append(one.path)
        return found


def _list_folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(one) for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return []


#: That of transformers; of Llama and Mistral in their own form; of PEFT; of ModelOpt, which writes
#: its quantization beside a configuration that does not name it.
CONFIGURATIONS = (
    "config.json", "params.json", "adapter_config.json", "hf_quant_config.json"
)  # fmt: skip


def read_facts(folder: Path) -> ModelFacts:
    """Read the facts of a model folder; empty without its files."""
    own, other, adapter, modelopt = (read_object(folder / name) for name in CONFIGURATIONS)
    return facts_of(own or other, adapter, modelopt)
