"""The tensors of a remote model that an analysis reads, and a model folder of nothing else.

Their SHA-256 is that of the ``model.safetensors`` of such a folder, whether it is written or not.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from embgeo.core.progress import announce
from embgeo.files.saved import copy_file, write_file
from embgeo.io.formats import safetensors
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import Choice, choose
from embgeo.io.model.final_norm import is_final_norm
from embgeo.io.places.kept import ANNOUNCED_BYTES, LISTING, KeptFolder
from embgeo.io.places.source_record import (
    SOURCE_RECORD,
    ReducedSource,
    SourceFile,
    SourceTensor,
    bytes_text,
    list_files,
)

WEIGHTS_NAME = "model.safetensors"
#: Ids of the rows of a draft head.
_IDS = ("d2t",)
_CODES = {name: code for code, name in safetensors.DTYPES.items()}
# As safetensors aligns its tensors: a map of them can be read as numbers without a copy.
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Reduced:
    """The stored tensors that are read, in the order of their bytes in the remote files."""

    folder: KeptFolder
    #: Names of the remote files with weights.
    files: tuple[str, ...]
    tensors: tuple[Tensor, ...]

    @property
    def size(self) -> int:
        """Bytes of all remote weights."""
        return sum(self.folder.files[file].size for file in self.files)

    @property
    def read(self) -> int:
        return sum(tensor.size for tensor in self.tensors)

    @property
    def is_plain(self) -> bool:
        """Whether they can be written into a safetensors file as they are stored."""
        return not self.folder.whole and not any(
            tensor.form or tensor.problem or tensor.dtype not in _CODES for tensor in self.tensors
        )

    def digest(self) -> str:
        """Return the SHA-256 of the file that :meth:`write` writes; the stated one of others."""
        if not self.is_plain:
            stated = [self.folder.files[file].sha256 for file in self.files]
            return stated[0] if len(stated) == 1 else ""
        _, pieces = self._lay()
        found = hashlib.sha256()
        for piece in pieces:
            found.update(piece)
        return found.hexdigest()

    def write(self, target: Path) -> ReducedSource:
        """Write the tensors as a safetensors file; the files themselves if that cannot be."""
        if not self.is_plain:
            return self.write_whole(target)
        places, pieces = self._lay()
        write_file(target / WEIGHTS_NAME, pieces)
        return self._record(places, is_whole=False)

    def write_whole(self, target: Path) -> ReducedSource:
        """Write the remote files with weights, and their index."""
        for file in (*self.folder.indexes, *self.files):
            copy_file(self.folder.fetch_whole(file), target / file, link=True)
        sizes = ((file, self.folder.files[file].size) for file in self.files)
        places = tuple(SourceTensor(file, file, 0, size) for file, size in sizes)
        return self._record(places, is_whole=True)

    def _lay(self) -> tuple[tuple[SourceTensor, ...], Iterator[bytes | memoryview]]:
        """Return where the tensors lie, and the pieces of a safetensors file with them."""
        found = []
        for tensor in self.tensors:
            with self.folder.logging() as log:
                array = np.ascontiguousarray(tensor.open())
            file, start, stop = max(log, key=lambda one: one[2] - one[1])
            found.append((SourceTensor(tensor.name, file, start, stop), tensor, array))
        found.sort(key=lambda one: (self.files.index(one[0].file), one[0].start))
        ends = list(accumulate(array.nbytes for *_, array in found))
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        for (_, tensor, array), end in zip(found, ends, strict=True):
            header[tensor.name] = {
                "dtype": _CODES[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [end - array.nbytes, end],
            }
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + safetensors.LENGTH_BYTES) % _ALIGNMENT)
        head = len(text).to_bytes(safetensors.LENGTH_BYTES, "little") + text

        def pieces() -> Iterator[bytes | memoryview]:
            yield head
            for *_, array in found:
                yield array.reshape(-1).view(np.uint8).data

        return tuple(place for place, *_ in found), pieces()

    def _record(self, places: tuple[SourceTensor, ...], *, is_whole: bool) -> ReducedSource:
        files = tuple(
            SourceFile(name, self.folder.files[name].size, self.folder.files[name].sha256)
            for name in dict.fromkeys(place.file for place in places)
        )
        read = self.size if is_whole else self.read
        commit = self.folder.commit
        return ReducedSource(self.folder.name, commit, read, self.size, is_whole, files, places)


def reduce_model(folder: KeptFolder, checkpoint: Checkpoint, choice: Choice) -> Reduced:
    """List the stored parts of embedding, output matrix and final norms."""
    chosen = set(_IDS)
    for one in filter(None, (choice.input, choice.output)):
        chosen |= {*one.parts, one.name}
    d = choice.input.shape[0 if choice.input_transposed else 1]
    needed = tuple(
        tensor
        for tensor in checkpoint.stored
        if tensor.name in chosen or (tensor.shape == (d,) and is_final_norm(tensor.name))
    )
    files = tuple(dict.fromkeys(path.name for path in checkpoint.files))
    return Reduced(folder, files, needed)


def check_plan(reduced: Reduced, checkpoint: Checkpoint, choice: Choice) -> None:
    """Refuse to fetch too much before the first tensor, with what is compared only."""
    compared = list(choice.copies)
    if checkpoint.facts.tied and choice.output is None:
        silent = replace(checkpoint, facts=replace(checkpoint.facts, tied=None))
        stored = choose(silent, tensor=choice.input.name, transpose=choice.input_transposed).output
        compared += [] if stored is None else [stored]
    every = {t.name: t for t in (*reduced.tensors, *compared)}
    total = sum(t.size for t in every.values())
    if not reduced.folder.whole:
        reduced.folder.check_room(total, reduced.size)
        if total > ANNOUNCED_BYTES:
            part = f"{bytes_text(total)} of {bytes_text(reduced.size)}"
            announce(f"{reduced.folder.name}: fetching {part}")


def write_folder(reduced: Reduced, target: Path, *, whole: bool) -> None:
    """Write a model folder: the tensors, configuration, tokenizer and the record of its source."""
    for file in sorted(reduced.folder.path.iterdir()):
        if file.is_file() and file.name != LISTING.file:
            copy_file(file, target / file.name)
    record = reduced.write_whole(target) if whole else reduced.write(target)
    kept = list_files(target, SOURCE_RECORD.file)
    SOURCE_RECORD.save(replace(record, kept=kept), target)
