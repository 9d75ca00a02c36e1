"""Parts of remote files in each format, of a store in memory: no network is used."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.core.source import Source
from embgeo.files.guard import Damaged
from embgeo.io.places import kept, ranges
from embgeo.io.places.needed import find_names
from embgeo.io.places.ranges import RemoteFolder
from embgeo.io.places.stores import StoreFolder
from tests.support.command import call
from tests.support.framework_files import gguf_bytes, gguf_tensor, needs
from tests.support.refusals import refusal
from tests.support.toy_hub import answer_with

fsspec = pytest.importorskip("fsspec")

G = np.random.default_rng(0)
W, U = G.standard_normal((2, 300, 8)).astype(np.float32)
NORM = np.ones(8, np.float32)
LAYER = G.standard_normal((400, 400)).astype(np.float32)
TENSORS = {
    "model.embed_tokens.weight": W,
    "lm_head.weight": U,
    "model.norm.weight": NORM,
    "model.layers.0.mlp.weight": LAYER,
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every range that was read."""
    sizes: list[int] = []
    plain = StoreFolder.stream

    def count(self: RemoteFolder, file: str, start: int, stop: int) -> Iterator[bytes]:
        sizes.append(stop - start)
        return plain(self, file, start, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(StoreFolder, "stream", count)
    return sizes


def refused(name: str, **options: Any) -> None:
    with refusal():
        embgeo.load(name, **options)


def check(name: str) -> embgeo.Matrix:
    matrix = embgeo.load(name)
    assert np.array_equal(np.asarray(matrix.data), W)
    assert matrix.output is not None
    assert np.array_equal(np.asarray(matrix.output.data), U)
    return matrix


def test_safetensors(store: Any, received: list[int]) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    matrix = check("memory://run")
    assert sum(received) < 2 * W.nbytes + ranges.PIECE_BYTES / 1000
    assert matrix.final_norm.name == "model.norm"
    assert (matrix.name, matrix.origin.path) == ("run", "memory://run")
    received.clear()
    check("memory://run")
    assert not received
    assert check("memory://run/model.safetensors").name == "model.safetensors"


def test_types_stay(store: Any) -> None:
    torch = needs("torch")
    from safetensors.torch import save as save_torch

    rows = torch.from_numpy(W)
    for kind in ("bfloat16", "float16", "float8_e4m3fn"):
        stored = save_torch({"embed_tokens.weight": rows.to(getattr(torch, kind))})
        store.pipe(f"/{kind}/model.safetensors", stored)
        matrix = embgeo.load(f"memory://{kind}")
        assert matrix.origin.dtype == kind
        expected = rows.to(getattr(torch, kind)).to(torch.float32).numpy()
        assert np.array_equal(np.asarray(matrix.data).astype(np.float32), expected)


def test_of_a_quantized_matrix_all_parts_are_fetched(store: Any, received: list[int]) -> None:
    codes = (W * 20).astype(np.int8)
    scale = np.linspace(0.5, 2, 300, dtype=np.float32)[:, None]
    name = "model.embed_tokens.weight"
    held = {name: codes, f"{name}_scale": scale}
    shards = {"a": held, "b": {"lm_head.weight": U}, "c": {"model.layers.0.mlp.weight": LAYER}}
    for shard, tensors in shards.items():
        store.pipe(f"/run/{shard}.safetensors", save(tensors))
    weight_map = {one: f"{shard}.safetensors" for shard, some in shards.items() for one in some}
    index = json.dumps({"weight_map": weight_map}).encode()
    store.pipe("/run/model.safetensors.index.json", index)
    assert embgeo.inspect("memory://run").reason == "name matches a token embedding"
    matrix = embgeo.load("memory://run")
    assert np.array_equal(np.asarray(matrix.data), codes * scale)
    assert matrix.origin.parts == (name, f"{name}_scale")
    assert sum(received) < 2 * W.nbytes + 30_000


def test_a_changed_file_is_fetched_again(store: Any) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    check("memory://run")
    store.pipe("/run/model.safetensors", save({"embed_tokens.weight": U, "x": W[:9]}))
    assert np.array_equal(np.asarray(embgeo.load("memory://run").data), U)


def test_shards_that_are_not_needed_are_not_read(store: Any, received: list[int]) -> None:
    names = {"model.embed_tokens.weight": "a", "lm_head.weight": "c", "model.norm.weight": "c"}
    names["model.layers.0.mlp.weight"] = "b"
    for shard in "abc":
        held = {name: TENSORS[name] for name, of in names.items() if of == shard}
        store.pipe(f"/run/{shard}.safetensors", save(held))
    weight_map = {name: f"{shard}.safetensors" for name, shard in names.items()}
    index = json.dumps({"weight_map": weight_map})
    store.pipe("/run/model.safetensors.index.json", index.encode())
    matrix = check("memory://run")
    assert matrix.final_norm.name == "model.norm"
    assert sum(received) < 2 * W.nbytes + 20_000
    # One that the user names is found in its shard.
    named = embgeo.load("memory://run", tensor="mlp.weight", output="none")
    assert named.n == 400


def test_other_files_come_whole_after_their_size_was_said(
    store: Any, received: list[int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store.pipe("/run/vectors.txt", b"a 1 2\nb 3 4\n" + b"c 1 2\n" * 4000)
    np.savez(tmp_path / "w.npz", W=W)
    store.pipe("/zipped/w.npz", (tmp_path / "w.npz").read_bytes())
    tokens = embgeo.load("memory://run/vectors.txt").tokens
    assert tokens is not None
    assert tokens[:3] == ("a", "b", "c")
    assert capsys.readouterr().err == "memory://run/vectors.txt: fetching 0.02 MB\n"
    assert embgeo.load("memory://run").tokens == tokens
    for name in ("memory://zipped/w.npz", "memory://zipped"):
        assert np.array_equal(embgeo.load(name).data, W)
    assert [one.name for one in embgeo.inspect("memory://zipped/w.npz").tensors] == ["W"]
    assert max(received) <= kept.LEAST_BYTES  # by ranges only the first bytes
    store.pipe("/large/vectors.txt", b"a 1 2\n" * 4000)
    refused("memory://large/vectors.txt", max_download="0.001MB")
    store.pipe("/none/README.md", b"# none")
    refused("memory://none")
    refused("memory://other")


@pytest.mark.parametrize("new", [True, False])
def test_of_torch_checkpoints_ranges_come(new: bool, store: Any, received: list[int]) -> None:
    torch = needs("torch")
    held = io.BytesIO()
    state = {name: torch.from_numpy(value) for name, value in TENSORS.items()}
    state["model.layers.1.mlp.weight"] = torch.zeros(10**6)
    torch.save(state, held, _use_new_zipfile_serialization=new)
    store.pipe("/run/pytorch_model.bin", held.getvalue())
    assert check("memory://run").final_norm.name == "model.norm"
    assert sum(received) < 10**6
    received.clear()
    check("memory://run")
    assert not received


def test_hidden_states_may_lie_elsewhere(store: Any) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    store.pipe("/states/hidden.safetensors", save({"hidden": U}))
    matrix = embgeo.load("memory://run", hidden="memory://states/hidden.safetensors")
    assert matrix.hidden is not None
    assert np.array_equal(np.asarray(matrix.hidden.data), U)


def test_what_is_compared_only_counts_as_fetched(store: Any, received: list[int]) -> None:
    """The stored output of a tied model is compared with the embedding."""
    held = {"model.embed_tokens.weight": W, "lm_head.weight": W}
    store.pipe("/run/model.safetensors", save(held))
    store.pipe("/run/config.json", b'{"tie_word_embeddings": true, "vocab_size": 300}')
    refused("memory://run", max_download="0.012MB")
    assert sum(received) < 2**15  # the header, and small files
    assert embgeo.load("memory://run", max_download="0.03MB").tied_as_configured


def test_a_name_and_the_folder_fetched_of_it_have_one_digest(store: Any, tmp_path: Path) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    named = embgeo.load("memory://run")
    embgeo.fetch("memory://run", tmp_path / "reduced")
    assert named.origin.sha256 == embgeo.load(tmp_path / "reduced").origin.sha256
    content = (tmp_path / "reduced/model.safetensors").read_bytes()
    assert named.origin.sha256 == hashlib.sha256(content).hexdigest()


def test_of_a_quantized_gguf_the_header_and_one_tensor_are_read(
    store: Any, received: list[int]
) -> None:
    pytest.importorskip("gguf")
    blocks = np.zeros((300, 34), np.uint8)
    blocks[:, 1] = 0x3C  # a scale of 1
    blocks[:, 2:] = np.arange(32)
    data = blocks.tobytes()
    start = -(-len(data) // 32) * 32
    own = gguf_tensor("token_embd.weight", [32, 300], 8, 0)
    large = gguf_tensor("blk.0.ffn_up.weight", [1024, 1024], 0, start)
    content = gguf_bytes({}, [own, large], data.ljust(start, b"\0") + bytes(4 * 2**20))
    store.pipe("/run/model.gguf", content)
    matrix = embgeo.load("memory://run")
    assert np.array_equal(
        np.asarray(matrix.data), np.tile(np.arange(32, dtype=np.float32), (300, 1))
    )
    assert sum(received) < 2**20 + 2**16 < len(content)


def test_several_files_are_a_question(store: Any) -> None:
    store.pipe("/two/a.safetensors", save(TENSORS))
    store.pipe("/two/b.safetensors", save(TENSORS))
    refused("memory://two")
    refused("memory://two")


def test_slices_and_shards_are_known_by_their_siblings(store: Any) -> None:
    """A slice is refused whether it or its folder is named; files of a split model are joined."""
    for rank in range(2):
        store.pipe(f"/ranks/model_rank_{rank}.safetensors", save(TENSORS))
        half = {f"{rank}.weight": W[:4], **({"embed_tokens.weight": W} if rank else {})}
        store.pipe(f"/shards/model-0000{rank + 1}-of-00002.safetensors", save(half))
    for name in ("memory://ranks", "memory://ranks/model_rank_0.safetensors"):
        refused(name)
    assert embgeo.load("memory://shards").n == len(W)
    assert embgeo.load("memory://shards/model-00001-of-00002.safetensors").n == len(W)


def test_names_of_what_is_needed() -> None:
    """Projections inside of layers are not output matrices, whatever they are called."""
    stack = [f"model.layers.{k}.self_attn.out_proj.weight" for k in range(3)]
    known = ["model.embed_tokens.weight", "model.embed_positions.weight", *stack]
    assert find_names(known, Source()) == {"model.embed_tokens.weight"}
    head = ["lm_head.0.weight", "model.norm.weight"]
    assert find_names([*known, *head], Source()) == {"model.embed_tokens.weight", *head}
    assert find_names([*known, *head], Source(output="none")) == {known[0], head[1]}
    assert find_names(known, Source(tensor="1.self_attn.out_proj.weight")) == {stack[1]}
    assert find_names(["layer.a", "layer.b"], Source()) == set()


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_a_dataset_of_many_files_is_fetched_whole(store: Any, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for place, rows in enumerate((W[:100], W[100:])):
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 8)
        held = io.BytesIO()
        pq.write_table(pa.table({"embedding": column}), held)
        store.pipe(f"/data/part-{place}.parquet", held.getvalue())
    fetched = embgeo.fetch("memory://data", tmp_path / "data")
    assert len(fetched.source.files) == 2
    assert np.array_equal(np.asarray(embgeo.load(fetched.folder).data), W)


def test_an_index_that_puts_a_tensor_elsewhere_is_refused(store: Any) -> None:
    store.pipe("/run/a.safetensors", save({"x": LAYER}))
    weight_map = {"model.embed_tokens.weight": "a.safetensors", "x": "b.safetensors"}
    store.pipe("/run/model.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())
    refused("memory://run")
    with refusal():
        embgeo.fetch("memory://run", whole=True)
    store.pipe("/run/b.safetensors", save({"x": LAYER}))
    refused("memory://run")


def test_names_that_leave_the_folder_are_not_listed(store: Any) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    store.pipe("/run/..\\..\\config.json", b"{}")
    assert list(StoreFolder("memory://run").files) == ["model.safetensors"]


def test_a_large_side_file_is_refused(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    store.pipe("/run/config.json", b" " * 101)
    monkeypatch.setattr(ranges, "JSON_BYTES", 100)
    refused("memory://run")


def test_what_a_store_refuses_is_said_in_one_line(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pipe("/run/model.safetensors", b"")
    refused("memory://run")
    store.pipe("/run/model.safetensors", save(TENSORS))
    for error in (
        PermissionError(13, "no"),
        ImportError("no module s3fs"),
        ConnectionError("reset\nby peer"),
        ValueError(),
    ):

        def fail(*_: Any, _error: Exception = error, **__: Any) -> None:
            raise _error

        monkeypatch.setattr(type(store), "info", fail)
        refused("memory://run")


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    refused("memory://run")


@pytest.mark.parametrize(
    "answer",
    [b"too much", b""],
)
def test_ranges_are_as_long_as_asked_for(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    folder: Any = SimpleNamespace(
        files={"f": ranges.RemoteFile(4)}, stream=lambda *_: iter([answer])
    )
    with refusal(Damaged):
        ranges.read_range(folder, "f", 0, 3)
    with refusal(Damaged):
        ranges.read_range(folder, "f", 0, 5)


def test_a_connection_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute at less than 1 kB a second."""
    for size, seconds, ends in ((1000, 59.0, True), (1000, 61.0, False), (100_000, 61.0, True)):
        clock = iter([0.0, seconds])
        monkeypatch.setattr(ranges.time, "monotonic", lambda clock=clock: next(clock))
        folder: Any = SimpleNamespace(
            files={"f": ranges.RemoteFile(size)}, stream=lambda *_, size=size: iter([bytes(size)])
        )
        if ends:
            assert len(ranges.read_range(folder, "f", 0, size)) == size
        else:
            with refusal(Damaged):
                ranges.read_range(folder, "f", 0, size)


class Web:
    """A file on a web server, of which only its size, tag and date are known."""

    def __init__(self) -> None:
        self.content = bytes(100)
        self.stated: dict[str, str] = {}
        self.error: Exception | None = None
        self.status, self.range, self.at_once, self.final = 206, "", 7, ""
        self.asked: set[str] = set()
        self.loop = pytest.importorskip("fsspec.asyn").get_loop()

    def connect(self, url: str, **__: Any) -> tuple[Any, str]:
        return self, url

    def info(self, url: str) -> dict[str, Any]:
        self.asked.add(url)
        if self.error is not None:
            raise FileNotFoundError("u") from self.error
        return {"name": url, "type": "file", "size": len(self.content), **self.stated}

    def open(self, url: str, *_: Any, headers: dict[str, str], **__: Any) -> Any:
        self.asked.add(url)
        start, stop = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        opened: Any = io.BytesIO(self.content[start : stop + 1])

        async def read(_: int) -> bytes:
            return bytes(opened.read1(self.at_once))

        stated = self.range or f"bytes {start}-{stop}/{len(self.content)}"
        opened.r = SimpleNamespace(
            url=self.final or url,
            history=(),
            status=self.status,
            headers={"Content-Range": stated},
            content=SimpleNamespace(read=read),
        )
        return opened


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web()
    monkeypatch.setattr("fsspec.core.url_to_fs", web.connect)
    return web


@pytest.mark.parametrize("name", ["ETag", "Last-Modified", "size"])
def test_a_file_that_changes_between_two_ranges_is_refused(
    name: str, web: Web, tmp_path: Path
) -> None:
    web.stated = {} if name == "size" else {name: "1"}
    folder = StoreFolder("http://host/w.bin")
    assert b"".join(folder.stream("w.bin", 10, 20)) == bytes(10)
    folder.save("w.bin", tmp_path / "w.bin")
    if name == "size":
        web.content += b"."
    else:
        web.stated = {name: "2"}
    with refusal((EmbgeoError, Damaged)):
        b"".join(folder.stream("w.bin", 20, 30))
    with refusal((EmbgeoError, Damaged)):
        folder.save("w.bin", tmp_path / "w.bin")
    assert StoreFolder("http://host/w.bin").commit != folder.commit


def test_a_slow_server_is_given_up_before_its_answer_ends(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte a second keeps every timeout of a connection."""
    web.content, web.at_once = bytes(3600), 1
    seconds = iter(range(3600))
    monkeypatch.setattr(ranges, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    folder = StoreFolder("http://host/w.bin")
    with refusal(Damaged):
        ranges.read_range(folder, "w.bin", 0, 3600)
    assert next(seconds) == 62


@pytest.mark.loopback
@pytest.mark.parametrize("trickling", ["HEAD", "GET", "chunk"])
def test_a_server_whose_headers_trickle_is_given_up(
    trickling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte of the headers, or of the size of a chunk, comes in time; the last never does."""
    ended = threading.Event()

    class Trickling(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            if self.command == "GET" and trickling == "chunk":
                self.wfile.write(b"Transfer-Encoding: chunked\r\n\r\n0")
            else:
                self.wfile.write(b"Content-Length: 9\r\n")
            with suppress(OSError):  # the client is gone
                while (self.command == "GET" or trickling == "HEAD") and not ended.wait(0.01):
                    self.wfile.write(b"0")
                self.wfile.write(b"\r\n")

        do_HEAD = do_GET

    monkeypatch.setattr(ranges, "PATIENCE", 0.2)
    with answer_with(Trickling) as address, refusal():
        try:
            folder = StoreFolder(f"{address}/w.bin")
            assert trickling != "HEAD"
            ranges.read_range(folder, "w.bin", 0, 9)
        finally:
            ended.set()


def test_an_answer_of_a_web_server_is_the_requested_range(web: Web) -> None:
    folder, web.content = StoreFolder("http://host/w.bin"), bytes(range(100))
    for web.status, web.range in ((200, ""), (206, "bytes 0-9/100"), (206, "bytes 10-19/101")):
        with refusal(Damaged):
            b"".join(folder.stream("w.bin", 10, 20))
    web.status, web.range, web.at_once = 200, "none", 7
    assert b"".join(folder.stream("w.bin", 0, 20)) == bytes(range(20))


def test_an_address_with_encryption_leads_to_none_without(web: Web) -> None:
    folder, web.final = StoreFolder("https://host/w.bin"), "http://host/w.bin"
    with refusal(Damaged):
        b"".join(folder.stream("w.bin", 0, 20))


def test_what_a_server_does_is_not_called_a_missing_file(web: Web) -> None:
    errors = pytest.importorskip("aiohttp.client_exceptions")
    asked: Any = SimpleNamespace(real_url="u")
    for error in (
        errors.ClientResponseError(asked, (), status=404, message="Not Found"),
        errors.ClientResponseError(asked, (), status=500, message="Internal Server Error"),
        errors.TooManyRedirects(asked, ()),
        errors.ServerDisconnectedError(),
        errors.InvalidURL("file:///etc/passwd"),
        TimeoutError(),
        UnicodeError("label too long"),  # of a redirect
    ):
        web.error = error
        with refusal():
            StoreFolder("http://host/w.bin")


def test_no_password_or_signature_of_a_url_is_shown(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports and messages are for others, whom a signed URL would let in."""
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    held = io.BytesIO()
    np.save(held, np.eye(40, 8, dtype="f4"))
    web.content, url = held.getvalue(), "https://me:PASSWORD@host/w.npy?X-Signature=SECRET"
    # A report has the command.
    monkeypatch.setattr("sys.argv", ["embgeo", "analyze", url, f"--tokens={url}"])
    assert call("analyze", url).exit_code == 0
    assert web.asked == {url}
    texts = []
    asked: Any = SimpleNamespace(real_url=url)
    for number, status in enumerate((403, 500)):
        web.status = status
        refused = call("inspect", f"{url}{number}")
        assert refused.exit_code == 2
        assert "https://host/w.npy?" in refused.stderr
        texts.append(refused.stderr)
        web.error = pytest.importorskip("aiohttp").ClientResponseError(asked, (), status=status)
    texts += capsys.readouterr()
    for path in tmp_path.rglob("*"):
        texts += [path.name, path.read_bytes().decode("latin-1") if path.is_file() else ""]
    assert not [text for text in texts if "SECRET" in text or "PASSWORD" in text]
