"""The fixtures are what their README says: present, small, aligned, and honestly measured."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

FIXTURES = Path(__file__).parents[2] / "fixtures"
TINY = FIXTURES / "tiny"
HOSTILE = FIXTURES / "hostile"
CANARY = "embgeo-canary-was-executed"
MODELS = ("baseline", "cosreg")
#: Formats whose bytes depend on neither the platform nor a compression library.
PLAIN = (
    "tiny/tiny.npy",
    "tiny/tiny.safetensors",
    "tiny/tiny.w2v.bin",
    "tiny/tiny.w2v.txt",
    "tiny/tiny.vec",
    "tiny/tiny.glove.txt",
    "tiny/tiny.json",
    "tiny/tiny-hf/tokenizer.json",
    "hostile/os_system.pkl",
    "hostile/os_system.pt",
    "hostile/terabytes.npy",
    "hostile/billion_laughs.pkl",
    "hostile/hostile_vocab.json",
)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def files_below(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def vocabulary() -> tuple[list[str], list[int]]:
    lines = (FIXTURES / "vocab_counts.tsv").read_text("utf-8").rstrip("\n").split("\n")
    pairs = [line.split("\t") for line in lines]
    return [token for token, _ in pairs], [int(count) for _, count in pairs]


def stored_bytes(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist() if "/data/" in name]


def baseline_rows(size: int) -> np.ndarray:
    """The only storage of `size` bytes in baseline.pt; more than one would mean an untied copy."""
    found = [raw for raw in stored_bytes(FIXTURES / "baseline.pt") if len(raw) == size]
    assert len(found) == 1
    return np.frombuffer(found[0], "<f4")


def rows_of(model: str) -> np.ndarray:
    cosreg = load_file(FIXTURES / "cosreg.safetensors")["encoder.weight"]
    if model == "cosreg":
        return cosreg.astype(float)
    return baseline_rows(cosreg.nbytes).reshape(cosreg.shape).astype(float)


def test_everything_together_is_under_four_megabytes() -> None:
    assert sum(path.stat().st_size for path in files_below(FIXTURES)) < 4_000_000


def test_the_text_is_the_one_that_the_models_were_trained_on() -> None:
    text = gzip.decompress((FIXTURES / "pydocs.txt.gz").read_bytes()).decode("utf-8")
    documents = [line.split(" ") for line in text.removesuffix("\n").split("\n")]
    record = read_json(FIXTURES / "training.json")
    trained = record["training_tokens"] + record["validation_tokens"]
    assert sum(map(len, documents)) + len(documents) == trained
    assert "" not in {word for words in documents for word in words}
    counted = Counter(word for words in documents for word in words)
    known = dict(zip(*vocabulary(), strict=True))
    assert all(
        counted[word] >= count for word, count in known.items() if word not in ("<unk>", "<eos>")
    )
    said = f"{len(documents):,} lines, {sum(map(len, documents)):,} words"
    assert said in (FIXTURES / "README.md").read_text("utf-8")


def test_tiny_files_are_under_four_kilobytes() -> None:
    files = files_below(TINY)
    assert len(files) >= 15
    assert {path.name for path in files if path.stat().st_size >= 4096} == set()


def test_vocabulary_matches_the_rows() -> None:
    tokens, counts = vocabulary()
    assert len(set(tokens)) == len(tokens) == len(rows_of("cosreg"))
    assert "<unk>" in tokens
    assert counts == sorted(counts, reverse=True)
    assert min(counts) > 0
    assert sum(counts) == read_json(FIXTURES / "training.json")["training_tokens"]


@pytest.mark.parametrize("model", MODELS)
def test_rows_are_finite_and_distinct(model: str) -> None:
    W = rows_of(model)
    assert np.isfinite(W).all()
    assert len(np.unique(W, axis=0)) == len(W)
    assert np.linalg.norm(W, axis=1).min() > 0


@pytest.mark.parametrize("model", MODELS)
def test_expected_cosines(model: str) -> None:
    W, expected = rows_of(model), read_json(FIXTURES / "expected.json")[model]
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    n = len(W)
    total = np.sum(unit.sum(axis=0) ** 2) - n
    mean = total / (n * (n - 1))
    squares = (np.sum((unit.T @ unit) ** 2) - n) / (n * (n - 1))
    assert expected["mean_cosine"] == pytest.approx(mean, rel=1e-9)
    assert expected["cosreg_value"] == pytest.approx(total / n**2, rel=1e-9)
    assert expected["std_cosine"] == pytest.approx(math.sqrt(squares - mean**2), rel=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_expected_spectrum(model: str) -> None:
    W, expected = rows_of(model), read_json(FIXTURES / "expected.json")[model]
    energies = np.linalg.eigvalsh(W.T @ W)[::-1]
    sigma = np.sqrt(energies)
    share = sigma / sigma.sum()
    approx = {
        "singular_values_top5": sigma[:5].tolist(),
        "effective_rank": np.exp(-(share * np.log(share)).sum()),
        "stable_rank": energies.sum() / energies[0],
        "participation_ratio": energies.sum() ** 2 / (energies**2).sum(),
        "energy_share_first": energies[0] / energies.sum(),
        "condition_number": sigma[0] / sigma[-1],
    }
    for name, value in approx.items():
        assert expected[name] == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("model", MODELS)
def test_expected_isotropy(model: str) -> None:
    """Z straight from its definition: the norms here are small enough for exp."""
    W, expected = rows_of(model), read_json(FIXTURES / "expected.json")[model]
    right = np.linalg.svd(W, full_matrices=False)[2].T
    projections = W @ right
    forward, backward = np.exp(projections).sum(axis=0), np.exp(-projections).sum(axis=0)
    both = np.concatenate([forward, backward])
    towards_mean = np.where(projections.sum(axis=0) >= 0, forward, backward)
    for suffix, z in (("", both), ("_mean_sign", towards_mean)):
        assert expected["i1" + suffix] == pytest.approx(z.min() / z.max(), rel=1e-6)
        assert expected["i2" + suffix] == pytest.approx(z.std() / z.mean(), rel=1e-6)


def test_baseline_is_degenerate_and_cosreg_is_not() -> None:
    """What the two models are for; a retrained pair that loses it must not slip in."""
    expected = read_json(FIXTURES / "expected.json")
    baseline, cosreg = expected["baseline"], expected["cosreg"]
    assert baseline["mean_cosine"] > 0.3 > 0.05 > abs(cosreg["mean_cosine"])
    assert baseline["energy_share_first"] > 0.5 > 0.25 > cosreg["energy_share_first"]
    assert baseline["i1"] < 0.3 < 0.6 < cosreg["i1"]
    assert baseline["i1_unit"] < 0.5 < cosreg["i1_unit"]
    assert baseline["probe_auc"] > 0.9


def test_training_record_names_versions_and_perplexities() -> None:
    record = read_json(FIXTURES / "training.json")
    epochs = record["settings"]["epochs"]
    for model in MODELS:
        history = record["validation_perplexity"][model]
        assert len(history) == epochs
        assert history[-1] < history[0] < len(vocabulary()[0])
    assert {"python", "numpy", "torch"} <= record["versions"].keys()


def test_text_formats_hold_the_described_values() -> None:
    described = read_json(TINY / "tiny.json")
    glove = (TINY / "tiny.glove.txt").read_text("utf-8")
    assert gzip.decompress((TINY / "tiny.glove.txt.gz").read_bytes()).decode("utf-8") == glove
    rows = [line.split(" ") for line in glove.rstrip("\n").split("\n")]
    assert [row[0] for row in rows] == described["tokens"]
    assert [[float(value) for value in row[1:]] for row in rows] == described["values"]
    for name in ("tiny.w2v.txt", "tiny.vec"):
        header, *lines = (TINY / name).read_text("utf-8").rstrip("\n").split("\n")
        assert header == "6 3"
        assert [line.rstrip(" ") for line in lines] == glove.rstrip("\n").split("\n")


def test_binary_formats_hold_the_described_values() -> None:
    described = read_json(TINY / "tiny.json")
    values = np.array(described["values"], np.float32)
    packed = values.tobytes()
    assert np.array_equal(np.load(TINY / "tiny.npy"), values)
    with np.load(TINY / "tiny.npz") as archive:
        assert np.array_equal(archive["weights"], values)
    assert np.array_equal(load_file(TINY / "tiny.safetensors")["encoder.weight"], values)
    assert packed in stored_bytes(TINY / "tiny.pt")
    word2vec = (TINY / "tiny.w2v.bin").read_bytes()
    for token, row in zip(described["tokens"], described["values"], strict=True):
        assert token.encode("utf-8") + b" " + struct.pack("<3f", *row) in word2vec


def test_folders_hold_the_described_values() -> None:
    described = read_json(TINY / "tiny.json")
    sharded = TINY / "tiny-sharded"
    where = read_json(sharded / "model.safetensors.index.json")["weight_map"]
    for key, name in where.items():
        assert key in load_file(sharded / name)
    embedding = load_file(sharded / where["model.embed_tokens.weight"])
    assert embedding["model.embed_tokens.weight"].tolist() == described["values"]

    model = load_file(TINY / "tiny-hf" / "model.safetensors")["transformer.wte.weight"]
    assert model.tolist() == described["values"] + described["padding_values"]
    tokenizer = read_json(TINY / "tiny-hf" / "tokenizer.json")
    known = dict(tokenizer["model"]["vocab"])
    known |= {added["content"]: added["id"] for added in tokenizer["added_tokens"]}
    assert sorted(known, key=known.__getitem__) == described["hf_tokens_stored"]
    assert len(known) == read_json(TINY / "tiny-hf" / "config.json")["vocab_size"] - 2


def test_hostile_files_are_as_hostile_as_they_claim() -> None:
    tokens = read_json(HOSTILE / "hostile_vocab.json")
    assert {"</script>", "<b>", "", "&amp;", "${x}", "\\end{document}", "\ud800"} <= set(tokens)
    assert {"\n", "\t", "\0", "\u202e"} <= set("".join(tokens))
    assert max(map(len, tokens)) == 5000
    assert len(np.load(HOSTILE / "hostile_vocab.npy")) == len(tokens)

    with zipfile.ZipFile(HOSTILE / "zip_bomb.npz") as archive:
        (member,) = archive.infolist()
    assert member.file_size > 100_000 * member.compress_size
    assert CANARY.encode() in (HOSTILE / "os_system.pkl").read_bytes()
    with zipfile.ZipFile(HOSTILE / "os_system.pt") as archive:
        assert b"cos\nsystem\n" in archive.read("archive/data.pkl")
    assert (HOSTILE / "empty.pt").stat().st_size == 0
    assert not zipfile.is_zipfile(HOSTILE / "truncated.pt")


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="make.py tiny needs torch")
@pytest.mark.nightly
def test_make_tiny_makes_the_committed_files(tmp_path: Path) -> None:
    command = [sys.executable, str(FIXTURES / "make.py"), "tiny", "--out", str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    made = sorted(path.relative_to(tmp_path) for path in files_below(tmp_path))
    committed = [*files_below(TINY), *files_below(HOSTILE)]
    assert made == sorted(path.relative_to(FIXTURES) for path in committed)
    for plain in PLAIN:
        assert (tmp_path / plain).read_bytes() == (FIXTURES / plain).read_bytes(), plain
