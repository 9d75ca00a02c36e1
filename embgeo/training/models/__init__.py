"""Language models to train: each with a tied or an untied output layer. One file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.training.checks import list_defaults, refuse_others
from embgeo.training.models.awd_lstm import AwdLstm
from embgeo.training.models.embedding_model import EmbeddingModel
from embgeo.training.models.language_model import LanguageModel, Output, detach
from embgeo.training.models.llama import Llama
from embgeo.training.models.transformer import Transformer
from embgeo.training.models.transformer_xl import TransformerXL
from embgeo.training.models.vd_lstm import VdLstm
from embgeo.training.registry import check_defaults, check_name, find_added, list_added

__all__ = [
    "MODELS",
    "AwdLstm",
    "EmbeddingModel",
    "LanguageModel",
    "Llama",
    "Output",
    "Transformer",
    "TransformerXL",
    "VdLstm",
    "build",
    "check_model",
    "detach",
    "model_class",
]

#: Every model, in the order of help texts.
MODELS: tuple[type[LanguageModel], ...] = (AwdLstm, VdLstm, Transformer, TransformerXL, Llama)


def build(name: str, n_tokens: int, settings: Mapping[str, Any]) -> LanguageModel:
    """Make a model, drawn from torch's global generator.

    Parameters
    ----------
    name : str
        The `NAME` of one of `MODELS`.
    n_tokens : int
        Tokens of the vocabulary.
    settings : mapping
        Keyword arguments of the model's constructor; what is not given has its default.

    Raises
    ------
    BadOption
        No such model or setting, or a value outside its range.
    """
    model = model_class(name)
    refuse_others(name, settings, list_defaults(model))
    return model(n_tokens, **settings)


def model_class(name: str) -> type[LanguageModel]:
    """The model of that name; `BadOption` if there is none."""
    for model in MODELS:
        if name == model.NAME:
            return model
    found = find_added("models", name, check_model)
    if found is None:
        names = ", ".join((*(model.NAME for model in MODELS), *list_added("models")))
        raise BadOption(
            f"unknown model {name!r}", way_out=f"choose from {names}; --plugin adds others"
        )
    added: type[LanguageModel] = found
    return added


def check_model(kind: type[LanguageModel]) -> str:
    """The name of a model that a plug-in adds; ValueError for something else."""
    if not (isinstance(kind, type) and issubclass(kind, LanguageModel)):
        raise ValueError("it is not a LanguageModel")
    if kind.layers_of is LanguageModel.layers_of:
        raise ValueError(f"{kind.__name__} has no layers_of")
    check_defaults(kind, list_defaults(kind))
    return check_name(kind.NAME)
