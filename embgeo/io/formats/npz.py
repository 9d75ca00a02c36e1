"""numpy's .npz archives: stored members are mapped, compressed ones inflated in bounds."""

from dataclasses import replace
from functools import partial

from embgeo.files.guard import Damaged, plain
from embgeo.files.maps import TEXT, Array, Bytes, is_numeric
from embgeo.files.zip_members import Archive, ZipMember, archive_in, first_name
from embgeo.io.formats.format import Beside
from embgeo.io.formats.npy import HEADER_BYTES, NotNumbers, NpyHeader, read_array, read_header
from embgeo.io.formats.pickle.numpy_arrays import text_entries
from embgeo.io.formats.stacked import stack_vectors
from embgeo.io.formats.word_lists import (
    LOOKED_AT,
    MOST_WORD_BYTES,
    MOST_WORDS,
    are_words,
    is_vocabulary_name,
    tokens_for,
)
from embgeo.io.model.checkpoint import SAVE_FLOATS, Checkpoint, Tensor, unreadable

NAME = "npz"
RECOGNIZED = "a zip archive whose first member ends in `.npy`"
READ = "stored arrays are mapped, compressed ones are inflated when opened"
EXTRA = ""

_SUFFIX = ".npy"
_LOOKED_AT_BYTES = 2**20


def sniff(head: bytes) -> bool:
    return first_name(head).endswith(_SUFFIX)


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open the arrays of the archive; a vector of strings such as ``words`` gives the tokens."""
    archive = archive_in(data)
    tensors: list[Tensor] = []
    vocabularies: list[tuple[str, object]] = []
    words_left, bytes_left = MOST_WORDS, MOST_WORD_BYTES
    for member in archive.members.values():
        name = plain(member.name.removesuffix(_SUFFIX))
        try:
            header = _header(archive, member)
        except NotNumbers as error:
            problem = f"is {error.cause}"
            tensors.append(unreadable(name, error.shape, "", problem, error.way_out))
            continue
        if is_numeric(header.dtype):
            opened = partial(_array, archive, member)
            tensors.append(Tensor(name, header.shape, header.dtype.name, opened))
            continue
        problem = "is an array of strings"
        dtype = TEXT if _holds_words(archive, member, header) else ""
        tensors.append(unreadable(name, header.shape, dtype, problem, SAVE_FLOATS))
        if is_vocabulary_name(name) and len(header.shape) == 1:
            words_left -= header.shape[0]
            bytes_left -= member.size
            if words_left < 0 or bytes_left < 0:
                raise Damaged("the archive holds implausibly many words")
            vocabularies.append((name, text_entries(_array(archive, member))))
    tokens, source = tokens_for(tensors, vocabularies)
    return stack_vectors(Checkpoint(NAME, tuple(tensors), tokens, source))


def _header(archive: Archive, member: ZipMember) -> NpyHeader:
    if not member.name.endswith(_SUFFIX):
        raise NotNumbers("not an array of numpy")
    return read_header(archive.start_of(member.name, HEADER_BYTES), member.size)


def _holds_words(archive: Archive, member: ZipMember, header: NpyHeader) -> bool:
    if len(header.shape) != 1:
        return False
    n = min(LOOKED_AT, header.shape[0], _LOOKED_AT_BYTES // header.dtype.itemsize)
    data = archive.start_of(member.name, header.start + n * header.dtype.itemsize)
    return are_words(text_entries(read_array(data, replace(header, shape=(n,)))))


def _array(archive: Archive, member: ZipMember) -> Array:
    data = archive.bytes_of(member.name, whole=True)
    return read_array(data, read_header(data, len(data)))
