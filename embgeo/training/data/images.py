"""Images with classes: IDX files as of MNIST, and the digits of scikit-learn."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.labeled_corpus import LabeledCorpus, LabeledDocuments, hold_out
from embgeo.training.data.text import hash_files, is_folder, read_blocks
from embgeo.training.data.vocabulary import Vocabulary

Bytes = npt.NDArray[np.uint8]

#: First four bytes of files of unsigned bytes with three dimensions, and with one.
IMAGES, LABELS = 0x00000803, 0x00000801
#: Bytes of a file at most; MNIST has 47 MB.
MOST_BYTES = 2**31
#: Splits, and how MNIST names their files.
PARTS = {"train": "train", "test": "t10k"}
ENDINGS = ("-idx{}-ubyte", "-idx{}-ubyte.gz", ".idx{}-ubyte", ".idx{}-ubyte.gz")
DIGITS = "digits.csv.gz"
#: The largest gray value of the digits of scikit-learn.
DIGITS_TOP = 16
#: Fewest rows and columns of an image: both are halved twice.
LEAST_SIDE = 4


@dataclass(frozen=True, slots=True)
class ImageCorpus(LabeledCorpus):
    """Images of a shape (rows, columns) as documents of pixels, gray values from 0 to 255."""

    shape: tuple[int, int] = (LEAST_SIDE, LEAST_SIDE)


def load_images(path: Path, fold: int) -> ImageCorpus:
    """Read images and cut them into splits; one in ten of each class is for validation.

    `path`: a folder with the IDX files of MNIST, or the digits of scikit-learn. `fold`: which tenth
    of data without a test split is for testing.
    """
    parts, files = read_idx_folder(path) if is_folder(path) else read_digits(path)
    (pixels, labels), notes = parts["train"], []
    if "test" not in parts:
        held = hold_out(labels, fold, 1)
        parts["test"] = pixels[held], labels[held]
        pixels, labels = pixels[~held], labels[~held]
        notes.append("test: one image in ten of each class, the same for all methods and seeds")
    held = hold_out(labels, 0, 0)
    parts |= {"train": (pixels[~held], labels[~held]), "valid": (pixels[held], labels[held])}
    notes.append("valid: one image in ten of each class of the training part")
    classes, counts = np.unique(parts["train"][1], return_counts=True)
    check_images(parts, classes, path)
    names = tuple(str(label) for label in classes.tolist())
    height, width = pixels.shape[1:]
    return ImageCorpus(
        name=path.resolve().name.partition(".")[0],
        vocabulary=Vocabulary(names, counts),
        classes=names,
        notes=(f"{len(names)} classes of images of {height} × {width} pixels", *notes),
        files=hash_files(path, files),
        unit="images",
        shape=(height, width),
        **{split: encode(*part, classes) for split, part in parts.items()},
    )


def encode(pixels: Bytes, labels: Bytes, classes: Bytes) -> LabeledDocuments:
    """Make each image a sequence of pixels."""
    n, size = len(pixels), math.prod(pixels.shape[1:])
    return LabeledDocuments(
        pixels.reshape(-1), size * np.arange(n + 1), np.searchsorted(classes, labels)
    )


def check_images(parts: dict[str, tuple[Bytes, Bytes]], classes: Bytes, path: Path) -> None:
    """Refuse shapes that differ or are small, and splits that do not go with the classes."""
    shapes = {pixels.shape[1:] for pixels, _ in parts.values()}
    if len(shapes) > 1 or min(min(shapes)) < LEAST_SIDE:
        cause = f"images have shapes {', '.join(map(str, sorted(shapes)))}"
        way_out = f"give images of one shape, {LEAST_SIDE} × {LEAST_SIDE} pixels at least"
        raise UnreadableFile(cause, where=path, way_out=way_out)
    for split, (_, labels) in parts.items():
        if not len(labels) or not np.isin(labels, classes).all() or len(classes) < 2:
            raise UnreadableFile(
                f"{len(classes)} classes to train on, and the {split} split has "
                f"{len(np.unique(labels))}",
                where=path,
                way_out="give ten images of each of two classes at least",
            )


def find_digits() -> Path:
    """Find the file of digits in scikit-learn."""
    spec = find_spec("sklearn")
    path = Path(spec.origin or "").parent / "datasets" / "data" / DIGITS if spec else None
    if path is None or not path.is_file():
        raise BadOption(
            "the default images are the digits of scikit-learn, which is not installed",
            way_out="pip install 'embgeo[train]', or give the folder of MNIST with --data",
        )
    return path


def read_digits(path: Path) -> tuple[dict[str, tuple[Bytes, Bytes]], list[Path]]:
    """Read a row for each image: gray values of a square from 0 to 16, and the class."""
    if path.name != DIGITS:
        raise UnreadableFile(
            "is neither a folder with IDX files nor the digits of scikit-learn",
            where=path,
            way_out="give the folder of train-images-idx3-ubyte, or leave --data out",
        )
    text = b"".join(read_blocks(path)).decode("latin-1")
    try:
        table = np.loadtxt(text.splitlines(), delimiter=",", ndmin=2)
        side = math.isqrt(table.shape[1] - 1)
        gray = table[:, : side**2].reshape(-1, side, side)
        if table.shape[1] != side**2 + 1 or not ((gray >= 0) & (gray <= DIGITS_TOP)).all():
            raise ValueError
    except ValueError as error:
        way_out = "install scikit-learn again"
        cause = "its rows are not the gray values of squares"
        raise UnreadableFile(cause, where=path, way_out=way_out) from error
    scaled = np.rint(gray * (255 / DIGITS_TOP)).astype(np.uint8)
    return {"train": (scaled, table[:, -1].astype(np.uint8))}, [path]


def read_idx_folder(folder: Path) -> tuple[dict[str, tuple[Bytes, Bytes]], list[Path]]:
    """Read images and labels of the training split, and of the test split if there is one."""
    parts, files = {}, []
    for split, name in PARTS.items():
        images, labels = (find_idx(folder, name, *kind) for kind in (("images", 3), ("labels", 1)))
        if images is None and labels is None and split != "train":
            continue
        if images is None or labels is None:
            missing = f"{name}-{'labels-idx1' if images else 'images-idx3'}-ubyte"
            raise UnreadableFile(
                f"there is no {missing}, nor {missing}.gz", where=folder, way_out="add the file"
            )
        pixels, classes = read_idx(images, IMAGES), read_idx(labels, LABELS)
        if len(pixels) != len(classes):
            raise UnreadableFile(
                f"{len(classes):,} labels for {len(pixels):,} images",
                where=labels,
                way_out="download both files again",
            )
        parts[split] = pixels, classes
        files += [images, labels]
    return parts, files


def find_idx(folder: Path, part: str, kind: str, dimensions: int) -> Path | None:
    """Find the file of a part, compressed or not."""
    names = (f"{part}-{kind}{ending.format(dimensions)}" for ending in ENDINGS)
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_idx(path: Path, magic: int) -> Bytes:
    """Read an IDX file of unsigned bytes; its header is compared with its size before use.

    References
    ----------
    LeCun, Cortes & Burges, "The MNIST database of handwritten digits": file formats.
    """
    found, expected = bytearray(), MOST_BYTES
    shape: tuple[int, ...] = ()
    start = 4 + 4 * (magic & 0xFF)
    for block in read_blocks(path):
        found += block
        if not shape and len(found) >= start:
            first, *sizes = struct.unpack(f">{start // 4}I", found[:start])
            if first != magic:
                raise damaged(path, f"begins with {first:#010x} and not with {magic:#010x}")
            shape = tuple(sizes)
            expected = start + math.prod(shape)
        if len(found) > expected or expected > MOST_BYTES:
            raise damaged(path, f"has more than the {min(expected, MOST_BYTES):,} bytes that fit")
    if not shape or len(found) != expected:
        raise damaged(path, f"ends after {len(found):,} bytes")
    return np.frombuffer(bytes(found), np.uint8, offset=start).reshape(shape)


def damaged(path: Path, cause: str) -> UnreadableFile:
    """The error for a broken IDX file."""
    return UnreadableFile(f"the IDX file {cause}", where=path, way_out="download it again")
