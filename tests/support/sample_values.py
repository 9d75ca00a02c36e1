"""The values of the made-up analysis in :mod:`tests.support.sample_analysis`, family by family."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.values import Column, Histogram, Points, Quantity, Scalar, Series, Table, Value

Array = npt.NDArray[np.float64]

GAUSSIAN = "isotropic Gaussian rows, same N, d and norms"


def quantity(name: str, title: str, unit: str = "", better: Any = None) -> Quantity:
    return Quantity(
        name,
        title,
        f"What {title} means, in a sentence.",
        f"formula of {title}",
        "Author 2020, §1",
        unit,
        better,
    )


def scalar(name: str, title: str, value: float, unit: str = "", **facts: Any) -> Scalar:
    return quantity(name, title, unit).measured(float(value), **facts)


def spectrum(w: Array) -> list[Value]:
    n, d = w.shape
    s = np.linalg.svd(w, compute_uv=False)
    centered = np.linalg.svd(w - w.mean(0), compute_uv=False)
    norms = np.linalg.norm(w, axis=1)
    gauss = np.random.default_rng(7).standard_normal((n, d))
    gauss *= (norms / np.linalg.norm(gauss, axis=1))[:, None]
    reference = np.linalg.svd(gauss, compute_uv=False)
    k = np.arange(1.0, d + 1)

    def entropy_rank(x: Array) -> float:
        p = x / x.sum()
        return float(np.exp(-np.sum(p * np.log(p))))

    energy = np.cumsum(s**2) / np.sum(s**2)
    fits = {
        "exponential c1·exp(−c2·k^γ)": np.exp(-0.1 * (k - 1)),
        "polynomial c1·k^(−γ)": k**-0.5,
    }
    return [
        scalar(
            "spectrum.effective_rank",
            "effective rank",
            entropy_rank(s),
            reference=entropy_rank(reference),
            reference_note=GAUSSIAN,
            convention="exp of the entropy of σ, not centered",
        ),
        scalar(
            "spectrum.energy_90",
            "directions for 90% of the energy",
            1 + np.searchsorted(energy, 0.9),
        ),
        scalar("spectrum.condition_number", "condition number", s[0] / s[-1]),
        scalar("spectrum.numerical_rank", "numerical rank", d),
        scalar(
            "spectrum.top_share",
            "share of the top direction",
            s[0] ** 2 / np.sum(s**2),
            reference=float(reference[0] ** 2 / np.sum(reference**2)),
            reference_note=GAUSSIAN,
        ),
        Series(
            quantity("spectrum.singular_values", "singular values"),
            k,
            {
                "uncentered": s / s[0],
                "centered": centered / s[0],
                "isotropic reference": reference / s[0],
            },
            "k",
            "σ_k / σ_1",
            log_y=True,
        ),
        Series(
            quantity("spectrum.decay_fit", "decay of the spectrum"),
            k,
            {"σ_k/σ_1": s / s[0], **fits},
            "k",
            "σ_k / σ_1",
            log_y=True,
        ),
        Table(
            quantity("spectrum.decay", "fitted priors"),
            ("prior", "c1", "c2", "gamma", "residual", "better"),
            (("exponential", 1.1, 0.1, 1.0, 0.02, "yes"), ("polynomial", 1.0, None, 0.5, 0.05, "")),
        ),
    ]


def projection(w: Array) -> list[Value]:
    s, vt = np.linalg.svd(w, full_matrices=False)[1:]
    flip = np.where(vt[:2] @ w.mean(0) < 0, -1.0, 1.0)
    c = w - w.mean(0)
    sc, vc = np.linalg.svd(c, full_matrices=False)[1:]
    share = s[:2] ** 2 / np.sum(s**2)
    share_c = sc[:2] ** 2 / np.sum(sc**2)
    return [
        scalar("projection.svd2_share", "energy in the SVD plane", share.sum()),
        Points(
            quantity("projection.svd2", "rank-2 SVD"),
            w @ (vt[:2] * flip[:, None]).T,
            f"axis 1 ({100 * share[0]:.3g}%)",
            f"axis 2 ({100 * share[1]:.3g}%)",
            (float(share[0]), float(share[1])),
        ),
        Points(
            quantity("projection.pca2", "PCA"),
            c @ vc[:2].T,
            f"PC 1 ({100 * share_c[0]:.3g}%)",
            f"PC 2 ({100 * share_c[1]:.3g}%)",
            (float(share_c[0]), float(share_c[1])),
        ),
    ]


def cosine(unit: Array, rng: np.random.Generator) -> list[Value]:
    m, d = unit.shape
    total = unit.sum(0)
    mean = (total @ total - m) / (m * (m - 1.0))
    second = (np.sum((unit.T @ unit) ** 2) - m) / (m * (m - 1.0))
    pairs = np.sum(unit[rng.integers(0, m, 20000)] * unit[rng.integers(0, m, 20000)], axis=1)
    angles = np.degrees(np.arccos(np.clip(unit @ (total / np.linalg.norm(total)), -1, 1)))
    share = total**2 / (total @ total)
    counts, edges = np.histogram(pairs, bins=80, range=(-1, 1))
    angle_counts, angle_edges = np.histogram(angles, bins=60, range=(0, 180))
    order = np.argsort(-share)[:5]
    name = "cosine.cone_half_angle_"
    return [
        scalar("cosine.mean", "mean cosine", mean, reference=0.0, reference_note=GAUSSIAN),
        scalar("cosine.std", "spread of cosines", np.sqrt(max(0.0, second - mean**2)),
               reference=1 / np.sqrt(d), reference_note=GAUSSIAN),
        scalar("cosine.positive_share", "positive pairs", np.mean(pairs > 0), standard_error=0.003,
               sample="20,000 pairs", reference=0.5, reference_note=GAUSSIAN),
        scalar(f"{name}max", "cone half-angle, largest", angles.max(), "°"),
        scalar(f"{name}median", "cone half-angle, median", np.median(angles), "°",
               reference=90.0, reference_note=GAUSSIAN),
        scalar("cosine.cone_aperture", "cone aperture", np.degrees(np.arccos(pairs.min())), "°",
               sample="20,000 pairs", convention="a lower bound: over sampled pairs"),
        scalar("cosine.max_dimension_share", "largest coordinate's share", share.max()),
        Histogram(quantity("cosine.histogram", "cosines of pairs"), edges, counts.astype(float),
                  "cosine of two rows", "pairs", "20,000 pairs, drawn at random"),
        Histogram(quantity("cosine.cone_angles", "angles to the mean direction"), angle_edges,
                  angle_counts.astype(float), "angle (°)", "rows", "all rows"),
        Table(quantity("cosine.top_dimensions", "largest coordinates"), ("coordinate", "share"),
              tuple((int(i), float(share[i])) for i in order)),
        Column(quantity("cosine.angle_to_mean", "angle to mean", "°"), angles, "angle"),
    ]  # fmt: skip


def isotropy(w: Array) -> list[Value]:
    vectors = np.linalg.eigh(w.T @ w)[1][:, ::-1].T
    vectors *= np.where(vectors @ w.mean(0) < 0, -1.0, 1.0)[:, None]

    def partition(x: Array) -> tuple[Array, Array]:
        plus, minus = np.exp(x @ vectors.T).sum(0), np.exp(-x @ vectors.T).sum(0)
        scale = np.mean([plus, minus])
        return plus / scale, minus / scale

    def both(x: Array) -> tuple[float, float]:
        z = np.concatenate(partition(x))
        return float(z.min() / z.max()), float(z.std() / z.mean())

    def one(x: Array) -> tuple[float, float]:
        z = partition(x)[0]
        return float(z.min() / z.max()), float(z.std() / z.mean())

    unit = w / np.mean(np.linalg.norm(w, axis=1))
    gauss = np.random.default_rng(8).standard_normal(w.shape)
    gauss *= (np.linalg.norm(w, axis=1) / np.linalg.norm(gauss, axis=1))[:, None]
    rows = w / np.linalg.norm(w, axis=1)[:, None]
    reference = {
        "raw": both(gauss),
        "unit": both(gauss / np.mean(np.linalg.norm(w, axis=1))),
        "rows": both(gauss / np.linalg.norm(gauss, axis=1)[:, None]),
    }
    out: list[Value] = []
    for suffix, pair in (
        ("", both(w)), ("_mean_sign", one(w)), ("_unit", both(unit)), ("_unit_rows", both(rows)),
    ):  # fmt: skip
        for j, letter in enumerate(("i1", "i2")[: 1 if suffix.startswith("_unit") else 2]):
            known = {"": "raw", "_unit": "unit", "_unit_rows": "rows"}.get(suffix)
            facts: dict[str, Any] = (
                {"reference": reference[known][j], "reference_note": GAUSSIAN} if known else {}
            )
            out.append(
                scalar(f"isotropy.{letter}{suffix}", f"{letter.upper()}{suffix.replace('_', ' ')}",
                       pair[j], convention="both signs of each eigenvector", **facts)
            )  # fmt: skip
    k = np.arange(1.0, w.shape[1] + 1)
    plus, minus = partition(w)
    out += [
        scalar("isotropy.eigengap", "smallest relative eigenvalue gap", 0.004),
        scalar("isotropy.isoscore", "IsoScore", 0.2, reference=0.97, reference_note=GAUSSIAN),
        Series(quantity("isotropy.z", "partition function"), k,
               {"Z(v_k)": plus, "Z(−v_k)": minus}, "k", "Z / mean Z", log_y=True),
    ]  # fmt: skip
    return out


def frequency(
    w: Array, unit: Array, tokens: tuple[str, ...], counts: Array,
    popular: npt.NDArray[np.bool_], rng: np.random.Generator,
) -> list[Value]:  # fmt: skip
    m = len(w)
    norms = np.linalg.norm(w, axis=1)
    direction = unit[popular].mean(0) - unit[~popular].mean(0)
    score = unit @ direction
    rank = np.empty(m)
    rank[np.argsort(score)] = np.arange(1, m + 1)
    p = int(popular.sum())
    auc = (rank[popular].sum() - p * (p + 1) / 2) / (p * (m - p))
    mean = unit.mean(0) / np.linalg.norm(unit.mean(0))
    queries = [int(q) for q in rng.integers(0, m, 6)] + list(range(min(m, 8)))
    rows, rare = [], []
    for q in queries:
        similar = unit @ unit[q]
        similar[q] = -2
        near = np.argsort(-similar)[:10]
        rows.append(
            (tokens[q], "popular" if popular[q] else "rare", float(counts[q]),
             *(tokens[int(i)] for i in near))
        )  # fmt: skip
        rare += [(len(rows) - 1, 3 + int(j)) for j in np.flatnonzero(~popular[near])]
    bins = [
        (
            f"{i + 1}", len(part), f"{counts[part].min():.0f}–{counts[part].max():.0f}",
            float(np.median(norms[part])), float(np.mean(unit[part] @ unit[part].mean(0))),
            float(np.mean(unit[part] @ mean)),
        )
        for i, part in enumerate(np.array_split(np.arange(m), 10))
    ]  # fmt: skip
    error: dict[str, Any] = {
        "standard_error": 0.01,
        "sample": "5-fold",
        "reference": 0.5,
        "reference_note": "chance",
    }
    base: dict[str, Any] = {
        "standard_error": 0.02,
        "reference": 1 - p / m,
        "reference_note": "base rate",
    }
    return [
        scalar("frequency.norm_ratio", "norm, frequent over rare",
               np.median(norms[popular]) / np.median(norms[~popular]),
               reference=1.0, reference_note="chance"),
        scalar("frequency.norm_spearman", "norm against count", 0.6, reference=0.0,
               reference_note="chance"),
        scalar("frequency.probe_auc", "probe AUC", auc, **error),
        scalar("frequency.neighbor_rarity_rare", "rare beside rare", 0.95, **base),
        scalar("frequency.neighbor_rarity_popular", "rare beside popular", 0.35, **base),
        Table(quantity("frequency.by_frequency_bin", "by frequency"),
              ("bin", "tokens", "counts", "median norm", "mean cosine inside",
               "mean cosine to mean direction"), tuple(bins)),
        Table(quantity("frequency.neighbors", "nearest neighbors"),
              ("token", "class", "count", *(f"neighbor {i}" for i in range(1, 11))), tuple(rows),
              rare=tuple(rare)),
        Table(quantity("frequency.neighbor_ranks", "ranks of neighbors"),
              ("token", "neighbor", "cosine", "rank"), ((tokens[0], tokens[1], 0.4, 771),)),
        Column(quantity("frequency.log_count", "log10(1+count)"), np.log10(1 + counts), "count"),
    ]  # fmt: skip


def subspace(n: int, d: int) -> list[Value]:
    angles = np.linspace(5.0, 85.0, d)
    distance = float(np.sqrt(np.mean(np.sin(np.radians(angles)) ** 2)))
    return [
        scalar("subspace.distance", "distance of input and output space", distance,
               reference=float(np.sqrt(1 - d / n)), reference_note="chance"),
        Series(quantity("subspace.principal_angles", "principal angles"), np.arange(1.0, d + 1),
               {"angle": angles}, "index", "angle (°)"),
    ]  # fmt: skip


def tokens_family(w: Array, tokens: tuple[str, ...], counts: Array | None) -> list[Value]:
    norms = np.linalg.norm(w, axis=1)
    mean = w.mean(0) / np.linalg.norm(w.mean(0))
    angle = np.degrees(np.arccos(np.clip(w @ mean / norms, -1, 1)))

    def extremes(name: str, title: str, key: Array, value: Array) -> Table:
        rows = tuple(
            (int(i), tokens[i], None if counts is None else float(counts[i]), float(value[i]))
            for i in np.argsort(key)[:20]
        )
        return Table(quantity(f"tokens.{name}", title), ("row", "token", "count", "value"), rows)

    bins, edges = np.histogram(norms, bins=60)
    return [
        scalar("suspects.zero", "zero rows", 0),
        Histogram(quantity("tokens.norms", "row norms"), edges, bins.astype(float), "‖w‖", "rows"),
        Column(quantity("tokens.norm", "norm"), norms, "norm"),
        extremes("smallest_norms", "smallest norms", norms, norms),
        extremes("largest_norms", "largest norms", -norms, norms),
        extremes("nearest_to_mean", "nearest to the mean direction", angle, angle),
    ]
