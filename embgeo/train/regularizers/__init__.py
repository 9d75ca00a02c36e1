"""Methods against degenerate embeddings, for any training loop. One file each."""

from embgeo.train.regularizers.adversarial_softmax import AdversarialSoftmax
from embgeo.train.regularizers.augmented_loss import AugmentedLoss
from embgeo.train.regularizers.base import Regularizer, Setup, Step
from embgeo.train.regularizers.cosreg import CosReg
from embgeo.train.regularizers.coupled_adam import CoupledAdam
from embgeo.train.regularizers.d_optimal import DOptimal
from embgeo.train.regularizers.factored import (
    FactoredEmbedding,
    FactoredHead,
    factorise,
    make_plain,
)
from embgeo.train.regularizers.frage import Frage
from embgeo.train.regularizers.moment_match import MomentMatch
from embgeo.train.regularizers.popular import popular_rows
from embgeo.train.regularizers.several import Several
from embgeo.train.regularizers.spectral_norm import SpectralNorm
from embgeo.train.regularizers.spectrum_control import SpectrumControl
from embgeo.train.regularizers.tying import Tying, tie

__all__ = [
    "REGULARIZERS",
    "AdversarialSoftmax",
    "AugmentedLoss",
    "CosReg",
    "CoupledAdam",
    "DOptimal",
    "FactoredEmbedding",
    "FactoredHead",
    "Frage",
    "MomentMatch",
    "Regularizer",
    "Setup",
    "Several",
    "SpectralNorm",
    "SpectrumControl",
    "Step",
    "Tying",
    "factorise",
    "make_plain",
    "popular_rows",
    "tie",
]

#: Every method, in the order of reports. `CoupledAdam` is an optimiser; the rest are regularisers.
REGULARIZERS: tuple[type[Regularizer] | type[CoupledAdam], ...] = (
    CosReg,
    SpectrumControl,
    SpectralNorm,
    DOptimal,
    Frage,
    MomentMatch,
    AugmentedLoss,
    Tying,
    AdversarialSoftmax,
    CoupledAdam,
)
