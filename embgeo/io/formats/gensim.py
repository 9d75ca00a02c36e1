"""Models saved by gensim: a pickle, and large arrays in ``.npy`` files next to it.

``Word2Vec``, ``FastText``, ``Doc2Vec`` and ``KeyedVectors`` of all versions are read, without
gensim. Vectors are named ``syn0`` before 3.3, the list of words ``index2word`` or ``index2entity``
before 4.0, and counts were in a ``Vocab`` object for each word before they became an array.
FastText models since 4.0 omit word vectors: they are computed from ``vectors_vocab`` and
``vectors_ngrams``, as gensim does when it loads a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from embgeo.files.guard import Damaged, Missing, short
from embgeo.files.maps import Array, Bytes
from embgeo.io.formats.format import Beside
from embgeo.io.formats.npy import NotNumbers, array_tensor, read_header
from embgeo.io.formats.pickle.contents import tensors_of
from embgeo.io.formats.pickle.loading import load
from embgeo.io.formats.pickle.numpy_arrays import PickledArray
from embgeo.io.formats.pickle.objects import Stub
from embgeo.io.formats.subwords import LONGEST_NGRAM, Subwords, mean_vectors
from embgeo.io.formats.word_lists import word_list
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.model.checkpoint import SAVE_FLOATS, Checkpoint, Tensor, unreadable

NAME = "gensim"
RECOGNIZED = "a pickle (protocol 2 to 5) that begins with a class of gensim"
READ = "arrays in the pickle and in the .npy files next to it are mapped"
EXTRA = ""

# PROTO; from protocol 4 on FRAME; then the module, as GLOBAL or as a string.
_START = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?(?:c|\x8c.|X.{4})gensim\.", re.DOTALL)
_VECTORS = ("vectors", "syn0")
_SAVE_VECTORS = "load the model with gensim and save its vectors with save_word2vec_format"


def sniff(head: bytes) -> bool:
    return _START.match(head) is not None


def open_checkpoint(data: Bytes, beside: Beside) -> Checkpoint:
    """Open the arrays of a model, in the pickle and in files next to it, its words and counts."""
    found = find_objects(load(data.data))
    if not found:
        raise Damaged("the pickle holds no object of gensim")
    leaves = [leaf for saved in found for leaf in pickled_arrays(saved)]
    by_name = {tensor.name: tensor for tensor in tensors_of(leaves)}
    notes: tuple[str, ...] = ()
    holders = [""]
    for saved in found:
        for tensor, file in sidecars(saved, beside):
            if tensor.name not in by_name:
                by_name[tensor.name] = tensor
                holders += [] if tensor.problem else [file]
        notes += _compose(saved, by_name)
    # The object with the words and vectors of the model is ``wv``, or the only one.
    owners = [s for s in found if any(s.path_to(name) in by_name for name in _VECTORS)]
    if not owners:
        raise Damaged(
            f"a gensim {short(found[0].kind)} without vectors of words",
            "name a Word2Vec, FastText, Doc2Vec or KeyedVectors model",
        )
    holder = next((s for s in owners if s.name == "wv"), owners[0])
    tokens = find_words(holder)
    counts, count_notes = _counts(holder, 0 if tokens is None else len(tokens))
    return Checkpoint(
        format=f"{NAME} {found[0].kind}",
        tensors=tuple(by_name.values()),
        holders=tuple(holders),
        tokens=tokens,
        tokens_source="the words of the gensim model",
        notes=(*notes, *count_notes),
        counts=counts,
        counts_source="counts of the gensim model",
    )


def _counts(holder: Saved, n: int) -> tuple[npt.NDArray[np.float64] | None, tuple[str, ...]]:
    counts = find_counts(holder, n) if n else None
    if n > 1 and counts is not None and np.array_equal(counts, np.arange(n, 0, -1)):
        return None, (
            f"its counts {n:,}, {n - 1:,}, …, 1 are what gensim writes where it knows none; "
            "they are not used",
        )
    return counts, ()


def _compose(saved: Saved, tensors: dict[str, Tensor]) -> tuple[str, ...]:
    """Add the word vectors of a FastText model that stores their parts only, with a note."""
    own, ngrams = (tensors.get(saved.path_to(f"vectors_{part}")) for part in ("vocab", "ngrams"))
    name = saved.path_to("vectors")
    if name in tensors or own is None:
        return ()
    if own.problem:
        tensors[name] = unreadable(name, (), "", own.problem, own.way_out)
        return ()
    settings = [saved.attributes.get(key) for key in ("min_n", "max_n", "bucket")]
    if len(own.shape) != 2 or not all(type(value) is int for value in settings):
        return ()
    shortest, longest, buckets = (value for value in settings if isinstance(value, int))
    subwords = Subwords(shortest, longest, buckets)
    n, d = own.shape
    if subwords.is_none:
        tensors[name] = Tensor(name, (n, d), own.dtype, own.open, alias_of=own.name)
        return ()
    words, problem = find_words(saved), ""
    if saved.attributes.get("compatible_hash") is not True:
        problem = "is made of n-grams that old versions of gensim hash in another way"
    elif ngrams is None or ngrams.problem or longest > LONGEST_NGRAM:
        problem = "is made of n-grams that are missing, or implausibly long"
    if problem:
        tensors[name] = unreadable(name, (n, d), "", problem, _SAVE_VECTORS)
        return ()
    if ngrams is None or words is None or len(words) != n or ngrams.shape != (buckets, d):
        raise Damaged("its words, vectors_vocab and vectors_ngrams do not fit each other")
    spelt = [word.encode() for word in words]
    compute = partial(_means, spelt, subwords, own, ngrams)
    tensors[name] = Tensor(name, (n, d), "float32", compute)
    return (f"{name} is computed from vectors_vocab and vectors_ngrams, as gensim does",)


def _means(spelt: list[bytes], subwords: Subwords, own: Tensor, ngrams: Tensor) -> Array:
    words, parts = own.open(), ngrams.open()
    return mean_vectors(
        spelt,
        subwords,
        lambda rows: words[rows].astype(np.float32),
        lambda rows: parts[rows].astype(np.float32, copy=False),
        own.shape[1],
    )


# Doc2Vec holds ``wv`` and ``dv`` one level below; a hostile object may hold itself.
_DEEPEST = 5
_MOST_OBJECTS = 100
_MOST_SIDECARS = 100
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_WORD_LISTS = ("index_to_key", "index2word", "index2entity")
_WORD_TABLES = ("key_to_index", "vocab")


@dataclass(frozen=True, slots=True)
class Saved:
    """An object of a class of gensim."""

    name: str  # attributes that lead to it, joined by dots; empty for the root
    kind: str  # name of the class
    attributes: dict[object, object]

    def path_to(self, attribute: str) -> str:
        return f"{self.name}.{attribute}" if self.name else attribute

    def names(self, attribute: str) -> list[str]:
        """Return a list of attribute names that gensim stores, such as ``__numpys``."""
        listed = self.attributes.get(attribute, [])
        if not isinstance(listed, list) or len(listed) > _MOST_SIDECARS:
            raise Damaged(f"its {attribute} is not a list of at most {_MOST_SIDECARS} names")
        names = [name for name in listed if isinstance(name, str) and _ATTRIBUTE.fullmatch(name)]
        if len(names) != len(listed):
            raise Damaged(f"its {attribute} holds a name that is not plain")
        return names


def find_objects(root: object) -> list[Saved]:
    """Find the root and the objects of gensim among its attributes."""
    found: list[Saved] = []
    seen: set[int] = set()
    pending = [("", root, 0)]
    while pending and len(found) < _MOST_OBJECTS:
        name, value, depth = pending.pop(0)
        if not isinstance(value, Stub) or not value.name.startswith("gensim.") or id(value) in seen:
            continue
        seen.add(id(value))
        attributes = {key: inner for part in _states(value) for key, inner in part.items()}
        found.append(Saved(name, value.name.rpartition(".")[2], attributes))
        if depth < _DEEPEST:
            pending += [
                (f"{name}.{key}" if name else key, inner, depth + 1)
                for key, inner in attributes.items()
                if isinstance(key, str) and _ATTRIBUTE.fullmatch(key)
            ]
    return found


def _states(stub: Stub) -> Iterator[dict[object, object]]:
    for state in stub.states:
        # With slots a state is a pair: the dict of the instance, and the slots.
        for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
            if isinstance(part, dict):
                yield part


def pickled_arrays(saved: Saved) -> Iterator[tuple[str, PickledArray]]:
    for key, value in saved.attributes.items():
        if isinstance(value, PickledArray) and isinstance(key, str) and _ATTRIBUTE.fullmatch(key):
            yield saved.path_to(key), value


def sidecars(saved: Saved, beside: Beside) -> Iterator[tuple[Tensor, str]]:
    """Yield arrays in separate files, with the name of the file."""
    dense = saved.names("__numpys")
    for place, attribute in enumerate([*dense, *saved.names("__scipys")]):
        name = saved.path_to(attribute)
        file = f"{beside.name}.{name}.npy"
        if place < len(dense):
            yield _sidecar(name, file, beside), file
        else:
            yield unreadable(name, (), "", "is a sparse matrix", SAVE_FLOATS), file


def _sidecar(name: str, file: str, beside: Beside) -> Tensor:
    try:
        data = beside.open(file)
    except Missing:
        problem = f"is in {short(file)}, which is missing"
        return unreadable(name, (), "", problem, "")
    try:
        return array_tensor(name, data, read_header(data, len(data)))
    except NotNumbers as error:
        return unreadable(name, error.shape, "", f"is {error.cause}", error.way_out)
    except Damaged as error:
        raise Damaged(f"{short(file)}: {error.cause}", error.way_out) from None


def find_words(saved: Saved) -> tuple[str, ...] | None:
    for attribute in _WORD_LISTS:
        found = word_list(saved.attributes.get(attribute))
        if found is not None:
            return found
    for attribute in _WORD_TABLES:
        table = saved.attributes.get(attribute)
        if isinstance(table, dict):
            return word_list({word: _field(entry, "index") for word, entry in table.items()})
    return None


def find_counts(saved: Saved, n: int) -> npt.NDArray[np.float64] | None:
    extra = saved.attributes.get("expandos")
    array = extra.get("count") if isinstance(extra, dict) else None
    if isinstance(array, PickledArray):
        if array.problem or array.shape != (n,):
            return None
        array.check()
        return _plausible(array.open().astype(np.float64))
    table = saved.attributes.get("vocab")
    if not isinstance(table, dict) or len(table) != n:
        return None
    values = np.full(n, -1.0)
    for entry in table.values():
        if not isinstance(entry, Stub):  # a row number without a count
            return None
        row, count = _field(entry, "index"), _field(entry, "count")
        if not isinstance(row, int) or not isinstance(count, int) or not 0 <= row < n:
            return None
        values[row] = count if 0 <= count <= LARGEST_COUNT else -1
    return _plausible(values)


def _field(entry: object, name: str) -> object:
    """Return an attribute of a ``Vocab`` object, or the row number in its place."""
    if not isinstance(entry, Stub):
        return entry
    # Parts are not merged: a hostile file may share one large state between all words.
    value = next((part[name] for part in _states(entry) if name in part), None)
    if isinstance(value, Stub) and value.name == "numpy.scalar":
        return _scalar(value)
    return value


def _scalar(stub: Stub) -> object:
    """Return a numpy integer."""
    if len(stub.args) != 2 or not isinstance(stub.args[1], bytes | str):
        return None
    array = PickledArray()
    array.set((1,), stub.args[0], stub.args[1], fortran=False)
    if array.problem or not array.dtype.startswith(("int", "uint")):
        return None
    array.check()
    return int(array.open()[0])


def _plausible(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    whole = np.isfinite(values) & (values >= 0) & (values <= LARGEST_COUNT)
    return values if whole.all() else None
