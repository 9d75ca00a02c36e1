"""From a remote name to its headers, or to a model folder in the own cache, over the network.

Of safetensors files the tensors that an analysis reads are fetched, by ranges; other files whole. A
folder is made in ``partial`` and gets its name when it is complete; a later call resumes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from embgeo.core.errors import argument, writing
from embgeo.core.progress import announce
from embgeo.core.source import Source
from embgeo.io.bounded.guard import reading, refuse
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.mapped import safetensors
from embgeo.io.model.facts import CONFIGURATIONS
from embgeo.io.remote.cache import (
    SnapshotFolder,
    choice_key,
    find_revision,
    find_whole_snapshot,
    hash_text,
    is_offline,
    keep_reference,
    own_cache,
    read_reference,
    repository_folder,
)
from embgeo.io.remote.headers import (
    RemoteTensor,
    RemoteWeights,
    as_checkpoint,
    choose_tensors,
    find_weights,
    list_tensors,
    read_index,
    read_remote_facts,
)
from embgeo.io.remote.hub import HubFolder
from embgeo.io.remote.names import HubName, as_written, read_hub_name
from embgeo.io.remote.ranges import (
    FilePart,
    RemoteFile,
    RemoteFolder,
    ReportBytes,
    download,
    save_small,
)
from embgeo.io.remote.source_record import (
    SOURCE_RECORD,
    ReducedSource,
    SourceFile,
    SourceTensor,
    bytes_text,
    list_kept,
    read_source,
    require_kept,
)
from embgeo.io.remote.stores import StoreFolder

#: Configuration and tokenizer.
SMALL_FILES = (
    *CONFIGURATIONS,
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
    "trainer_state.json",
)
WEIGHTS_NAME = "model.safetensors"
#: Larger downloads by ranges are announced; those of whole files always are.
ANNOUNCED_BYTES = 10**9
_SPARE_BYTES = 64 * 2**20
_CODES = {name: code for code, name in safetensors.DTYPES.items()}
_ALIGNMENT = 64


def open_remote(name: str) -> RemoteFolder:
    """List the files under a remote name."""
    hub = read_hub_name(name)
    return StoreFolder(as_written(name)) if hub is None else HubFolder(hub)


def fetch_into_cache(
    name: str,
    source: Source,
    *,
    whole: bool = False,
    refresh: bool = False,
    report: ReportBytes | None = None,
    known: Sequence[Path] = (),
) -> Path:
    """Fetch a remote model into the own cache, unless it is there, and return its folder.

    `source` selects tensors and limits the bytes; `whole` fetches safetensors files whole, too, and
    `refresh` checks whether the branch or tag has moved. Nothing is fetched if one of the folders
    `known` has the same weights, by the SHA-256 that the Hub states.
    """
    hub = read_hub_name(name)
    key = choice_key("" if hub is None else hub.path, source, whole=whole)
    own = f"store--{hash_text(name)}" if hub is None else repository_folder(hub)
    home = own_cache() / key / own
    if hub is not None and not refresh and (found := find_revision(home, hub.revision)):
        return require_kept(found)
    snapshot = None if hub is None or refresh else find_whole_snapshot(hub)
    folder = open_remote(name) if hub is None or snapshot is None else SnapshotFolder(hub, snapshot)
    target = next((one for one in known if has_same_weights(one, folder)), None)
    if target is None:
        target = home / "snapshots" / folder.commit
        if not target.is_dir():
            _make_folder(folder, source, target, whole, report)
        require_kept(target)
    if hub is not None:
        keep_reference(home, hub.revision, target.name)
    return target


def has_same_weights(known: Path, folder: RemoteFolder) -> bool:
    """Whether a remote folder holds, unchanged, the files that a reduced folder was made of."""
    record = read_source(known)
    return record is not None and all(
        file.sha256 and folder.files.get(file.name) == RemoteFile(file.size, file.sha256)
        for file in record.files
    )


def keep_revision(name: HubName, source: Source, commit: str) -> None:
    """Record the commit of a branch or tag, so that it is found without the network."""
    if is_offline():
        return
    home = own_cache() / choice_key(name.path, source) / repository_folder(name)
    keep_reference(home, name.revision, read_reference(home, commit) or commit)


def open_headers(name: str) -> Checkpoint | None:
    """List the tensors of the files that may hold the embedding and the output projection.

    None for other files than safetensors, which have to be fetched first.
    """
    folder = open_remote(name)
    with reading(folder.name, "model"):
        weights = find_weights(folder)
        if not weights.in_ranges:
            return None
        tensors = list_tensors(folder, weights, Source())
        size = sum(folder.files[file].size for file in weights.files)
        seen, stored = len({one.file for one in tensors}), len(weights.files)
        files = "1 file" if stored == 1 else f"{stored:,} files"
        notes = [f"commit {folder.commit[:12]}; {bytes_text(size)} in {files}"]
        if seen < stored:
            notes.append(f"of these files {seen:,} are listed: no others hold what is analyzed")
        listed = as_checkpoint(folder, tensors, read_remote_facts(folder))
        return replace(listed, notes=tuple(notes))


def _make_folder(
    folder: RemoteFolder, source: Source, target: Path, whole: bool, report: ReportBytes | None
) -> None:
    work = target.parent.parent / "partial" / target.name
    way_out = "choose another folder with the environment variable EMBGEO_CACHE"
    with reading(folder.name, "model"), writing(work, way_out):
        work.mkdir(parents=True, exist_ok=True)
        for name in SMALL_FILES:
            if name in folder.files and not (work / name).is_file():
                temporary = work / f"{name}.part"
                save_small(folder, name, temporary)
                temporary.replace(work / name)
        weights = find_weights(folder)
        if weights.in_ranges and not whole:
            record = _fetch_tensors(folder, weights, source, work, report)
        else:
            record = _fetch_files(folder, weights, source, work, report)
        SOURCE_RECORD.save(replace(record, kept=list_kept(work)), work)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_dir():
            work.rename(target)


def _fetch_tensors(
    folder: RemoteFolder,
    weights: RemoteWeights,
    source: Source,
    work: Path,
    report: ReportBytes | None,
) -> ReducedSource:
    """Fetch the bytes of the tensors that are read, into one safetensors file."""
    tensors = choose_tensors(folder, weights, source)
    head, offsets = _lay(tensors)
    parts = [
        FilePart(one.file, one.start, one.stop, len(head) + offset)
        for one, offset in zip(tensors, offsets, strict=True)
    ]
    read = sum(part.size for part in parts)
    size = sum(folder.files[file].size for file in weights.files)
    _check_size(folder, source, read, size, work)
    if read > ANNOUNCED_BYTES:
        announce(f"{folder.name}: fetching {bytes_text(read)} of {bytes_text(size)}")
    download(folder, parts, work / WEIGHTS_NAME, report)
    with (work / WEIGHTS_NAME).open("r+b") as out:
        out.write(head)
    saved = tuple(SourceTensor(t.name, t.file, t.start, t.stop) for t in tensors)
    return _record(folder, saved, read, size, whole=False)


def _fetch_files(
    folder: RemoteFolder,
    weights: RemoteWeights,
    source: Source,
    work: Path,
    report: ReportBytes | None,
) -> ReducedSource:
    """Fetch whole files by huggingface_hub or fsspec, after their size was said."""
    if weights.index:
        read_index(folder, weights.index, work / weights.index)
    total = sum(folder.files[file].size for file in weights.files)
    _check_size(folder, source, total, total, work)
    announce(f"{folder.name}: fetching {bytes_text(total)}")
    done = 0
    for file in weights.files:
        known, target = folder.files[file], work / file
        if not target.is_file() or target.stat().st_size != known.size:
            folder.save(file, target)
        done += known.size
        if report is not None:
            report(done, total)
    saved = tuple(SourceTensor(file, file, 0, folder.files[file].size) for file in weights.files)
    return _record(folder, saved, total, total, whole=True)


def _record(
    folder: RemoteFolder, saved: tuple[SourceTensor, ...], read: int, size: int, *, whole: bool
) -> ReducedSource:
    files = tuple(
        SourceFile(name, folder.files[name].size, folder.files[name].sha256)
        for name in dict.fromkeys(tensor.file for tensor in saved)
    )
    return ReducedSource(folder.name, folder.commit, read, size, whole, files, saved)


def _check_size(folder: RemoteFolder, source: Source, total: int, size: int, work: Path) -> None:
    stated = f"{bytes_text(total)} of {bytes_text(size)}"
    most = source.most_bytes
    if most is not None and total > most:
        cause = f"{stated} would be fetched, more than {bytes_text(most)}"
        raise refuse(folder.name, cause, f"raise {argument('max_download', 'SIZE')}")
    free = shutil.disk_usage(work).free
    if total + _SPARE_BYTES > free:
        cause = f"{stated} would be fetched, and {bytes_text(free)} are free in {work.parent}"
        raise refuse(folder.name, cause, "make room, or set EMBGEO_CACHE to another disk")


def _lay(tensors: Sequence[RemoteTensor]) -> tuple[bytes, list[int]]:
    """Header of a safetensors file with these tensors, and their offsets behind it."""
    offsets = list(accumulate((one.stop - one.start for one in tensors[:-1]), initial=0))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    for one, at in zip(tensors, offsets, strict=True):
        header[one.name] = {
            "dtype": _CODES[one.dtype],
            "shape": list(one.shape),
            "data_offsets": [at, at + one.stop - one.start],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + safetensors.LENGTH_BYTES) % _ALIGNMENT)
    return len(text).to_bytes(safetensors.LENGTH_BYTES, "little") + text, offsets
