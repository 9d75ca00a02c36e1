"""The methods that can be compared: what each changes in the model, in the loss and in the step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from embgeo.errors import BadOption
from embgeo.train.models import LanguageModel
from embgeo.train.regularizers import (
    AdversarialSoftmax,
    AugmentedLoss,
    CosReg,
    CoupledAdam,
    DOptimal,
    FactoredHead,
    Frage,
    MomentMatch,
    Regularizer,
    Setup,
    Several,
    SpectralNorm,
    SpectrumControl,
    Tying,
)

#: Told by the run (`Setup`), not by settings.
_BY_THE_RUN = {"self", "source", "embedding", "output", "popular", "model", "setup", "cls"}
_BY_THE_RUN |= {"ignore_rows", "seed"}


@dataclass(frozen=True, slots=True)
class Method:
    """One way to train a language model.

    Attributes
    ----------
    name : str
        As settings and folders name it.
    title : str
        As tables and pages name it.
    parts : tuple
        Regularisers that are attached to the model, in this order, each with the settings that it
        has unless the run's settings say otherwise.
    tied : bool, optional
        Whether the output layer is the input embedding; None: as the model's settings have it.
    coupled : bool
        Whether `CoupledAdam` is the optimiser.
    reference : tuple of str
        What it is compared with: the first of these that is in the comparison.
    source : str
        The publication; by default that of the parts.
    """

    name: str
    title: str
    parts: tuple[tuple[type[Regularizer], Mapping[str, Any]], ...] = ()
    tied: bool | None = None
    coupled: bool = False
    reference: tuple[str, ...] = ("mle",)
    source: str = ""
    own_deviations: tuple[str, ...] = field(default=())

    @property
    def publication(self) -> str:
        """Where the method is from."""
        return self.source or "; ".join(part.SOURCE for part, _ in self.parts)

    @property
    def deviations(self) -> tuple[str, ...]:
        """Each way in which it is not what was published."""
        lines = [line for part, _ in self.parts for line in part.DEVIATIONS]
        if self.coupled:
            lines += CoupledAdam.DEVIATIONS
        return tuple(dict.fromkeys((*lines, *self.own_deviations)))

    def settings(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The settings of each part, those that are `given` among them.

        Raises
        ------
        BadOption
            A setting that no part has.
        """
        known = [settings_of(part) for part, _ in self.parts]
        for key in given:
            if not any(key in names for names in known):
                names = sorted({name for part in known for name in part})
                raise BadOption(
                    f"[method.{self.name}] has no {key!r}",
                    way_out=f"it has {', '.join(names)}" if names else "it has no settings",
                )
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
        return [
            {**usual, **{key: value for key, value in values.items() if key in names}}
            for (_, usual), names in zip(self.parts, known, strict=True)
        ]

    def attach(self, model: nn.Module, setup: Setup, given: Mapping[str, Any]) -> Regularizer:
        """Make the method for a model, changing it where the method says so.

        Raises
        ------
        BadOption
            A setting that it has not, or of a value that makes no sense.
        """
        settings = self.settings(given)
        made = []
        for (part, _), own in zip(self.parts, settings, strict=True):
            try:
                made.append(part.attach(model, setup, **own))
            except TypeError as error:
                raise BadOption(
                    f"[method.{self.name}]: {error}", way_out="give numbers as numbers"
                ) from error
        if not made:
            return Nothing()
        return made[0] if len(made) == 1 else Several(made)


class Nothing(Regularizer):
    """Maximum likelihood alone."""

    NAME = "nothing"
    SOURCE = ""


def settings_of(part: type[Regularizer]) -> tuple[str, ...]:
    """What the constructor and `attach` of a regulariser can be told."""
    names: dict[str, None] = {}
    for kind in part.__mro__:
        for function in ("__init__", "attach"):
            if kind is not nn.Module and issubclass(kind, Regularizer) and function in vars(kind):
                parameters = inspect.signature(getattr(kind, function)).parameters.values()
                names |= {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY}
    return tuple(name for name in names if name not in _BY_THE_RUN)


_TO_UNTIED = ("untied", "mle")

#: Every method, in the order of reports.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("mle", "MLE", source="the model as configured, trained by maximum likelihood"),
        Method("untied", "MLE, untied", tied=False, source="the model with two matrices"),
        Method("cosreg", "CosReg", ((CosReg, {}),)),
        Method(
            "sc-exp",
            "Spectrum control, exponential",
            ((SpectrumControl, {"prior": "exponential"}),),
        ),
        Method(
            "sc-poly",
            "Spectrum control, polynomial",
            ((SpectrumControl, {"prior": "polynomial"}),),
        ),
        Method("frage", "FRAGE", ((Frage, {}),)),
        Method("al", "AL", ((AugmentedLoss, {}),), tied=False, reference=_TO_UNTIED),
        Method("re", "RE", ((Tying, {}),), tied=True, reference=_TO_UNTIED),
        Method("real", "REAL", ((Tying, {}), (AugmentedLoss, {})), tied=True, reference=_TO_UNTIED),
        Method("spectral-norm", "Spectral normalisation", ((SpectralNorm, {}),)),
        Method("d-optimal", "SN + D-optimal", ((DOptimal, {}),)),
        Method("moment-match", "Moment matching", ((MomentMatch, {}),)),
        Method("adversarial", "Adversarial softmax", ((AdversarialSoftmax, {}),)),
        Method("coupled-adam", "Coupled Adam", coupled=True, source=CoupledAdam.SOURCE),
    )
}


def method(name: str) -> Method:
    """The method of that name.

    Raises
    ------
    BadOption
        There is none.
    """
    if name not in METHODS:
        raise BadOption(f"no method {name!r}", way_out=f"there are {', '.join(METHODS)}")
    return METHODS[name]


def reference_of(name: str, among: tuple[str, ...]) -> str | None:
    """With which of the methods of a comparison another one is compared; None for the first."""
    found = [other for other in method(name).reference if other in among and other != name]
    return found[0] if found else None


@torch.no_grad()
def embedding_weights(model: LanguageModel) -> list[Tensor]:
    """The matrices with a row for each token: the input's, and the output's if it is another."""
    before, output = model.get_input_embeddings(), model.get_output_embeddings()
    found = before.weight
    assert isinstance(found, Tensor)
    if isinstance(output, FactoredHead) and output.factored is before:
        return [found]
    other = output.weight
    assert isinstance(other, Tensor)
    return [found] if other is found else [found, other]


def needs_adam(method: Method) -> BadOption:
    """What is said where a method that is an optimiser of Adam's kind meets SGD."""
    return BadOption(
        f"{method.name} is an optimiser, and so is sgd",
        way_out='leave it out, or set kind = "adamw" in [optimizer]',
    )
