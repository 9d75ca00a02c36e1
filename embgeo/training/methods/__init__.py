"""Methods against degenerate embeddings, for any training loop. One file each."""

from embgeo.training.methods.adversarial_softmax import AdversarialSoftmax as AdversarialSoftmax
from embgeo.training.methods.augmented_loss import AugmentedLoss as AugmentedLoss
from embgeo.training.methods.cosreg import CosReg as CosReg
from embgeo.training.methods.coupled_adam import CoupledAdam as CoupledAdam
from embgeo.training.methods.factored import FactoredEmbedding as FactoredEmbedding
from embgeo.training.methods.factored import FactoredHead as FactoredHead
from embgeo.training.methods.factored import Factorization as Factorization
from embgeo.training.methods.factored import factorize as factorize
from embgeo.training.methods.factored import make_plain as make_plain
from embgeo.training.methods.frage import Frage as Frage
from embgeo.training.methods.popular import popular_rows as popular_rows
from embgeo.training.methods.regularizer import Combined as Combined
from embgeo.training.methods.regularizer import Regularizer as Regularizer
from embgeo.training.methods.regularizer import Setup as Setup
from embgeo.training.methods.regularizer import Step as Step
from embgeo.training.methods.regularizer import WeightRegularizer as WeightRegularizer
from embgeo.training.methods.spectral_norm import DOptimal as DOptimal
from embgeo.training.methods.spectral_norm import SpectralNorm as SpectralNorm
from embgeo.training.methods.spectrum_control import SpectrumControl as SpectrumControl
from embgeo.training.methods.tying import Tying as Tying
from embgeo.training.registry import METHODS as METHODS
from embgeo.training.registry import Method as Method

#: The classes of the methods. `CoupledAdam` is an optimizer; the rest are regularizers.
REGULARIZERS: tuple[type[Regularizer] | type[CoupledAdam], ...] = (
    *dict.fromkeys(part for method in METHODS.values() for part in method.classes),
    CoupledAdam,
)
