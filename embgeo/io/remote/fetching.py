"""From a remote name to its headers, or to a model folder in the own cache, over the network.

Of safetensors files the tensors that an analysis reads are fetched, by ranges; other files whole. A
folder is made in ``partial`` and gets its name when it is complete; a later call resumes.
"""

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
from embgeo.io.remote import cache, headers, ranges, source_record
from embgeo.io.remote.hub import HubFolder
from embgeo.io.remote.names import HubName, as_written, read_hub_name
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


def open_remote(name: str) -> ranges.RemoteFolder:
    """List the files under a remote name."""
    hub = read_hub_name(name)
    return StoreFolder(as_written(name)) if hub is None else HubFolder(hub)


def fetch_into_cache(
    name: str,
    source: Source,
    *,
    whole: bool = False,
    refresh: bool = False,
    report: ranges.ReportBytes | None = None,
    known: Sequence[Path] = (),
) -> Path:
    """Fetch a remote model into the own cache, unless it is there, and return its folder.

    `source` selects tensors and limits the bytes; `whole` fetches safetensors files whole, too, and
    `refresh` checks whether the branch or tag has moved. Nothing is fetched if one of the folders
    `known` has the same weights, by the SHA-256 that the Hub states.
    """
    hub = read_hub_name(name)
    key = cache.choice_key("" if hub is None else hub.path, source, whole=whole)
    own = f"store--{cache.hash_text(name)}" if hub is None else cache.repository_folder(hub)
    home = cache.own_cache() / key / own
    if hub is not None and not refresh and (found := cache.find_revision(home, hub.revision)):
        return source_record.require_kept(found)
    snapshot = None if hub is None or refresh else cache.find_whole_snapshot(hub)
    folder = (
        open_remote(name)
        if hub is None or snapshot is None
        else cache.SnapshotFolder(hub, snapshot)
    )
    target = next((one for one in known if has_same_weights(one, folder)), None)
    if target is None:
        target = home / "snapshots" / folder.commit
        if not target.is_dir():
            _make_folder(folder, source, target, whole, report)
        source_record.require_kept(target)
    if hub is not None:
        cache.keep_reference(home, hub.revision, target.name)
    return target


def has_same_weights(known: Path, folder: ranges.RemoteFolder) -> bool:
    """Tell whether a remote folder holds, unchanged, the files of a reduced folder."""
    record = source_record.read_source(known)
    return record is not None and all(
        file.sha256 and folder.files.get(file.name) == ranges.RemoteFile(file.size, file.sha256)
        for file in record.files
    )


def keep_revision(name: HubName, source: Source, commit: str) -> None:
    """Record the commit of a branch or tag, so that it is found without the network."""
    if cache.is_offline():
        return
    home = cache.own_cache() / cache.choice_key(name.path, source) / cache.repository_folder(name)
    cache.keep_reference(home, name.revision, cache.read_reference(home, commit) or commit)


def open_headers(name: str) -> Checkpoint | None:
    """List the tensors of the files that may hold the embedding and the output matrix.

    None for other files than safetensors, which have to be fetched first.
    """
    folder = open_remote(name)
    with reading(folder.name, "model"):
        weights = headers.find_weights(folder)
        if not weights.in_ranges:
            return None
        tensors = headers.list_tensors(folder, weights, Source())
        size = sum(folder.files[file].size for file in weights.files)
        seen, stored = len({one.file for one in tensors}), len(weights.files)
        files = "1 file" if stored == 1 else f"{stored:,} files"
        notes = [f"commit {folder.commit[:12]}; {source_record.bytes_text(size)} in {files}"]
        if seen < stored:
            notes.append(f"of these files {seen:,} are listed: no others hold what is analyzed")
        listed = headers.as_checkpoint(folder, tensors, headers.read_remote_facts(folder))
        return replace(listed, notes=tuple(notes))


def _make_folder(
    folder: ranges.RemoteFolder,
    source: Source,
    target: Path,
    whole: bool,
    report: ranges.ReportBytes | None,
) -> None:
    work = target.parent.parent / "partial" / target.name
    way_out = "choose another folder with the environment variable EMBGEO_CACHE"
    with reading(folder.name, "model"), writing(work, way_out):
        work.mkdir(parents=True, exist_ok=True)
        for name in SMALL_FILES:
            if name in folder.files and not (work / name).is_file():
                temporary = work / f"{name}.part"
                ranges.save_small(folder, name, temporary)
                temporary.replace(work / name)
        weights = headers.find_weights(folder)
        if weights.in_ranges and not whole:
            record = _fetch_tensors(folder, weights, source, work, report)
        else:
            record = _fetch_files(folder, weights, source, work, report)
        source_record.SOURCE_RECORD.save(replace(record, kept=source_record.list_kept(work)), work)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_dir():
            work.rename(target)


def _fetch_tensors(
    folder: ranges.RemoteFolder,
    weights: headers.RemoteWeights,
    source: Source,
    work: Path,
    report: ranges.ReportBytes | None,
) -> source_record.ReducedSource:
    """Fetch the bytes of the tensors that are read, into one safetensors file."""
    tensors = headers.choose_tensors(folder, weights, source)
    head, offsets = _lay(tensors)
    parts = [
        ranges.FilePart(one.file, one.start, one.stop, len(head) + offset)
        for one, offset in zip(tensors, offsets, strict=True)
    ]
    read = sum(part.size for part in parts)
    size = sum(folder.files[file].size for file in weights.files)
    _check_size(folder, source, read, size, work)
    if read > ANNOUNCED_BYTES:
        part = f"{source_record.bytes_text(read)} of {source_record.bytes_text(size)}"
        announce(f"{folder.name}: fetching {part}")
    ranges.download(folder, parts, work / WEIGHTS_NAME, report)
    with (work / WEIGHTS_NAME).open("r+b") as out:
        out.write(head)
    saved = tuple(source_record.SourceTensor(t.name, t.file, t.start, t.stop) for t in tensors)
    return _record(folder, saved, read, size, whole=False)


def _fetch_files(
    folder: ranges.RemoteFolder,
    weights: headers.RemoteWeights,
    source: Source,
    work: Path,
    report: ranges.ReportBytes | None,
) -> source_record.ReducedSource:
    """Fetch whole files by huggingface_hub or fsspec, after their size was said."""
    if weights.index:
        headers.read_index(folder, weights.index, work / weights.index)
    total = sum(folder.files[file].size for file in weights.files)
    _check_size(folder, source, total, total, work)
    announce(f"{folder.name}: fetching {source_record.bytes_text(total)}")
    done = 0
    for file in weights.files:
        known, target = folder.files[file], work / file
        if not target.is_file() or target.stat().st_size != known.size:
            folder.save(file, target)
        done += known.size
        if report is not None:
            report(done, total)
    saved = tuple(
        source_record.SourceTensor(file, file, 0, folder.files[file].size) for file in weights.files
    )
    return _record(folder, saved, total, total, whole=True)


def _record(
    folder: ranges.RemoteFolder,
    saved: tuple[source_record.SourceTensor, ...],
    read: int,
    size: int,
    *,
    whole: bool,
) -> source_record.ReducedSource:
    files = tuple(
        source_record.SourceFile(name, folder.files[name].size, folder.files[name].sha256)
        for name in dict.fromkeys(tensor.file for tensor in saved)
    )
    return source_record.ReducedSource(folder.name, folder.commit, read, size, whole, files, saved)


def _check_size(
    folder: ranges.RemoteFolder, source: Source, total: int, size: int, work: Path
) -> None:
    stated = f"{source_record.bytes_text(total)} of {source_record.bytes_text(size)}"
    most = source.most_bytes
    if most is not None and total > most:
        cause = f"{stated} would be fetched, more than {source_record.bytes_text(most)}"
        raise refuse(folder.name, cause, f"raise {argument('max_download', 'SIZE')}")
    free = shutil.disk_usage(work).free
    if total + _SPARE_BYTES > free:
        room = f"{source_record.bytes_text(free)} are free in {work.parent}"
        cause = f"{stated} would be fetched, and {room}"
        raise refuse(folder.name, cause, "make room, or set EMBGEO_CACHE to another disk")


def _lay(tensors: Sequence[headers.RemoteTensor]) -> tuple[bytes, list[int]]:
    """Return the header of a safetensors file with these tensors, and their offsets behind it."""
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
