"""Files and folders that are recognized and not read, and the tools that convert them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile, argument
from embgeo.files.guard import refuse
from embgeo.files.small_files import read_head


@dataclass(frozen=True, slots=True)
class Foreign:
    """A kind of file or folder."""

    #: Patterns of the first bytes and of the file's name; one that is empty fits nothing.
    head: bytes
    name: str
    what: str
    way_out: str

    def fits(self, name: str, head: bytes) -> bool:
        by_head = self.head and re.match(self.head, head, re.DOTALL)
        return bool(by_head or (self.name and re.fullmatch(self.name, name)))


_ORIGINAL = "use the checkpoint that it was converted from"

FOREIGN = (
    Foreign(rb"version https://git-lfs\.github\.com/spec", "",
            "is a Git LFS pointer, not the file itself", "run 'git lfs pull' in its repository"),
    Foreign(rb"\0\0[\x04-\x7f]\x08.{1,100}?\x1a|\x08\x01\x12|model_checkpoint_path:",
            r"saved_model\.pb|.*\.(index|meta|data-\d{5}-of-\d{5})", "is a TensorFlow checkpoint",
            "read its arrays with tensorflow.train.load_checkpoint and save them with numpy.savez"),
    Foreign(rb"([\x81-\x8f]|\xde..|\xdf....)[\xa1-\xbf\xd9]", "",
            "is a MessagePack file (Flax, Burn)",
            "read it with flax.serialization.msgpack_restore, save it with safetensors.numpy"),
    Foreign(b"", r"manifest\.ocdbt|_CHECKPOINT_METADATA|\.snapshot_metadata",
            "is a folder of sharded arrays (Orbax, torchsnapshot)",
            "load it with the library that wrote it and save the arrays with safetensors"),
    Foreign(rb"<\?xml.{1,200}<net ", r"openvino_.*\.(xml|bin)", "is an OpenVINO model (IR)",
            _ORIGINAL),
    Foreign(rb".{4}(ET12|TFL3)", r".*\.mlmodel|Manifest\.json",
            "is a model for devices (ExecuTorch, TensorFlow Lite, Core ML)", _ORIGINAL),
    Foreign(rb"\x12\x01\0{6}|\n.{1,300}?\x12.(Float|BFloat|Int)\d\d\x1a", "",
            "is a checkpoint of MXNet or MindSpore",
            "load it there and save the arrays with numpy.savez"),
    Foreign(rb"[\1-\x0f]\0\0\0[\4-\xff]\0[A-Z]\w+Spec(tion)?\0",
            r"((shared|source|target)_)?vocabulary\.(json|txt)", "is a CTranslate2 model",
            _ORIGINAL),
    Foreign(rb"I[xw][FPS]|IHN|IxM", "", "is an index of faiss",
            "save its vectors: numpy.save(FILE, index.reconstruct_n(0, index.ntotal))"),
    # Twelve settings as whole numbers, most of them small; the magic number came later.
    Foreign(rb"..\0\0.\0\0\0.{12}[\1-\x20]\0\0\0[\1-\4]\0\0\0[\1-\3]\0\0\0"
            rb".{4}([\0-\x20]\0\0\0){2}", "",
            "is a model of an early fastText without a magic number",
            "read the .vec file that was written with it"),
    Foreign(rb'\{\s*"format": "embgeo\.', "", "is a result of embgeo",
            "name its checkpoint, or give the folder to embgeo report, diff, gate or figures"),
    Foreign(rb".{257}ustar|BZh[1-9]|\xfd7zXZ\0|7z\xbc\xaf|Rar!\x1a|\x04\x22\x4d\x18", "",
            "is an archive, or compressed by other than gzip or zstd",
            "unpack it (tar, xz, bunzip2) and name the file inside"),
)  # fmt: skip

#: Lines of a text and a whole number, below a heading or none, or a JSON object of such pairs.
_NUMBERED = Foreign(
    rb"([^\n]*\n)?((?=[^\s,;]*[^\s,;\d])[^\s,;]+[\t ,;]\d{1,15}\r?\n){2}|"
    rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\d{1,15}\s*[,}]',
    "",
    "holds a whole number for each text, as counts or a vocabulary, and no vectors",
    f"name the matrix, and this file with {argument('counts')} or {argument('tokens')}",
)

_READ = (
    "read are safetensors, torch, GGUF, Keras and ONNX checkpoints, model folders, .npy, .npz, "
    "pickled arrays, Parquet and Arrow, vectors of word2vec, GloVe, fastText and gensim, and text "
    "tables; save the matrix with numpy.save"
)


def find_foreign(name: str, head: bytes) -> Foreign | None:
    """Find the kind of a file with this name and these first bytes, if it is known.

    Bytes go before names: an index of faiss may be called as one of TensorFlow is.
    """
    asked = (("", head), (name, b""))
    return next((kind for one in asked for kind in FOREIGN if kind.fits(*one)), None)


def refuse_unknown(path: Path, head: bytes) -> UnreadableFile:
    """Return the error for a file that starts with `head`."""
    found = find_foreign(path.name, head)
    if found is None and _NUMBERED.fits("", head):
        return refuse(path, _NUMBERED.what, _NUMBERED.way_out)
    if found is None:
        return refuse(path, "its format is not known", _READ)
    return refuse(path, f"{found.what}, which is not read", found.way_out)


def refuse_folder(folder: Path, names: Iterable[str]) -> UnreadableFile | None:
    """Return the error for a folder of another tool, by the names in it; None if unknown."""
    for name in names:
        if (found := find_foreign(name, b"")) is not None:
            return refuse(folder, f"{found.what}, which is not read", found.way_out)
    return None


def refuse_files(files: Iterable[Path]) -> UnreadableFile | None:
    """Return the error for the first file of a folder that begins as one of another tool does."""
    for file in files:
        head = read_head(file) if file.stat().st_size else b""
        if find_foreign("", head) is not None:
            return refuse_unknown(file, head)
    return None
