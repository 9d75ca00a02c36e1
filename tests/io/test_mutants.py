"""Damaged files of every format: each opens as its library reads it, or is refused in one line.

``MUTANTS=10000 MUTANT_SEED=7 pytest tests/io/test_mutants.py`` makes more of them, and others.
"""

from __future__ import annotations

import importlib.util
import io
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors

from embgeo.core.errors import EmbgeoError
from embgeo.io.formats import FORMATS
from embgeo.io.load import open_checkpoint
from embgeo.io.model.checkpoint import Checkpoint
from tests.io.test_safe_pickle import hostile_programs
from tests.support.binary_files import archive_of, checkpoint, header_of
from tests.support.binary_files import npy as npy_of
from tests.support.mutants import RAW, SAMPLES, Sample, W, deadline, mutant
from tests.support.sampling import each_folder
from tests.support.torch_files import MAGIC, SYSTEM, pickle_value

COUNT = int(os.environ.get("MUTANTS", "48"))
SEED = os.environ.get("MUTANT_SEED", "")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "hostile"
#: Tensors up to this size are read whole.
_READ_BYTES = 2**26

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Path]:
    """A folder, of which nothing but the scratch beside it may change while a mutant is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield tmp_path


def read(path: Path) -> Checkpoint:
    """Open and read everything."""
    found = open_checkpoint(path)
    if found.label_error is not None:  # raised where labels are wanted
        raise found.label_error
    for tensor in found.tensors:
        if not tensor.problem and tensor.nbytes <= _READ_BYTES:
            array = tensor.open()
            assert (array.shape, array.dtype.name) == (tensor.shape, tensor.dtype)
            array.tobytes()
    return found


def refusal(path: Path) -> str:
    """Why it is refused; empty if it opens."""
    with deadline():
        try:
            read(path)
        except EmbgeoError as error:
            said = str(error)
            assert said.isprintable()
            return said
    return ""


def skip_without(sample: Sample) -> None:
    if sample.needs and importlib.util.find_spec(sample.needs) is None:
        pytest.skip(f"{sample.needs} is not installed")


def write(folder: Path, sample: Sample, content: bytes) -> Path:
    # Written anew: to shorten a file waits for the disk where the file system is ext4.
    (folder / sample.file).unlink(missing_ok=True)
    (folder / sample.file).write_bytes(content)
    return folder / (sample.open or sample.file)


@pytest.mark.usefixtures("workers_here")
@each_sample
def test_sound_files_hold_what_was_put_in(sample: Sample, tmp_path: Path) -> None:
    skip_without(sample)
    found = read(write(tmp_path, sample, sample.wrap(sample.make(tmp_path))))
    matrix = next(t for t in found.tensors if len(t.shape) == 2 and not t.problem).open()
    if sample.name not in ("fastText", "torch legacy"):  # means of n-grams, other numbers
        rows, columns = matrix.shape
        assert matrix.size
        expected = W[:rows, :columns] if "torch" not in sample.name.lower() else W.ravel()[:6]
        if sample.name == "torch distributed":
            expected = np.tile(W.ravel()[:6], 2)
        np.testing.assert_array_equal(matrix.ravel(), expected.ravel())


@each_sample
@pytest.mark.slow
def test_mutants_open_or_are_refused(sample: Sample, changed: Path) -> None:
    skip_without(sample)
    chance = random.Random(sample.name + SEED)
    content = sample.make(changed)
    whole, outcomes = sample.wrap(content), []
    count = max(2, COUNT // 24) if sample.is_slow else COUNT
    for number in range(count):
        inner = number % 2 and sample.wrap is not bytes
        made = sample.wrap(mutant(content, chance)) if inner else mutant(whole, chance)
        path = write(changed, sample, made)
        before = sorted(changed.rglob("*"))
        outcomes.append(refusal(path))
        assert sorted(changed.rglob("*")) == before
    # Were all of them refused, or all opened, they would say nothing about half of the reader.
    assert any(outcomes) or sample.is_slow
    assert not all(outcomes) or sample.is_slow


ARRAYS: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "npy": lambda data: {"": np.load(io.BytesIO(data))},
    "npz": lambda data: dict(np.load(io.BytesIO(data)).items()),
    "safetensors": load_safetensors,
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.slow
def test_what_opens_is_what_the_library_reads(name: str, tmp_path: Path) -> None:
    """The other way round, embgeo refuses some of what numpy reads, such as bytes behind."""
    sample = next(one for one in SAMPLES if one.name == name)
    content, chance, alike = sample.make(tmp_path), random.Random(name + SEED), 0
    for _ in range(4 * COUNT):
        made = mutant(content, chance)
        path = write(tmp_path, sample, made)
        if refusal(path):
            continue
        try:
            theirs = ARRAYS[name](made)
        except Exception:
            continue  # sound for embgeo, such as a checksum of an array that is not opened
        for tensor in open_checkpoint(path).tensors:
            if not tensor.problem:
                alike += 1
                np.testing.assert_array_equal(tensor.open(), theirs[tensor.name])
    assert alike


@pytest.mark.slow
def test_every_cut_is_refused(tmp_path: Path) -> None:
    for folder, sample in each_folder(tmp_path, [one for one in SAMPLES if one.is_whole]):
        skip_without(sample)
        whole = sample.wrap(sample.make(folder))
        assert refusal(write(folder, sample, whole)) == ""
        # The last byte of some is a line's end.
        for end in range(0, len(whole) - 1, max(1, len(whole) // 80)):
            assert refusal(write(folder, sample, whole[:end])), end


def test_heads_that_are_cut_and_random_bytes_are_no_error(tmp_path: Path) -> None:
    for folder, known in each_folder(tmp_path, FORMATS):
        chance = random.Random(known.NAME)
        for sample in SAMPLES:
            if sample.needs:
                continue
            content = sample.wrap(sample.make(folder))
            assert {known.sniff(content[:end]) for end in range(64)} <= {True, False}
        for size in (1, 2, 8, 9, 16, 100, 4096):
            assert known.sniff(chance.randbytes(size)) in (True, False)


def test_hostile_fixtures() -> None:
    for path in sorted(FIXTURES.iterdir()):
        is_sound = path.name in ("os_system.pt", "hostile_vocab.npy")
        assert bool(refusal(path)) is not is_sound


#: Where a pickle may hide.
PLACES: dict[str, Callable[[bytes], bytes]] = {
    "pickle": bytes,
    "torch": lambda program: checkpoint(program, RAW[:24]),
    "torch legacy": lambda program: b"".join(map(pickle_value, (MAGIC, 1001, SYSTEM))) + program,
    "npy": lambda program: npy_of(header_of("'|O'", "(1,)"), program),
    "npz": lambda program: archive_of({"w.npy": npy_of(header_of("'|O'", "(1,)"), program)}),
    "gensim": lambda program: b"\x80\x02cgensim.models\nWord2Vec\n0" + program[2:],
}
_SEEN: list[str] = []
_WATCHED = ("os.system", "os.exec", "subprocess.Popen", "pickle.find_class", "socket.connect")


def _watch(event: str, _arguments: tuple[object, ...]) -> None:
    if event in _WATCHED:
        _SEEN.append(event)


def test_no_pickle_is_executed_wherever_it_hides(tmp_path: Path) -> None:
    for folder, place in each_folder(tmp_path, PLACES):
        if not getattr(_watch, "is_added", False):  # a hook stays as long as the process
            sys.addaudithook(_watch)
            _watch.is_added = True  # type: ignore[attr-defined]
        canary = folder / "CANARY"
        _SEEN.clear()
        for opcode, program in hostile_programs(canary).items():
            path = folder / "a"
            path.write_bytes(PLACES[place](program))
            refusal(path)
            assert not canary.exists(), opcode
            assert _SEEN == [], opcode
