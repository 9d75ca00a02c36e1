"""Classes of images: IDX files, the network against loops, resuming, processes."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

import torch
from safetensors.numpy import load_file

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.training.data.images import find_digits, load_images
from embgeo.training.loop.run import train_run
from embgeo.training.methods.definitions import find_method
from embgeo.training.resolve import resolve
from embgeo.training.settings import StudySettings, from_tables, load_preset
from embgeo.training.tasks import make_task
from embgeo.training.tasks.cnn import Cnn
from tests.support.processes import in_two_processes
from tests.support.training_runs import Stopped, silent, stopping
from tests.training.test_classification import TWO


def idx(magic: int, array: np.ndarray) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def write_idx(folder: Path, n: int = 60) -> Path:
    """Images of three classes, a bright row each, as files of MNIST; the test part is packed."""
    generator = np.random.default_rng(0)
    for part, number, pack in (("train", n, bytes), ("t10k", n // 2, gzip.compress)):
        labels = (np.arange(number) % 3).astype(np.uint8)
        pixels = generator.integers(0, 60, (number, 4, 5)).astype(np.uint8)
        pixels[np.arange(number), labels] += 150
        ending = "" if part == "train" else ".gz"
        (folder / f"{part}-images-idx3-ubyte{ending}").write_bytes(pack(idx(0x803, pixels)))
        (folder / f"{part}-labels-idx1-ubyte{ending}").write_bytes(pack(idx(0x801, labels)))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_idx(tmp_path_factory.mktemp("images"))


def settings(place: Path, **tables: Any) -> StudySettings:
    usual: dict[str, Any] = {
        "data": {"path": str(place)},
        "task": {"name": "images"},
        "model": {"name": "cnn", "d": 6, "filters": 2},
        "optimizer": {"kind": "adam", "lr": 0.02},
        "training": {"batch": 10, "epochs": 2, "device": "cpu", "log_every": 5, "threads": 1},
    }
    return from_tables(usual).updated(tables)


def slow_layer(layer: torch.nn.Conv2d, image: np.ndarray) -> np.ndarray:
    """A convolution of 5 × 5 with zeros around the image, ReLU, and the maximum over 2 × 2."""
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    _, height, width = image.shape
    around = np.pad(image, ((0, 0), (2, 2), (2, 2)))
    full = np.empty((len(weight), height, width))
    for f in range(len(weight)):
        for i in range(height):
            for j in range(width):
                full[f, i, j] = bias[f] + np.sum(weight[f] * around[:, i : i + 5, j : j + 5])
    full = np.maximum(full, 0.0)
    return np.array(
        [
            [
                [f[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max() for j in range(width // 2)]
                for i in range(height // 2)
            ]
            for f in full
        ]
    )


def test_the_network_is_that_of_loops() -> None:
    torch.manual_seed(0)
    model = Cnn(3, (4, 5), d=6, filters=2).double()
    images = torch.randint(0, 256, (2, 20), dtype=torch.uint8)
    first, second = model.convolutions[0], model.convolutions[3]
    expected = []
    for image in images.numpy():
        maps = slow_layer(second, slow_layer(first, image.reshape(1, 4, 5) / 255.0))
        layer = model.combine
        hidden = layer.weight.detach().numpy() @ maps.ravel() + layer.bias.detach().numpy()
        expected.append(model.embedding.weight.detach().numpy() @ np.maximum(hidden, 0.0))
    found = model(images, torch.tensor([20, 20])).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert model.decoder.weight is model.embedding.weight


def test_a_method_may_change_the_network(place: Path) -> None:
    wide = {"base": "mle", "model": {"d": 9}}
    config = settings(place, compare=["wide"], method={"wide": wide})
    task = make_task(config)
    assert task.build(config, find_method("wide", config.method), task.load(config)).d == 9


def test_idx_files_are_read_as_they_are(place: Path) -> None:
    corpus = load_images(place, 0)
    assert corpus.sizes == {"train": 54, "valid": 6, "test": 30}
    assert corpus.vocabulary.tokens == corpus.classes == ("0", "1", "2")
    assert corpus.vocabulary.counts.tolist() == [18, 18, 18]
    assert corpus.shape == (4, 5)
    for documents in (corpus.train, corpus.valid, corpus.test):
        pixels = documents.rows.reshape(-1, 4, 5)
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels.mean(axis=2).argmax(axis=1), documents.classes)
    assert len(corpus.files) == 4


def test_digits_are_those_that_scikit_learn_loads() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    expected, corpus = datasets.load_digits(), load_images(find_digits(), 0)
    images = [getattr(corpus, split) for split in ("train", "valid", "test")]
    rows = np.concatenate([one.rows.reshape(-1, 64) for one in images])
    known = np.rint(expected.data * (255 / 16)).astype(np.uint8)
    assert sorted(map(bytes, rows)) == sorted(map(bytes, known))
    assert sum(np.bincount(one.classes) for one in images).tolist() == (
        np.bincount(expected.target).tolist()
    )


def cut(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return apply


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no labels": (lambda folder: (folder / LABELS).unlink(), "there is no train-labels-idx1"),
    "half a test part": (
        lambda folder: (folder / "t10k-images-idx3-ubyte.gz").unlink(),
        "there is no t10k-images-idx3",
    ),
    "empty": (cut(IMAGES, lambda _: b""), "the file is empty"),
    "no header": (cut(IMAGES, lambda data: data[:9]), "ends after 9 bytes"),
    "cut": (cut(IMAGES, lambda data: data[:-1]), "ends after 1,215 bytes"),
    "more": (cut(IMAGES, lambda data: data + b"x"), "has more than the 1,216 bytes"),
    "labels as images": (cut(IMAGES, lambda data: b"\0\0\x08\1" + data[4:]), "begins with 0x0000"),
    "floats": (cut(IMAGES, lambda data: b"\0\0\x0d\3" + data[4:]), "begins with 0x00000d03"),
    "a huge number": (
        cut(IMAGES, lambda data: data[:4] + b"\xff" * 12 + data[16:]),
        "has more than the 2,147,483,648 bytes",
    ),
    "no rows": (cut(IMAGES, lambda data: data[:8] + bytes(8)), "images have shapes"),
    "fewer labels": (
        cut(LABELS, lambda data: data[:7] + b"\x3b" + data[8:-1]),
        "59 labels for 60 images",
    ),
    "one class": (cut(LABELS, lambda data: data[:8] + bytes(60)), "1 classes to train on"),
    "damaged gzip": (
        cut("t10k-labels-idx1-ubyte.gz", lambda data: data[:-6]),
        "its gzip data are damaged",
    ),
}


@pytest.mark.parametrize(("damage", "cause"), HOSTILE.values(), ids=HOSTILE.keys())
def test_bad_files_are_one_line(damage: Callable[[Path], None], cause: str, tmp_path: Path) -> None:
    damage(write_idx(tmp_path))
    with pytest.raises(EmbgeoError, match=cause) as error:
        load_images(tmp_path, 0)
    assert "\n" not in str(error.value)


def test_other_files_and_settings_are_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n", "utf-8")
    for tables, cause in (
        ({"data": {"path": str(tmp_path / "a.csv")}}, "neither a folder with IDX files"),
        ({"data": {"size": 5}}, "size of"),
        ({"task": {"length": 5}}, "has no setting 'length'"),
        ({"training": {"batch": 1000}}, "a batch of 1,000 images"),
        ({"compare": ["al"]}, "is about predicting tokens"),
        ({"compare": ["sc-exp"]}, "factored needs as many rows as columns"),
    ):
        with pytest.raises(EmbgeoError, match=cause):
            embgeo.train(
                out=tmp_path / "runs",
                preset="digits-cpu",
                settings=settings(place, **tables).tables(),
            )
        assert not (tmp_path / "runs").exists()


def test_a_run_is_resumed_to_the_byte(place: Path, tmp_path: Path) -> None:
    tables = {"save_steps": 3}
    model = {"dropout": 0.5}
    config = resolve(settings(place, compare=["cosreg"], training=tables, model=model))
    dataset = make_task(config).load(config)
    arguments: dict[str, Any] = {"measure": None, "command": ""}
    one = train_run(config, dataset, tmp_path / "one", progress=silent(), **arguments)
    with pytest.raises(Stopped):
        train_run(config, dataset, tmp_path / "two", progress=stopping(7), **arguments)
    train_run(config, dataset, tmp_path / "two", progress=silent(), **arguments)
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert models[0] == models[1]
    assert one.test is not None
    assert {"loss", "accuracy", "macro_f1", "images"} == set(one.test)


@pytest.mark.nightly
def test_two_processes_train_what_one_trains(place: Path, tmp_path: Path) -> None:
    config = resolve(settings(place, compare=["cosreg"]))
    dataset = make_task(config).load(config)
    train_run(config, dataset, tmp_path / "one", measure=None, progress=silent(), command="")
    in_two_processes(TWO, str(tmp_path / "two"), json.dumps(config.tables()))
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        np.testing.assert_allclose(two[name], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_a_study_learns_and_measures_fewer_rows_than_columns(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(place, training={"epochs": 12}, model={"d": 12, "filters": 4}).tables()
    tables = {name: tables[name] for name in ("data", "task", "model", "optimizer", "training")}
    tables |= {"geometry.every": 1000, "evaluation.every": 1000}
    found = embgeo.train(preset="digits-cpu", out=tmp_path / "runs", settings=tables)
    (run,) = found.study.runs
    assert run.numbers["test.accuracy"] == 1.0
    assert -0.5 <= run.numbers["cosine.mean"] <= 0.5
    assert "classes of images" in found.report.read_text("utf-8")


@pytest.mark.parametrize("name", ["digits-cpu", "mnist"])
def test_presets_are_complete(name: str) -> None:
    pytest.importorskip("sklearn")
    config = resolve(load_preset(name))
    assert make_task(config).NAME == "images"
