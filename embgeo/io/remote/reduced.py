"""Reduced model folders: configuration, tokenizer, and the few tensors that an analysis reads.

A folder is made in ``partial`` and gets its name when it is complete; a later call resumes.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from embgeo.core.errors import argument, writing
from embgeo.core.source import Source
from embgeo.io.bounded.guard import Damaged, reading, refuse, short
from embgeo.io.bounded.records import digest_of
from embgeo.io.formats import safetensors
from embgeo.io.formats.gguf_header import TensorInfo
from embgeo.io.remote.choice import choose_tensors, find_tables, find_weights, read_index
from embgeo.io.remote.ranges import FilePart, RemoteFolder, ReportBytes, download, save_small
from embgeo.io.remote.source_record import (
    SOURCE_RECORD,
    ReducedSource,
    SourceFile,
    SourceTensor,
    bytes_text,
)
from embgeo.io.remote.tensors import RemoteTensor, read_gguf_header

#: Configuration and tokenizer.
SMALL_FILES = (
    "config.json",
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
#: Larger downloads are announced on stderr.
ANNOUNCED_BYTES = 10**9
_SPARE_BYTES = 64 * 2**20
_CODES = {name: code for code, name in safetensors.DTYPES.items()}
_ALIGNMENT = 64


class Fetching:
    """Fetches one remote folder; `source` selects tensors and limits the bytes."""

    def __init__(
        self, folder: RemoteFolder, source: Source, report: ReportBytes | None = None
    ) -> None:
        self.folder, self.source, self.report = folder, source, report

    def run(self, target: Path, *, whole: bool = False) -> None:
        """Make the folder `target` unless it exists."""
        if target.is_dir():
            return
        work = target.parent.parent / "partial" / target.name
        way_out = "choose another folder with the environment variable EMBGEO_CACHE"
        with reading(self.folder.name, "model"), writing(work, way_out):
            work.mkdir(parents=True, exist_ok=True)
            self._save_small(work)
            record = self._fetch_whole(work) if whole else self._fetch_tensors(work)
            SOURCE_RECORD.save(record, work)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_dir():
                work.rename(target)

    def _save_small(self, work: Path) -> None:
        for name in SMALL_FILES:
            if name in self.folder.files and not (work / name).is_file():
                temporary = work / f"{name}.part"
                save_small(self.folder, name, temporary)
                temporary.replace(work / name)

    def _fetch_tensors(self, work: Path) -> ReducedSource:
        tensors, weights = choose_tensors(self.folder, self.source)
        first = tensors[0].file
        if first.endswith(".gguf"):
            name, (head, offsets) = first, _lay_gguf(self.folder, first, tensors)
        else:
            name, (head, offsets) = WEIGHTS_NAME, _lay_safetensors(tensors)
        parts = [
            FilePart(one.file, one.start, one.stop, len(head) + offset)
            for one, offset in zip(tensors, offsets, strict=True)
        ]
        size = sum(self.folder.files[file].size for file in weights)
        self._check_size(parts, size, work)
        download(self.folder, parts, work / name, self.report)
        with (work / name).open("r+b") as out:
            out.write(head)
        saved = tuple(SourceTensor(t.name, t.file, t.start, t.stop) for t in tensors)
        return self._record(saved, sum(part.size for part in parts), size, whole=False)

    def _fetch_whole(self, work: Path) -> ReducedSource:
        files = find_tables(self.folder) or [find_weights(self.folder)]
        weights = files[0]
        if weights.endswith(".index.json"):
            files = list(dict.fromkeys(read_index(self.folder, weights, work / weights).values()))
        parts = [FilePart(file, 0, self.folder.files[file].size, 0) for file in files]
        total = sum(part.size for part in parts)
        self._check_size(parts, total, work)
        for part in parts:
            download(self.folder, [part], work / part.file, self.report)
            stated = self.folder.files[part.file].sha256
            if stated and digest_of(work / part.file) != stated:
                (work / part.file).unlink()
                raise Damaged(f"{short(part.file)} has another SHA-256 than the Hub states")
        tensors = tuple(SourceTensor(part.file, part.file, 0, part.stop) for part in parts)
        return self._record(tensors, total, total, whole=True)

    def _record(
        self, tensors: tuple[SourceTensor, ...], read: int, size: int, *, whole: bool
    ) -> ReducedSource:
        listed = self.folder.files
        files = tuple(
            SourceFile(name, listed[name].size, listed[name].sha256)
            for name in dict.fromkeys(tensor.file for tensor in tensors)
        )
        return ReducedSource(
            self.folder.name, self.folder.commit, read, size, whole, files, tensors
        )

    def _check_size(self, parts: Sequence[FilePart], size: int, work: Path) -> None:
        total = sum(part.size for part in parts)
        stated = f"{bytes_text(total)} of {bytes_text(size)}"
        most = self.source.most_bytes
        if most is not None and total > most:
            cause = f"{stated} would be fetched, more than {bytes_text(most)}"
            way_out = f"raise {argument('max_download', 'SIZE')}"
            raise refuse(self.folder.name, cause, way_out)
        free = shutil.disk_usage(work).free
        if total + _SPARE_BYTES > free:
            cause = f"{stated} would be fetched, and {bytes_text(free)} are free in {work.parent}"
            raise refuse(self.folder.name, cause, "make room, or set EMBGEO_CACHE to another disk")
        if total > ANNOUNCED_BYTES:
            print(f"{self.folder.name}: fetching {stated}", file=sys.stderr)


def _lay_safetensors(tensors: Sequence[RemoteTensor]) -> tuple[bytes, list[int]]:
    """Header of a safetensors file with these tensors, and their offsets behind it."""
    offsets = _add_up(tensors, 1)
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


def _lay_gguf(
    folder: RemoteFolder, file: str, tensors: Sequence[RemoteTensor]
) -> tuple[bytes, list[int]]:
    """Header of a GGUF file with all metadata and these tensors, and their offsets behind it.

    The format is described in docs/gguf.md of ggml.
    """
    data, header = read_gguf_header(folder, file)
    if int.from_bytes(data[4:8], "little") < 2:
        raise Damaged(f"{short(file)} is of version 1 of the format", "use a newer file")
    offsets = _add_up(tensors, header.alignment)
    infos = {info.name: info for info in header.tensors}
    described = b"".join(
        _describe_gguf(infos[one.name], at) for one, at in zip(tensors, offsets, strict=True)
    )
    # Magic, version and the number of tensors come first, 4, 4 and 8 bytes.
    head = data[:8] + struct.pack("<Q", len(tensors)) + data[16 : header.metadata_end] + described
    return head + bytes(-len(head) % header.alignment), offsets


def _describe_gguf(info: TensorInfo, at: int) -> bytes:
    name = info.name.encode()
    sizes = info.shape[::-1]
    form = f"<Q{len(name)}sI{len(sizes)}QIQ"
    return struct.pack(form, len(name), name, len(sizes), *sizes, info.type, at)


def _add_up(tensors: Sequence[RemoteTensor], alignment: int) -> list[int]:
    """Offsets of tensors one after the other, each a multiple of `alignment`."""
    sizes = (-(-(one.stop - one.start) // alignment) * alignment for one in tensors[:-1])
    return list(accumulate(sizes, initial=0))
