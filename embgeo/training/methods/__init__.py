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
from embgeo.training.methods.method import FACTORED, UNTIED
from embgeo.training.methods.method import Method as Method
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

#: Every method by name, in the order of reports; plug-ins add to it.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "mle",
            "MLE",
            reference="",
            source="the model as configured, trained by maximum likelihood",
        ),
        Method(UNTIED, "MLE, untied", tied=False, source="the model with two matrices"),
        Method(FACTORED, "MLE, factored", (Factorization,)),
        Method("cosreg", "CosReg", (CosReg,)),
        Method(
            "sc-exp",
            "Spectrum control, exponential",
            (SpectrumControl,),
            {"prior": "exponential"},
            reference=FACTORED,
        ),
        Method(
            "sc-poly",
            "Spectrum control, polynomial",
            (SpectrumControl,),
            {"prior": "polynomial"},
            reference=FACTORED,
        ),
        Method("frage", "FRAGE", (Frage,)),
        Method("al", "AL", (AugmentedLoss,), tied=False, reference=UNTIED),
        Method("re", "RE", (Tying,), tied=True, reference=UNTIED),
        Method("real", "REAL", (Tying, AugmentedLoss), tied=True, reference=UNTIED),
        Method("spectral-norm", "Spectral normalization", (SpectralNorm,), reference=FACTORED),
        Method("d-optimal", "SN + D-optimal", (DOptimal,), reference=FACTORED),
        Method("adversarial", "Adversarial softmax", (AdversarialSoftmax,)),
        Method("coupled-adam", "Coupled Adam", coupled=True, source=CoupledAdam.SOURCE),
    )
}

#: The classes of the methods. `CoupledAdam` is an optimizer; the rest are regularizers.
REGULARIZERS: tuple[type[Regularizer] | type[CoupledAdam], ...] = (
    *dict.fromkeys(part for method in METHODS.values() for part in method.parts),
    CoupledAdam,
)
