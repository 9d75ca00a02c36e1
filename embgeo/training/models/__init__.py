"""Language models to train, one file each."""

from collections.abc import Mapping
from typing import Any

from embgeo.training.checks import list_defaults
from embgeo.training.models.awd_lstm import AwdLstm as AwdLstm
from embgeo.training.models.language_model import EmbeddingModel as EmbeddingModel
from embgeo.training.models.language_model import LanguageModel as LanguageModel
from embgeo.training.models.language_model import Output as Output
from embgeo.training.models.language_model import detach as detach
from embgeo.training.models.llama import Llama as Llama
from embgeo.training.models.transformer import Transformer as Transformer
from embgeo.training.models.transformer_xl import TransformerXL as TransformerXL
from embgeo.training.models.vd_lstm import VdLstm as VdLstm
from embgeo.training.models.vd_rhn import VdRhn as VdRhn
from embgeo.training.registry import check_defaults, check_name, require

#: Every language model by name, to which plug-ins add.
MODELS: dict[str, type[LanguageModel]] = {
    model.NAME: model for model in (AwdLstm, VdLstm, VdRhn, Transformer, TransformerXL, Llama)
}


def build(name: str, n_tokens: int, settings: Mapping[str, Any]) -> LanguageModel:
    """Make a language model by name, with weights drawn from torch's global generator.

    `n_tokens`: tokens of the vocabulary. `settings`: keyword arguments of the model's constructor.
    """
    return model_class(name).construct(settings, n_tokens)


def model_class(name: str) -> type[LanguageModel]:
    """Find a language model by name, also among plug-ins."""
    return require("model", MODELS, name)


def check_model(kind: type[LanguageModel]) -> str:
    """Return the name of a model of a plug-in; ValueError if the model is not usable."""
    if not (isinstance(kind, type) and issubclass(kind, LanguageModel)):
        raise ValueError("it is not a LanguageModel")
    if kind.layers_of is LanguageModel.layers_of:
        raise ValueError(f"{kind.__name__} has no layers_of")
    check_defaults(kind, list_defaults(kind))
    return check_name(kind.NAME)
