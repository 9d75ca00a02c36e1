"""``embgeo.fetch``: the reduced folder of a remote model, which repairs and clusters need, too."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from embgeo.core.arguments import as_path, refuse_if
from embgeo.core.options import known_arguments
from embgeo.core.progress import Progress, report_bytes
from embgeo.core.source import Source
from embgeo.files.saved import copy_file
from embgeo.io.load import open_place
from embgeo.io.model.choice import choose
from embgeo.io.places import cache
from embgeo.io.places.finding import SourcePlace, find_place
from embgeo.io.places.kept import open_kept
from embgeo.io.places.names import as_written, is_remote
from embgeo.io.places.reduced import check_plan, reduce_model, write_folder
from embgeo.io.places.source_record import SOURCE_RECORD, ReducedSource, require_kept
from embgeo.workflows.folders import ELSEWHERE, is_occupied, write_whole


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

    Examples
    --------
    >>> import embgeo
    >>> embgeo.fetch("hf://org/name", max_download="2GB").folder  # doctest: +SKIP
    PosixPath('…/embgeo/reduced/…')
    """
    given = as_written(as_path(name, "name"))
    way_out = "write hf://org/name for a model on the Hub"
    refuse_if(not is_remote(given), given, "nothing is fetched without a scheme", way_out)
    source = Source(
        given, tensor=tensor, output=output, transpose=transpose, max_download=max_download
    )
    target = None if out is None else as_path(out, "out")
    if target is not None:
        refuse_if(is_occupied(target), str(target), "exists and is not empty", ELSEWHERE)
    kept = open_kept(given, refresh=refresh)
    kept.report = report_bytes(progress, "fetching")
    folder = export_model(SourcePlace(kept.path, given, kept=kept), source, whole=whole).path
    if target is not None:
        write_whole(target, partial(copy_folder, folder))
        folder = target
    record = SOURCE_RECORD.load(folder)
    files = tuple(sorted(file.name for file in folder.iterdir()))
    return Fetched(folder, record.commit, files, record)


def copy_folder(source: Path, target: Path) -> None:
    for file in source.iterdir():
        copy_file(file, target / file.name)


def find_files(source: Source) -> SourcePlace:
    """Find a source as files on this machine; of a remote one a reduced folder is made."""
    place = find_place(source.path)
    return place if place.kept is None else export_model(place, source)


def export_model(place: SourcePlace, source: Source, *, whole: bool = False) -> SourcePlace:
    """Make the reduced folder of a remote model in embgeo's cache, unless it is there."""
    kept = place.kept
    assert kept is not None
    choices = [source.tensor, source.output, source.transpose, whole, kept.chosen]
    key = cache.hash_text(json.dumps([str(kept.path), choices]))
    target = cache.own_cache() / "reduced" / f"{kept.commit[:12]}-{key}"
    if target.is_dir():
        return SourcePlace(require_kept(target), place.given, place.name)
    kept.most = source.most_bytes
    with kept.naming():
        checkpoint = open_place(place, source)
        choice = choose(
            checkpoint,
            tensor=source.tensor,
            output=source.output,
            transpose=source.transpose,
        )
        reduced = reduce_model(kept, checkpoint, choice)
        if whole:
            kept.check_room(reduced.size, reduced.size)
        else:
            check_plan(reduced, checkpoint, choice)
        way_out = "choose another folder with the environment variable EMBGEO_CACHE"
        write_whole(target, partial(write_folder, reduced, whole=whole), way_out=way_out)
    return SourcePlace(target, place.given, place.name)
