"""Tokenizers that are learned, windows drawn at random, and what is judged with them."""

from __future__ import annotations

import builtins
import gzip
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from torch.nn import functional as F  # noqa: E402

from embgeo.core.errors import BadOption, UnreadableFile  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.data import Corpus  # noqa: E402
from embgeo.training.data.batches import RandomWindows  # noqa: E402
from embgeo.training.data.tokenizer import SEPARATOR  # noqa: E402
from embgeo.training.loop.distributed import ProcessGroup  # noqa: E402
from embgeo.training.loop.loop import train_run  # noqa: E402
from embgeo.training.settings import load_preset  # noqa: E402
from embgeo.training.study.run_result import load_result  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import load_text, numbers, settings, silent, trainer_of  # noqa: E402

LINES = [f"The {n}th café of <|endoftext|> has {n * n} tables.\n" for n in range(200)]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts")
    (path / "train.txt").write_text("".join(LINES), "utf-8")
    (path / "valid.txt").write_text("".join(LINES[:20]), "utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Corpus:
    return load_text(folder, bpe=300)


def decode(corpus: Corpus, rows: Any) -> str:
    from tokenizers import Tokenizer

    assert corpus.tokenizer is not None
    found: str = Tokenizer.from_str(corpus.tokenizer).decode(list(rows), skip_special_tokens=True)
    return found


def test_a_text_comes_back_byte_by_byte(folder: Path, corpus: Corpus) -> None:
    assert corpus.row_bytes is not None
    for split, rows in (("train", corpus.train), ("valid", corpus.valid)):
        text = (folder / f"{split}.txt").read_text("utf-8")
        assert decode(corpus, rows) == text
        assert corpus.row_bytes[rows].sum() == len(text.encode())
        assert rows[-1] == 0
        assert (rows[:-1] != 0).all()  # in a text, the name of the separator is text
    assert len(corpus.vocabulary) == 300
    assert corpus.vocabulary.tokens[0] == SEPARATOR
    assert corpus.vocabulary.counts.sum() == len(corpus.train)
    assert corpus.test is None


def test_the_tokenizer_is_learned_from_the_training_split(tmp_path: Path, corpus: Corpus) -> None:
    (tmp_path / "train.txt").write_text("".join(LINES), "utf-8")
    (tmp_path / "valid.txt").write_text("zzzz zzzz zzzz\n" * 50, "utf-8")
    other = load_text(tmp_path, bpe=300)
    assert other.tokenizer == corpus.tokenizer is not None
    assert other.files["tokenizer.json"] == hashlib.sha256(corpus.tokenizer.encode()).hexdigest()


def test_a_text_without_splits_is_cut_by_its_bytes(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "all.txt.gz", "wt", encoding="utf-8") as file:
        file.write("".join(LINES[:180]) + "\n".join(["ΩΩΩΩ"] * 80))
    found = load_text(tmp_path / "all.txt.gz", bpe=320)
    assert found.row_bytes is not None
    assert found.test is not None
    sizes = [found.row_bytes[rows].sum() for rows in (found.train, found.valid, found.test)]
    assert sizes == pytest.approx([0.9 * sum(sizes), *[0.05 * sum(sizes)] * 2], abs=8)
    assert "ΩΩ" not in decode(found, range(1, 320))
    assert "the last tenth of the text is validation and test" in found.notes


def test_articles_of_wikitext_are_documents(tmp_path: Path) -> None:
    article = " \n = A title = \n \n Some words . \n = = A section = = \n More words . \n"
    for split in ("train", "valid", "test"):
        (tmp_path / f"wiki.{split}.tokens").write_text(article * 20, "utf-8")
    found = load_text(tmp_path, bpe=300)
    assert found.vocabulary.counts[0] == 21
    first, second = (found.train == 0).nonzero()[0][:2]
    assert decode(found, found.train[first:second]) == article.removeprefix(" \n") + " \n"
    assert found.name == tmp_path.name


def test_what_cannot_be_learned(tmp_path: Path) -> None:
    with refusal(BadOption):
        settings(data={"bpe": 256})
    assert settings(data={"bpe": 257}).data.bpe == 257
    (tmp_path / "short.txt").write_text("short\n")
    with refusal(UnreadableFile):
        load_text(tmp_path / "short.txt", bpe=300)


def test_a_missing_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "tokenizers":
            raise ImportError(name)
        return load(name, *arguments)

    monkeypatch.delitem(sys.modules, "tokenizers", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with refusal(BadOption):
        load_text(folder, bpe=300)


# --- Windows ------------------------------------------------------------------------------------


def feed(tokens: int = 103, *, group: ProcessGroup | None = None, seed: int = 0) -> RandomWindows:
    rows = torch.arange(tokens)
    return RandomWindows(rows, 4, 10, group=group or ProcessGroup(), seed=seed)


def test_windows_of_an_epoch_are_disjoint_and_drawn() -> None:
    batches = feed()
    assert batches.steps_per_epoch == batches.windows_per_epoch == 2
    epochs = []
    for epoch in range(2):
        taken = [batches.take() for _ in range(2)]
        assert (batches.epoch, batches.offset) == (epoch + 1, 0)
        inputs = torch.cat([window.inputs.flatten() for window in taken])
        assert len(inputs.unique()) == len(inputs) == 80
        assert all(torch.equal(window.targets, window.inputs + 1) for window in taken)
        assert all(window.first and window.inputs.shape == (10, 4) for window in taken)
        epochs.append(taken[0].inputs)
    assert not torch.equal(*epochs)
    assert not torch.equal(feed(seed=1).take().inputs, epochs[0])


def test_windows_go_on_where_they_were() -> None:
    batches, other = feed(), feed()
    for _ in range(3):
        batches.take()
    other.load_state_dict(batches.state_dict())
    for _ in range(3):
        assert torch.equal(batches.take().inputs, other.take().inputs)


def test_processes_share_the_windows_of_a_step() -> None:
    whole = feed().take().inputs
    parts = [feed(group=ProcessGroup(rank, 2)).take().inputs for rank in range(2)]
    assert sorted(whole.T.tolist()) == sorted(torch.cat(parts, dim=1).T.tolist())


def test_text_for_less_than_a_batch_of_windows() -> None:
    feed(50)
    with refusal(BadOption):
        feed(49)


# --- Settings and scores ------------------------------------------------------------------------


def test_settings_that_exclude_each_other() -> None:
    for tables in (
        {"data": {"bpe": 300, "size": 10}},
        {"training": {"windows": "random", "random_lengths": True}},
        {"training": {"windows": "any"}},
        {"task": {"name": "lm", "z_loss": -1.0}},
        {"task": {"name": "lm", "smoothing": 1.0}},
    ):
        with refusal(BadOption):
            complete_settings(settings(**tables))


@pytest.mark.parametrize("name", ["z_loss", "smoothing"])
def test_what_the_task_adds_to_the_loss(name: str) -> None:
    """The mean of (ln Z)², or with label smoothing the cross-entropy of mixed targets."""
    plain, added = trainer_of(settings()), trainer_of(settings(task={"name": "lm", name: 0.5}))
    batch = plain.batches.take()
    found = []
    for trainer in (plain, added):
        trainer.model.eval()
        found.append(trainer.task.loss(trainer.model, batch, None, trainer.regularizer))
    assert found[0].mean == found[1].mean
    logits = plain.model.head(plain.model(batch.inputs).hidden).detach()
    if name == "z_loss":
        squares = (float(one.exp().sum().log()) ** 2 for one in logits.flatten(0, 1))
        expected = found[0].objective.item() + 0.5 * sum(squares) / batch.units
    else:
        expected = F.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), label_smoothing=0.5
        ).item()
        expected += (found[0].objective - found[0].mean).item()
    assert found[1].objective.item() == pytest.approx(expected, rel=1e-5)


def test_a_run_is_judged_by_bits_per_byte_and_keeps_its_tokenizer(
    corpus: Corpus, tmp_path: Path
) -> None:
    tables = load_preset("tiny-llama-cpu").tables()
    config = settings(
        data={"bpe": 300},
        model={"name": "llama", "d": 8, "layers": 1, "heads": 2},
        training={**tables["training"], "steps": 2, "batch": 2, "bptt": 8, "log_every": 1},
        evaluation={"bptt": 8, "stride": 4, "tokens": 100},
    )
    result = train_run(
        config, corpus, tmp_path, measure=None, progress=silent(), command="embgeo train"
    )
    assert result.quality == "bits_per_byte"
    assert result.test is None
    assert corpus.row_bytes is not None
    nats = result.valid["loss"] * result.valid["tokens"]
    length = corpus.row_bytes[corpus.valid[1:100]].sum()
    assert result.valid["bits_per_byte"] == pytest.approx(nats / math.log(2) / length)
    assert (tmp_path / "tokenizer.json").read_text("utf-8") == corpus.tokenizer
    lines = numbers(tmp_path)
    assert "valid.bits_per_byte" in lines[-1]
    json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert load_result(tmp_path).quality == "bits_per_byte"
