"""Methods against degenerate embeddings, for any training loop. One file each."""

from embgeo.training.methods.adversarial_softmax import AdversarialSoftmax
from embgeo.training.methods.augmented_loss import AugmentedLoss
from embgeo.training.methods.cosreg import CosReg
from embgeo.training.methods.coupled_adam import CoupledAdam
from embgeo.training.methods.factored import (
    FactoredEmbedding,
    FactoredHead,
    Factorization,
    factorize,
    make_plain,
)
from embgeo.training.methods.frage import Frage
from embgeo.training.methods.popular import popular_rows
from embgeo.training.methods.regularizer import Combined, Regularizer, Setup, Step
from embgeo.training.methods.spectral_norm import DOptimal, SpectralNorm
from embgeo.training.methods.spectrum_control import SpectrumControl
from embgeo.training.methods.tying import Tying, tie

__all__ = [
    "REGULARIZERS",
    "AdversarialSoftmax",
    "AugmentedLoss",
    "Combined",
    "CosReg",
    "CoupledAdam",
    "DOptimal",
    "FactoredEmbedding",
    "FactoredHead",
    "Factorization",
    "Frage",
    "Regularizer",
    "Setup",
    "SpectralNorm",
    "SpectrumControl",
    "Step",
    "Tying",
    "factorize",
    "make_plain",
    "popular_rows",
    "tie",
]

#: Every method, in the order of reports. `CoupledAdam` is an optimizer; the rest are regularizers.
REGULARIZERS: tuple[type[Regularizer] | type[CoupledAdam], ...] = (
    CosReg,
    Factorization,
    SpectrumControl,
    SpectralNorm,
    DOptimal,
    Frage,
    AugmentedLoss,
    Tying,
    AdversarialSoftmax,
    CoupledAdam,
)
