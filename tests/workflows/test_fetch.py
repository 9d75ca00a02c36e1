"""Models by name, fetched from a Hub on the loopback address that counts what is asked of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.cli import fetch as command
from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.files.guard import Damaged, explain
from embgeo.io.places import ranges
from embgeo.io.places.cache import SnapshotFolder
from embgeo.io.places.names import HubName
from embgeo.io.places.source_record import SOURCE_RECORD
from tests.support.chat_model import DEAD, write_chat_model
from tests.support.command import call, spawn
from tests.support.documents import ROOT, agrees, blocks, commands
from tests.support.moments import drop_temporary, moments, put
from tests.support.refusals import refusal
from tests.support.sampling import each_value
from tests.support.toy_hub import COMMIT, ToyHub, serve

pytestmark = pytest.mark.loopback

NAME = "hf://org/toy"
LAYER = "model.layers.0.self_attn.out_proj.weight"
TENSOR_BYTES = 2 * 3000 * 16 * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat model in three shards, of which two hold what is analyzed."""
    folder = write_chat_model(tmp_path_factory.mktemp("model") / "toy")
    index = folder / "model.safetensors.index.json"
    weight_map = json.loads(index.read_text())["weight_map"] | {LAYER: "model-00003.safetensors"}
    index.write_text(json.dumps({"weight_map": weight_map}))
    save_file({LAYER: np.ones((500, 500), np.float32)}, folder / "model-00003.safetensors")
    return folder


@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import close_session

    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with serve(model) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        yield served
        close_session()


def refused(name: str = NAME, **options: object) -> str:
    with refusal() as caught:
        embgeo.fetch(name, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.usefixtures("hub")
def test_a_hub_that_no_connection_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    with pytest.raises(UnreadableFile, match=r"the server cannot be reached \(.*; see whether"):
        embgeo.load(NAME)


@pytest.mark.usefixtures("hub")
def test_a_certificate_that_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of the Hub and of web servers raise errors of their own about it."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", Mock(side_effect=error))
    said = r"is not accepted \(self-signed certificate\); .* in SSL_CERT_FILE$"
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"https://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(UnreadableFile, match=said):
            embgeo.load(NAME)
    missing = FileNotFoundError("https://host/W.npy")
    missing.__context__ = error
    assert explain(missing)[0].endswith("is not accepted (self-signed certificate)")


@pytest.mark.usefixtures("hub")
@pytest.mark.slow
def test_a_name_gives_what_the_folder_gives(model: Path) -> None:
    near, far = embgeo.load(model), embgeo.load(NAME)
    assert np.array_equal(np.asarray(near.data), np.asarray(far.data))
    assert near.output is not None
    assert far.output is not None
    assert np.array_equal(np.asarray(near.output.data), np.asarray(far.output.data))
    assert near.tokens == far.tokens
    assert near.special == far.special
    assert (near.tied_as_configured, far.tied_as_configured) == (True, True)
    assert far.name == "toy"
    assert far.origin.path == NAME
    assert COMMIT[:12] in " ".join(far.origin.notes)


def test_the_second_time_nothing_is_asked(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    embgeo.load(NAME)
    hub.requests.clear()
    for name in (NAME, "org/toy", f"{NAME}@main", f"{NAME}@{COMMIT}", Path(NAME)):
        assert embgeo.load(name).name.startswith("toy")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert embgeo.load(NAME).n == 3000
    assert not hub.requests


def test_hidden_states_by_name(hub: ToyHub, model: Path, tmp_path: Path) -> None:
    """Their ranges are fetched once, of an array of any number of axes."""
    states = np.random.default_rng(0).standard_normal((4, 5000, 16)).astype(np.float32)
    np.save(tmp_path / "states.npy", states)
    hub.files["states.npy"] = (tmp_path / "states.npy").read_bytes()
    for _ in range(2):
        matrix = embgeo.load(model, hidden=f"{NAME}/states.npy", hash_file=False)
        assert matrix.hidden is not None
        np.testing.assert_array_equal(matrix.hidden.data, states.reshape(-1, 16))
        said = "the 4×5,000×16 hidden states are read as 20,000 rows"
        assert said in matrix.origin.notes
        assert hub.sent < 1.1 * states.nbytes
        assert not hub.asked("safetensors")
        hub.requests, hub.sent = [], 0
    with refusal():
        embgeo.load(model, hidden=f"{NAME}/config.json")


def flip(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def change_record(folder: Path) -> None:
    (folder / "source.json").write_text("{}")


@each_value
@pytest.mark.parametrize(
    "change",
    [
        flip,
        change_record,
        lambda folder: (folder / "source.json").unlink(),
        lambda folder: (folder / "config.json").write_text("{}"),
        lambda folder: (folder / "added_tokens.json").write_text("{}"),
        lambda folder: (folder / "config.json").unlink(),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.usefixtures("hub")
def test_a_cached_folder_that_was_changed_is_not_believed(
    change: Callable[[Path], object], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = embgeo.fetch(NAME, whole=whole).folder
    change(folder)
    for offline in ("0", "1"):
        monkeypatch.setenv("HF_HUB_OFFLINE", offline)
        with refusal(UnreadableFile):
            embgeo.fetch(NAME, whole=whole)
        assert embgeo.load(NAME).n == 3000  # of the kept parts, not of the folder


def flip_part(own: Path) -> None:
    path = max((own / "parts").rglob("*-*"), key=lambda file: file.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "change",
    [
        flip_part,
        lambda own: next(own.rglob("snapshots/*/config.json")).write_text("{}"),
        lambda own: next(own.rglob("snapshots/*/tokenizer.json")).unlink(),
        lambda own: next(own.rglob("listing.json")).write_text("{}"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_was_kept_and_changed_is_not_believed(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embgeo.load(NAME)
    change(tmp_path / "own")
    for offline in ("0", "1"):
        monkeypatch.setenv("HF_HUB_OFFLINE", offline)
        with refusal(UnreadableFile):
            embgeo.load(NAME)


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
def test_a_killed_fetch_leaves_no_model_or_a_whole_one(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every moment: offline nothing else is read, and the next fetch goes on."""
    (own := tmp_path / "own").mkdir()
    with moments(own) as states:
        embgeo.fetch(NAME)
    rows, whole = np.asarray(embgeo.load(model).data), 0
    assert len(states) > 5
    for at, left in enumerate(states):
        monkeypatch.setenv("EMBGEO_CACHE", str(put(left, tmp_path / str(at))))
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with contextlib.suppress(EmbgeoError):
            assert np.array_equal(np.asarray(embgeo.load(NAME).data), rows)
            whole += 1
        monkeypatch.delenv("HF_HUB_OFFLINE")
        assert embgeo.fetch(NAME).source.tensors
        assert np.array_equal(np.asarray(embgeo.load(NAME).data), rows)
    assert 0 < whole < len(states)


def test_no_more_is_fetched_than_is_read(hub: ToyHub) -> None:
    fetched = embgeo.fetch(NAME)
    small = sum(len(data) for name, data in hub.files.items() if not name.endswith(".safetensors"))
    assert hub.sent <= TENSOR_BYTES + small + 10**5
    assert not hub.asked("model-00003")
    assert (fetched.source.read, fetched.commit) == (TENSOR_BYTES, COMMIT)
    assert fetched.source.size == sum(len(hub.files[name]) for name in shards(hub))
    assert fetched.folder.joinpath("source.json").is_file()
    for tensor in fetched.source.tensors:
        there = hub.files[tensor.file][tensor.start : tensor.stop]
        assert there in (fetched.folder / "model.safetensors").read_bytes()


def shards(hub: ToyHub) -> list[str]:
    return [name for name in hub.files if name.endswith(".safetensors")]


def test_inspect_reads_headers_only(hub: ToyHub) -> None:
    found = embgeo.inspect(NAME)
    assert [one.role for one in found.tensors] == ["embedding", "output matrix"]
    small = sum(len(data) for name, data in hub.files.items() if not name.endswith(".safetensors"))
    assert hub.sent < small + 3 * 16_384
    assert "2 of 3 files are listed" in " ".join(found.notes)


@pytest.mark.skipif(os.name != "posix", reason="a folder replaces no other one")
@pytest.mark.usefixtures("hub")
def test_a_killed_fetch_leaves_an_empty_folder_empty(tmp_path: Path) -> None:
    names = {*embgeo.fetch(NAME).files}
    (out := tmp_path / "home" / "out").mkdir(parents=True)
    with moments(out.parent) as states:
        embgeo.fetch(NAME, out)
    for left in map(drop_temporary, states):
        found = {name.partition("/")[2] for name in left if name.startswith("out/")}
        assert found in (set(), names)


@pytest.mark.slow
def test_a_copy_is_a_model_folder(hub: ToyHub, tmp_path: Path) -> None:
    fetched = embgeo.fetch(NAME, tmp_path / "reduced")
    hub.requests.clear()
    outcome = embgeo.gate(fetched.folder, rules=["suspects.damaged == 0"])
    assert not outcome.passed
    assert SOURCE_RECORD.load(fetched.folder) == fetched.source
    assert embgeo.load(fetched.folder).n == 3000
    refused(out=tmp_path / "reduced")
    assert not hub.requests


def test_whole_files_have_the_stated_sha256(hub: ToyHub, model: Path) -> None:
    fetched = embgeo.fetch(NAME, whole=True)
    assert fetched.source.whole
    for name in shards(hub):
        assert (fetched.folder / name).read_bytes() == (model / name).read_bytes()


FAULTS = {
    "ignore ranges": "the server ignores ranges (status 200)",
    "wrong range": "in place of bytes 0-",
    "cut": "ends early, 4 times",
    "moved": "has another commit than a moment ago",
    "gated": "the model is gated (status 403); accept the license at",
    "no revision": "there is no such revision (status 404)",
    "missing": "a file of it was not found",
    "no repository": "there is no such model on the Hub (status 404); to see a",
    "broken": "cannot be read (status 500)",
    "no commit": "the Hub names no commit",
    "no files": "there is no file or folder ''",
    "loop": "cannot be read (TooManyRedirects",
    "nowhere": "cannot be read (UnsupportedProtocol",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_misbehaves_is_refused_in_one_line(hub: ToyHub, fault: str) -> None:
    hub.faults.add(fault)
    refused()
    assert hub.sent < 2 * 10**6
    # What is left behind is not a model folder, and a later call goes on from it.
    hub.faults.clear()
    assert embgeo.load(NAME).n == 3000


def test_what_a_server_warns_of_is_not_printed(hub: ToyHub) -> None:
    hub.faults.add("no repository")
    said = spawn("inspect", NAME).stderr
    assert (said.count("\n"), "\x1b" in said) == (1, False)


@pytest.mark.parametrize("fault", ["cut once", "busy once"])
def test_what_breaks_once_is_asked_for_again(hub: ToyHub, fault: str) -> None:
    hub.faults.add(fault)
    matrix = embgeo.load(NAME)
    assert not np.asarray(matrix.data)[list(DEAD)].max() > 1e-10
    assert not hub.faults


def test_only_what_is_left_is_fetched_after_an_interruption(
    hub: ToyHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "PIECE_BYTES", 40_000)
    monkeypatch.setattr(ranges, "WORKERS", 1)
    hub.dead_from = 100_000
    refused()
    hub.dead_from = None
    hub.requests.clear()
    assert embgeo.load(NAME).n == 3000
    ranges_of_first = [headers["Range"] for *_, headers in hub.asked("GET.*00001-of")]
    assert ranges_of_first == ["bytes=120104-160103", "bytes=160104-192103"]


def test_links_out_of_a_snapshot_are_not_copied(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--toy/snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (tmp_path / "secret").write_text("{}")
    (snapshot / "config.json").symlink_to(tmp_path / "secret")
    (snapshot / "model.safetensors").write_bytes(b"x")
    assert list(SnapshotFolder(HubName("org/toy"), snapshot).files) == ["model.safetensors"]


def test_a_token_stays_with_the_hub(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.faults.add("redirect")
    embgeo.load(NAME)
    near = hub.asked("GET /org/toy/resolve/.*00001")
    far = hub.asked("GET /model-00001")
    assert far
    assert {headers.get("authorization") for *_, headers in near} == {"Bearer hf_secret"}
    assert not any("secret" in str(headers) for *_, headers in far)


def test_a_redirect_within_the_hub_keeps_the_token(
    hub: ToyHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.faults.add("redirect here")
    assert embgeo.load(NAME).n == 3000
    assert {headers.get("authorization") for *_, headers in hub.asked("GET.*safetensors")} == {
        "Bearer hf_secret"
    }


def test_encryption_is_not_given_up() -> None:
    with refusal(Damaged):
        ranges.require_encryption("https://a/x", ["https://a/x", "http://a/y"])
    ranges.require_encryption("https://a/x", ["https://a/x", "https://b/y"])
    ranges.require_encryption("http://a/x", ["http://a/x"])


def test_pieces_of_two_versions_are_not_put_together(
    hub: ToyHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "PIECE_BYTES", 40_000)
    hub.faults.add("other tags")
    refused()


def test_a_file_that_is_not_as_stated_is_removed(hub: ToyHub) -> None:
    hub.faults.add("other bytes")
    refused(whole=True)
    hub.faults.clear()
    assert embgeo.fetch(NAME, whole=True).source.whole


def test_a_folder_of_a_repository_is_a_model(hub: ToyHub) -> None:
    hub.files |= {f"sub/{name}": data for name, data in hub.files.items()}
    assert embgeo.load(f"{NAME}/sub").n == 3000
    first = f"sub/{shards(hub)[0]}"
    assert embgeo.load(f"{NAME}/{first}", output="none").n == 3000
    refused(f"{NAME}/other")


def test_a_large_side_file_is_refused(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.files["config.json"] = b" " * 101
    monkeypatch.setattr(ranges, "JSON_BYTES", 100)
    refused()


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refused()


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_an_index_cannot_lead_out_of_the_model(hub: ToyHub, shard: str) -> None:
    weight_map = {"model.embed_tokens.weight": shard}
    hub.files["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    hub.files["../x.safetensors"] = hub.files["a/b.safetensors"] = b"x" * 100
    refused()
    assert not hub.asked(r"passwd|x\.safetensors|b\.safetensors")


@pytest.mark.parametrize(
    "header",
    [
        2**40,
        10**6,
        {"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 999]}},
        {"w": {"dtype": "F32", "shape": [9, 9], "data_offsets": [0, 16]}},
        {"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [-4, 12]}},
    ],
)
def test_headers_that_lie_are_refused(hub: ToyHub, header: object) -> None:
    text = json.dumps(header).encode() if isinstance(header, dict) else b"{}"
    length = header if isinstance(header, int) else len(text)
    for name in list(hub.files):
        if "safetensors" in name:
            del hub.files[name]
    hub.files["model.safetensors"] = length.to_bytes(8, "little") + text + bytes(64)
    refused()


def test_sizes_are_checked_before_tensors(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(max_download="0.1MB")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    refused()
    assert not hub.asked("Range: bytes=1")
    refused(max_download="much")


def test_offline_says_so(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused()
    assert not hub.requests


def test_the_network_is_used_after_a_scheme_only(hub: ToyHub) -> None:
    refused("org/toy")
    with refusal():
        embgeo.load("org/toy")
    with refusal():
        embgeo.load("steps/model.safetensors")
    assert not hub.requests


def test_a_moved_branch_is_seen_on_request(hub: ToyHub) -> None:
    embgeo.fetch(NAME)
    hub.requests.clear()
    embgeo.fetch(NAME)
    assert not hub.requests
    embgeo.fetch(NAME, refresh=True)
    assert len(hub.asked("/api/models")) == 1
    assert not hub.asked("resolve")


@pytest.mark.slow
def test_two_revisions_are_compared(hub: ToyHub) -> None:
    comparison = embgeo.diff(NAME, f"{NAME}@v1", sections="cosine", reference=False)
    assert [member.name for member in comparison.members] == ["toy", "toy@v1"]
    assert [member.given for member in comparison.members] == [NAME, f"{NAME}@v1"]
    assert len(hub.asked("00001.*safetensors")) == 2  # header and tensor, once: one commit


@pytest.mark.slow
def test_from_a_name_to_a_repaired_model(hub: ToyHub, tmp_path: Path) -> None:
    """The gate fails and names the rows, the repair needs no further byte, the gate passes."""
    new = tmp_path / "new"
    gate = call("gate", NAME, "--preset", "finetune-ready")
    assert gate.exit_code == 1
    assert "is 79, has to be at most 0: row 2,950 <|im_start|>" in gate.output
    hub.requests.clear()
    repaired = call("repair", NAME, "-o", str(new), "--quiet")
    assert (repaired.exit_code, repaired.output) == (0, "")
    assert call("gate", str(new), "--preset", "finetune-ready").exit_code == 0
    assert call("gate", NAME, "--preset", "finetune-ready").output == gate.output
    assert not hub.requests
    record = json.loads((new / "embgeo-repair.json").read_text())
    assert record["source"] == NAME
    assert sum(len(side["rows"]) for side in record["sides"]) == 79


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
def test_the_page_runs(tmp_path: Path) -> None:
    page = ROOT / "docs/formats.md"
    with contextlib.chdir(tmp_path):
        for command in (one for block in blocks(page, "console") for one in commands(block)):
            seen = call(*shlex.split(command.line)[1:]).output
            assert agrees(command.output, seen), f"{command.line}\n{seen}"


@pytest.mark.slow
def test_a_file_of_a_web_server(hub: ToyHub) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp", reason="fsspec reads web servers with the package aiohttp")
    name = f"{hub.other}/model-00001-of-00002.safetensors"
    assert embgeo.load(name).n == 3000
    hub.faults.add("ignore ranges")
    name = f"{hub.other}/model-00002-of-00002.safetensors"
    refused(name)
    with pytest.raises(EmbgeoError):
        embgeo.load(name, tensor="lm_head.weight")


@pytest.mark.usefixtures("hub")
def test_the_example_of_the_help_works(tmp_path: Path) -> None:
    (line,) = re.findall(r"Example: embgeo (.*)", command.fetch.__doc__ or "")
    with contextlib.chdir(tmp_path):
        done = call(*shlex.split(line.replace("org/name", "org/toy")))
    assert done.exit_code == 0, done.output
    assert np.array_equal(embgeo.load(tmp_path / "reduced").data, embgeo.load(NAME).data)
