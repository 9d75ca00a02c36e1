"""What a trained model is worth on text it has not seen."""

from embgeo.training.evaluation.continuous_cache import (
    PUBLISHED_CACHES,
    CacheSettings,
    continuous_cache,
)
from embgeo.training.evaluation.dynamic import (
    PUBLISHED_DYNAMIC,
    DynamicSettings,
    dynamic_evaluation,
)
from embgeo.training.evaluation.perplexity import Perplexity, TokenSubset, perplexity

__all__ = [
    "PUBLISHED_CACHES",
    "PUBLISHED_DYNAMIC",
    "CacheSettings",
    "DynamicSettings",
    "Perplexity",
    "TokenSubset",
    "continuous_cache",
    "dynamic_evaluation",
    "perplexity",
]
