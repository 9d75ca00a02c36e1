"""Language models to train, one file each."""

from collections.abc import Mapping
from typing import Any

from embgeo.training.components import MODELS as MODELS
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
from embgeo.training.registry import find, load_class


def build(name: str, n_tokens: int, settings: Mapping[str, Any]) -> LanguageModel:
    """Make a language model by name, with weights drawn from torch's global generator.

    `n_tokens`: tokens of the vocabulary. `settings`: keyword arguments of the model's constructor.
    """
    model: LanguageModel = load_class(find("model", MODELS, name))(n_tokens, **settings)
    return model
