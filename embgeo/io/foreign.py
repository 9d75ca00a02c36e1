"""Files and folders that are recognized and not read: what they are, and the way out.

``{file}`` and ``{folder}`` in a way out stand for the paths of the file and of its folder.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile, argument
from embgeo.io.bounded.guard import RIGHT_FILE, refuse
from embgeo.io.bounded.small_files import HEAD_BYTES, read_head

#: Most bytes of a character of UTF-8; the head may end inside one.
_LONGEST_CHARACTER = 4
_COUNTED = re.compile(rb"[^\t\n]*[\t ] *\d+\r?")
_JSON = re.compile(rb'\s*(\{\s*["}]|\[\s*(["\[{\]\-\d]|true|false|null))')

# Of other bytes, fewer than half are numbers between these.
_SMALLEST, _LARGEST = 1e-8, 1e3
_MOST = 0.99


def _text_of(head: bytes) -> bytes:
    """Return the head of a text file; empty for other files."""
    text = head.removeprefix(b"\xef\xbb\xbf").strip(b" ")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if len(head) < HEAD_BYTES or error.start < len(text) - _LONGEST_CHARACTER:
            return b""
    has_controls = any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in text)
    return b"" if has_controls else text


def _is_json(head: bytes) -> bool:
    """Tell whether text begins as JSON does; a vocabulary may begin with the token ``[PAD]``."""
    return _JSON.match(_text_of(head)) is not None


def _is_counts(head: bytes) -> bool:
    """Tell whether lines end in whole numbers; the first may be a heading, the last cut off."""
    *lines, rest = _text_of(head).split(b"\n")
    counted = [_COUNTED.fullmatch(line) is not None for line in lines if line]
    return any(counted) and all(counted[1:]) and (len(counted) > 1 or not rest)


def _is_text(head: bytes) -> bool:
    return re.search(rb"[ \n]", _text_of(head)) is not None


def _is_numbers(head: bytes) -> bool:
    """Tell whether the bytes are float64 or float32 of the size of vectors' entries."""
    return is_of_numbers(head, "<f8") or is_of_numbers(head)


def is_of_numbers(data: bytes, code: str = "<f4", fewest: int = 16) -> bool:
    """Tell whether nearly all numbers but zeros, at least `fewest`, have the size of entries."""
    sample = np.frombuffer(data[: len(data) // 8 * 8], dtype=code)
    with np.errstate(invalid="ignore"):
        sizes = np.abs(sample[sample != 0])
    usual = (sizes > _SMALLEST) & (sizes < _LARGEST)
    return len(sizes) >= fewest and bool(usual.mean() > _MOST)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A kind of file or folder that is not read."""

    #: A pattern of the first bytes, a pattern of the name, or a test of the first bytes.
    sign: bytes | str | Callable[[bytes], bool]
    what: str
    way_out: str

    def fits(self, path: Path, head: bytes) -> bool:
        if isinstance(self.sign, bytes):
            return re.match(self.sign, head, re.DOTALL) is not None
        if isinstance(self.sign, str):
            return re.fullmatch(self.sign, path.name) is not None
        return self.sign(head)


_TORCH_TAR = rb"(sys_info|pickle|tensors|storages)\0{80}"
_MADE_FROM = "use the checkpoint that it was made from"
_UNPACK = "unpack it and name the file inside"
_AS_CSV = "save the table as .csv"
#: All variables of a TensorFlow checkpoint with this prefix, as one .npz.
_TENSORFLOW = (
    'python -c "import numpy, tensorflow; r = tensorflow.train.load_checkpoint(PREFIX); '
    "numpy.savez('model.npz', **{k: r.get_tensor(k) for k in r.get_variable_to_shape_map() "
    "if 'OBJECT_GRAPH' not in k})\""
)
_OF_INDEX = _TENSORFLOW.replace("PREFIX", "r'{file}'.removesuffix('.index')")
_OF_DATA = _TENSORFLOW.replace("PREFIX", "r'{file}'.rsplit('.', 1)[0]")
_SAVED_MODEL = _TENSORFLOW.replace("PREFIX", "r'{folder}/variables/variables'")
_NUMBERS = (
    'python -c "import numpy; '
    "numpy.save('a.npy', numpy.fromfile(r'{file}', DTYPE).reshape(ROWS, COLUMNS))\""
)

#: In the order in which they are tried: first bytes, then names, then the kind of content.
FOREIGN: tuple[Foreign, ...] = (
    Foreign(
        rb"version https://git-lfs\.github\.com/spec",
        "is a Git LFS pointer, not the file itself",
        "run 'git lfs pull' in its repository",
    ),
    Foreign(
        _TORCH_TAR,
        "is a torch checkpoint of before 2018 (a tar archive), which is not read",
        "if you trust it: python -c \"import torch; torch.save(torch.load(r'{file}', "
        "weights_only=False), 'new.pt')\"",
    ),
    Foreign(
        rb"\0\0[\x04-\x7f]\x08.{1,100}?\x1a",
        "is a TensorFlow checkpoint, which is not read",
        _OF_INDEX,
    ),
    Foreign(
        # The first entry of its table: no name, and a SavedTensorSlices with a list of tensors.
        rb"\0\0[\x80-\xff]{0,4}[\0-\x7f]\n[\x80-\xff]{0,4}[\0-\x7f]\n",
        "is a TensorFlow checkpoint from before version 0.12, which is not read",
        _TENSORFLOW.replace("PREFIX", "r'{file}'"),
    ),
    Foreign(
        rb"model_checkpoint_path:",
        "says which TensorFlow checkpoint of its folder is the newest",
        _TENSORFLOW.replace("PREFIX", "tensorflow.train.latest_checkpoint(r'{folder}')"),
    ),
    Foreign(
        # Field 1, the version 1, then field 2, the graph with its tags and functions.
        rb"\x08\x01\x12",
        "is a TensorFlow SavedModel, a graph without its variables",
        _SAVED_MODEL,
    ),
    Foreign(rb".{4}TFL3", "is a TensorFlow Lite model, which is not read", _MADE_FROM),
    Foreign(
        # A map of msgpack, and in it an extension of type 1, a list of shape, type and bytes.
        rb"[\x81-\x8f\xde\xdf].{0,4000}?(\xc7.|\xc8..|\xc9....)\x01\x93[\x90-\x9f\xdc]",
        "is a msgpack file of Flax, which is not read",
        'python -c "from flax import serialization as s, traverse_util as t; from '
        "safetensors.numpy import save_file; save_file({k: v for k, v in "
        "t.flatten_dict(s.msgpack_restore(open(r'{file}', 'rb').read()), sep='.').items() "
        "if hasattr(v, 'shape')}, 'model.safetensors')\"",
    ),
    Foreign(rb"lmgg|fmgg|tjgg", "is an old ggml model, which is not read", _MADE_FROM),
    Foreign(rb"algg", "is a ggml adapter (GGLA), which holds no embeddings", _MADE_FROM),
    Foreign(
        # The version of the format, and the length and name of the specification of the model.
        rb"[\1-\x0f]\0\0\0[\4-\xff]\0[A-Z]\w+Spec(tion)?\0",
        "is a CTranslate2 model, which is not read",
        _MADE_FROM,
    ),
    Foreign(rb"7z\xbc\xaf", "is a 7-zip archive, which is not read", _UNPACK),
    Foreign(rb"Rar!\x1a\x07", "is a RAR archive, which is not read", _UNPACK),
    Foreign(rb"\x1f\x9d", "is compressed with compress (.Z), which is not read", _UNPACK),
    Foreign(rb"\x04\x22\x4d\x18", "is compressed with lz4, which is not read", _UNPACK),
    Foreign(rb"LZIP", "is compressed with lzip, which is not read", _UNPACK),
    Foreign(
        rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
        "is compressed with bzip2, which is not read",
        "unpack it: bzip2 -dc '{file}' > unpacked",
    ),
    Foreign(
        rb"\xfd7zXZ\0",
        "is compressed with xz, which is not read",
        "unpack it: xz -dc '{file}' > unpacked",
    ),
    Foreign(
        rb"MATLAB 5\.0 MAT-file",
        "is a MATLAB file (version 5), which is not read",
        "python -c \"import numpy, scipy.io; numpy.save('a.npy', "
        "scipy.io.loadmat(r'{file}')['NAME'])\"",
    ),
    Foreign(
        rb"MATLAB 7\.3 MAT-file",
        "is a MATLAB file (version 7.3), which is not read",
        "python -c \"import h5py, numpy; numpy.save('a.npy', "
        "h5py.File(r'{file}')['NAME'][...].T)\"",
    ),
    Foreign(
        rb"RDX|RDA",
        "is an R workspace, which is not read",
        "in R, write the matrix with words as row names: "
        "write.table(x, 'vectors.txt', quote=FALSE, col.names=FALSE)",
    ),
    Foreign(
        rb"X\n\0\0\0|A\n[23]\n",
        "is an R object (.rds), which is not read",
        "in R, write the matrix with words as row names: "
        "write.table(readRDS('{file}'), 'vectors.txt', quote=FALSE, col.names=FALSE)",
    ),
    Foreign(
        rb"SQLite format 3\0",
        "is an SQLite database, which is not read",
        "export the table: sqlite3 -csv -header '{file}' 'SELECT * FROM TABLE' > table.csv",
    ),
    Foreign(
        rb".{8}DUCK",
        "is a DuckDB database, which is not read",
        "export the table: python -c \"import duckdb; duckdb.connect(r'{file}').table('TABLE')"
        ".write_parquet('table.parquet')\"",
    ),
    Foreign(rb"\xd0\xcf\x11\xe0", "is an old Office document, which is not read", _AS_CSV),
    Foreign(rb"\x7fELF", "is a program or library, not a checkpoint", RIGHT_FILE),
    Foreign(rb"%PDF-", "is a PDF document, not a checkpoint", RIGHT_FILE),
    Foreign(rb"\x89PNG|\xff\xd8\xff|GIF8", "is a picture, not a checkpoint", RIGHT_FILE),
    Foreign(
        rb"\n\x0e\n\x05<(unk|pad)>",
        "is a SentencePiece model, a tokenizer without vectors",
        f"give it with {argument('tokens')} next to the matrix it belongs to",
    ),
    Foreign(
        rb"I[xw][FPS]|IHN|IxM",
        "is an index of faiss, which is not read",
        "python -c \"import faiss, numpy; i = faiss.read_index(r'{file}'); "
        "numpy.save('a.npy', i.reconstruct_n(0, i.ntotal))\"",
    ),
    Foreign(
        rb"FiFu",
        "is a finalfusion model, which is not read",
        "pip install finalfusion && ffp-convert -f finalfusion -t word2vec '{file}' vectors.bin",
    ),
    Foreign(rb"<!DOCTYPE|<html", "is a web page", "download the file itself"),
    Foreign(rb".{257}ustar", "is a damaged tar archive", "download or pack it again"),
    Foreign(r"saved_model\.pb", "is a TensorFlow SavedModel, without its variables", _SAVED_MODEL),
    Foreign(
        r".*\.(data-\d{5}-of-\d{5}|meta)",
        "is a part of a TensorFlow checkpoint, which is not read",
        _OF_DATA,
    ),
    Foreign(r".*\.pb", "is a graph of TensorFlow, which is not read", _MADE_FROM),
    Foreign(r".*\.mlmodel", "is a Core ML model, which is not read", _MADE_FROM),
    Foreign(
        r".*projector_config\.(pbtxt|json)",
        "describes tensors for TensorBoard's projector, which is not read",
        "name the .tsv file with the vectors; labels are given with "
        f"{argument('tokens', 'metadata.tsv')}",
    ),
    Foreign(
        _is_json,
        "is JSON that names no shards of a checkpoint, and holds no matrix that is read",
        f"name the weights next to it; tokens are given with {argument('tokens')}, "
        f"counts with {argument('counts')}",
    ),
    Foreign(
        _is_counts,
        "is a table of words and counts, without vectors",
        f"give it with {argument('counts')} next to the matrix it belongs to",
    ),
    Foreign(
        _is_text,
        "is text without vectors",
        f"name the matrix, and give a list of its tokens with {argument('tokens')} or a corpus "
        f"with {argument('corpus')}",
    ),
    Foreign(
        rb"x[\x01^\x9c\xda]",
        "is compressed with zlib, as joblib does, which is not read",
        "if you trust it: python -c \"import joblib, numpy; numpy.save('a.npy', "
        "joblib.load(r'{file}'))\"",
    ),
    Foreign(
        _is_numbers,
        "looks like bare numbers, without anything that says what they are",
        _NUMBERS,
    ),
)

#: GloVe's binary vectors are bare numbers, which its vocab.txt explains.
GLOVE = Foreign(
    _is_numbers,
    "looks like GloVe's binary vectors, which are not read",
    "python -c \"import numpy; n = sum(1 for _ in open(r'{folder}/vocab.txt', 'rb')); "
    "numpy.save('a.npy', numpy.fromfile(r'{file}').reshape(2, n, -1)[..., :-1].sum(0))\", then "
    f"{argument('counts', 'vocab.txt')}",
)
_GLOVE_VOCABULARY = "vocab.txt"

_READ = (
    "torch, safetensors, GGUF, Keras and ONNX checkpoints, model folders, .npy, .npz, pickled "
    "arrays, Parquet and Arrow, gensim's, word2vec, GloVe and fastText vectors, tables of numbers "
    "and vectors in JSON are read"
)

#: Folders by the name of a file or folder in them.
FOLDERS: tuple[Foreign, ...] = (
    Foreign(r"saved_model\.pb", "a TensorFlow SavedModel, which is not read", _SAVED_MODEL),
    Foreign(
        r".*\.index",
        "a TensorFlow checkpoint, which is not read",
        _TENSORFLOW.replace("PREFIX", "tensorflow.train.latest_checkpoint(r'{folder}')"),
    ),
    Foreign(
        r"manifest\.ocdbt|_CHECKPOINT_METADATA",
        "an Orbax checkpoint of JAX, which is not read",
        'python -c "import orbax.checkpoint as o; from flax import traverse_util as t; from '
        "safetensors.numpy import save_file; save_file({k: v for k, v in t.flatten_dict("
        "o.PyTreeCheckpointer().restore(r'{folder}'), sep='.').items() if hasattr(v, 'shape')}, "
        "'model.safetensors')\"",
    ),
    Foreign(
        r"((shared|source|target)_)?vocabulary\.(json|txt)",
        "a CTranslate2 model, which is not read",
        _MADE_FROM,
    ),
    Foreign(
        r"\.zarray|zarr\.json",
        "a Zarr array, which is not read",
        "python -c \"import numpy, zarr; numpy.save('a.npy', zarr.open(r'{folder}')[:])\"",
    ),
)


def is_torch_tar(head: bytes) -> bool:
    """Tell whether a tar archive is a checkpoint of torch."""
    return re.match(_TORCH_TAR, head) is not None


def find_foreign(path: Path, head: bytes) -> Foreign | None:
    """Find the kind of a file that starts with `head`, if it is known and not read."""
    found = next((kind for kind in FOREIGN if kind.fits(path, head)), None)
    is_bare = found is not None and found.sign is _is_numbers
    return GLOVE if is_bare and path.with_name(_GLOVE_VOCABULARY).is_file() else found


def refuse_unknown(path: Path, head: bytes) -> UnreadableFile:
    """Return the error for a file that starts with `head`, with advice if its kind is known."""
    found = find_foreign(path, head)
    if found is None:
        return refuse(path, "its format is not known", _READ)
    return refuse(path, found.what, way_out_of(found, path, path.parent))


def refuse_folder(folder: Path, names: Iterable[str]) -> UnreadableFile | None:
    """Return the error for a folder of another tool, by the names in it; None if unknown."""
    held = list(names)
    for kind in FOLDERS:
        if any(kind.fits(Path(name), b"") for name in held):
            what = f"the folder is {kind.what}"
            return refuse(folder, what, way_out_of(kind, folder, folder))
    return None


def refuse_files(files: Iterable[Path]) -> UnreadableFile | None:
    """Return the error for the first file of a folder that begins as one of another tool does."""
    for file in files:
        head = read_head(file) if file.stat().st_size else b""
        found = find_foreign(file, head)
        if found is not None and isinstance(found.sign, bytes):
            return refuse(file, found.what, way_out_of(found, file, file.parent))
    return None


def way_out_of(kind: Foreign, file: Path, folder: Path) -> str:
    """Return the way out, with the paths of the file and of its folder between quotation marks."""
    way_out = kind.way_out
    for sign, path in (("{file}", file), ("{folder}", folder)):
        # Placeholders stand for names that would end a quotation in a shell or in Python.
        shown = "FILE" if re.search(r"""['"`$\\]""", str(path)) else str(path)
        way_out = way_out.replace(sign, shown)
    return way_out
