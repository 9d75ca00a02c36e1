"""The loop knows nothing of language models, and trains them as it always did."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.training.data import Batches, columns  # noqa: E402
from embgeo.training.loop.distributed import numerics  # noqa: E402
from embgeo.training.loop.loop import _DROPOUT  # noqa: E402
from embgeo.training.methods import (  # noqa: E402
    METHODS,
    Setup,
    Step,
)
from embgeo.training.methods.method import attach_method, list_embeddings  # noqa: E402
from embgeo.training.models import build, detach  # noqa: E402
from embgeo.training.optimization.optimizers import build_optimizer, parameter_groups  # noqa: E402
from embgeo.training.sections import Adam  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.training.tasks.language_model import cross_entropy  # noqa: E402
from tests.support.training_runs import CPU, LSTM, corpus, settings, trainer_of  # noqa: E402

STEPS = 11


def train_plainly(config: StudySettings, name: str) -> dict[str, Any]:
    """A training of a language model written out: what the loop and its task have to do."""
    method, text = METHODS[name], corpus()
    batches = Batches(columns(text.train, 4), 10, seed=0)
    torch.manual_seed(0)
    own = {} if method.tied is None else {"tied": method.tied}
    shape = {key: value for key, value in LSTM.items() if key != "name"}
    model = build("awd-lstm", len(text.vocabulary), {**shape, **own})
    counts = torch.from_numpy(text.vocabulary.counts)
    method_of = attach_method(method, model, Setup(counts=counts), config.method.get(name, {}))
    in_loss = bool(method_of.NEEDS) or not all(w.is_leaf for w in method_of.acts_on())
    rows = model.embedding_parameters()
    groups = parameter_groups(model, method_of.parameter_groups(), embeddings=rows)
    coupled = list_embeddings(model) if method.coupled else ()
    optimizer = build_optimizer(Adam(lr=0.01), groups, coupled=coupled)
    torch.manual_seed(_DROPOUT)
    model.train()
    state = None
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        window = batches.take()
        output = model(window.inputs, None if window.first else state)
        step = Step(output.hidden, model.head(output.hidden), window.targets, window.inputs)
        step.logits = method_of.logits(step)
        loss = cross_entropy(step.logits, window.targets) + model.activation_penalty(output)
        (loss + method_of(step) if in_loss else loss).backward()
        if not in_loss:
            method_of.add_gradient()
        optimizer.step()
        method_of.after_step(0.01)
        state = detach(output.state)
    return dict(model.state_dict())


@pytest.mark.slow
def test_a_language_model_is_trained_to_the_bytes_of_a_loop_written_out() -> None:
    for name in METHODS:
        config = settings(name)
        with numerics("float32", CPU, 1):
            expected = train_plainly(config, name)
            trainer = trainer_of(config, name)
            for _ in range(STEPS):
                trainer.step()
        found = trainer.model.state_dict()
        assert found.keys() == expected.keys()
        for key, tensor in expected.items():
            assert torch.equal(found[key], tensor), key
