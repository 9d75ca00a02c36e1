"""Training that starts from the weights of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption, UnreadableFile  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.data import Vocabulary, load_corpus  # noqa: E402
from embgeo.training.loop.check import check_study  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402
from tests.support.training_runs import (  # noqa: E402
    LSTM,
    Stopped,
    corpus,
    numbers,
    run,
    run_all,
    settings,
    stopping,
    trainer_of,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    run_all(settings(compare=["mle", "untied", "re"], seeds=[0, 1]), folder)
    return folder


def started(start: Path, method: str = "mle", **tables: Any) -> Any:
    return trainer_of(settings(method, training={"start": str(start)}, **tables))


def saved(folder: Path) -> Any:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


@each_value
@pytest.mark.parametrize("method", ["mle", "untied", "re", "sc-exp", "cosreg"])
@pytest.mark.parametrize("begun", ["mle", "untied"])
def test_every_method_starts_from_given_weights(runs: Path, method: str, begun: str) -> None:
    folder = runs / begun / "seed-0"
    trainer = started(folder, method)
    weights = saved(folder)
    W, output = trainer.matrices()
    assert torch.allclose(W, weights["embedding.weight"], atol=1e-6)
    if output is not None:
        expected = weights.get("decoder.weight", weights["embedding.weight"])
        assert torch.equal(output, expected)
    if method in ("mle", "cosreg"):
        assert torch.equal(trainer.model.decoder.bias, weights["decoder.bias"])


def test_in_a_folder_each_starts_from_its_own(runs: Path) -> None:
    for method in ("mle", "untied"):
        trainer = started(runs, method)
        own = saved(runs / method / "seed-0")
        assert torch.equal(trainer.matrices()[0], own["embedding.weight"])
    with refusal(BadOption):
        started(runs, "cosreg")


def test_a_bias_that_the_run_did_not_have_starts_as_usual(runs: Path) -> None:
    trainer = started(runs / "re" / "seed-0")
    assert not trainer.model.decoder.bias.any()


def test_other_models_are_refused_before_training(runs: Path) -> None:
    for model in (
        {"d": 6, "hidden": 6},
        {"layers": 2},
        {"name": "transformer", "d": 8, "heads": 2},
    ):
        start = {"start": str(runs / "mle" / "seed-0"), "bptt": 10}
        config = settings(training=start, evaluation={"bptt": 10})
        config = config.updated({"model": model if "name" in model else {**LSTM, **model}})
        with refusal(BadOption):
            check_study(complete_settings(config), corpus())


def test_another_vocabulary_and_a_damaged_file_are_refused(runs: Path, tmp_path: Path) -> None:
    start = runs / "mle" / "seed-0"
    config = complete_settings(settings(training={"start": str(start)}))
    with refusal(BadOption):
        check_study(config, corpus(n=40))
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with refusal(UnreadableFile):
        started(tmp_path)


@pytest.mark.slow
def test_a_run_from_given_weights_is_resumed_to_the_same_bits(runs: Path, tmp_path: Path) -> None:
    start = {"start": str(runs / "mle" / "seed-0"), "save_steps": 5}
    config = settings("sc-exp", training=start)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(config, whole)
    with pytest.raises(Stopped):
        run(config, broken, progress=stopping(after=7))
    run(config, broken)
    files = [(folder / "model.safetensors").read_bytes() for folder in (whole, broken)]
    assert files[0] == files[1]
    assert numbers(whole) == numbers(broken)


def test_a_text_is_read_with_a_given_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("".join(f"a b c{n}\n" for n in range(300)), encoding="utf-8")
    known = Vocabulary(("b", "z", "<eos>", "<unk>", "a"), np.ones(5, dtype=np.int64), 3, 2)
    found = load_corpus(path, vocabulary=known, min_count=1, size=4)
    assert found.vocabulary.tokens == known.tokens
    assert found.vocabulary.counts[1] == 0
    assert found.vocabulary.counts.sum() == len(found.train)
    assert found.train[:4].tolist() == [4, 0, 3, 2]
    bare = Vocabulary(("a", "b", "<eos>"), np.ones(3, dtype=np.int64))
    with refusal(BadOption):
        load_corpus(path, vocabulary=bare)
