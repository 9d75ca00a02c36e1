"""embgeo's numbers against those of packages that others wrote, on the same matrices.

The packages are listed in ``requirements.txt`` beside this file and are not installed with the
tests: each test is skipped without its package, with that as the reason. CONTRIBUTING says how to
run them. What differs by convention is converted here, and stated in docs/metrics.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.values import Scalar, Series, Table
from embgeo.numerics.clumps import find_modes
from embgeo.numerics.scores import auc, error_of
from embgeo.numerics.spectra import compute_largest_p
from tests.support.compared import number, pair_of

Rows = npt.NDArray[np.float64]

pytestmark = [
    pytest.mark.slow,
    # Other packages warn of what is theirs.
    pytest.mark.filterwarnings("ignore"),
]

N, D = 240, 12


def package(name: str) -> Any:
    return pytest.importorskip(
        name, reason=f"{name} is not installed (tests/peers/requirements.txt)", exc_type=ImportError
    )


def draw(seed: int, n: int = N, d: int = D) -> Rows:
    return np.random.default_rng([37, seed]).standard_normal((n, d))


def cone() -> Rows:
    """A cone of heavy norms with a spectrum that falls."""
    norms = np.exp(0.5 * draw(1, d=1))
    return norms * (draw(2) * np.arange(1, D + 1) ** -0.5 + 0.4)


def trained() -> Rows:
    """The first rows of a trained model."""
    return np.asarray(embgeo.load("fixtures/baseline.pt", rows="0:400").data, dtype=np.float64)


MATRICES = {"isotropic": lambda: draw(3), "cone": cone, "trained": trained}
each_matrix = pytest.mark.parametrize("name", MATRICES)


def value(rows: Rows, name: str, **more: Any) -> float:
    found = embgeo.analyze(rows, sections=name.partition(".")[0], reference=False, **more)[name]
    assert isinstance(found, Scalar)
    assert found.value is not None
    return found.value


# Spectrum ---------------------------------------------------------------------------------------


@each_matrix
def test_isoscore(name: str) -> None:
    peer = package("IsoScore.IsoScore")
    rows = MATRICES[name]()
    assert value(rows, "isotropy.isoscore") == pytest.approx(float(peer.IsoScore(rows)), abs=1e-6)


@each_matrix
def test_isoscore_star_without_shrinkage(name: str) -> None:
    """With ζ = 0 the newer score is the same but for its last affine step."""
    peer = package("IsoScore.IsoScore")
    torch = pytest.importorskip("torch")
    rows = MATRICES[name]()
    star = peer.istar().IsoScore_star(rows, torch.eye(rows.shape[1]), zeta=0.0)
    assert value(rows, "isotropy.isoscore") == pytest.approx(float(star), abs=1e-6)


@each_matrix
def test_weightwatcher_spectrum(name: str) -> None:
    watcher = package("weightwatcher")
    torch = pytest.importorskip("torch")
    rows = MATRICES[name]()
    layer = torch.nn.Embedding.from_pretrained(torch.from_numpy(rows))
    frame = watcher.WeightWatcher(model=torch.nn.Sequential(layer)).analyze(min_evals=2)
    theirs = frame.iloc[0]
    found = embgeo.analyze(rows, sections="spectrum,tokens", reference=False)
    sigma = found["spectrum.singular_values"]
    assert isinstance(sigma, Series)
    relative = sigma.y["uncentered"]
    # Their stable rank is ‖W‖_F²/σ₁², the inverse of our share of the top direction.
    assert value(rows, "spectrum.top_share") == pytest.approx(1 / theirs["stable_rank"], rel=1e-5)
    assert value(rows, "spectrum.numerical_rank") == len(relative) - theirs["rank_loss"]
    assert value(rows, "spectrum.condition_number") == pytest.approx(
        theirs["sv_max"] / theirs["sv_min"], rel=1e-4
    )
    # Their entropy is that of σ², over ln of the rank; our effective rank takes σ.
    power = np.square(relative) / np.square(relative).sum()
    entropy = -(power * np.log(power)).sum() / np.log(len(power))
    assert entropy == pytest.approx(theirs["entropy"], abs=1e-5)
    rms = value(rows, "tokens.norm_rms")
    assert np.log10(rms**2 * len(rows)) == pytest.approx(theirs["log_norm"], abs=1e-5)


def test_decay_of_an_exact_power_law_is_the_exponent_of_powerlaw() -> None:
    """σ_k ∝ k^−γ has eigenvalues with a tail of exponent α = 1 + 1/(2γ).

    embgeo fits σ_k over k by least squares, powerlaw the density of λ by maximum likelihood: they
    agree where the law is exact, and not where it holds in the tail only.
    """
    powerlaw = package("powerlaw")
    gamma, d = 0.8, 400
    sigma = np.arange(1.0, d + 1) ** -gamma
    rows = np.linalg.qr(draw(4, 500, d))[0] * sigma
    found = embgeo.analyze(rows, sections="spectrum", reference=False)["spectrum.decay"]
    assert isinstance(found, Table)
    place = found.columns.index("gamma")
    ours = next(row[place] for row in found.rows if str(row[0]).startswith("polynomial"))
    fitted = powerlaw.Fit(sigma**2, xmin=float(sigma[-1] ** 2), verbose=False)
    theirs = 1 / (2 * (fitted.power_law.alpha - 1))
    assert theirs == pytest.approx(gamma, rel=0.03)
    assert ours == pytest.approx(gamma, rel=1e-3)


def test_tracy_widom() -> None:
    """embgeo takes a gamma distribution of the same moments (Chiani 2014)."""
    for level in (0.5, 0.9, 0.95, 0.99):
        peer = package("TracyWidom").TracyWidom(beta=1)
        n, d = 10**7, 2000
        large, small = np.sqrt(n - 0.5), np.sqrt(d - 0.5)
        scale = (large + small) * (1 / large + 1 / small) ** (1 / 3)
        largest = (large + small) ** 2 + scale * float(peer.cdfinv(level))
        assert compute_largest_p(largest, n, d) == pytest.approx(1 - level, abs=0.004)


# Neighbors --------------------------------------------------------------------------------------


@each_matrix
def test_two_nn(name: str) -> None:
    peer = package("skdim.id").TwoNN
    rows = MATRICES[name]()
    theirs = peer(method="mle", discard_fraction=0.0).fit(rows).dimension_
    assert value(rows, "tokens.intrinsic_dimension") == pytest.approx(theirs, rel=1e-5)


@each_matrix
def test_hubness(name: str) -> None:
    peer = package("kiez.analysis")
    rows = MATRICES[name]()
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1)[:, :10]
    theirs = peer.hubness_score(nearest, len(rows), k=10)["k_skewness"]
    assert value(rows, "tokens.hubness", neighbors=10) == pytest.approx(theirs, rel=1e-9)


@each_matrix
def test_mean_cosine(name: str) -> None:
    peer = package("torchmetrics.functional")
    torch = pytest.importorskip("torch")
    rows = MATRICES[name]()
    cosines = peer.pairwise_cosine_similarity(torch.from_numpy(rows)).numpy()
    theirs = cosines.sum() / (len(rows) * (len(rows) - 1))
    assert value(rows, "cosine.mean") == pytest.approx(theirs, abs=1e-12)


def test_second_modes_are_twice_the_dip() -> None:
    """Numbers are reduced to cells of equal mass: as many here as there are gaps."""
    for apart in (0.0, 2.0, 5.0):
        diptest = package("diptest")
        numbers = np.concatenate([draw(5, 500, 1), draw(6, 400, 1) + apart]).ravel()
        assert find_modes(numbers).excess == pytest.approx(2 * diptest.dipstat(numbers), abs=0.004)


# Frequency --------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 12], ids=["ties", "no ties"])
def test_area_under_the_curve(digits: int) -> None:
    peer = package("torchmetrics.functional.classification")
    torch = pytest.importorskip("torch")
    positive = draw(7, d=1).ravel() > 0.8
    score = np.round(draw(8, d=1).ravel() + positive, digits)
    theirs = peer.binary_auroc(torch.sigmoid(torch.from_numpy(score)), torch.from_numpy(positive))
    assert auc(score, positive)[0] == pytest.approx(float(theirs), abs=1e-6)


def test_error_of_the_area_under_the_curve() -> None:
    """DeLong's interval of the peer is the area ± 1.96 errors."""
    peer = package("MLstatkit")
    positive = draw(7, d=1).ravel() > 0.8
    score, other = draw(8, d=1).ravel() + positive, draw(9, d=1).ravel()
    area, influence = auc(score, positive)
    _, _, interval, _, theirs, *_ = peer.Delong_test(positive.astype(int), score, other)
    assert area == pytest.approx(theirs, abs=1e-12)
    assert interval[1] - interval[0] == pytest.approx(2 * 1.959964 * error_of(influence), rel=1e-5)


def test_norm_spearman() -> None:
    peer = package("torchmetrics.functional")
    torch = pytest.importorskip("torch")
    rows, counts = cone(), np.random.default_rng(1).zipf(1.5, N).clip(max=10**6)
    norms = torch.from_numpy(np.linalg.norm(rows, axis=1))
    theirs = peer.spearman_corrcoef(norms, torch.log(torch.from_numpy(counts.astype(float))))
    ours = value(rows, "frequency.norm_spearman", counts=counts)
    assert ours == pytest.approx(float(theirs), abs=1e-6)


# Two matrices -----------------------------------------------------------------------------------

PAIRS = {
    "unrelated": lambda: (draw(10), draw(11)),
    "near": lambda: (cone(), cone() + 0.3 * draw(12)),
    "other width": lambda: (cone(), draw(13, d=5) + cone()[:, :5]),
}
each_pair = pytest.mark.parametrize("name", PAIRS)


@each_pair
def test_cka_of_ckatorch(name: str) -> None:
    peer = package("ckatorch.core")
    torch = pytest.importorskip("torch")
    X, Y = PAIRS[name]()
    pair, both = pair_of(X, Y), (torch.from_numpy(X), torch.from_numpy(Y))
    assert number(pair, "cka") == pytest.approx(float(peer.cka_base(*both)), abs=1e-12)
    unbiased = float(peer.cka_base(*both, unbiased=True))
    assert number(pair, "cka_debiased") == pytest.approx(unbiased, abs=1e-9)


@each_pair
def test_cka_of_repsim(name: str) -> None:
    peer = package("repsim")
    X, Y = PAIRS[name]()
    pair = pair_of(X, Y)
    biased = peer.cka([X, Y], kernel_type="linear", estimator="gretton")[0, 1]
    assert number(pair, "cka") == pytest.approx(biased, abs=1e-9)
    # Its CKA divides the unbiased estimate by biased ones; its estimates themselves are ours.
    hsic = peer.hsic([X, Y], kernel_type="linear", estimator="song")
    unbiased = hsic[0, 1] / np.sqrt(hsic[0, 0] * hsic[1, 1])
    assert number(pair, "cka_debiased") == pytest.approx(unbiased, abs=1e-9)


@each_pair
def test_cka_of_torch_cka(name: str) -> None:
    """Theirs is the mean over batches of the unbiased estimate, in float32: one batch here."""
    peer = package("torch_cka")
    torch = pytest.importorskip("torch")
    X, Y = PAIRS[name]()

    class Table(torch.nn.Module):
        def __init__(self, rows: Rows) -> None:
            super().__init__()
            self.rows = torch.nn.Embedding.from_pretrained(torch.from_numpy(rows).float())

        def forward(self, token: Any) -> Any:
            return self.rows(token)

    data = torch.utils.data.TensorDataset(torch.arange(N))
    loader = torch.utils.data.DataLoader(data, batch_size=N)
    both = peer.CKA(Table(X), Table(Y), model1_layers=["rows"], model2_layers=["rows"])
    both.compare(loader)
    theirs = float(both.export()["CKA"][0, 0])
    assert number(pair_of(X, Y), "cka_debiased") == pytest.approx(theirs, abs=1e-4)


@each_pair
def test_subspace_distance_is_that_of_canonical_correlations(name: str) -> None:
    """Yanai's measure over the smaller width is the mean cos²; theirs centers, ours does not."""
    peer = package("repsim")
    X, Y = (W - W.mean(axis=0) for W in PAIRS[name]())
    mean_square = peer.cca([X, Y], summary_type="yanai")[0, 1]
    assert number(pair_of(X, Y), "subspace_distance") ** 2 == pytest.approx(1 - mean_square)
