"""``embgeo.fetch``: the reduced model folder of a remote model."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import as_path, refuse_if
from embgeo.core.options import known_arguments
from embgeo.core.progress import report_bytes
from embgeo.core.source import Source
from embgeo.io.places.names import as_written, is_remote

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.io.places.source_record import ReducedSource


@dataclass(frozen=True, slots=True)
class Fetched:
    """A reduced model folder.

    Attributes
    ----------
    folder : Path
    commit : str
        The Hub's, or a hash of the sizes and versions that a store states.
    files : tuple of str
        Names of the files in the folder.
    source : ReducedSource
        Where each tensor lies in the remote files, and how many bytes of them were read.
    """

    folder: Path
    commit: str
    files: tuple[str, ...]
    source: ReducedSource


@known_arguments
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
    """Fetch the parts of a remote model that an analysis reads.

    Parameters
    ----------
    name : Path or str
        ``hf://org/name[@revision][/path]``, the address of a page of the Hub, or a folder or file
        of an object store or web server (``s3://``, ``gs://``, ``az://``, ``https://``).
    out : Path or str, optional
        A new folder for a copy; the folder in the cache by default.
    tensor, output : str, optional
        Names of the tensor and of the output matrix.
    transpose : bool
        Whether tokens are columns in the file.
    max_download : str, optional
        The most bytes of tensors to fetch, as in ``"2GB"``.
    whole : bool
        Whether to fetch safetensors files whole, as all other files are.
    refresh : bool
        Whether to check if the branch or tag has moved since it was fetched.
    progress : Progress, optional
        Receives the number of bytes that are read.

    Returns
    -------
    Fetched

    Raises
    ------
    BadOption
        If the name has no scheme, or `out` exists.
    UnreadableFile
        If nothing is there, it may not be read, or the server sends other bytes than requested.
    """
    from embgeo.io.places.exporting import fetch_model
    from embgeo.io.places.source_record import SOURCE_RECORD
    from embgeo.workflows.folders import ELSEWHERE, is_occupied, write_whole

    given = as_written(as_path(name, "name"))
    way_out = "write hf://org/name for a model on the Hub"
    refuse_if(not is_remote(given), given, "nothing is fetched without a scheme", way_out)
    source = Source(
        given, tensor=tensor, output=output, transpose=transpose, max_download=max_download
    )
    target = None if out is None else as_path(out, "out")
    if target is not None:
        refuse_if(is_occupied(target), str(target), "exists and is not empty", ELSEWHERE)
    report = report_bytes(progress, "fetching")
    folder = fetch_model(source, whole=whole, refresh=refresh, report=report)
    if target is not None:
        write_whole(target, partial(shutil.copytree, folder, dirs_exist_ok=True))
        folder = target
    record = SOURCE_RECORD.load(folder)
    files = tuple(sorted(file.name for file in folder.iterdir()))
    return Fetched(folder, record.commit, files, record)
