"""What a trained model is worth on text it has not seen."""

from embgeo.training.evaluation.continuous_cache import (
    PUBLISHED_CACHES,
    CacheSettings,
    continuous_cache,
)
from embgeo.training.evaluation.dynamic import (
    PUBLISHED_DYNAMIC,
    PUBLISHED_DYNAMIC_OF_MIXTURES,
    DynamicSettings,
    dynamic_evaluation,
)
from embgeo.training.evaluation.logit_rank import rank_log_probabilities
from embgeo.training.evaluation.perplexity import Perplexity, TokenSubset, perplexity

__all__ = [
    "PUBLISHED_CACHES",
    "PUBLISHED_DYNAMIC",
    "PUBLISHED_DYNAMIC_OF_MIXTURES",
    "CacheSettings",
    "DynamicSettings",
    "Perplexity",
    "TokenSubset",
    "continuous_cache",
    "dynamic_evaluation",
    "perplexity",
    "rank_log_probabilities",
]
