"""Text classification: readers, the network and scores against twins, resuming, processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

import torch

import embgeo
from embgeo.training.complete import complete_settings
from embgeo.training.data.labeled_corpus import (
    LabeledDocuments,
    cut_tenth,
    read_labeled,
    split_tokens,
)
from embgeo.training.loop.check import check_study
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.loop import Trainer
from embgeo.training.models import EmbeddingModel
from embgeo.training.registry import describe_class
from embgeo.training.settings import StudySettings, from_tables
from embgeo.training.study.record import load_study
from embgeo.training.tasks import TASKS, ClassificationTask, make_task
from embgeo.training.tasks.classification import ClassificationScores, DocumentBatches, Rcnn
from tests.support.refusals import refusal
from tests.support.sampling import each_folder
from tests.support.training_runs import (
    CPU,
    RecurrentCalls,
    assert_resumes,
    assert_two_processes_agree,
)

CLASSES = ("earth", "sky")


def write_corpus(folder: Path, n: int = 200) -> Path:
    """Documents whose words say their class, more or less."""
    generator = np.random.default_rng(0)
    for split, number in (("train", n), ("test", n // 2)):
        lines = []
        for i in range(number):
            words = [f"w{i % 2}{w}" if w < 5 else f"w{w}" for w in generator.integers(0, 20, 6)]
            lines.append(json.dumps({"label": CLASSES[i % 2], "text": " ".join(words)}))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("documents"))


def settings(place: Path, **tables: Any) -> StudySettings:
    usual: dict[str, Any] = {
        "data": {"path": str(place), "min_count": 1},
        "task": {"name": "classification", "length": 5},
        "model": {"name": "rcnn", "d": 6, "context": 4, "hidden": 5, "dropout": 0.0},
        "optimizer": {"kind": "adamw", "lr": 0.05, "weight_decay": 0.0},
        "training": {"batch": 20, "epochs": 4, "device": "cpu", "log_every": 5, "threads": 1},
    }
    return from_tables(usual).updated(tables)


def documents(lengths: list[int], n: int = 9) -> LabeledDocuments:
    generator = np.random.default_rng(0)
    ends = np.cumsum([0, *lengths])
    rows = generator.integers(0, n, int(ends[-1]))
    return LabeledDocuments(rows, ends, generator.integers(0, 3, len(lengths)))


def slow_logits(model: Rcnn, document: torch.Tensor) -> torch.Tensor:
    """Eq. 1–7 for one document, token by token."""
    e = [model.embedding.weight[row] for row in document]
    contexts = []
    sides = ((e, model.left), (e[::-1], model.right))
    for (tokens, layer), start in zip(sides, model.start, strict=True):
        state, found = start, []
        for token in tokens:
            found.append(state)
            state = torch.tanh(
                layer.weight_ih_l0 @ token
                + layer.bias_ih_l0
                + layer.weight_hh_l0 @ state
                + layer.bias_hh_l0
            )
        contexts.append(found)
    parts = zip(contexts[0], e, contexts[1][::-1], strict=True)
    hidden = [torch.tanh(model.combine(torch.cat(part))) for part in parts]
    return model.classes(torch.stack(hidden).max(dim=0).values)


def test_the_network_is_that_of_its_equations() -> None:
    torch.manual_seed(0)
    model = Rcnn(9, 3, d=4, context=3, hidden=5, dropout=0.0).double()
    torch.nn.init.normal_(model.start)
    found = documents([3, 1, 5])
    feed = DocumentBatches(found, batch=3, seed=0, group=ProcessGroup(), device=CPU)
    batch = feed.take()
    texts = [row[:n] for row, n in zip(batch.rows, batch.lengths, strict=True)]
    expected = torch.stack([slow_logits(model, text) for text in texts])
    torch.testing.assert_close(model(batch.rows, batch.lengths), expected)
    names, parameters = zip(*model.named_parameters(), strict=True)
    ones = torch.autograd.grad(model(batch.rows, batch.lengths)[:, 0].sum(), parameters)
    twins = torch.autograd.grad(expected[:, 0].sum(), parameters)
    for name, one, twin in zip(names, ones, twins, strict=True):
        torch.testing.assert_close(one, twin, msg=name)


def test_its_recurrence_ignores_autocast(place: Path) -> None:
    config = complete_settings(settings(place, training={"precision": "bf16"}))
    dataset = make_task(config).load(config)
    trainer = Trainer(config.one("mle", 0), dataset, CPU, ProcessGroup())
    with RecurrentCalls() as calls:
        trainer.step()
    assert calls.seen == {"rnn_tanh": {torch.float32, False}}


def test_every_document_is_seen_once_and_processes_share_every_batch() -> None:
    given = documents(list(np.random.default_rng(1).integers(1, 7, 26)))
    usual: dict[str, Any] = {"batch": 4, "seed": 1, "device": CPU}
    whole = DocumentBatches(given, group=ProcessGroup(), **usual)
    parts = [DocumentBatches(given, group=ProcessGroup(rank, 2), **usual) for rank in range(2)]
    assert len(set(whole.order.tolist())) == 26
    for _ in range(2 * whole.steps_per_epoch):
        at = whole.offset * 4
        chosen = whole.order[at : at + 4]
        one, *halves = (feed.take() for feed in (whole, *parts))
        assert torch.equal(one.classes, torch.from_numpy(given.classes[chosen]))
        assert torch.equal(one.classes, torch.cat([half.classes for half in halves]))
        for row, n, number in zip(one.rows, one.lengths, chosen, strict=True):
            text = given.rows[given.ends[number] : given.ends[number + 1]]
            assert row[: int(n)].tolist() == text.tolist()
    assert whole.epoch == 2
    again = DocumentBatches(given, group=ProcessGroup(), **usual)
    again.load_state_dict(whole.state_dict())
    assert torch.equal(again.take().rows, whole.take().rows)


LAYOUTS = {
    "train.jsonl": '{"label": 1, "text": "a b"}\n{"label": "x y", "text": "c\\u2028d"}\n',
    "train.tsv": "1\t0_9\ta b\nx y\t1_2\tc\u2028d\n",
    "train.csv": '"1","a","b"\n"x y","c\u2028d",\n',
    "named.csv": 'id,text,label\n3,a b,1\n4,"c\u2028d",x y\n',
    "named.tsv": "text\tlabel\na b\t1\nc\u2028d\tx y\n",
}


def test_layouts_are_read_as_classes_and_texts(tmp_path: Path) -> None:
    for folder, name in each_folder(tmp_path, LAYOUTS):
        (folder / name).write_text(LAYOUTS[name], "utf-8")
        found = [(label, text.strip()) for label, text in read_labeled(folder / name)]
        assert found == [("1", "a b"), ("x y", "c\u2028d")]


def test_a_tenth_of_the_documents_of_each_class_is_cut() -> None:
    texts = [("ab"[i % 3 == 0], str(i)) for i in range(90)]
    rest, held = cut_tenth(texts, 1)
    assert sorted(rest + held) == sorted(texts)
    assert sorted(label for label, _ in held) == [*"aaaaaabbb"]


def test_posts_lose_headers_and_quotes_and_texts_their_tags() -> None:
    post = "From: a@b\nSubject: x\n\nIn article <1@c> d writes:\n> quoted\nOwn words, here.\n"
    assert split_tokens(post, strip=True) == ["own", "words", ",", "here", "."]
    assert split_tokens("One<br />two") == ["one", "two"]


def test_notes_say_how_much_is_cut_of_what_is_left_of_posts(tmp_path: Path) -> None:
    lines = [
        json.dumps({"label": "ab"[i % 2], "text": "A: b c d e f g h\n\n" + "w " * (3 + i % 2 * 3)})
        for i in range(40)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    config = settings(tmp_path, task={"strip": True})
    found = make_task(config).load(config)
    (note,) = [one for one in found.notes if "are cut after" in one]
    assert "which shortens 50% of" in note


def test_missing_splits_are_drawn_one_after_the_other(tmp_path: Path) -> None:
    """The test split as if there were no other, then validation; documents begin at their start."""
    texts = [("ab"[i % 2], f"w{i}{' c d e f g h'[: 2 * (i % 7)]}") for i in range(60)]
    (tmp_path / "own.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in texts), "utf-8")
    config = settings(tmp_path / "own.tsv")
    found = make_task(config).load(config)
    rest, test = cut_tenth(texts, 1)
    train, valid = cut_tenth(rest, 0)
    assert [len(one) for one in (train, valid, test)] == [*found.sizes.values()] == [48, 6, 6]
    for split, expected in (("train", train), ("valid", valid), ("test", test)):
        documents = getattr(found, split)
        assert [found.classes[one] for one in documents.classes] == [one for one, _ in expected]
        assert documents.lengths.tolist() == [min(len(text.split()), 5) for _, text in expected]
    words = [found.vocabulary.tokens[row] for row in found.train.rows]
    assert words == [word for _, text in train for word in text.split()[:5]]
    scores = ClassificationScores(None, config, found, CPU)
    assert sorted(np.concatenate([*scores.walk(found.train.lengths)])) == [*range(48)]


@pytest.mark.slow
def test_a_study_is_judged_by_accuracy(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(place).tables()
    tables = {name: tables[name] for name in ("data", "task", "model", "optimizer", "training")}
    tables |= {"geometry.every": 1000, "evaluation.every": 1000}
    found = embgeo.train(out=tmp_path / "all", settings=tables, compare="mle,frage")
    study = load_study(tmp_path / "all")
    claims = {claim.key: claim for claim in study.outcomes}
    assert set(claims) == {"frage-probe", "frage-accuracy", "frage-macro-f1"}
    assert claims["frage-accuracy"].text_interval is not None
    assert "Table 4" in claims["frage-macro-f1"].published
    assert all(run.numbers["test.accuracy"] > 0.7 for run in study.runs)
    page = found.report.read_text("utf-8").lower()
    assert "too few seeds to test" in page
    assert "test accuracy" in page
    assert "training documents" in page


@pytest.mark.parametrize("method", ["frage", "sc-exp", "cosreg"])
def test_a_run_is_resumed_to_the_byte(method: str, place: Path, tmp_path: Path) -> None:
    tables = {"save_steps": 3, "epochs": 1}
    tables = {"training": tables, "model": {"dropout": 0.5}, "evaluation": {"every": 4}}
    config = complete_settings(settings(place, compare=[method], **tables))
    one = assert_resumes(config, tmp_path, 7)
    assert one.test is not None
    assert {"loss", "accuracy", "macro_f1", "documents"} == set(one.test)


class Bag(EmbeddingModel):
    """A classifier of the mean row, with no settings but d."""

    NAME = "bag"

    def __init__(self, n_tokens: int, n_classes: int, *, d: int = 4) -> None:
        super().__init__(n_tokens, d)
        self.make_embedding(torch.randn(n_tokens, d))
        self.make_decoder(None, bias=False)
        self.classes = torch.nn.Linear(d, n_classes)

    def forward(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        found: torch.Tensor = self.classes(self.embedding(rows).mean(dim=1))
        return found


class Bags(ClassificationTask):
    NAME = "bags"
    MODELS = (Bag,)


def test_a_classifier_of_ones_own_is_checked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "bags", describe_class(Bags))
    tables = settings(place).tables() | {"task": {"name": "bags"}, "model": {"name": "bag"}}
    config = complete_settings(from_tables(tables))
    dataset = make_task(config).load(config)
    check_study(config, dataset)


@pytest.mark.nightly
def test_two_processes_train_what_one_trains(place: Path, tmp_path: Path) -> None:
    assert_two_processes_agree(
        complete_settings(settings(place, compare=["frage"], training={"epochs": 1})), tmp_path
    )


BAD = {
    "no label": ("train.jsonl", '{"text": "a"}\n'),
    "no JSON": ("train.jsonl", "a\n"),
    "another format": ("mr.all", "0 a\n1 b\n"),
    "one column": ("train.tsv", "0\ta\n1\n"),
    "fewer columns than its header": ("train.tsv", "id\tx\ttext\tlabel\n1\t2\n"),
    "open quote": ("train.csv", '0,"a\n'),
    "one class": ("mr.tsv", "0\ta\n" * 12),
}


def test_bad_data_is_one_line(tmp_path: Path) -> None:
    for folder, (name, text) in each_folder(tmp_path, BAD.values()):
        path = folder / name
        path.write_text(text, "utf-8")
        config = settings(path)
        with refusal():
            make_task(config).load(config)


def test_a_test_part_alone_and_bad_settings_are_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("0,a\n", "utf-8")
    for tables in (
        {"data": {"path": str(tmp_path)}},
        {"task": {"merge": "comp.*"}},
        {"task": {"merge": ["e*|s*"]}},
        {"training": {"batch": 1000}},
        {"compare": ["al"]},
        {"compare": ["adversarial"]},
    ):
        with refusal():
            embgeo.train(out=tmp_path / "runs", settings=settings(place, **tables).tables())
        assert not (tmp_path / "runs").exists()
