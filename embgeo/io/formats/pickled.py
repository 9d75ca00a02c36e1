"""Pickles of numpy arrays in lists, dicts and objects, read without running them."""

import re

from embgeo.files.maps import Bytes
from embgeo.io.formats import torch_distributed, torch_legacy
from embgeo.io.formats.format import Beside
from embgeo.io.formats.pickle.contents import checkpoint_of
from embgeo.io.formats.pickle.loading import load
from embgeo.io.formats.pickle.machine import Constructor
from embgeo.io.formats.torch_tensors import TORCH
from embgeo.io.model.checkpoint import Checkpoint

NAME = "pickle"
RECOGNIZED = "a pickle of protocol 0 to 5"
READ = (
    "contiguous arrays are mapped; nothing in the pickle is executed; a dict of words and vectors "
    "becomes a matrix"
)
EXTRA = ""

_NEWEST_PROTOCOL = 5
#: joblib writes bytes that are not part of the pickle after its first array.
_JOBLIB = b"joblib.numpy_pickle"

#: Pickles of protocols 0 and 1 have no magic number: they begin with a container that is memoized
#: at once, or with a name on two lines. No text vectors begin so.
_OLD = re.compile(
    rb"\(?(?:[ld]p\d+\n|[\]}][qr]|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n|i[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n)"
)


def sniff(head: bytes) -> bool:
    """Recognize protocols 2 to 5 by their first two bytes, 0 and 1 by `_OLD`."""
    if torch_legacy.sniff(head) or torch_distributed.sniff(head) or _JOBLIB in head:
        return False
    if head[:1] == b"\x80" and len(head) > 1:
        return 2 <= head[1] <= _NEWEST_PROTOCOL
    return _OLD.match(head) is not None


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open the arrays of a pickle, named by keys, indices and attributes.

    A dict of words and vectors, or a list of vectors, becomes one matrix. A vocabulary in the
    pickle with one word for each row of a matrix gives the tokens.
    """
    known: dict[str, Constructor] = {
        **TORCH,
        "torch.storage._load_from_bytes": torch_legacy.StorageLoader(),
    }
    way_out = "save the matrix with numpy.save"
    return checkpoint_of(load(data.data, known), len(data), NAME, way_out=way_out)
