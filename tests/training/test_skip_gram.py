"""Skip-gram: pairs, loss and steps against twins written out, resuming, processes, bad data."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

import torch

import embgeo
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.complete import complete_settings
from embgeo.training.data.documents import TokenStream, load_documents
from embgeo.training.data.neighbor_batches import (
    NegativeSampler,
    NeighborBatches,
    draw_pairs,
    expect_pairs,
    keep_chances,
)
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.loop import Trainer
from embgeo.training.methods import METHODS
from embgeo.training.sections import DataSettings
from embgeo.training.settings import StudySettings, from_tables
from embgeo.training.tasks import make_task
from embgeo.training.tasks.skip_gram import sampling_loss
from tests.support.refusals import refusal
from tests.support.sampling import each_folder
from tests.support.training_runs import (
    CPU,
    assert_resumes,
    assert_two_processes_agree,
)

WORDS = [f"w{i}" for i in range(40)]


def write_text(folder: Path) -> Path:
    """300 documents whose words are drawn as Zipf has it."""
    generator = np.random.default_rng(0)
    chances = 1.0 / np.arange(1, 41)
    lines = [" ".join(generator.choice(WORDS, 30, p=chances / chances.sum())) for _ in range(300)]
    path = folder / "text.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def write_sets(folder: Path) -> Path:
    generator = np.random.default_rng(1)
    place = folder / "wordsim"
    place.mkdir()
    for stem, n in (("EN-WS-353-ALL", 30), ("EN-RG-65", 12)):
        pairs = generator.choice([*WORDS, "unknown"], (n, 2))
        lines = [
            f"{a.title()}\t{b}\t{s:.2f}"
            for (a, b), s in zip(pairs, generator.random(n), strict=True)
        ]
        (place / f"{stem}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skipgram")
    write_text(folder)
    write_sets(folder)
    return folder


def settings(place: Path, **tables: Any) -> StudySettings:
    usual: dict[str, Any] = {
        "data": {"path": str(place / "text.txt"), "min_count": 2},
        "task": {"name": "skipgram", "wordsim": str(place / "wordsim"), "shared": 16},
        "model": {"name": "skip-gram", "d": 8},
        "optimizer": {"kind": "sgd", "lr": 2.0, "schedule": "linear"},
        "training": {"batch": 256, "epochs": 1, "device": "cpu", "log_every": 5, "threads": 1},
        "method": {"frage": {"sample": 20, "hidden": 12}},
    }
    return from_tables(usual).updated(tables)


def stream(rows: list[int], documents: list[int]) -> TokenStream:
    return TokenStream(np.array(rows, np.int32), np.array(documents, np.int32))


def test_pairs_are_those_of_a_double_loop() -> None:
    generator = np.random.default_rng(5)
    rows, documents = generator.integers(0, 9, 60), np.repeat(np.arange(4), 15)
    kept, window = np.full(9, 0.8), 3
    found = draw_pairs(stream(list(rows), list(documents)), kept, window, np.random.default_rng(7))
    again = np.random.default_rng(7)
    chosen = [i for i in range(60) if again.random() < 0.8]
    reach = again.integers(1, window + 1, len(chosen))
    expected: Counter[tuple[int, int]] = Counter()
    for i, center in enumerate(chosen):
        for j, other in enumerate(chosen):
            if i != j and abs(i - j) <= reach[i] and documents[center] == documents[other]:
                expected[rows[center], rows[other]] += 1
    assert Counter(map(tuple, found.tolist())) == expected


def test_as_many_pairs_are_expected_as_are_drawn() -> None:
    """Also where windows reach beyond short documents; a few less where words are thinned out."""
    for length, within in ((3, 0.02), (10, 0.01), (200, 0.005)):
        generator = np.random.default_rng(2)
        text = stream(generator.integers(0, 50, 30_000), np.arange(30_000) // length)
        drawn = len(draw_pairs(text, np.ones(50), 5, generator))
        assert expect_pairs(text, np.ones(50), 5) == pytest.approx(drawn, rel=within)
        thin = np.full(50, 0.6)
        assert expect_pairs(text, thin, 5) <= 1.01 * len(draw_pairs(text, thin, 5, generator))


def test_frequent_words_are_thinned_out_as_in_word2vec() -> None:
    chances = keep_chances(np.array([900, 99, 1]), 1e-2)
    for share, chance in zip((0.9, 0.099, 0.001), chances, strict=True):
        assert chance == pytest.approx(
            min(1.0, (math.sqrt(share / 1e-2) + 1.0) * 1e-2 / share), rel=1e-12
        )
    assert keep_chances(np.array([5, 1]), 0.0).tolist() == [1.0, 1.0]


def test_negatives_follow_the_power_of_the_counts() -> None:
    counts = np.array([100, 10, 1, 0])
    drawn = NegativeSampler(counts, 0.75).draw((40_000,), np.random.default_rng(0))
    expected = counts**0.75 / (counts**0.75).sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, expected, atol=0.01)


def test_the_loss_and_its_gradient_are_those_of_a_loop_over_pairs() -> None:
    torch.manual_seed(0)
    u, v, s = (torch.randn(n, 4, dtype=torch.float64, requires_grad=True) for n in (6, 6, 5))
    total = torch.zeros((), dtype=torch.float64)
    for one, near in zip(u, v, strict=True):
        total = total - torch.log(torch.sigmoid(one @ near))
        for negative in s:
            total = total - 3 / 5 * torch.log(torch.sigmoid(-(one @ negative)))
    expected = torch.autograd.grad(total / 6, (u, v, s))
    loss = sampling_loss(u, v, s, 3)
    assert float(loss.detach()) == pytest.approx(float(total.detach()) / 6)
    for found, gradient in zip(torch.autograd.grad(loss, (u, v, s)), expected, strict=True):
        torch.testing.assert_close(found, gradient)


def test_steps_are_those_of_dense_gradients_by_hand(place: Path) -> None:
    """Three steps: autograd on whole matrices, FRAGE on the rows that it drew, plain SGD."""
    config = complete_settings(settings(place, compare=["frage"]))
    dataset = make_task(config).load(config)
    trainer, twin = (Trainer(config, dataset, CPU, ProcessGroup()) for _ in range(2))
    W, V = (p.detach().clone().requires_grad_() for p in twin.parameters)
    twin.regularizer._source = (W,)
    for number in range(3):
        trainer.step()
        assert all(p.grad.is_sparse for p in trainer.parameters)
        batch = twin.batches.take()
        loss = sampling_loss(W[batch.words], V[batch.contexts], V[batch.negatives], 5)
        gradients = torch.autograd.grad(loss + twin.regularizer(), (W, V))
        with torch.no_grad():
            for weight, gradient in zip((W, V), gradients, strict=True):
                weight -= 2.0 * (1.0 - number / trainer.steps) * gradient
        twin.regularizer.after_step()
    for found, expected in zip(trainer.parameters, (W, V), strict=True):
        torch.testing.assert_close(found.detach(), expected.detach(), rtol=1e-4, atol=1e-6)


def test_methods_of_whole_matrices_add_their_gradient(place: Path) -> None:
    config = complete_settings(settings(place, compare=["cosreg"]))
    trainer = Trainer(config, make_task(config).load(config), CPU, ProcessGroup())
    before = [p.detach().clone() for p in trainer.parameters]
    trainer.step()
    moved = [(p != old).any(dim=1).all() for p, old in zip(trainer.parameters, before, strict=True)]
    assert any(moved)
    assert not all(moved)


def test_words_that_are_not_seen_do_not_move(place: Path) -> None:
    config = complete_settings(settings(place))
    trainer = Trainer(config, make_task(config).load(config), CPU, ProcessGroup())
    before = trainer.matrices()[0]
    batch = trainer.batches.take()
    batch = batch._replace(
        words=batch.words[batch.words < 5], contexts=batch.contexts[batch.words < 5]
    )
    trainer.batches.take = lambda: batch
    trainer.step(), trainer.step()
    moved = (trainer.matrices()[0] != before).any(dim=1)
    assert moved[:5].any()
    assert not moved[5:].any()


def test_processes_share_every_batch() -> None:
    generator = np.random.default_rng(0)
    given = stream(list(generator.integers(0, 9, 900)), [0] * 900)
    counts = np.bincount(given.rows, minlength=9)
    usual = {"window": 2, "subsample": 0.0, "shared": 4, "power": 0.75, "batch": 64, "seed": 1}
    whole, *parts = (
        NeighborBatches(given, counts, **usual, group=ProcessGroup(*part), device=CPU)
        for part in ((0, 1), (0, 2), (1, 2))
    )
    for _ in range(2 * whole.steps_per_epoch):
        one, *halves = (feed.take() for feed in (whole, *parts))
        assert torch.equal(one.words, torch.cat([half.words for half in halves]))
        assert torch.equal(one.contexts, torch.cat([half.contexts for half in halves]))
        assert all(torch.equal(one.negatives, half.negatives) for half in halves)
    assert whole.epoch == 2


def test_texts_become_lower_case_words_without_tags_and_rare_words(tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    line = "pos\t1_2\tGood film.<br />GOOD\u2028film, <unk> indeed\n"
    path.write_text(line * 1200 + "neg\t3_4\tonce\n", "utf-8")
    (tmp_path / "notes.pdf").write_bytes(b"left alone")
    corpus = load_documents(DataSettings(path=str(tmp_path), min_count=2), ())
    assert corpus.vocabulary.tokens == ("film", "good", "indeed")
    assert corpus.vocabulary.counts.tolist() == [2352, 2352, 1176]
    assert len(corpus.valid.rows) == 24 * 5


@pytest.mark.parametrize("method", ["frage", "sc-exp"])
def test_a_run_is_resumed_to_the_byte(method: str, place: Path, tmp_path: Path) -> None:
    config = complete_settings(settings(place, compare=[method], training={"save_steps": 3}))
    one = assert_resumes(config, tmp_path, 7)
    assert one.test is not None
    assert set(one.test) == {"ws353", "rg65", "ws353_all", "rg65_all"}
    assert any("95% over other pairs" in note for note in one.notes)
    assert one.quality == "ws353"


@pytest.mark.slow
def test_a_study_decides_the_claims_of_table_1(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(place).tables()
    names = ("data", "task", "model", "optimizer", "training", "evaluation")
    tables = {name: tables[name] for name in names}
    tables["method"] = {"frage": {"sample": 20, "hidden": 12}}
    found = embgeo.train(out=tmp_path, settings=tables, compare="mle,frage", seeds=3)
    assert found is not None
    claims = {claim.key: claim for claim in found.study.outcomes}
    assert set(claims) == {"frage-probe", "frage-rg65", "frage-ws353", "frage-rw"}
    assert claims["frage-rw"].cause == "no_number"
    for name in ("rg65", "ws353"):
        claim = claims[f"frage-{name}"]
        assert claim.contrast is not None
        assert claim.text_interval is not None
        assert "Table 1" in claim.published
    page = found.report.read_text("utf-8")
    assert "test ws353 against each control" in page.lower()
    assert "training words" in page
    assert "pairs that have both words" in page


@pytest.mark.nightly
def test_two_processes_train_what_one_trains(place: Path, tmp_path: Path) -> None:
    assert_two_processes_agree(complete_settings(settings(place, compare=["frage"])), tmp_path)


def test_what_needs_a_softmax_is_refused(place: Path) -> None:
    for name in ("al", "adversarial", "re", "untied"):
        assert name in METHODS
        with pytest.raises(BadOption):
            embgeo.train(out=place / "runs", settings=settings(place).tables(), compare=name)
    assert not (place / "runs").exists()


BAD = {
    "no sets": None,
    "no score": "tiger\tcat\n",
    "no number": "tiger\tcat\t1\nsun\tmoon\tmuch\n",
    "not finite": "tiger\tcat\tnan\n",
}


def test_bad_sets_are_one_line(place: Path, tmp_path: Path) -> None:
    for folder, text in each_folder(tmp_path, BAD.values()):
        if text is not None:
            (folder / "EN-WS-353-ALL.txt").write_text(text, "utf-8")
        config = settings(place, task={"wordsim": str(folder)})
        with refusal(UnreadableFile):
            make_task(config).load(config)


def test_bad_texts_and_settings_are_one_line(place: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("too short\n", "utf-8")
    other = tmp_path / "other.txt"
    other.write_text("words of another language\n" * 5000, "utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    for tables in (
        {"data": {"path": str(short)}},
        {"data": {"path": str(empty)}},
        {"data": {"path": str(other)}},
        {"optimizer": {"kind": "adamw", "lr": 0.1}},
        {"training": {"clip": 1.0}},
        {"task": {"wordsim": ""}},
        {"task": {"window": 0}},
        {"task": {"width": 3}},
        {"training": {"batch": 10**7}},
    ):
        with refusal():
            embgeo.train(
                out=tmp_path / "runs", settings=settings(place, **tables).tables(), compare="mle"
            )
        assert not (tmp_path / "runs").exists()
