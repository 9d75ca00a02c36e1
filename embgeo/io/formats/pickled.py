"""Pickles of numpy arrays in lists, dicts and objects, read without running them."""

from __future__ import annotations

import re
from pathlib import Path

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import map_file
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.torch import distributed_checkpoint, legacy_checkpoint
from embgeo.io.formats.torch.tensors import TORCH
from embgeo.io.pickle.contents import checkpoint_of
from embgeo.io.pickle.loading import load

NAME = "pickle"
RECOGNIZED = "a pickle of protocol 0 to 5"
READ = (
    "arrays are views of the file's bytes where they lie in it in one piece; the pickle is "
    "read by an allow-list and runs nothing; a dict of words and vectors, and a frame of pandas, "
    "becomes a matrix"
)
EXTRA = ""

_NEWEST_PROTOCOL = 5
#: What is behind the first array of joblib's pickles are bytes, no pickle.
_JOBLIB = b"joblib.numpy_pickle"
_LOOKED_AT = 4096

#: How pickles of protocols 0 and 1, which have no magic number, begin: a container that is put
#: into the memo at once, or a name on two lines of its own. No line of text vectors looks so.
_OLD = re.compile(
    rb"\(?(?:[ld]p\d+\n|[\]}][qr]|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n|i[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n)"
)


def sniff(head: bytes) -> bool:
    """Protocol 2 to 5 by its first two bytes, 0 and 1 by how containers and names begin."""
    if legacy_checkpoint.sniff(head) or distributed_checkpoint.sniff(head):
        return False
    if head[:1] == b"\x80" and len(head) > 1:
        return 2 <= head[1] <= _NEWEST_PROTOCOL
    return _OLD.match(head) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    """The arrays of a pickle, under the keys, indices and attributes that lead to them.

    A dict of words and vectors, or a list of vectors, becomes one matrix.

    A vocabulary that lies next to a matrix with as many rows gives the tokens.
    """
    data = map_file(path).data
    if _JOBLIB in bytes(data[:_LOOKED_AT]):
        raise Damaged(
            "was saved by joblib, whose pickles are not read",
            "load it with joblib and save the matrix with numpy.save",
        )
    return checkpoint_of(
        load(data, TORCH), path, NAME, way_out="save the matrix as .npy or .safetensors"
    )
