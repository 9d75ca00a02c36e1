"""numpy's .npz archives: stored members are mapped, compressed ones inflated in bounds."""

from functools import partial
from pathlib import Path

from embgeo.io.bounded.guard import Damaged, plain
from embgeo.io.bounded.maps import Array, is_numeric
from embgeo.io.bounded.zip_members import Archive, ZipMember, first_name, open_archive
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor
from embgeo.io.labels.word_lists import MOST_WORD_BYTES, MOST_WORDS, is_vocabulary_name, tokens_for
from embgeo.io.mapped.npy import HEADER_BYTES, NotNumbers, NpyHeader, read_array, read_header
from embgeo.io.pickle.numpy_arrays import text_entries
from embgeo.io.stacked import stack_vectors

NAME = "npz"
RECOGNIZED = "a zip archive whose first member ends in `.npy`"
READ = "stored arrays are mapped, compressed ones are inflated when opened"
EXTRA = ""

_SUFFIX = ".npy"


def sniff(head: bytes) -> bool:
    return first_name(head).endswith(_SUFFIX)


def open_checkpoint(path: Path) -> Checkpoint:
    """Open the arrays of the archive; a vector of strings such as ``words`` gives the tokens."""
    archive = open_archive(path)
    tensors: list[Tensor] = []
    vocabularies: list[tuple[str, object]] = []
    left_out = Omissions()
    words_left, bytes_left = MOST_WORDS, MOST_WORD_BYTES
    for member in archive.members.values():
        name = plain(member.name.removesuffix(_SUFFIX))
        header, reason = _header(archive, member)
        if header is None:
            left_out.add(name, reason)
        elif is_numeric(header.dtype):
            opened = partial(_array, archive, member)
            tensors.append(Tensor(name, header.shape, header.dtype.name, opened))
        elif is_vocabulary_name(name) and len(header.shape) == 1:
            words_left -= header.shape[0]
            bytes_left -= member.size
            if words_left < 0 or bytes_left < 0:
                raise Damaged("the archive holds implausibly many words")
            vocabularies.append((name, text_entries(_array(archive, member))))
    tokens, source = tokens_for(tensors, vocabularies)
    return stack_vectors(
        Checkpoint(path, NAME, tuple(tensors), (path,), tokens, source, notes=left_out.notes())
    )


def _header(archive: Archive, member: ZipMember) -> tuple[NpyHeader | None, str]:
    if not member.name.endswith(_SUFFIX):
        return None, "it is not a .npy file"
    try:
        return read_header(archive.start_of(member.name, HEADER_BYTES), member.size), ""
    except NotNumbers as error:
        return None, f"it is {error.cause}"


def _array(archive: Archive, member: ZipMember) -> Array:
    data = archive.bytes_of(member.name, whole=True)
    return read_array(data, read_header(data, len(data)))
