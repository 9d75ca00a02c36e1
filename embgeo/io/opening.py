"""From a path to an open checkpoint: folder, standard input, container or plain file."""

from __future__ import annotations

from pathlib import Path

from embgeo.io import containers, stand_ins
from embgeo.io.bounded.guard import cannot_read
from embgeo.io.bounded.small_files import read_head
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats import find_format, is_known_head, model_folder, tensorflow
from embgeo.io.formats.format import open_with
from embgeo.io.unknown import unknown_format


def open_checkpoint(path: Path | str) -> Checkpoint:
    """Open a file or model folder, whatever its name; headers are read, tensors are not.

    Parameters
    ----------
    path : Path or str
        A file in a format of :data:`embgeo.io.formats.FORMATS`; one that is compressed, or an
        archive with one in it; a file of an archive (``vectors.zip::glove.50d.txt``); ``"-"`` for
        stdin; or a Hugging Face model folder.

    Raises
    ------
    UnreadableFile
        Missing, empty, damaged, hostile or of a format that is not known.
    """
    if str(path) == stand_ins.SIGN:
        return stand_ins.open_checkpoint(_open_file)
    path = Path(path)
    try:
        path = tensorflow.with_ending(path)
        is_folder = path.is_dir()
        archive, member = ("", "") if path.exists() else containers.split_member(str(path))
    except OSError as error:  # a name that is too long, for instance
        raise cannot_read(path, error) from error
    if is_folder:
        return model_folder.open_folder(path, _open_file, _is_known)
    return _open_file(Path(archive), member) if member else _open_file(path)


def _open_file(path: Path, member: str = "") -> Checkpoint:
    return containers.open_through(path, member, containers.Formats(_open_plain, is_known_head))


def _open_plain(path: Path, head: bytes) -> Checkpoint:
    known = find_format(path, head)
    if known is None:
        raise unknown_format(path, head)
    return open_with(known, path)


def _is_known(path: Path) -> bool:
    head = read_head(path)
    return containers.is_wrapped(path, head) or find_format(path, head) is not None
