"""Names of models, and the caches in which they are looked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# Imported before a test sets HF_HUB_OFFLINE: huggingface_hub reads it once.
import huggingface_hub.constants  # noqa: F401
import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.places import source_record
from embgeo.io.places.cache import hub_cache, own_cache, read_reference
from embgeo.io.places.finding import find_place
from embgeo.io.places.names import HubName, as_written, is_remote, read_bare_name, read_hub_name
from embgeo.io.places.source_record import SOURCE_RECORD, ReducedSource, read_source
from tests.support.refusals import refusal
from tests.support.sampling import each_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = np.arange(120, dtype=np.float32).reshape(40, 3)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hf://org/name", HubName("org/name")),
        ("hf://models/org/name", HubName("org/name")),
        ("hf://org/na.me-2@v1", HubName("org/na.me-2", "v1")),
        ("hf://org/name@refs/pr/3/a/b.json", HubName("org/name", "refs/pr/3", "a/b.json")),
        ("hf://org/name@a%2Fb", HubName("org/name", "a/b")),
        ("hf://org/name/a@b.bin", HubName("org/name", path="a@b.bin")),
        ("hf://datasets/org/name/x.npy", HubName("org/name", path="x.npy", kind="dataset")),
        ("https://huggingface.co/org/name", HubName("org/name")),
        ("https://huggingface.co/org/name/tree/v1", HubName("org/name", "v1")),
        ("https://hf.co/org/name/blob/main/a%20b.bin", HubName("org/name", path="a b.bin")),
    ],
)
def test_the_grammar_is_that_of_the_hub(text: str, name: HubName) -> None:
    assert read_hub_name(text) == name
    assert read_hub_name(name.text) == name
    assert read_hub_name(Path(text)) == name  # a path has one slash where the name has two
    assert is_remote(text)
    uris = pytest.importorskip("huggingface_hub.utils._hf_uris")
    theirs = uris.parse_hf_uri(text)
    assert (theirs.id, theirs.type, theirs.path_in_repo) == (name.repo, name.kind, name.path)
    assert (theirs.revision or "main") == name.revision


def test_what_is_no_name_is_refused() -> None:
    for text in (
        "hf://name",
        "hf://",
        "hf://org/../x",
        "hf://org/name@",
        "hf://org/name//x",
        "hf://o/n/../../x",
        "hf://org/name/a\nb",
        "hf://-x/name",
        "https://huggingface.co/org/name/settings/x",
        "http://me:word@[::1/w.npy",
    ):
        if is_remote(text):
            with refusal(BadOption):
                read_hub_name(text)


def test_paths_are_not_names() -> None:
    for text in ("model.pt", "a/b/c", "C:/x", "hf:x", "vectors.zip::a/b"):
        assert not is_remote(text)
        assert read_hub_name(text) is None
        assert read_bare_name(text) is None
        assert as_written(text) == text


@pytest.mark.parametrize(
    ("variable", "cache", "below"),
    [
        ("HF_HUB_CACHE", hub_cache, ""),
        ("HUGGINGFACE_HUB_CACHE", hub_cache, ""),
        ("HF_HOME", hub_cache, "hub"),
        ("XDG_CACHE_HOME", hub_cache, "huggingface/hub"),
        ("HOME", hub_cache, ".cache/huggingface/hub"),
        ("EMBGEO_CACHE", own_cache, ""),
        ("XDG_CACHE_HOME", own_cache, "embgeo"),
        ("HOME", own_cache, ".cache/embgeo"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, cache: Any, below: str
) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("EMBGEO_CACHE")
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache() == tmp_path / below


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the cache, with its weights in the store that models share."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "hub/models--org--name"
    snapshot, shared = model / "snapshots" / COMMIT, tmp_path / "hub/blobs/ab"
    for folder in (snapshot, shared, model / "blobs", model / "refs"):
        folder.mkdir(parents=True)
    save_file({"embed_tokens.weight": ROWS}, shared / "abcd")
    (model / "blobs/1234").symlink_to("../../blobs/ab/abcd")
    (snapshot / "model.safetensors").symlink_to("../../blobs/1234")
    (model / "refs/main").write_text(COMMIT)
    return model


@pytest.mark.parametrize(
    "name",
    [
        "org/name",
        "hf://org/name",
        f"hf://org/name@{COMMIT[:8]}",
        f"org/name@{COMMIT}",
        "hub/models--org--name",
        "https://huggingface.co/org/name",
        "hf://org/name/model.safetensors",
    ],
)
@pytest.mark.usefixtures("cached")
def test_a_cached_model_is_read_without_the_network(name: str) -> None:
    matrix = embgeo.load(name)
    assert np.array_equal(np.asarray(matrix.data), ROWS)
    assert matrix.name.startswith("name")
    assert matrix.origin.path == name
    assert f"commit {COMMIT[:12]} of the Hub's cache" in matrix.origin.notes


def test_of_a_cached_model_parts_are_taken_without_the_network(
    cached: Path, tmp_path: Path
) -> None:
    fetched = embgeo.fetch("hf://org/name", tmp_path / "reduced")
    assert fetched.commit == COMMIT
    assert np.array_equal(np.asarray(embgeo.load(fetched.folder).data), ROWS)
    assert cached.is_dir()


@pytest.mark.parametrize("link", ["snapshots", f"snapshots/{COMMIT}"])
def test_links_out_of_a_repository_folder_are_not_followed(
    link: str, cached: Path, tmp_path: Path
) -> None:
    """The folder may come from a stranger, and the model that a link leads to is the user's."""
    (cached / link).rename(tmp_path / "private")
    (cached / link).symlink_to(tmp_path / "private")
    with refusal():
        embgeo.load(cached)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_references_that_are_no_small_files_are_passed_over(cached: Path) -> None:
    reference = cached / "refs/main"
    reference.unlink()
    os.mkfifo(reference)
    assert read_reference(cached, "main") is None
    reference.unlink()
    with reference.open("wb") as file:
        file.truncate(2**40)
    assert read_reference(cached, "main") is None


def test_a_path_goes_before_a_name(cached: Path, tmp_path: Path) -> None:
    (tmp_path / "org").mkdir()
    np.save(tmp_path / "org/name", ROWS[:5])
    (tmp_path / "org/name.npy").rename(tmp_path / "org/name")
    assert embgeo.load("org/name").n == 5
    assert cached.is_dir()


def test_a_snapshot_without_its_weights_is_passed_over(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cached / "snapshots" / COMMIT / "model.safetensors").unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refusal():
        embgeo.load("hf://org/name")


def test_a_bare_name_that_is_not_whole_in_the_cache_leads_to_the_hub(cached: Path) -> None:
    (cached / "snapshots" / COMMIT / "model.safetensors").unlink()
    with refusal():
        embgeo.load("org/name")


def test_a_name_without_an_organization_is_told_how_models_are_named() -> None:
    for name in ("gpt2", "bert-base-uncased"):
        with refusal():
            embgeo.load(name)
    with refusal():
        embgeo.load("archive::member")


# --- ``source.json`` in a stranger's model folder costs next to nothing, whatever it holds --------


RECORD = SOURCE_RECORD.to_json(ReducedSource("hf://org/name", "1" * 40, 1, 2, False, (), ()))


def write(folder: Path, **changed: Any) -> Path:
    (folder / "source.json").write_text(json.dumps(RECORD | changed))
    return folder


def test_a_record_is_read_and_no_arrays_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "arrays.npz").write_bytes(b"PK\x03\x04 damaged")
    found = read_source(write(tmp_path))
    assert found is not None
    assert found.note.startswith("from hf://org/name, commit 111111111111: 0.00 MB of 0.00 MB")


def test_what_is_not_a_record_is_passed_over(tmp_path: Path) -> None:
    for folder, changed in each_folder(
        tmp_path,
        (
            {"read": 10**400, "size": 10**400},
            {"read": -1},
            {"read": 3},
            {"size": "2"},
            {"format": "x"},
        ),
    ):
        assert read_source(write(folder, **changed)) is None


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    assert read_source(write(tmp_path, padding=" " * source_record._MOST_BYTES)) is None


def test_the_note_is_one_printable_line(tmp_path: Path) -> None:
    found = read_source(write(tmp_path, source="a\n\x1b[2J" * 1000, commit="\n"))
    assert found is not None
    assert found.note.isprintable()
    assert len(found.note) < 300


def test_sizes_beyond_numbers_in_a_cached_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out of the message for a model whose weights are not in the cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    snapshot = tmp_path / "models--org--name/snapshots" / ("1" * 40)
    snapshot.mkdir(parents=True)
    (tmp_path / "models--org--name/refs").mkdir()
    (tmp_path / "models--org--name/refs/main").write_text("1" * 40)
    (snapshot / "config.json").write_text(f'{{"vocab_size": 1{"0" * 400}, "hidden_size": 4}}')
    with refusal(UnreadableFile):
        find_place("org/name")
