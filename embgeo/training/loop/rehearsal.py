"""Whether every run of a comparison can be made, found out before the first one is trained."""

from __future__ import annotations

from pathlib import Path

import torch

from embgeo.core.errors import BadOption
from embgeo.training.data import Corpus, columns, read_vocabulary
from embgeo.training.loop.checkpoint import VOCABULARY_NAME
from embgeo.training.loop.log import check_sinks
from embgeo.training.loop.loop import initial_model
from embgeo.training.loop.process import find_device
from embgeo.training.loop.start import find_start
from embgeo.training.methods import Factorization, Setup
from embgeo.training.methods.catalog import Method, refuse_sgd
from embgeo.training.methods.definitions import find_method
from embgeo.training.models import LanguageModel, build
from embgeo.training.settings import StudySettings

#: For methods, whose own settings do not depend on how large a model is.
_SMALL = {"d": 4, "hidden": 4, "layers": 1}
_TOKENS = 10
#: Windows of random length are longer than usual by this at most, but for one in 10⁹.
_LONGER = 30


def rehearse(config: StudySettings, corpus: Corpus) -> None:
    """Make each method of a comparison, with the model on no device, and forget it.

    In a comparison, the last method is made when the others have been trained.

    Parameters
    ----------
    config : StudySettings
        As of :func:`embgeo.training.resolve.resolve`.

    Raises
    ------
    BadOption
        A setting outside its range, windows that are longer than the model can read, a batch that
        is larger than the text, no such device, or a method that does not go with the optimizer.
    """
    find_device(config.training.device)
    check_sinks(config.training.sinks)
    columns(corpus.train, config.training.batch)
    for name in config.compare:
        chosen = find_method(name, config.method)
        if chosen.coupled and config.optimizer.kind == "sgd":
            raise refuse_sgd(chosen)
        own = {} if chosen.tied is None else {"tied": chosen.tied}
        with torch.device("meta"):
            model = build(config.model.name, _TOKENS, {**config.model.settings, **own})
        check_windows(model, config)
        factored = any(issubclass(part, Factorization) for part in chosen.parts)
        if factored and len(corpus.vocabulary) < model.d:
            raise BadOption(
                f"{name} needs as many rows as columns, and there are {len(corpus.vocabulary):,} "
                f"words and d = {model.d:,}",
                way_out="make d of [model] smaller, or the vocabulary larger",
            )
        check_method(chosen, config)
        check_start(chosen, config, corpus)


def check_start(chosen: Method, config: StudySettings, corpus: Corpus) -> None:
    """Refuse weights to start from that do not fit the model or the vocabulary."""
    if config.training.start is None:
        return
    for seed in config.seeds:
        folder = find_start(Path(config.training.start), chosen.name, seed)
        if read_vocabulary(folder / VOCABULARY_NAME).tokens != corpus.vocabulary.tokens:
            raise BadOption(
                "the weights are of another vocabulary than the text",
                where=folder,
                way_out="leave out size, min_count and tokenizer of [data]",
            )
    with torch.random.fork_rng(devices=[]):
        initial_model(config, chosen, corpus.vocabulary)


def check_windows(model: LanguageModel, config: StudySettings) -> None:
    """Refuse windows that are too long for the model."""
    training = config.training
    if model.longest is None:
        return
    evaluated = config.evaluation.bptt or training.bptt
    if evaluated > training.bptt:
        raise BadOption(
            f"windows of [evaluation] have {evaluated:,} tokens, and the model learns "
            f"{training.bptt:,} positions",
            way_out="leave bptt of [evaluation] out, or make that of [training] larger",
        )
    length = training.bptt + (_LONGER if training.random_lengths else 0)
    if length > model.longest:
        raise BadOption(
            f"windows of [training] have {length:,} tokens, and the model {model.longest:,} "
            "positions",
            way_out="make context of [model] larger, or bptt of [training] smaller",
        )


def check_method(chosen: Method, config: StudySettings) -> None:
    """Refuse settings of a method that make no sense; the random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        tied = True if chosen.tied is None else chosen.tied
        small = build("awd-lstm", _TOKENS, {**_SMALL, "tied": tied})
        setup = Setup(counts=torch.arange(_TOKENS, 0, -1), sgd=config.optimizer.kind == "sgd")
        chosen.attach(small, setup, config.method.get(chosen.name, {}))
