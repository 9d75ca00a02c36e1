"""What a trained model is worth on text it has not seen."""

from embgeo.training.evaluation.continuous_cache import PUBLISHED_CACHES, Cache, continuous_cache
from embgeo.training.evaluation.dynamic import PUBLISHED_DYNAMIC, Dynamic, dynamic_evaluation
from embgeo.training.evaluation.perplexity import Part, Perplexity, perplexity

__all__ = [
    "PUBLISHED_CACHES",
    "PUBLISHED_DYNAMIC",
    "Cache",
    "Dynamic",
    "Part",
    "Perplexity",
    "continuous_cache",
    "dynamic_evaluation",
    "perplexity",
]
