"""``embgeo.repair``: the rows, every other byte, the folder, refusals, and what a crash leaves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import AmbiguousTensor, BadOption, UnreadableFile
from embgeo.row_repair.methods import METHODS
from embgeo.workflows import repair as repairing
from tests.support.chat_model import DEAD as CHAT_DEAD
from tests.support.chat_model import write_chat_model
from tests.support.command import call
from tests.support.moments import drop_temporary, moments
from tests.support.refusals import refusal
from tests.support.safetensors_model import (
    DEAD,
    DTYPES,
    EMBEDDING,
    OUTPUT,
    D,
    N,
    find_tensor,
    make_rows,
    write_model,
)
from tests.support.sampling import each_value

WEIGHTS, RECORD = "model.safetensors", "embgeo-repair.json"
COMMIT = "0123" * 10
ROOT = Path(__file__).parents[2]


def places(done) -> dict[str, list[int]]:
    return {side.side: [one.row for one in side.rows] for side in done.record.sides}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def healthy_output(dtype: str) -> np.ndarray:
    U = np.random.default_rng(1).standard_normal((N, D)).astype(np.float32)
    return U.astype(make_rows(dtype).dtype)


@each_value
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_other_byte_is_the_same(dtype: str, tied: bool, tmp_path: Path) -> None:
    W = make_rows(dtype)
    tensors = {EMBEDDING: W} if tied else {EMBEDDING: W, OUTPUT: healthy_output(dtype)}
    model = write_model(tmp_path / "old", tensors, tied)
    before = bytes_of(model)
    done = embgeo.repair(model, tmp_path / "new")
    assert bytes_of(model) == before
    assert places(done) == {"input": list(DEAD)}
    assert done.left == ()

    old, new = before[WEIGHTS], (tmp_path / "new" / WEIGHTS).read_bytes()
    start, stop = find_tensor(model / WEIGHTS, EMBEDDING)
    width = (stop - start) // N
    changed = {at for at in range(len(old)) if old[at] != new[at]}
    allowed = {at for row in DEAD for at in range(start + row * width, start + (row + 1) * width)}
    assert len(old) == len(new)
    assert changed
    assert changed <= allowed

    repaired = embgeo.load(tmp_path / "new").data.astype(np.float64)
    assert len(np.unique(repaired, axis=0)) == N


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tensors = {EMBEDDING: make_rows("bfloat16"), OUTPUT: healthy_output("bfloat16")}
    return write_model(tmp_path / "old", tensors, False)


def test_a_tied_model_that_is_stored_twice_stays_tied(tmp_path: Path) -> None:
    W = make_rows("float32")
    model = write_model(tmp_path / "old", {EMBEDDING: W, OUTPUT: W}, True)
    done = embgeo.repair(model, tmp_path / "new")
    assert done.record.files[0].tensors == (EMBEDDING, OUTPUT)
    raw = (tmp_path / "new" / WEIGHTS).read_bytes()
    one, two = (slice(*find_tensor(model / WEIGHTS, name)) for name in (EMBEDDING, OUTPUT))
    assert raw[one] == raw[two]
    assert raw[one] != (model / WEIGHTS).read_bytes()[one]


def test_only_the_shard_with_the_matrix_is_written(tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "old")
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text("{}")
    (model / ".git").mkdir()
    (model / ".git" / "HEAD").write_text("")
    embgeo.repair(model, tmp_path / "new")
    new = tmp_path / "new"
    names = {str(p.relative_to(model)) for p in model.rglob("*") if p.is_file()} - {".git/HEAD"}
    assert set(bytes_of(new)) == {*names, RECORD}
    fresh = {name for name in names if not (new / name).samefile(model / name)}
    assert fresh == {"model-00001-of-00002.safetensors"}


@pytest.mark.slow
def test_the_gate_passes_afterwards(tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "old")
    assert not embgeo.gate(model, preset="finetune-ready").passed
    embgeo.repair(model, tmp_path / "new")
    outcome = embgeo.gate(tmp_path / "new", preset="finetune-ready")
    assert {check.state for check in outcome.checks} == {"passed"}


def test_the_record(model: Path, tmp_path: Path) -> None:
    embgeo.repair(model, tmp_path / "new")
    said = json.loads((tmp_path / "new" / RECORD).read_text())
    for file, moment in ((model / WEIGHTS, "before"), (tmp_path / "new" / WEIGHTS, "after")):
        raw = file.read_bytes()
        assert said["files"][0][f"sha256_{moment}"] == hashlib.sha256(raw).hexdigest()
        start, stop = find_tensor(file, EMBEDDING)
        assert said["sides"][0][f"sha256_{moment}"] == hashlib.sha256(raw[start:stop]).hexdigest()
    rows = said["sides"][0]["rows"]
    assert [(one["row"], one["reason"]) for one in rows] == [
        (5, "zero"),
        (17, "nonfinite"),
        (41, "damaged"),
    ]
    assert rows[1]["norm_before"] is None


def test_named_rows(model: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.txt"
    rows.write_text("7\n3\n7\n")
    both = {"input": [3, 7], "output": [3, 7]}
    assert places(embgeo.repair(model, rows=rows, dry_run=True)) == both
    chat = write_chat_model(tmp_path / "chat")
    rows.write_text("<|im_start|>\nw5\n")
    assert places(embgeo.repair(chat, rows=str(rows), dry_run=True))["input"] == [5, 2950]
    assert places(embgeo.repair(chat, dry_run=True)) == {"input": list(CHAT_DEAD)}


def test_only_some_reasons(model: Path) -> None:
    assert places(embgeo.repair(model, only="zero", dry_run=True)) == {"input": [5]}
    some = embgeo.repair(model, only=["zero", "damaged"], dry_run=True)
    assert places(some) == {"input": [5, 41]}
    assert embgeo.repair(model, only="mean", dry_run=True).record is None


def test_both_sides_of_an_untied_model_at_once(tmp_path: Path) -> None:
    U = healthy_output("float32")
    U[9], U[30] = 0.0, U[31]
    tensors = {EMBEDDING: make_rows("float32"), OUTPUT: U}
    done = embgeo.repair(write_model(tmp_path / "old", tensors, False), tmp_path / "new")
    assert places(done) == {"input": list(DEAD), "output": [9, 31]}
    assert done.left == ()
    assert done.record.files[0].tensors == (EMBEDDING, OUTPUT)


@pytest.mark.parametrize("method", METHODS)
def test_new_rows_are_not_alike_and_pass(method: str, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    W = (random.standard_normal((600, 32)) + 0.3).astype(np.float32)
    W[500:] = W[:500].mean(axis=0)
    model = write_model(tmp_path / "old", {EMBEDDING: W}, True)
    (model / "tokens.txt").write_text("\n".join(f"w{row}" for row in range(600)) + "\n")
    copy = None
    if method == "copy":
        with refusal(BadOption):
            embgeo.repair(model, dry_run=True, method="copy")
        return
    done = embgeo.repair(model, tmp_path / "new", method=method, copy=copy)
    assert places(done) == {"input": list(range(500, 600))}
    assert done.left == ()
    new = embgeo.load(tmp_path / "new").data
    np.testing.assert_array_equal(new[:500], W[:500])
    again = embgeo.repair(model, tmp_path / "again", method=method)
    np.testing.assert_array_equal(embgeo.load(tmp_path / "again").data, new)
    assert again.record.seed == 0
    other = embgeo.repair(model, tmp_path / "other", method=method, seed=1)
    assert other.record.sides[0].sha256_after != done.record.sides[0].sha256_after


def test_a_copy_of_a_named_token(tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "old")
    done = embgeo.repair(model, tmp_path / "new", copy="w5")
    assert (done.record.method, done.record.copied, done.left) == ("copy", "w5", ())
    W = embgeo.load(tmp_path / "new").data.astype(np.float64)
    new = W[list(CHAT_DEAD)]
    cosines = new @ W[5] / np.linalg.norm(new, axis=1) / np.linalg.norm(W[5])
    assert (cosines > 0.98).all()
    assert (cosines < 0.999).all()
    with refusal(BadOption):
        embgeo.repair(model, copy="x y", dry_run=True)


def test_a_second_repair_has_nothing_to_do(model: Path, tmp_path: Path) -> None:
    embgeo.repair(model, tmp_path / "new")
    done = embgeo.repair(tmp_path / "new", tmp_path / "newer")
    assert done == embgeo.workflows.repair.Repair(None)
    assert not (tmp_path / "newer").exists()


REFUSED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "in place": lambda m, _: embgeo.repair(m, m),
    "inside the model": lambda m, _: embgeo.repair(m, m / "new"),
    "no folder": lambda m, _: embgeo.repair(m),
    "occupied": lambda m, t: embgeo.repair(m, t),
    "cache": lambda m, t: embgeo.repair(m, t / "hub" / "models--a--b" / "snapshots" / "1"),
    "reason": lambda m, t: embgeo.repair(m, t / "x", only="long"),
    "method": lambda m, t: embgeo.repair(m, t / "x", method="x"),
    "no such row": lambda m, t: embgeo.repair(m, t / "x", rows=[60]),
    "copy of mean": lambda m, t: embgeo.repair(m, t / "x", method="mean", copy="a"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, model: Path, tmp_path: Path) -> None:
    before = bytes_of(tmp_path)
    with refusal():
        REFUSED[case](model, tmp_path)
    assert bytes_of(tmp_path) == before


def test_the_cache_by_its_variables(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with refusal(BadOption):
        embgeo.repair(model, tmp_path / "hf" / "mine")


def test_the_output_matrix_is_repaired_by_its_name(tmp_path: Path) -> None:
    tensors = {EMBEDDING: healthy_output("float32"), OUTPUT: make_rows("float32")}
    model = write_model(tmp_path / "old", tensors, False)
    done = embgeo.repair(model, tmp_path / "new", tensor=OUTPUT)
    assert places(done) == {"input": list(DEAD)}
    old, new = (p.read_bytes() for p in (model / WEIGHTS, tmp_path / "new" / WEIGHTS))
    embedding = slice(*find_tensor(model / WEIGHTS, EMBEDDING))
    assert old[embedding] == new[embedding]


def test_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    shutil.copy(ROOT / "fixtures/tiny/tiny.pt", tmp_path / "old" / "pytorch_model.bin")
    with refusal(UnreadableFile):
        embgeo.repair(tmp_path / "old", tmp_path / "new")
    np.save(tmp_path / "W.npy", np.zeros((40, 4)))
    with refusal(UnreadableFile):
        embgeo.repair(tmp_path / "W.npy", tmp_path / "new")


def test_one_file(model: Path, tmp_path: Path) -> None:
    embgeo.repair(model / WEIGHTS, tmp_path / "new")
    assert set(bytes_of(tmp_path / "new")) == {WEIGHTS, RECORD}


def test_an_index_and_a_foreign_link_are_refused(model: Path, tmp_path: Path) -> None:
    chat = write_chat_model(tmp_path / "chat")
    with refusal(UnreadableFile):
        embgeo.repair(chat / "model.safetensors.index.json", tmp_path / "new")
    (tmp_path / "secret").write_text("secret")
    (model / "notes.txt").symlink_to(tmp_path / "secret")
    with refusal(UnreadableFile):
        embgeo.repair(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_snapshot_of_the_cache_is_copied(model: Path, tmp_path: Path) -> None:
    """Its files are links to blobs: the copy has the files themselves."""
    home = tmp_path / "models--a--b"
    (home / "blobs").mkdir(parents=True)
    snapshot = home / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for file in list(model.iterdir()):
        file.rename(home / "blobs" / file.name)
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    embgeo.repair(snapshot, tmp_path / "new")
    assert not any(path.is_symlink() for path in (tmp_path / "new").iterdir())
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    embgeo.repair(home, tmp_path / "newer")
    weights = [(tmp_path / name / WEIGHTS).read_bytes() for name in ("new", "newer")]
    assert weights[0] == weights[1]
    assert set(bytes_of(tmp_path / "newer")) == {WEIGHTS, "config.json", RECORD}
    assert (tmp_path / "new" / "config.json").samefile(home / "blobs" / "config.json")


def test_without_links_files_are_copied(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    embgeo.repair(model, tmp_path / "new")
    one, two = (folder / "config.json" for folder in (model, tmp_path / "new"))
    assert one.read_bytes() == two.read_bytes()
    assert not one.samefile(two)


def test_no_room(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=10)
    monkeypatch.setattr(repairing.shutil, "disk_usage", lambda _: usage)
    with refusal():
        embgeo.repair(model, tmp_path / "new")
    assert {path.name for path in tmp_path.iterdir()} == {"old"}


def test_other_weights_are_mentioned(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"x")
    notes = embgeo.repair(model, dry_run=True).notes
    assert [note.partition(" ")[0] for note in notes] == ["pytorch_model.bin"]


# --- what a crash leaves ---------------------------------------------------------------------


def test_a_repair_is_there_whole_or_not_at_all(model: Path, tmp_path: Path) -> None:
    """Whenever the process is killed."""
    with moments(tmp_path) as states:
        embgeo.repair(model, tmp_path / "new")
    assert len(states) > 5
    whole = drop_temporary(states[-1])
    none = drop_temporary(states[0])
    assert none == {name: whole[name] for name in whole if name.split("/")[0] == "old"}
    assert all(drop_temporary(state) in (none, whole) for state in states)


def failing(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], int]:
    """The n-th call that writes fails; gives a function that says how many there were."""
    calls = 0

    def count(plain: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls == at:
                raise OSError(28, "No space left on device")
            return plain(*args, **named)

        return call

    for home, name in (
        (os, "fsync"),
        (repairing.shutil, "copymode"),
        (repairing, "copy_file"),
        (repairing, "write_edited"),
        (Path, "mkdir"),
        (Path, "chmod"),
        (Path, "replace"),
    ):
        monkeypatch.setattr(home, name, count(getattr(home, name)))
    return lambda: calls


@pytest.mark.slow
def test_every_failing_write_leaves_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bytes_of(model)
    with monkeypatch.context() as patched:
        made = failing(patched, 0)
        embgeo.repair(model, tmp_path / "whole")
        total = made()
    assert total > 7
    for at in range(1, total + 1):
        with monkeypatch.context() as patched:
            failing(patched, at)
            with refusal():
                embgeo.repair(model, tmp_path / "new")
        assert {path.name for path in tmp_path.iterdir()} == {"old", "whole"}
        assert bytes_of(model) == before


# --- the command -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "old")
    done = call("repair", model, "-o", tmp_path / "new")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "79 rows of the input replaced: method draw, 79 damaged rows" in lines[1]
    assert any(line.strip() == "serious suspects left: none" for line in lines)
    assert lines[-1] == f"repaired: {tmp_path / 'new'}"
    again = call("repair", tmp_path / "new", "-o", tmp_path / "x")
    assert again.exit_code == 0
    assert again.output.endswith(": no row needs repair\n")
    shown = call("repair", model, "--dry-run", "--json", "--only", "damaged")
    assert len(json.loads(shown.stdout)["sides"][0]["rows"]) == 79


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_transformers_generates_with_it(tied: bool, tmp_path: Path) -> None:
    torch, transformers = map(pytest.importorskip, ("torch", "transformers"))
    settings = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(
        vocab_size=80, num_attention_heads=2, tie_word_embeddings=tied, **settings
    )
    made = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    with torch.no_grad():
        made.get_input_embeddings().weight[7] = float("nan")
    made.save_pretrained(tmp_path / "old", max_shard_size="4KB")
    embgeo.repair(tmp_path / "old", tmp_path / "new")
    prompt = torch.tensor([[1, 7, 3]])
    for name, finite in (("old", False), ("new", True)):
        model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name)
        assert bool(torch.isfinite(model(prompt).logits).all()) is finite
    assert model.generate(prompt, max_new_tokens=3, do_sample=False).shape == (1, 6)
    sides = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert (sides[0].data_ptr() == sides[1].data_ptr()) is tied


@pytest.mark.parametrize("link", [True, False])
def test_room_is_needed_for_copies_and_not_for_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_bytes(bytes(1000))
    usage = SimpleNamespace(free=999)
    monkeypatch.setattr(repairing.shutil, "disk_usage", lambda _: usage)

    def copy() -> None:
        repairing.write_copy(tmp_path / "model", tmp_path / "new", {}, lambda *_: None, link=link)

    if link:
        copy()
        assert (tmp_path / "new" / "tokenizer.json").stat().st_nlink == 2
    else:
        with refusal():
            copy()


ROWS = np.ones((40, 8), np.float32)
ROWS[3] = 0
SCALE = np.linspace(1, 2, 40, dtype=np.float32)[:, None]
E = "model.embed_tokens."
#: Stored tensors by the form that the refusal names; the last part of a folder is a name of files.
DECODED = {
    "INT8, code · weight_scale of the row": {
        f"{E}weight": ROWS.astype(np.int8), f"{E}weight_scale": SCALE,
    },
    "INT8, code · SCB / 127 of the row": {
        f"{E}weight": ROWS.astype(np.int8), f"{E}SCB": SCALE[:, 0],
    },
    "INT4, packed, (code − 8) · scale of 8": {
        f"{E}weight_packed": np.full((40, 1), 0x11111111, np.int32), f"{E}weight_scale": SCALE,
        f"{E}weight_shape": np.array([40, 8]),
    },
    "MXFP4, E2M1 · scale of 8": {
        f"{E}weight": np.full((40, 4), 17, np.uint8),
        f"{E}weight_scale": np.full((40, 1), 127, np.uint8),
    },
    "vectors[mapping]": {"embeddings": ROWS, "mapping": np.arange(40)[::-1].copy()},
    "modules_to_save": {
        f"{E}modules_to_save.default.weight": ROWS, f"{E}original_module.weight": ROWS + 1,
    },
    "codebook, embed_sum / cluster_usage": {"q.embed_sum": ROWS, "q.cluster_usage": SCALE[:, 0]},
}  # fmt: skip


@pytest.mark.parametrize("form", DECODED)
def test_a_matrix_that_is_decoded_is_not_repaired(form: str, tmp_path: Path) -> None:
    """Codes without their scales would be rows of other lengths."""
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(DECODED[form], folder / "model.safetensors")
    with refusal():
        embgeo.repair(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("named", ["folder", "file"])
def test_a_matrix_in_slices_is_not_repaired(named: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for rank, part in enumerate(np.split(ROWS, 2)):
        save_file({f"{E}weight": part}, folder / f"model{rank}-mp2.safetensors")
    (folder / "config.json").write_text('{"vocab_size": 40, "hidden_size": 8}')
    first = folder / "model0-mp2.safetensors"
    with pytest.raises(UnreadableFile) as caught:
        embgeo.repair(folder if named == "folder" else first, tmp_path / "new")
    assert caught.value.where == str(first)
    assert not (tmp_path / "new").exists()


def test_a_matrix_of_a_form_that_is_not_known_is_not_repaired(tmp_path: Path) -> None:
    """Neither of its tensors is taken for the matrix."""
    folder = tmp_path / "model"
    folder.mkdir()
    tensors = {f"{E}weight_g": SCALE, f"{E}weight_v": ROWS + 1}
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(AmbiguousTensor) as caught:
        embgeo.repair(folder, tmp_path / "new")
    assert caught.value.where == str(folder)
    assert not (tmp_path / "new").exists()
