"""What the verdict says of matrices whose state is known: false alarms, misses and wrong causes.

    python benchmarks/calibration.py [--draws K] [--only WORD …] [--real FOLDER] [--large]

Each synthetic case is drawn K times from seeds 0 to K − 1, with the shape of the case known
beforehand. A **false alarm** is a healthy matrix that is not called healthy, a **miss** a faulty
one that is, and a **wrong cause** a faulty one of which the question that should find the fault
finds none. ``--real`` names the folder with the public matrices; their states are those that their
publications and their training tell. ``--large`` adds matrices of up to 45 million entries.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.diagnosis.verdict import Verdict
from embgeo.metrics import SECTIONS

Array = npt.NDArray[np.floating[Any]]
Rng = np.random.Generator

#: What looks at geometry and rows; frequency needs counts and has its own findings.
MEASURED = tuple(name for name in SECTIONS if name not in ("frequency", "subspace", "hidden"))
HEALTHY = ("healthy",)
FAULTY = ("mild", "degenerate")
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@dataclass(frozen=True)
class Case:
    """A matrix whose state is known.

    Attributes
    ----------
    group, name : str
    make : callable
        Draws the rows from a generator.
    states : tuple of str
        Any of these is right.
    cause : str
        Key of the finding that has to see the fault; empty where none is meant.
    says : str
        What the headline has to say.
    """

    group: str
    name: str
    make: Callable[[Rng], embgeo.Matrix | Array]
    states: tuple[str, ...] = HEALTHY
    cause: str = ""
    says: str = ""


# --- rows of a known shape --------------------------------------------------------------------


def isotropic(rng: Rng, n: int, d: int, spread: float = 0.0) -> Array:
    """Random directions; norms lognormal with this standard deviation of their logarithm."""
    rows = rng.standard_normal((n, d))
    return (
        rows / np.linalg.norm(rows, axis=1)[:, None] * np.exp(spread * rng.standard_normal((n, 1)))
    )


def decaying(rng: Rng, n: int, d: int, power: float) -> Array:
    """Singular values ∝ k^(−power), in a random basis."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * np.arange(1.0, d + 1) ** -power @ basis


def cone(rng: Rng, n: int, d: int, rho: float) -> Array:
    """Isotropic rows plus a common vector that makes their mean cosine about `rho`."""
    direction = rng.standard_normal(d)
    length = np.sqrt(rho / (1.0 - rho))
    return isotropic(rng, n, d) + length * direction / np.linalg.norm(direction)


def raise_entries(rng: Rng, n: int, d: int, coordinates: int, by: float) -> Array:
    rows = rng.standard_normal((n, d))
    rows[:, :coordinates] += by
    return rows


def widen_entries(rng: Rng, n: int, d: int, coordinates: int, times: float) -> Array:
    rows = rng.standard_normal((n, d))
    rows[:, :coordinates] *= times
    return rows


def on_few(rng: Rng, n: int, d: int, rank: int) -> Array:
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) + 1e-3 * isotropic(
        rng, n, d
    )


def on_a_line(rng: Rng, n: int, d: int, noise: float) -> Array:
    direction = rng.standard_normal(d)
    signs = rng.choice([-1.0, 1.0], (n, 1))
    return signs * direction / np.linalg.norm(direction) + noise * isotropic(rng, n, d)


def with_large_rows(rng: Rng, n: int, d: int, count: int, times: float) -> Array:
    rows = isotropic(rng, n, d)
    rows[rng.choice(n, count, replace=False)] *= times
    return rows


def cluster_rows(rng: Rng, n: int, d: int, clusters: int, noise: float) -> Array:
    centers = isotropic(rng, clusters, d)
    return centers[rng.integers(0, clusters, n)] + noise * isotropic(rng, n, d)


def with_equal_rows(rng: Rng, n: int, d: int, share: float) -> Array:
    rows = isotropic(rng, n, d)
    rows[rng.permutation(n)[: int(share * n)]] = rows[0]
    return rows


def with_dead_rows(rng: Rng, n: int, d: int, share: float, norm: float, rho: float = 0.0) -> Array:
    rows = cone(rng, n, d, rho)
    dead = rng.permutation(n)[: int(share * n)]
    rows[dead] = norm * isotropic(rng, len(dead), d)
    return rows


def with_clump(rng: Rng, n: int, d: int, share: float, norm: float, rho: float) -> embgeo.Matrix:
    """Some rows of this mean cosine among themselves and this norm among isotropic ones."""
    rows = isotropic(rng, n, d, spread=0.1)
    clump = rng.permutation(n)[: int(share * n)]
    rows[clump] = norm * np.sqrt(1.0 - rho) * cone(rng, len(clump), d, rho)
    return name_unused(rows, clump)


def with_gathered_rows(rng: Rng, n: int, d: int, share: float, rho: float) -> embgeo.Matrix:
    """Some rows of this mean cosine among themselves in a faint cone, of the norms of all."""
    rows = cone(rng, n, d, 0.02)
    clump, direction = rng.permutation(n)[: int(share * n)], isotropic(rng, 1, d)
    gathered = np.sqrt(rho) * direction + np.sqrt(1.0 - rho) * isotropic(rng, len(clump), d)
    rows[clump] = gathered * np.linalg.norm(rows[clump], axis=1, keepdims=True)
    return name_unused(rows, clump)


def name_unused(rows: Array, clump: npt.NDArray[np.int64]) -> embgeo.Matrix:
    """Two of three rows of the clump are spelled as unused tokens."""
    unused = set(clump[: 2 * len(clump) // 3].tolist())
    names = (f"[unused{i}]" if i in unused else f"word{i}" for i in range(len(rows)))
    return embgeo.Matrix(rows, tokens=tuple(names))


def trained(rng: Rng, n: int, d: int) -> Array:
    return decaying(rng, n, d, 0.3)


def group_rows(rng: Rng, n: int, d: int, degrees: float, sizes: tuple[float, ...]) -> Array:
    """Groups of directions with this angle between any two, and little noise."""
    k, near = len(sizes), np.cos(np.radians(degrees))
    gram = near * np.ones((k, k)) + (1.0 - near) * np.eye(k)
    frame = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    centers = np.linalg.cholesky(gram + 1e-9 * np.eye(k)) @ frame
    member = rng.choice(k, n, p=sizes)
    return centers[member] + 0.02 * isotropic(rng, n, d)


def two_modalities(rng: Rng, n: int, d: int) -> Array:
    """Mean cosine 0.5 inside either half of the rows, 0.2 between them, as CLIP has."""
    own = rng.standard_normal((n, d)) * np.arange(1.0, d + 1.0) ** -0.3
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    common, *sides = np.linalg.qr(rng.standard_normal((d, 3)))[0].T
    side = np.where(np.arange(n)[:, None] < n // 2, sides[0], sides[1])
    return np.asarray(np.sqrt(0.5) * own + np.sqrt(0.2) * common + np.sqrt(0.3) * side)


def wide_groups(rng: Rng, n: int, d: int, count: int, between: float) -> Array:
    """Groups as wide as scripts: mean cosine 0.5 in each, and this one between them."""
    own = trained(rng, n, d)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    common, *frame = np.linalg.qr(rng.standard_normal((d, count + 1)))[0].T
    side = np.array(frame)[np.arange(n) % count]
    return np.asarray(
        np.sqrt(0.5) * own + np.sqrt(between) * common + np.sqrt(0.5 - between) * side
    )


def with_short_rows(rng: Rng, n: int, d: int, share: float) -> Array:
    """Rows of nearly one length, and a share of them one and a half decades shorter."""
    rows = isotropic(rng, n, d, spread=0.1)
    rows[rng.permutation(n)[: int(share * n)]] *= 10**-1.8
    return rows


def with_spread_short_rows(rng: Rng, n: int, d: int, share: float) -> Array:
    """Of normal rows a share is 20 to 150 times shorter, spread over a decade."""
    rows = rng.standard_normal((n, d))
    rows[: int(share * n)] /= 10 ** rng.uniform(np.log10(20), np.log10(150), (int(share * n), 1))
    return rows


def in_a_quadrant(rng: Rng, n: int) -> Array:
    angle = rng.uniform(0.1, np.pi / 2 + 0.1, n)
    return np.c_[np.cos(angle), np.sin(angle)]


def with_zero_rows(rng: Rng, n: int, d: int, first: int, last: int) -> Array:
    rows = trained(rng, n, d)
    rows[:first], rows[n - last :] = 0.0, 0.0
    return rows


def with_dead_codes(rng: Rng, n: int, d: int, share: float) -> Array:
    rows = trained(rng, n, d)
    rows[rng.permutation(n)[: int(share * n)]] *= 1e-4
    return rows


def with_added_rows(rng: Rng, n: int, d: int, count: int) -> Array:
    """The last rows as transformers adds tokens: the mean row, and 3e-5 of the spread around it."""
    rows = cone(rng, n, d, 0.08)
    rows[n - count :] = rows[: n - count].mean(axis=0)
    rows[n - count :] += 3.2e-5 * isotropic(rng, count, d)
    return rows


def with_twins(rng: Rng, n: int, d: int, share: float) -> Array:
    rows = trained(rng, n, d)
    pairs = int(share * n) // 2
    rows[:pairs] = rows[pairs : 2 * pairs] + 1e-5 * rng.standard_normal((pairs, d))
    return rows


def embed_bytes(rng: Rng, decades: float) -> Array:
    """Of 256 bytes the 13 that no UTF-8 text has keep their initial rows, so much shorter."""
    rows = trained(rng, 256, 256)
    rows *= 0.32 * 10**decades * np.exp(0.2 * rng.standard_normal((256, 1))) / norms_of(rows)
    rows[[0xC0, 0xC1, *range(0xF5, 0x100)]] = 0.02 * rng.standard_normal((13, 256))
    return rows


def norms_of(rows: Array) -> Array:
    return np.linalg.norm(rows, axis=1, keepdims=True)


def with_norms(rows: Array, norm: float) -> Array:
    return norm * rows / norms_of(rows)


def with_garbage(rng: Rng, n: int, d: int, share: float) -> Array:
    rows = trained(rng, n, d)
    rows[rng.permutation(n)[: int(share * n)]] *= 1e20
    return rows


def draw_map(rng: Rng, n: int, clouds: int) -> Array:
    """Clouds in a plane, as t-SNE draws them."""
    centers = 60.0 * rng.standard_normal((clouds, 2))
    return np.asarray(centers[rng.integers(0, clouds, n)] + 3.0 * rng.standard_normal((n, 2)))


def all_sign_patterns(bits: int) -> Array:
    return 2.0 * (np.arange(2**bits)[:, None] >> np.arange(bits) & 1) - 1.0


def with_adapter(rng: Rng, n: int, d: int, rank: int) -> Array:
    """A low-rank update that was merged at far too large a scale."""
    added = rng.standard_normal((n, rank)) @ isotropic(rng, rank, d)
    return trained(rng, n, d) + 14.0 * added


def in_own_axes(rows: Array) -> Array:
    """The same rows in the basis of their singular vectors, as LSA tables are."""
    return np.asarray(rows @ np.linalg.svd(rows, full_matrices=False)[2].T)


def position_rows(n: int, d: int) -> Array:
    """Sines and cosines of positions (Vaswani et al. 2017)."""
    angles = np.arange(n)[:, None] / 10_000 ** (np.arange(d // 2) / (d // 2))
    return np.hstack([np.sin(angles), np.cos(angles)])


def trace_arc(degrees: float, rng: Rng) -> Array:
    angle = np.radians(degrees) * np.linspace(0.0, 1.0, 1000)
    return np.c_[np.cos(angle), np.sin(angle), np.zeros((1000, 14))] + 0.02 * rng.standard_normal(
        (1000, 16)
    )


#: One connected curve each: a cone, and no clusters.
CURVES: dict[str, Callable[[Rng], Array]] = {
    "sinusoidal positions, 2,048 × 256": lambda _: position_rows(2048, 256),
    "arc of 143°": lambda r: trace_arc(143.0, r),
    "random walk": lambda r: np.cumsum(r.standard_normal((2000, 32)), axis=0) + 20.0,
}
#: Rows before training, and what they are drawn by.
INITIALIZATIONS: dict[str, Callable[[Rng], Array]] = {
    "N(0, 0.02)": lambda r: 0.02 * r.standard_normal((3000, 64)),
    "Xavier": lambda r: np.sqrt(6 / 3100) * r.uniform(-1, 1, (3000, 100)),
    "word2vec, 1/(2d)": lambda r: r.uniform(-1, 1, (3000, 100)) / 200,
    "fastText, 1/d": lambda r: r.uniform(-1, 1, (3000, 100)) / 100,
    "orthogonal": lambda r: np.linalg.qr(r.standard_normal((3000, 64)))[0],
    "N(0, 1), 20,000 × 3": lambda r: r.standard_normal((20_000, 3)),
}


def shapes_that_experts_saw() -> Iterator[Case]:
    """Kinds that the verdict once got wrong."""
    for name, make in INITIALIZATIONS.items():
        yield Case("initialization", name, make, HEALTHY, says="an initialization")
    for degrees in (10.0, 25.0, 45.0):
        for k in (2, 4):
            yield Case(
                "clusters in a cone", f"{k} groups {degrees:g}° apart",
                lambda r, a=degrees, k=k: group_rows(r, 2000, 32, a, (1 / k,) * k),
                ("degenerate",), "cone", says="a narrow cone",
            )  # fmt: skip
    yield Case(
        "two modalities", "1,000 × 512", lambda r: two_modalities(r, 1000, 512), ("degenerate",),
        "cone", says="with 2 clusters in it",
    )  # fmt: skip
    yield Case(
        "a cluster of 1%", "600 × 32", lambda r: group_rows(r, 600, 32, 180.0, (0.99, 0.01)),
        ("degenerate",), "cone", says="a narrow cone",
    )  # fmt: skip
    yield Case(
        "one quadrant", "2,000 × 2", lambda r: in_a_quadrant(r, 2000), ("degenerate",), "cone"
    )
    for share in (0.049, 0.051, 0.45, 0.52, 0.9):
        yield Case(
            "dead codes", f"{share:.1%}", lambda r, s=share: with_dead_codes(r, 2000, 32, s),
            ("degenerate",), "suspects", says="damaged",
        )  # fmt: skip
    ends = (
        ("zero row 0", 1, 0),
        ("zero rows 0 and 1", 2, 0),
        ("zero tail", 0, 50),
        ("both", 1, 50),
    )
    for name, first, last in ends:
        yield Case("padding", name, lambda r, a=first, b=last: with_zero_rows(r, 2000, 32, a, b))
    for share, states in ((0.1, ("mild",)), (1.0, ("degenerate",))):
        yield Case(
            "near-duplicates", f"{share:.0%}", lambda r, s=share: with_twins(r, 2000, 32, s),
            states, "suspects", says="near-identical",
        )  # fmt: skip
    yield Case(
        "added tokens", "64 at the mean row", lambda r: with_added_rows(r, 3000, 64, 64),
        ("mild",), "suspects", says="64 rows at the mean",
    )  # fmt: skip
    for decades in (0.5, 0.8):
        yield Case(
            "untrained bytes", f"13 of 256, {decades} decades shorter",
            lambda r, x=decades: embed_bytes(r, x), ("mild",), "suspects",
            says="13 rows never trained",
        )  # fmt: skip
    yield Case(
        "garbage", "30% of norm 1e20", lambda r: with_garbage(r, 2000, 64, 0.3),
        ("degenerate",), "suspects", says="damaged rows",
    )  # fmt: skip
    yield Case(
        "a map in the plane", "12 clouds, 3,000 × 2", lambda r: draw_map(r, 3000, 12), FAULTY,
        "clusters",
    )  # fmt: skip
    yield Case("codebook", "all sign patterns of 10 bits", lambda _: all_sign_patterns(10))
    yield Case(
        "adapter", "8 directions, merged far too large", lambda r: with_adapter(r, 3000, 128, 8),
        FAULTY, "two-sided", says="rows along few directions",
    )  # fmt: skip
    for n, d in ((5, 64), (29, 8), (50, 768)):
        yield Case(
            "too few rows", f"{n} × {d}", lambda r, n=n, d=d: r.standard_normal((n, d)),
            ("undecided",), says="too few rows",
        )  # fmt: skip
    for between, count in ((0.05, 2), (0.0, 3), (0.05, 4)):
        yield Case(
            "wide groups", f"{count}, {between} between them",
            lambda r, k=count, b=between: wide_groups(r, 2000, 128, k, b), FAULTY, "cone",
            says=f"from {count} groups without a cone",
        )  # fmt: skip
    yield Case(
        "clusters", "20 tight, 2,000 × 64", lambda r: group_rows(r, 2000, 64, 90.0, (0.05,) * 20),
        FAULTY, "clusters", says="20 tight clusters",
    )  # fmt: skip
    for share in (0.3, 0.6, 0.9):
        yield Case(
            "short rows", f"{share:.0%}", lambda r, s=share: with_short_rows(r, 2000, 32, s),
            ("mild",), "suspects", says="rows never trained",
        )  # fmt: skip
    for share in (0.12, 0.3):
        yield Case(
            "short rows over a decade", f"{share:.0%}",
            lambda r, s=share: with_spread_short_rows(r, 2000, 64, s), ("mild",), "norms",
            says="times shorter than the others",
        )  # fmt: skip
    yield Case(
        "unequal norms", "lognormal, s = 1.7", lambda r: isotropic(r, 3000, 64, spread=1.7),
        ("mild",), "spectrum", says="unequal norms",
    )  # fmt: skip
    yield Case(
        "rogue coordinate", "three at +10 of 64",
        lambda r: raise_entries(r, 3000, 64, 3, 10.0), FAULTY, "coordinate",
        says="3 coordinates contribute",
    )  # fmt: skip
    yield Case(
        "no negative entries", "sparse ReLU",
        lambda r: np.maximum(r.standard_normal((2000, 64)) - 1.0, 0.0),
        says="a faint cone of rows without negative entries",
    )  # fmt: skip
    orthants: dict[str, Callable[[Rng], Array]] = {
        "ReLU": lambda r: np.maximum(r.standard_normal((2000, 64)), 0.0),
        "binary": lambda r: (r.random((2000, 64)) < 0.3) * 1.0,
        "counts": lambda r: r.poisson(1.0, (2000, 64)) * 1.0,
        "NMF": lambda r: r.gamma(0.5, size=(2000, 32)),
    }
    for name, make in orthants.items():
        yield Case("no negative entries", name, make, FAULTY, "cone", says="without negative")
    yield Case(
        "rogue coordinate", "three × 15 of 64", lambda r: widen_entries(r, 3000, 64, 3, 15.0),
        FAULTY, "coordinate", says="3 coordinates carry",
    )  # fmt: skip
    yield Case(
        "no positive entries", "log-probabilities of 40 topics",
        lambda r: np.log(r.dirichlet(np.full(40, 0.5), 2000) + 1e-9), FAULTY, "cone",
        says="without positive entries",
    )  # fmt: skip
    yield Case(
        "principal axes", "λ_k ∝ 1/k, 3,000 × 256, nearly",
        lambda r: r.standard_normal((3000, 256)) * np.arange(1, 257) ** -0.5,
    )  # fmt: skip
    for rho, states in ((0.08, HEALTHY), (0.15, ("mild",)), (0.4, ("degenerate",))):
        yield Case(
            "principal axes", f"of a cone, ρ = {rho}",
            lambda r, p=rho: in_own_axes(cone(r, 3000, 64, p)), states, "cone" * (rho > 0.1),
        )  # fmt: skip
    yield Case("nested", "the first 64 of 256 × 5", lambda r: widen_entries(r, 3000, 256, 64, 5.0))
    for name, curve in CURVES.items():
        yield Case("smooth curve", name, lambda r, make=curve: make(r), FAULTY, "cone")
    yield Case(
        "long rows",
        "all norms 300, 20,000 × 64",
        lambda r: with_norms(trained(r, 20_000, 64), 300.0),
    )
    yield Case(
        "group of similar tokens", "10%, no counts",
        lambda r: embgeo.Matrix(with_gathered_rows(r, 3000, 64, 0.1, 0.8).data),
    )  # fmt: skip


def synthetic(large: bool) -> Iterator[Case]:
    for n, d in ((100, 64), (500, 16), (3000, 64), (3000, 768)):
        yield Case("isotropic", f"{n:,} × {d}", lambda r, n=n, d=d: isotropic(r, n, d))
    sizes = (500, 3000, 30_000, *((624_000, 626_000, 700_000) if large else ()))
    for n in sizes:
        yield Case(
            "lognormal norms", f"s = 1, {n:,} × 64", lambda r, n=n: isotropic(r, n, 64, spread=1.0)
        )
    for d in (16, 64, 768):
        for power in (0.25, 0.5):
            yield Case(
                "spectrum", f"σ ∝ k^−{power}, 3,000 × {d}",
                lambda r, d=d, p=power: decaying(r, 3000, d, p),
            )  # fmt: skip
    for d in (64, 768):
        for power, states in ((1.0, FAULTY), (1.5, ("degenerate",))):
            yield Case(
                "spectrum", f"σ ∝ k^−{power}, 3,000 × {d}",
                lambda r, d=d, p=power: decaying(r, 3000, d, p), states, "spectrum",
            )  # fmt: skip
    for rank in (2, 5):
        yield Case(
            "spectrum", f"rank {rank} of 64", lambda r, k=rank: on_few(r, 3000, 64, k),
            ("degenerate",), "spectrum",
        )  # fmt: skip
    for noise in (0.1, 0.5):
        yield Case(
            "two-sided line", f"noise {noise}, 3,000 × 64",
            lambda r, s=noise: on_a_line(r, 3000, 64, s), ("degenerate",), "two-sided",
        )  # fmt: skip
    for d in (64, 768):
        for rho in (0.01, 0.05):
            yield Case(
                "faint cone", f"ρ = {rho}, 3,000 × {d}", lambda r, d=d, p=rho: cone(r, 3000, d, p)
            )
        for rho, states in ((0.15, ("mild",)), (0.4, ("degenerate",)), (0.8, ("degenerate",))):
            yield Case(
                "cone", f"ρ = {rho}, 3,000 × {d}", lambda r, d=d, p=rho: cone(r, 3000, d, p),
                states, "cone",
            )  # fmt: skip
    yield Case(
        "rogue coordinate",
        "one at +20 of 768",
        lambda r: raise_entries(r, 3000, 768, 1, 20.0),
        FAULTY,
        "coordinate",
    )
    # No state is worse for its axes: any other direction of this length is as healthy.
    yield Case(
        "rogue coordinate",
        "two at +6 of 768",
        lambda r: raise_entries(r, 3000, 768, 2, 6.0),
        says="a faint cone that 2 coordinates make",
    )
    for d in (64, 768):
        yield Case(
            "rogue coordinate",
            f"one × 10 of {d}",
            lambda r, d=d: widen_entries(r, 3000, d, 1, 10.0),
            FAULTY if d == 64 else HEALTHY,
            "coordinate" if d == 64 else "",
            says="one coordinate carries",
        )
        yield Case(
            "ordinary coordinates",
            f"one × 2 of {d}",
            lambda r, d=d: widen_entries(r, 3000, d, 1, 2.0),
        )
    for word, count, times in (("one", 1, 500.0), ("five", 5, 500.0), ("three", 3, 60.0)):
        yield Case(
            "few large rows", f"{word} × {times:g}",
            lambda r, k=count, t=times: with_large_rows(r, 3000, 64, k, t), FAULTY, "spectrum",
        )  # fmt: skip
    yield Case("few large rows", "one × 5", lambda r: with_large_rows(r, 3000, 64, 1, 5.0))
    for clusters in (2, 4, 8):
        yield Case(
            "clusters",
            f"{clusters} tight, 3,000 × 64",
            lambda r, k=clusters: cluster_rows(r, 3000, 64, k, 0.2),
            FAULTY,
            "clusters",
        )
    yield Case("clusters", "100 loose, 3,000 × 64", lambda r: cluster_rows(r, 3000, 64, 100, 1.0))
    for share in (0.1, 0.47):
        yield Case(
            "equal rows",
            f"{share:.0%}, 3,000 × 64",
            lambda r, s=share: with_equal_rows(r, 3000, 64, s),
            FAULTY,
            "suspects",
        )
    for share in (0.001, 0.02, 0.05):
        yield Case(
            "damaged rows",
            f"{share:.1%} of norm 1e−17",
            lambda r, s=share: with_dead_rows(r, 3000, 64, s, 1e-17),
            FAULTY,
            "suspects",
        )
    yield Case(
        "untrained rows", "25% of norm 0.02 in a cone of ρ = 0.33",
        lambda r: with_dead_rows(r, 3000, 64, 0.25, 0.02, rho=0.33), FAULTY, "cone",
    )  # fmt: skip

    for n, share, norm in ((20_000, 0.02, 0.4), (3000, 0.06, 0.4), (3000, 0.06, 2.0)):
        yield Case(
            "clump", f"{share:.0%} of norm {norm}, {n:,} × 64",
            lambda r, n=n, s=share, norm=norm: with_clump(r, n, 64, s, norm, rho=0.5),
            ("mild",), "suspects",
        )  # fmt: skip
    gathered = (
        (1000, 64, 0.05, 0.8), (3000, 64, 0.05, 0.8), (20_000, 64, 0.01, 0.8),
        (3000, 64, 0.3, 0.5), (3000, 256, 0.3, 0.5),
    )  # fmt: skip
    for n, d, share, rho in gathered:
        yield Case(
            "clump anywhere", f"{share:.0%}, mean cosine {rho}, {n:,} × {d}",
            lambda r, n=n, d=d, s=share, p=rho: with_gathered_rows(r, n, d, s, p),
            ("mild",), "suspects",
        )  # fmt: skip


#: By file, and tensor where it holds several: state, and the finding that sees the fault.
PUBLIC: dict[str, tuple[tuple[str, ...], str]] = {
    "crystal_5000.npy": (("degenerate",), "two-sided"),
    "crystal_40000.npy": (("degenerate",), "two-sided"),
    "glove.500.50d.txt": (("degenerate",), "cone"),
    "lee_fasttext.vec": (("degenerate",), "cone"),
    "cbow_oreilly.pkl": (("healthy", "mild"), ""),
    "rnnlm_oreilly.pkl": (HEALTHY, ""),
    # Nine rows have the norm of word2vec's initialization, √(d/12)/d = 0.046: never trained.
    "w2v_papers_24118x40.bin": (("mild",), "suspects"),
    "fairy_tales_lstm_full_module.pt": (HEALTHY, ""),
    "lee_fasttext.bin": (("degenerate",), "cone"),
    # 69 and 31 letters in 50 dimensions.
    "opennmt_legacy_b.pt:model.encoder.embeddings.emb_luts.0.weight": (HEALTHY, ""),
    "opennmt_legacy_b.pt:model.decoder.embeddings.emb_luts.0.weight": (("mild",), "spectrum"),
}


def real(folder: Path) -> Iterator[Case]:
    fixtures = (
        ("baseline.pt", (("degenerate",), "cone")),
        ("cosreg.safetensors", (HEALTHY, "")),
    )
    for root, expected in ((FIXTURES, dict(fixtures)), (folder, PUBLIC)):
        for name, (states, cause) in expected.items():
            file, _, tensor = name.partition(":")
            if (root / file).is_file():
                more = {"tensor": tensor} if tensor else {}
                yield Case(
                    "real", name, lambda _, path=root / file, more=more: embgeo.load(path, **more),
                    states, cause,
                )  # fmt: skip


# --- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the verdict said in all draws of a case."""

    case: Case
    verdicts: tuple[Verdict, ...]

    @property
    def faulty(self) -> bool:
        return not {"healthy", "undecided"} & {*self.case.states}

    @property
    def wrong_states(self) -> int:
        return sum(v.state not in self.case.states for v in self.verdicts)

    @property
    def misses(self) -> int:
        return sum(v.state not in FAULTY for v in self.verdicts) if self.faulty else 0

    @property
    def false_alarms(self) -> int:
        return 0 if self.faulty else self.wrong_states

    @property
    def wrong_causes(self) -> int:
        """Faults that another question saw, or that the headline calls something else."""
        if self.case.says:
            return sum(self.case.says not in v.headline for v in self.verdicts)
        if not self.case.cause:
            return 0
        findings = [v.finding(self.case.cause) for v in self.verdicts if v.state in FAULTY]
        return sum(f is None or f.state not in FAULTY for f in findings)

    def line(self) -> str:
        states = Counter(v.state for v in self.verdicts)
        said = ", ".join(f"{state} {count}" for state, count in states.most_common())
        remark = "; ".join(
            f"{count} {what}"
            for what, count in (
                ("missed", self.misses),
                ("false alarms", self.false_alarms),
                ("by another cause", self.wrong_causes),
                ("in another state", self.wrong_states - self.misses - self.false_alarms),
            )
            if count
        )
        expected = " or ".join(self.case.states)
        return (
            f"| {self.case.group} | {self.case.name} | {expected} | {said} "
            f"| {self.verdicts[0].headline} | {remark} |"
        )


def judge(case: Case, draws: int) -> Outcome:
    verdicts = []
    for seed in range(1 if case.group == "real" else draws):
        matrix = case.make(np.random.default_rng(seed))
        if not isinstance(matrix, embgeo.Matrix):
            matrix = embgeo.Matrix(matrix)
        found = embgeo.analyze(matrix, sections=MEASURED, pairs=2000)
        verdicts.append(found.verdict)
    return Outcome(case, tuple(verdicts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="words in a case's group or name")
    parser.add_argument("--real", type=Path, default=Path("../shared/data/real_embeddings"))
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    print("| group | case | known to be | verdicts | headline of the first draw | wrong |")
    print("|---|---|---|---|---|---|")
    outcomes = []
    for case in (*synthetic(asked.large), *shapes_that_experts_saw(), *real(asked.real)):
        if asked.only and not any(word in f"{case.group} {case.name}" for word in asked.only):
            continue
        try:
            outcomes.append(judge(case, asked.draws))
        except EmbgeoError as error:
            print(f"| {case.group} | {case.name} | | not read | {error} | |")
            continue
        print(outcomes[-1].line(), flush=True)
    print(f"\n{summarize(outcomes)}")


def summarize(outcomes: list[Outcome]) -> str:
    healthy = sum(len(o.verdicts) for o in outcomes if not o.faulty)
    faulty = sum(len(o.verdicts) for o in outcomes if o.faulty)
    return (
        f"{sum(o.false_alarms for o in outcomes)} false alarms on {healthy} healthy matrices, "
        f"{sum(o.misses for o in outcomes)} misses on {faulty} faulty ones, "
        f"{sum(o.wrong_causes for o in outcomes)} named another cause."
    )


if __name__ == "__main__":
    main()
