"""Translation: data, network, loss and search against twins, resuming, processes, scores."""

from __future__ import annotations

import itertools
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tomli_w")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

import torch
from safetensors.numpy import load_file
from torch.nn import functional as F

import embgeo
from embgeo.report.text.study import table
from embgeo.training.complete import complete_settings
from embgeo.training.data.encoding import join_sequences
from embgeo.training.data.parallel_corpus import ParallelSplit, find_parallel
from embgeo.training.data.tokenizer import END_ROW, BytePairs
from embgeo.training.evaluation.translation import (
    BeamSettings,
    score_translations,
    search_beams,
    take_best,
)
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.loop import train_run
from embgeo.training.methods import Regularizer
from embgeo.training.models.blocks import Block
from embgeo.training.models.encoder_decoder import (
    EncoderDecoder,
    PlacesAttention,
    TranslationModel,
    mask_ends,
)
from embgeo.training.models.lstm_encoder_decoder import LstmEncoderDecoder
from embgeo.training.settings import StudySettings, from_tables
from embgeo.training.study.outcomes import OUTCOMES, Outcomes, bootstrap, compute_bleu
from embgeo.training.study.record import load_study
from embgeo.training.tasks import make_task
from embgeo.training.tasks.translation import PairBatch, PairBatches, TranslationTask
from embgeo.workflows.train_runs import analyze_embedding
from tests.support.refusals import refusal
from tests.support.training_runs import (
    CPU,
    assert_resumes,
    assert_two_processes_agree,
    silent,
    train_task,
)

NOUNS = (("Hund", "dog"), ("Mann", "man"), ("Ball", "ball"), ("Baum", "tree"), ("Weg", "way"))
VERBS = (("sieht", "sees"), ("hat", "has"), ("nimmt", "takes"))


def write_corpus(folder: Path) -> Path:
    """Sentences of three words, all combinations, in three splits."""
    triples = list(itertools.product(NOUNS, VERBS, NOUNS))
    order = np.random.default_rng(0).permutation(len(triples))
    cuts = {"train": order[:55], "val": order[55:65], "test_a": order[65:], "test_b": order[60:65]}
    for split, chosen in cuts.items():
        for side, language in enumerate(("de", "en")):
            lines = [" ".join(word[side] for word in triples[i]) + "." for i in chosen]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("pairs"))


def settings(place: Path, **tables: Any) -> StudySettings:
    usual: dict[str, Any] = {
        "data": {"path": str(place), "size": 60},
        "task": {"name": "translation", "beam": 2, "more": 3},
        "model": {
            "name": "encoder-decoder",
            "d": 8,
            "layers": 1,
            "heads": 2,
            "feedforward": 8,
            "dropout": 0.0,
        },
        "optimizer": {"kind": "adamw", "lr": 0.01, "weight_decay": 0.0},
        "training": {"batch": 100, "epochs": 1, "device": "cpu", "log_every": 5, "threads": 1},
    }
    return from_tables(usual).updated(tables)


def draw_pairs(n: int, longest: int = 6, size: int = 9) -> ParallelSplit:
    generator = np.random.default_rng(0)
    sides = [
        join_sequences(
            [generator.integers(1, size, length).tolist() for length in lengths], end=END_ROW
        )
        for lengths in generator.integers(1, longest, (2, n))
    ]
    return ParallelSplit(sides[0], sides[1], ("",) * n)


def make_model(**given: Any) -> EncoderDecoder:
    torch.manual_seed(0)
    usual: dict[str, Any] = {"d": 4, "layers": 2, "heads": 2, "feedforward": 5, "dropout": 0.0}
    return EncoderDecoder(9, **{**usual, **given}).double().eval()


def make_lstm(**given: Any) -> LstmEncoderDecoder:
    torch.manual_seed(0)
    usual: dict[str, Any] = {"d": 4, "layers": 3, "bound": 0.9}
    return LstmEncoderDecoder(9, **{**usual, **given}).double().eval()


each_model = pytest.mark.parametrize("make", [make_model, make_lstm])
#: An LSTM in place of the Transformer.
LSTM = {"name": "lstm-encoder-decoder", "d": 8, "layers": 2}


# --- The network and the loss ---------------------------------------------------------------------


def slow_attention(part: PlacesAttention, state: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Of one place to those that it sees, head by head."""
    width, found = part.width, []
    for head in range(len(state) // width):
        own = slice(head * width, (head + 1) * width)
        scores = [
            (part.query(state)[own] * part.key(other)[own]).sum() / math.sqrt(width)
            for other in seen
        ]
        weights = torch.softmax(torch.stack(scores), dim=0)
        values = [part.value(other)[own] for other in seen]
        found.append(sum(w * v for w, v in zip(weights, values, strict=True)))
    return part.out(torch.cat(found))


def slow_block(
    block: Block, states: list[torch.Tensor], source: torch.Tensor | None, before: bool
) -> list[torch.Tensor]:
    parts: list[Any] = [lambda x, seen: slow_attention(block.attention.layer, x, seen)]
    norms = [block.attention.norm]
    if source is not None:
        parts.append(lambda x, _: slow_attention(block.reading.layer, x, source))
        norms.append(block.reading.norm)
    feed = block.inner.layer
    parts.append(lambda x, _: feed.outward(torch.relu(feed.inward(x))))
    for norm, part in zip([*norms, block.inner.norm], parts, strict=True):
        given = [norm(x) if before else x for x in states]
        seen = [given if source is None else given[: t + 1] for t in range(len(given))]
        added = [
            x + part(one, torch.stack(s)) for x, one, s in zip(states, given, seen, strict=True)
        ]
        states = added if before else [norm(x) for x in added]
    return states


def slow_embed(model: EncoderDecoder, matrix: torch.Tensor, rows: list[int]) -> list[torch.Tensor]:
    found = []
    for t, row in enumerate(rows):
        wave = [
            (math.cos if k % 2 else math.sin)(t / 10_000 ** ((k - k % 2) / model.d))
            for k in range(model.d)
        ]
        found.append(matrix[row] * math.sqrt(model.d) + torch.tensor(wave))
    return found


def slow_logits(model: EncoderDecoder, source: list[int], target: list[int]) -> torch.Tensor:
    """§3 of Vaswani et al. for one pair, place by place."""
    before = isinstance(model.norm_source, torch.nn.LayerNorm)
    matrix = model.embedding.weight if model.source is None else model.source.weight
    states = slow_embed(model, matrix, source)
    for block in model.encoder:
        states = slow_block(block, states, None, before)
    read = torch.stack([model.norm_source(x) for x in states])
    states = slow_embed(model, model.embedding.weight, [0, *target[:-1]])
    for block in model.writer:
        states = slow_block(block, states, read, before)
    return torch.stack([model.decoder(model.norm_target(x)) for x in states])


def slow_lstm(layer: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """All states of a layer, gate by gate, one token at a time."""
    h = c = inputs[0].new_zeros(layer.hidden)
    states: list[torch.Tensor] = []
    for x in inputs:
        gates = layer.weight_ih_l0 @ x + layer.bias_ih_l0 + layer.weight_hh_l0 @ h
        i, f, g, o = (gates + layer.bias_hh_l0).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return states


def slow_lstm_logits(
    model: LstmEncoderDecoder, source: list[int], target: list[int]
) -> torch.Tensor:
    """§3 of Wu et al. for one pair, token by token and score by score."""
    matrix = model.embedding.weight if model.source is None else model.source.weight
    rows = [matrix[row] for row in source]
    back = slow_lstm(model.backwards, rows[::-1])[::-1]
    states = [torch.cat(pair) for pair in zip(slow_lstm(model.encoder[0], rows), back, strict=True)]
    for number, layer in enumerate(model.encoder[1:]):
        found = slow_lstm(layer, states)
        states = [x + y for x, y in zip(found, states, strict=True)] if number else found
    read = states
    states = slow_lstm(model.writer[0], [model.embedding.weight[row] for row in [0, *target[:-1]]])
    answers = []
    for state in states:
        scores = [model.score((model.query(state) + model.key(x)).tanh()) for x in read]
        weights = torch.softmax(torch.cat(scores), dim=0)
        answers.append(sum(w * x for w, x in zip(weights, read, strict=True)))
    for number, layer in enumerate(model.writer[1:]):
        found = slow_lstm(layer, [torch.cat(pair) for pair in zip(states, answers, strict=True)])
        states = [x + y for x, y in zip(found, states, strict=True)] if number else found
    return torch.stack([model.decoder(state) for state in states])


@pytest.mark.parametrize(
    ("make", "twin", "given"),
    [
        (make_model, slow_logits, {"norm": "before", "layers": 1, "tied": "three-way"}),
        (make_model, slow_logits, {"norm": "after", "layers": 1, "tied": "none"}),
        (make_lstm, slow_lstm_logits, {"tied": "three-way"}),
        (make_lstm, slow_lstm_logits, {"tied": "none"}),
    ],
)
def test_networks_are_those_of_their_equations(make: Any, twin: Any, given: Any) -> None:
    """Sentences of several lengths in a batch, each as if it were alone."""
    model, pairs = make(**given), draw_pairs(3)
    if given["tied"] == "none":  # rows of the source that the target does not have
        model = make(**given, n_source=14)
        rows = np.where(pairs.source.rows == END_ROW, END_ROW, pairs.source.rows + 5)
        pairs = replace(pairs, source=replace(pairs.source, rows=rows))
    batch = PairBatches(pairs, batch=99, seed=0, group=ProcessGroup(), device=CPU).take()
    assert len(set(batch.lengths.tolist())) > 1
    hidden = model(batch.source, batch.lengths, batch.inputs).flatten(0, 1)[batch.places]
    targets = batch.targets.split((batch.places // batch.inputs.shape[1]).bincount().tolist())
    held = zip(batch.source, batch.lengths, targets, strict=True)
    logits = model.head(hidden)
    expected = torch.cat([twin(model, row[:n].tolist(), own.tolist()) for row, n, own in held])
    torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
    names, parameters = zip(*model.named_parameters(), strict=True)
    ones, others = (
        torch.autograd.grad(F.cross_entropy(one, batch.targets), parameters)
        for one in (logits, expected)
    )
    for name, one, other in zip(names, ones, others, strict=True):
        assert one.any(), name
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, msg=name)


@each_model
@torch.no_grad()
def test_tokens_one_by_one_are_as_all_at_once(make: Any) -> None:
    """So no token sees a later one."""
    model: TranslationModel = make()
    source, inputs = (
        torch.tensor([[1, 2, 5, 0], [3, 0, 0, 0]]),
        torch.tensor([[0, 4, 7], [0, 8, 8]]),
    )
    seen = mask_ends(torch.tensor([4, 2]), 4)
    read = model.read(source, seen)
    expected, _ = model.write(inputs, read, seen)
    kept = None
    for t in range(3):
        found, kept = model.write(inputs[:, t : t + 1], read, seen, kept)
        torch.testing.assert_close(found[:, 0], expected[:, t], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch_over_all_targets_of_all_processes(smoothing: float) -> None:
    model, pairs = make_model(), draw_pairs(9)
    task = TranslationTask(smoothing=smoothing)
    given: dict[str, Any] = {"batch": 20, "seed": 0, "device": CPU}

    def losses(group: ProcessGroup) -> list[tuple[float, float]]:
        feed = PairBatches(pairs, group=group, **given)
        batches = [feed.take() for _ in range(feed.steps_per_epoch)]
        found = [task.loss(model, one, None, Regularizer()) for one in batches]
        return [(one.mean.item(), one.objective.item()) for one in found]

    alone = losses(ProcessGroup())
    parts = [losses(ProcessGroup(rank, 3)) for rank in range(3)]
    np.testing.assert_allclose(np.mean(parts, axis=0), alone)
    feed = PairBatches(pairs, group=ProcessGroup(), **given)
    for plain, smoothed in alone:
        batch = feed.take()
        hidden = model(batch.source, batch.lengths, batch.inputs).flatten(0, 1)[batch.places]
        logits, targets = model.head(hidden), batch.targets
        assert plain == pytest.approx(F.cross_entropy(logits, targets).item())
        twin = F.cross_entropy(logits, targets, label_smoothing=smoothing)
        assert smoothed == pytest.approx(twin.item())


# --- The search -----------------------------------------------------------------------------------


class Unigrams:
    """Fixed logits, whatever was read and written."""

    def __init__(self, logits: list[float]) -> None:
        self.logits = torch.tensor(logits, dtype=torch.float64)

    def read(self, *_: torch.Tensor) -> list[Any]:
        return []

    def write(self, inputs: torch.Tensor, *_: Any) -> tuple[torch.Tensor, list[Any]]:
        return torch.zeros(*inputs.shape, 1), []

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(*hidden.shape[:-1], -1)


def score(
    model: TranslationModel, source: torch.Tensor, rows: list[int], penalty: float, form: str
) -> float:
    """ln p of a translation, computed anew from its start, divided by its length penalty.

    fairseq divides by n^α for n tokens with the end, Wu et al. by ((5 + n)/6)^α.
    """
    inputs = torch.tensor([[0, *rows]])
    hidden = model(source, torch.tensor([source.shape[1]]), inputs)
    log_p = model.head(hidden)[0].log_softmax(dim=-1)
    total = log_p.gather(1, torch.tensor([[*rows, 0]]).T).sum()
    n = len(rows) + 1
    return float(total) / (n if form == "power" else (5 + n) / 6) ** penalty


@pytest.mark.parametrize("form", ["gnmt", "power"])
@torch.no_grad()
def test_a_wide_search_finds_the_best_of_all_translations(form: str) -> None:
    torch.manual_seed(3)
    model = EncoderDecoder(4, d=4, layers=1, heads=2, feedforward=4, dropout=0.0).double().eval()
    source, lengths = torch.tensor([[1, 2, 0], [3, 0, 0]]), torch.tensor([3, 2])
    for penalty in (0.0, 2.0):
        task = TranslationTask(beam=70, penalty=penalty, penalty_form=form, more=1)
        wide = task.search
        found = search_beams(model, source, mask_ends(lengths, 3), wide)
        for row, n, given in zip(source, lengths.tolist(), found, strict=True):
            limit = n + 1
            every = [
                list(rows)
                for length in range(limit)
                for rows in itertools.product(range(1, 4), repeat=length)
            ]
            scores = [score(model, row[None, :n], rows, penalty, form) for rows in every]
            assert given == every[int(np.argmax(scores))]


@each_model
@torch.no_grad()
def test_a_narrow_search_is_that_without_kept_states_and_other_sentences(make: Any) -> None:
    model = make()
    source, lengths = torch.tensor([[1, 2, 5, 7, 0], [3, 8, 0, 0, 0]]), torch.tensor([5, 3])
    greedy = BeamSettings(beam=1, penalty=0.0, more=4)
    found = search_beams(model, source, mask_ends(lengths, 5), greedy)
    for row, n, given in zip(source, lengths.tolist(), found, strict=True):
        rows: list[int] = []
        while len(rows) < n + 4 - 1:
            hidden = model(row[None, :n], torch.tensor([n]), torch.tensor([[0, *rows]]))
            best = int(model.head(hidden)[0, -1].argmax())
            if best == 0:
                break
            rows.append(best)
        assert given == rows
        beam = BeamSettings(beam=3, more=4)
        (alone,) = search_beams(model, row[None, :n], mask_ends(torch.tensor([n]), n), beam)
        together = search_beams(model, source, mask_ends(lengths, 5), beam)
        assert alone in together


def test_of_equal_translations_the_first_is_taken() -> None:
    equal = torch.tensor([[1.0, 3.0, 3.0, 3.0, 0.0]])
    values, places, _ = take_best(equal, 2, stable=True)
    assert (values.tolist(), places.tolist()) == ([[3.0, 3.0]], [[1, 2]])
    assert bool(take_best(equal, 2, stable=False)[2])
    assert not bool(take_best(torch.tensor([[1.0, -math.inf, -math.inf]]), 2, stable=False)[2])
    seen = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    found = search_beams(
        Unigrams([-9.0, 1.0, 1.0]), torch.ones(1, 1, dtype=torch.int64), seen, BeamSettings(more=2)
    )
    assert found == [[1, 1]]
    broken = Unigrams([math.nan] * 3)
    assert search_beams(broken, torch.ones(1, 1, dtype=torch.int64), seen, BeamSettings()) == [[]]


# --- Data -----------------------------------------------------------------------------------------


def test_every_pair_is_seen_once_and_processes_share_every_batch() -> None:
    pairs = draw_pairs(41)
    usual: dict[str, Any] = {"batch": 24, "seed": 1, "device": CPU}
    whole = PairBatches(pairs, group=ProcessGroup(), **usual)
    parts = [PairBatches(pairs, group=ProcessGroup(rank, 2), **usual) for rank in range(2)]
    orders = []
    for _ in range(2):
        seen: list[tuple[int, ...]] = []
        for _ in range(whole.steps_per_epoch):
            one, *halves = (feed.take() for feed in (whole, *parts))
            assert max(one.source.numel(), one.inputs.numel()) <= 24
            assert one.units == len(one.targets) == 2 * halves[0].units
            known = [half for half in halves if half.counts]
            assert sum(len(half.targets) for half in known) == len(one.targets)
            seen += list_pairs(one)
            both = [pair for half in known for pair in list_pairs(half)]
            assert sorted(both) == sorted(list_pairs(one))
        expected = [
            (*pairs.source.rows[slice(*pairs.source.ends[i : i + 2])].tolist(), -1,
             *pairs.target.rows[slice(*pairs.target.ends[i : i + 2])].tolist())
            for i in range(41)
        ]  # fmt: skip
        assert sorted(seen) == sorted(expected)
        orders.append(seen)
    assert orders[0] != orders[1]
    again = PairBatches(pairs, group=ProcessGroup(), **usual)
    again.load_state_dict(whole.state_dict())
    assert torch.equal(again.take().source, whole.take().source)


def list_pairs(batch: PairBatch) -> list[tuple[int, ...]]:
    lengths = (batch.places // batch.inputs.shape[1]).bincount().tolist()
    return [
        (*row[:n].tolist(), -1, *target.tolist())
        for row, n, target in zip(
            batch.source, batch.lengths, batch.targets.split(lengths), strict=True
        )
    ]


def test_pieces_are_joined_to_the_text_that_they_are_of() -> None:
    texts = ["Ein Mann, der “a-b” (c) sagt.", "Ein Hund läuft."]
    pieces = BytePairs(texts, 60)
    assert pieces.decode(pieces.encode(texts)) == texts
    assert pieces.decode(pieces.encode(["Ein Ω Mann", ""])) == ["Ein  Mann", ""]
    (ended,) = BytePairs([*texts, "<eos>"], 70).encode(["Ein <eos> Mann"])
    assert 0 not in ended  # in a sentence the name of the end is text
    counts = np.zeros(50, dtype=np.int64)
    assert BytePairs(texts, 60).vocabulary(counts).tokens == pieces.vocabulary(counts).tokens


def test_files_of_both_languages_are_the_splits(place: Path) -> None:
    found, _ = find_parallel(place, "de", "en", "")
    assert {split: one.name for split, (one, _) in found.items()} == {
        "train": "train.de",
        "valid": "val.de",
        "test": "test_a.de",
    }
    assert find_parallel(place, "en", "de", "test_b")[0]["test"][0].name == "test_b.en"
    config = settings(place)
    dataset = make_task(config).load(config)
    train = dataset.train
    assert dataset.sizes["train"] == len(train.target.rows)
    rows = np.concatenate([train.source.rows, train.target.rows])
    counts = np.bincount(rows, minlength=len(dataset.vocabulary))
    assert dataset.vocabulary.counts.tolist() == counts.tolist()


@pytest.mark.slow
def test_each_language_may_have_its_own_vocabulary(place: Path, tmp_path: Path) -> None:
    config = complete_settings(
        settings(place, data={"size": 200}, task={"joint": False}, model={"tied": "decoder"})
    )
    dataset = make_task(config).load(config)
    found = (dataset.source_vocabulary, dataset.vocabulary)
    for language, vocabulary in zip(("de", "en"), found, strict=True):
        lines = (place / f"train.{language}").read_text("utf-8").splitlines()
        pieces = BytePairs(lines, 200)
        rows = [row for one in pieces.encode(lines) for row in one]
        counts = np.bincount([*rows, *[END_ROW] * len(lines)], minlength=pieces.size)
        assert vocabulary.tokens == pieces.vocabulary(counts).tokens
        assert vocabulary.counts.tolist() == counts.tolist()
    assert len({len(one) for one in found}) == 2
    result = train_run(config, dataset, tmp_path, measure=None, progress=silent(), command="")
    assert result.test is not None
    assert any("pieces of words, each of its side" in one for one in result.corpus["notes"])
    path, counts_path = tmp_path / "model.safetensors", tmp_path / "vocabulary.source.tsv"
    source = embgeo.load(path, tensor="source.weight", counts=counts_path)
    assert tuple(source.tokens or ()) == found[0].tokens
    target = embgeo.load(path, counts=tmp_path / "vocabulary.tsv")
    assert tuple(target.tokens or ()) == found[1].tokens


BAD = {
    "lines": ({"train.en": "a\nb\n"}, {}),
    "blank": ({"val.en": "\n" * 10}, {}),
    "language": ({}, {"task": {"source": "fr"}}),
    "test": ({}, {"task": {"test": "news"}}),
    "size": ({}, {"data": {"size": 5}}),
    "length": ({}, {"task": {"length": 2}}),
    "batch": ({}, {"training": {"batch": 4}}),
    "accumulate": ({}, {"training": {"accumulate": 2}}),
    "method": ({}, {"compare": ["re"]}),
    # Counts, and the vocabulary of the source, are those of one way to tie the matrices.
    "tied of a method": (
        {},
        {
            "model": {"tied": "decoder"},
            "method": {"shared": {"base": "mle", "model": {"tied": "three-way"}}},
            "compare": ["mle", "shared"],
        },
    ),
    "cache": ({}, {"evaluation": {"cache": True}}),
    "tied": ({}, {"model": {"tied": True}}),
    "layers": ({}, {"model": {**LSTM, "layers": 1}}),
    "three-way": ({}, {"task": {"joint": False}}),
}


@pytest.mark.parametrize(("files", "tables"), BAD.values(), ids=BAD.keys())
def test_bad_data_and_settings_are_one_line(
    files: dict[str, str], tables: dict[str, Any], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write_corpus(corpus)
    for name, text in files.items():
        (corpus / name).write_text(text, "utf-8")
    with refusal():
        embgeo.train(out=tmp_path / "runs", settings=settings(corpus, **tables).tables())
    assert not (tmp_path / "runs").exists()


# --- Runs -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_is_judged_by_bleu(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(place, training={"epochs": 2}).tables()
    tables = {name: tables[name] for name in ("data", "task", "model", "optimizer", "training")}
    found = embgeo.train(out=tmp_path / "all", settings=tables, compare="mle,frage")
    study = load_study(tmp_path / "all")
    claims = {claim.key: claim for claim in study.outcomes}
    assert {"frage-bleu", "frage-probe", "frage-neighbors"} == set(claims)
    assert "Table 3" in claims["frage-bleu"].published
    assert {"test.bleu", "test.chrf", "test.perplexity"} <= set(study.runs[0].numbers)
    assert any("nrefs:1|case:mixed" in note for note in study.runs[0].notes + study.notes)
    assert "bleu" in found.report.read_text("utf-8").lower()


@pytest.mark.slow
def test_a_source_embedding_has_counts_numbers_and_a_discriminator_of_its_own(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(place, model={"tied": "decoder"}, training={"log_every": 1}).tables()
    tables = {name: tables[name] for name in ("data", "task", "model", "optimizer", "training")}
    embgeo.train(out=tmp_path / "all", settings=tables, compare="mle,frage")
    study = load_study(tmp_path / "all")
    assert study.roles("frage") == ("input", "source")
    (run,) = study.runs_of("frage")
    home = tmp_path / "all" / run.folder
    config = complete_settings(settings(place, model={"tied": "decoder"}))
    train = make_task(config).load(config).train
    for name, side in (("", train.target), ("source", train.source)):
        analysis = embgeo.load_analysis(home / name)
        mean = analysis.find_scalar("cosine.mean")
        assert mean is not None
        assert mean.value == run.select_numbers("source" if name else "input")["cosine.mean"]
        assert analysis.counts is not None
        counts = np.bincount(side.rows, minlength=len(analysis.counts))
        assert analysis.counts.tolist() == counts.tolist()
    assert run.numbers["cosine.mean"] != run.others["source"]["cosine.mean"]
    assert "source embedding" in "\n".join(table(study))
    # Without it, the numbers of the other matrix would stand for those of the source.
    shutil.rmtree(home / "source")
    analyze_embedding(home, "cpu", "", silent())
    assert embgeo.load_analysis(home / "source").find_scalar("cosine.mean") == mean


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("adversarial", {}),
        *(pytest.param(name, {}, marks=pytest.mark.slow) for name in ("frage", "sc-exp")),
        pytest.param("sc-exp", LSTM, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_resumed_to_the_byte(
    method: str, model: dict[str, Any], place: Path, tmp_path: Path
) -> None:
    config = complete_settings(
        settings(
            place,
            compare=[method],
            training={"save_steps": 2},
            model={**model, "dropout": 0.2},
        )
    )
    dataset = make_task(config).load(config)
    one = assert_resumes(config, tmp_path, 4, "outcomes.json")
    assert one.test is not None
    assert set(one.test) == {"loss", "perplexity", "tokens", "bleu", "chrf"}
    outcomes = OUTCOMES.load(tmp_path / "one")
    assert len(outcomes.names) == len(outcomes.units) == len(dataset.test)
    # Three matrices are one: it is saved once.
    saved = load_file(tmp_path / "one" / "model.safetensors")
    assert sum(t.shape == (len(dataset.vocabulary), 8) for t in saved.values()) == 1


@pytest.mark.slow
def test_the_lstm_learns_to_read_the_source(place: Path, tmp_path: Path) -> None:
    """Whoever does not read it needs ln 75 nats a sentence, all of which are as likely."""
    config = complete_settings(
        settings(
            place,
            model={**LSTM, "d": 32, "bound": 0.2, "dropout": 0.0},
            task={"smoothing": 0.0},
            optimizer={"lr": 0.02},
            training={"batch": 300, "epochs": 80, "log_every": 100},
        )
    )
    test: Any = train_task(config, tmp_path).test
    sentences = len((place / "test_a.en").read_text("utf-8").splitlines())
    assert test["loss"] * test["tokens"] / sentences < math.log(len(NOUNS) ** 2 * len(VERBS)) - 0.3


@pytest.mark.nightly
def test_two_processes_train_what_one_trains(place: Path, tmp_path: Path) -> None:
    config = complete_settings(settings(place, compare=["adversarial"]))
    dataset = make_task(config).load(config)
    one = assert_two_processes_agree(config, tmp_path)
    assert one.tokens == dataset.sizes["train"]


# --- Scores ---------------------------------------------------------------------------------------


def test_bleu_of_counts_is_that_of_sacrebleu() -> None:
    references = ["the man sees a dog .", "a tree", "the ball has a way with it .", "so it is"]
    others = ["the man sees the dog", "", "the ball had its way with it .", "so it was"]
    for given in (others, references, ["x"] * 4, ["a b c d e"] * 4, ["the man has it"] * 4):
        scores, outcomes = score_translations("test", given, references)
        counts = outcomes.table().sum(axis=0)
        assert float(compute_bleu(counts)) == pytest.approx(scores["bleu"], abs=1e-9)


def test_tokenized_bleu_is_that_of_multi_bleu() -> None:
    """Of words between blanks, cased and unsmoothed, by hand: p = 5/6, 3/5, 2/4, 1/3; BP = 1."""
    (reference, found), other = ("the man sees a dog .", "the man sees a cat ."), "a dog is ."
    scores, _ = score_translations("test", [found], [reference])
    by_hand = 100.0 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert scores["tokenized_bleu"] == pytest.approx(by_hand)
    assert score_translations("test", [found.title()], [reference])[0]["tokenized_bleu"] == 0.0
    assert score_translations("test", [other], [reference])[0]["tokenized_bleu"] == 0.0


@pytest.mark.parametrize(("tokenized", "held"), [(1, False), (2, True)])
def test_untokenized_corpora_have_no_tokenized_bleu(tokenized: int, held: bool) -> None:
    references = (["The man, he sees."] * 3)[tokenized:] + ["The man , he sees ."] * tokenized
    scores, _ = score_translations("test", references, references)
    assert ("tokenized_bleu" in scores) is held


def test_translations_without_a_token_have_a_bleu_of_0() -> None:
    nothing = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 9.0])
    some = np.array([3, 2, 1, 1, 4, 3, 2, 1, 0, 9.0])
    assert compute_bleu(np.stack([nothing, some])).tolist() == [0.0, 0.0]


def test_the_bootstrap_pairs_sentences() -> None:
    generator = np.random.default_rng(0)
    totals = np.tile([9, 8, 7, 6], (60, 1))
    tail = np.full((60, 2), 9)
    right = generator.binomial(totals - 1, 0.5)

    def outcomes(common: np.ndarray) -> Outcomes:
        counts = np.concatenate([common, totals, tail], axis=1)
        return Outcomes("sentences", "test", tuple(tuple(row) for row in counts.tolist()), "a")

    worse, better = outcomes(right), outcomes(right + 1)
    low, high = bootstrap({0: worse}, {0: better}, "test.bleu") or (0.0, 0.0)
    difference = np.subtract(*(compute_bleu(one.table().sum(axis=0)) for one in (better, worse)))
    assert 0.0 < low < float(difference) < high
    assert bootstrap({0: worse}, {0: worse}, "test.bleu") == (0.0, 0.0)
    assert bootstrap({0: worse}, {1: better}, "test.bleu") is None
    assert bootstrap({0: worse}, {0: replace(better, references="b")}, "test.bleu") is None
