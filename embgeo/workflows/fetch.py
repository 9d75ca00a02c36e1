"""Fetching: from a name to a reduced model folder, which is read like any other model folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import as_path
from embgeo.core.errors import BadOption, argument
from embgeo.core.progress import report_bytes
from embgeo.core.source import Source
from embgeo.io.remote.names import as_written, is_remote

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.io.remote.source_record import ReducedSource


@dataclass(frozen=True, slots=True)
class Fetched:
    """A reduced model folder.

    Attributes
    ----------
    folder : Path
    commit : str
        The Hub's, or a hash of the sizes and versions that a store states.
    files : tuple of str
        What is in the folder.
    source : ReducedSource
        Where each tensor lies in the remote files, and what was read of them.
    """

    folder: Path
    commit: str
    files: tuple[str, ...]
    source: ReducedSource


def fetch(
    name: Path | str,
    out: Path | str | None = None,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
    max_download: str | None = None,
    whole: bool = False,
    refresh: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Fetch what an analysis reads of a remote model, and nothing else.

    Parameters
    ----------
    name : Path or str
        ``hf://org/name[@revision][/path]``, the address of a page of the Hub, or a folder or file
        of an object store or web server (``s3://``, ``gs://``, ``az://``, ``https://``).
    out : Path or str, optional
        A new folder for a copy; without it the folder of the cache is given.
    tensor, output : str, optional
        Take this tensor, and this output projection.
    transpose : bool
        Tokens are columns in the file.
    max_download : str, optional
        Most bytes of tensors, as in ``"2GB"``.
    whole : bool
        Fetch the files with weights whole, in formats that are not read in parts too.
    refresh : bool
        Look whether the branch or tag has moved since it was fetched.
    progress : Progress, optional
        Receives the bytes that are read.

    Returns
    -------
    Fetched

    Raises
    ------
    BadOption
        The name has no scheme, or `out` exists.
    UnreadableFile
        Nothing is there, it may not be read, or the other side sends something other than was
        requested.
    """
    from embgeo.io.remote.fetching import fetch_into_cache
    from embgeo.io.remote.source_record import SOURCE_RECORD
    from embgeo.workflows.folders import fresh_folder, is_occupied

    given = as_written(as_path(name, "name"))
    if not is_remote(given):
        raise BadOption(
            "nothing is fetched without a scheme",
            where=given,
            way_out="write hf://org/name for a model on the Hub",
        )
    source = Source(
        given, tensor=tensor, output=output, transpose=transpose, max_download=max_download
    )
    source.check()
    target = None if out is None else as_path(out, "out")
    if target is not None and is_occupied(target):
        way_out = f"choose another folder with {argument('out')}"
        raise BadOption("exists and is not empty", where=target, way_out=way_out)
    report = report_bytes(progress, "fetching")
    folder = fetch_into_cache(given, source, whole=whole, refresh=refresh, report=report)
    if target is not None:
        with fresh_folder(target.absolute().parent, target) as fresh:
            shutil.copytree(folder, fresh / "model")
            if target.is_dir():  # an empty one
                target.rmdir()
            (fresh / "model").rename(target)
        folder = target
    record = SOURCE_RECORD.load(folder)
    files = tuple(sorted(file.name for file in folder.iterdir()))
    return Fetched(folder, record.commit, files, record)
