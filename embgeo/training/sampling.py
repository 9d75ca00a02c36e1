"""Text sampled from a language model, token by token."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from embgeo.training.checks import positive, whole
from embgeo.training.models import LanguageModel, detach


@torch.no_grad()
def sample_rows(
    model: LanguageModel,
    prompt: Sequence[int],
    *,
    length: int,
    window: int,
    temperature: float = 1.0,
    seed: int = 0,
    never: Collection[int] = (),
) -> list[int]:
    """Sample the rows that continue a prompt from softmax(logits/temperature).

    Parameters
    ----------
    model : LanguageModel
        On the CPU; left in evaluation mode.
    prompt : sequence of int
        Rows, one at least.
    length : int
        Number of rows to draw.
    window : int
        Number of last rows that a model without a state sees: its training window.
    temperature : float
        Below 1 likely tokens become more likely, above 1 less likely.
    seed : int
        Random seed; the same seed gives the same rows.
    never : collection of int
        Rows that are not drawn.

    Raises
    ------
    BadOption
        A length or a temperature that makes no sense.
    """
    whole("length", length)
    positive("temperature", temperature)
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    found, state, shown = list(prompt), None, list(prompt)
    for _ in range(length):
        output = model(torch.tensor(shown).unsqueeze(1), state)
        state = detach(output.state)
        logits: Tensor = model.head(output.hidden[-1, 0]).double() / temperature
        logits[list(never)] = -torch.inf
        drawn = torch.multinomial(torch.softmax(logits, dim=0), 1, generator=generator)
        found.append(int(drawn))
        shown = found[-window:] if state is None else found[-1:]
    return found[len(prompt) :]
