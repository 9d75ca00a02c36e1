"""What gensim's ``save`` writes: a pickle, and large arrays in ``.npy`` files next to it.

``Word2Vec``, ``FastText``, ``Doc2Vec`` and ``KeyedVectors`` of all generations are read, without
gensim. FastText models since 4.0 leave their word vectors out, as they follow from
``vectors_vocab`` and ``vectors_ngrams``: they are computed as gensim does when it loads such a
model.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import Array, map_file
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor
from embgeo.io.formats.fasttext.subwords import LONGEST_NGRAM, Subwords, mean_vectors
from embgeo.io.formats.gensim import objects
from embgeo.io.formats.gensim.objects import Saved
from embgeo.io.pickle.leaves import tensors_of
from embgeo.io.pickle.loading import load

NAME = "gensim"
RECOGNIZED = "a pickle (protocol 2 to 5) whose first name is one of gensim's classes"
READ = "the pickle by the safe reader; arrays in it and in the .npy files beside it mapped"
EXTRA = ""

# PROTO; from protocol 4 on FRAME; then the module, as GLOBAL or as a string.
_START = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?(?:c|\x8c.|X.{4})gensim\.", re.DOTALL)
_VECTORS = ("vectors", "syn0")


def sniff(head: bytes) -> bool:
    """A pickle that begins with the name of one of gensim's classes."""
    return _START.match(head) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    """The arrays of a model, the words of its rows, and their counts.

    Parameters
    ----------
    path : Path
        The main file; the files that gensim wrote next to it are found by its name.
    """
    found = objects.objects(load(map_file(path).data))
    if not found:
        raise Damaged("the pickle does not hold what its first bytes promise")
    leaves = [leaf for saved in found for leaf in objects.pickled_arrays(saved)]
    left_out = Omissions()
    by_name = {tensor.name: tensor for tensor in tensors_of(leaves, left_out)}
    notes: tuple[str, ...] = ()
    files, missing = [path], {}
    for saved in found:
        for name, tensor, file in objects.sidecars(saved, path):
            if isinstance(tensor, str):
                missing[name] = tensor
            elif name not in by_name:
                by_name[name] = tensor
                files.append(file)
        notes += _compose(saved, by_name, path)
    holder = _holder(found, by_name)
    if holder is None:
        raise objects.describe_missing(missing, found[0].kind)
    for name, reason in missing.items():
        left_out.add(name, reason)
    tokens = objects.words(holder)
    counts, count_notes = _counts(holder, 0 if tokens is None else len(tokens))
    return Checkpoint(
        path=path,
        format=f"{NAME} {found[0].kind}",
        tensors=tuple(by_name.values()),
        files=tuple(files),
        tokens=tokens,
        tokens_source="the words of the gensim model" if tokens else "",
        notes=(*notes, *left_out.notes(), *count_notes),
        counts=counts,
        counts_source="" if counts is None else "counts of the gensim model",
    )


def _holder(found: list[Saved], tensors: dict[str, Tensor]) -> Saved | None:
    """The object whose words and vectors are the model's: ``wv``, or the only one there is."""
    holders = [s for s in found if any(s.path_to(name) in tensors for name in _VECTORS)]
    named = [s for s in holders if s.name == "wv"]
    return next(iter(named or holders), None)


def _counts(holder: Saved, n: int) -> tuple[npt.NDArray[np.float64] | None, tuple[str, ...]]:
    counts = objects.counts(holder, n) if n else None
    if counts is not None and objects.are_placeholders(counts):
        return None, (
            f"its counts {n:,}, {n - 1:,}, …, 1 are what gensim writes where it knows none; "
            "they are not used",
        )
    return counts, ()


def _compose(saved: Saved, tensors: dict[str, Tensor], path: Path) -> tuple[str, ...]:
    """Add FastText's word vectors where only their parts are stored; a note if that cannot be."""
    parts = [tensors.get(saved.path_to(f"vectors_{part}")) for part in ("vocab", "ngrams")]
    name = saved.path_to("vectors")
    if name in tensors or parts[0] is None:
        return ()
    own, ngrams = parts[0], parts[1]
    settings = [saved.attributes.get(key) for key in ("min_n", "max_n", "bucket")]
    if len(own.shape) != 2 or not all(type(value) is int for value in settings):
        return ()
    shortest, longest, buckets = (value for value in settings if isinstance(value, int))
    subwords = Subwords(shortest, longest, buckets)
    n, d = own.shape
    if subwords.is_none:
        tensors[name] = Tensor(name, (n, d), own.dtype, own.open, alias_of=own.name)
        return ()
    words = objects.words(saved)
    if saved.attributes.get("compatible_hash") is not True:
        return (f"{name} is not read: its n-grams are hashed in a way of old gensim versions",)
    if ngrams is None or longest > LONGEST_NGRAM:
        return (f"{name} is not read: its n-grams are missing, or absurdly long",)
    if words is None or len(words) != n or ngrams.shape != (buckets, d):
        raise Damaged("its words, vectors_vocab and vectors_ngrams do not fit each other")
    spelt = [word.encode() for word in words]
    compute = partial(_means, spelt, subwords, own, ngrams, path)
    tensors[name] = Tensor(name, (n, d), "float32", compute)
    return (f"{name} is computed from vectors_vocab and vectors_ngrams, as gensim does",)


def _means(
    spelt: list[bytes], subwords: Subwords, own: Tensor, ngrams: Tensor, path: Path
) -> Array:
    words, parts = own.open(), ngrams.open()
    out = mean_vectors(
        spelt,
        subwords,
        lambda rows: words[rows].astype(np.float32),
        lambda rows: parts[rows].astype(np.float32, copy=False),
        own.shape[1],
        path,
    )
    out.flags.writeable = False
    return out
