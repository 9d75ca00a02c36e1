"""Which naive function stands beside which value, and how closely the two must agree."""

from __future__ import annotations

import math
import zlib
from functools import cache
from statistics import NormalDist

import numpy as np

from embgeo.numerics.clusters import find_clusters
from embgeo.numerics.sampling import deal_folds
from tests.support import naive, naive_frequency
from tests.support.matrices import Case, case


def draw_numbers(purpose):
    """The generator that the analysis uses for a purpose, with seed 0."""
    return np.random.default_rng([0, zlib.crc32(purpose.encode())])


def spectrum(c: Case):
    s = naive.singular_values(c.W)
    rank = int((s > s[0] * max(c.W.shape) * np.finfo(float).eps).sum())
    largest = c.W.shape[1] * naive.singular_values(naive.unit(c.W))[0] ** 2
    return {
        "effective_rank": naive.effective_rank(s),
        "top_share": s[0] ** 2 / (s**2).sum(),
        "mean_norm_ratio": np.linalg.norm(c.W.mean(axis=0)) / naive.norms(c.W).mean(),
        "condition_number": s[0] / s[-1] if rank == len(s) else None,
        "numerical_rank": rank,
        "energy_90": naive.energy(s, 0.9),
        "largest_p": naive.largest_p(largest, *c.W.shape),
    }


def projection(c: Case):
    s = naive.singular_values(c.W)
    return {"svd2_share": (s[:2] ** 2).sum() / (s**2).sum()}


def clusters(c: Case):
    """The same draws; silhouettes and pairs of different clusters are computed anew."""
    names = ("clusters", "silhouette", "mean_between_clusters")
    if len(c.W) < 20 or c.W.shape[1] < 2:
        return dict.fromkeys(names)
    unit, g = naive.unit(c.W), draw_numbers("centers")
    found = {}
    for k in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48):
        best = max(found, key=lambda k: found[k][0], default=0)
        more = k <= 16 or (best >= 16 and found[best][0] >= 0.3)
        if 2 * k <= len(unit) and more:
            labels = find_clusters(unit @ unit.T, k, g)
            found[k] = naive.silhouette(unit, labels), labels
    best = max(found, key=lambda k: found[k][0])
    score, labels = found[best]
    if score < 0.6:
        return dict(zip(names, (1, score, None), strict=True))
    least = min(0.05, 0.5 / len(set(labels)))
    large = [label for label in set(labels) if (labels == label).mean() >= least]
    pairs = [
        unit[i] @ unit[j]
        for i in range(len(unit))
        for j in range(i)
        if labels[i] != labels[j] and labels[i] in large and labels[j] in large
    ]
    values = (max(len(large), 1), score, np.mean(pairs) if pairs else None)
    return dict(zip(names, values, strict=True))


def cosine(c: Case):
    angles = naive.angles_to_mean(c.W)
    return {
        "mean": naive.mean_cosine(c.W),
        "std": naive.std_cosine(c.W),
        "positive_share": naive.positive_share(c.W),
        "cone_aperture": naive.cone_aperture(c.W),
        "max_dimension_share": naive.mean_share_by_dimension(c.W).max(),
        **clusters(c),
        "cone_half_angle_max": angles.max(),
        "cone_half_angle_median": np.median(angles),
    }


def isotropy_pair(suffix, logs):
    """I1 is not printed as 0 where it is too small for a floating-point number."""
    return {f"i1{suffix}": naive.i1(logs) or None, f"i2{suffix}": naive.i2(logs)}


def isotropy(c: Case):
    scaled = naive.unit_scale(c.W)
    raw = naive.both_signs(c.W)
    return {
        **isotropy_pair("", raw),
        **isotropy_pair("_mean_sign", naive.mean_sign(c.W)),
        "i1_unit": naive.i1(naive.both_signs(scaled)) or None,
        "i1_unit_rows": naive.i1(naive.both_signs(naive.unit(c.W), c.W)),
        # The samples of these analyses are all the rows.
        **isotropy_pair("_sampled", raw),
        "eigengap": naive.eigengap(c.W),
        "isoscore": naive.isoscore(c.W),
    }


def coordinates(c: Case):
    variance = c.W.var(axis=0)
    lower = [max([v for v in variance if v < own], default=0.0) for own in variance]
    apart = (variance >= 25 * np.median(variance)) & (variance > 3 * np.array(lower))
    wide = variance >= min(variance[apart], default=np.inf)
    left = naive.without_top_coordinate(c.W)
    return {
        "variance_ratio": variance.max() / np.median(variance),
        "rogue_coordinates": wide.sum(),
        "rogue_share": variance[wide].sum() / variance.sum(),
        "mean_cosine_without_1": naive.mean_cosine(left),
    }


def frequency(c: Case):
    W, popular = c.W, c.popular

    def rarity(queries):
        return naive_frequency.neighbor_rarity(W, popular, 10, np.flatnonzero(queries))

    out = {
        "norm_ratio": naive_frequency.norm_ratio(W, popular),
        "norm_spearman": naive_frequency.spearman(naive.norms(W), np.log1p(c.counts)),
        "neighbor_rarity_rare": naive_frequency.neighbor_rarity(
            W, popular, 10, np.flatnonzero(~popular)
        ),
        "neighbor_rarity_popular": naive_frequency.neighbor_rarity(
            W, popular, 10, np.flatnonzero(popular)
        ),
    }
    out |= weighted(c)
    if popular.sum() < 5:
        return {**out, "probe_auc": None}
    return {**out, "probe_auc": naive_frequency.auc(rare_out_of_fold(c), ~popular)}


def weighted(c: Case):
    p = c.counts / c.counts.sum()
    return {"weighted_mean_cosine": naive_frequency.weighted_mean_cosine(c.W, p)}


def rare_out_of_fold(c: Case):
    rare = ~c.popular
    probability = np.empty(len(c.W))
    for train, test in deal_folds(draw_numbers("folds"), rare):
        probability[test] = naive_frequency.logistic_probabilities(
            c.W[train], ~c.popular[train], c.W[test]
        )
    return probability


def subspace(c: Case):
    W, output = c.paired
    return {"distance": naive.subspace_distance(W, output)}


def norms_of_rows(rows):
    """Norms of the vocabulary, and the gap below the healthy ones."""
    damaged = naive.damaged(rows)
    finite = np.linalg.norm(rows[np.isfinite(rows).all(axis=1)], axis=1)
    healthy, ill = (np.linalg.norm(rows[which], axis=1) for which in (~damaged, damaged))
    small = ill[np.isfinite(ill) & (ill > 0)]
    return {
        "norm_median": np.median(finite),
        "norm_rms": np.sqrt((healthy**2).mean()),
        "norm_variation": np.std(healthy) / np.mean(healthy),
        "damaged_gap": np.log10(healthy.min() / small.max())
        if len(small)
        else naive.widest_gap(healthy),
    }


def long_rows(W):
    """One by one."""
    W = W / np.abs(W).max()
    logs = [math.log(np.linalg.norm(row)) for row in W]
    quartile, median, other = np.percentile(logs, [25, 50, 75])
    spread = max((other - quartile) / 1.3489795003921634, 1 / math.sqrt(2 * W.shape[1]))
    limit = median + spread * NormalDist().inv_cdf(1 - 0.001 / len(W))
    found = [row for row, log in zip(W, logs, strict=True) if log > limit]
    energy = sum(float(row @ row) for row in found) / float((W**2).sum())
    return {"long_rows": len(found), "long_rows_energy": energy}


def tokens(c: Case):
    data = np.asarray(c.matrix.data, dtype=np.float64)
    masked = np.zeros(len(data), dtype=bool)
    for rows in c.matrix.masked.values():
        masked[rows] = True
    return {
        **norms_of_rows(data[~masked]),
        **long_rows(c.W),
        "hubness": naive.skewness(naive.occurrences(c.W, 10)),
        "intrinsic_dimension": naive.two_nn(c.W),
    }


def hidden(c: Case):
    H, norm = c.matrix.hidden.data, c.matrix.final_norm
    distance = naive.hull_distance(H)
    return {
        "hull_distance": distance,
        "margin": distance or None,
        "layernorm_condition": naive.layernorm_condition(norm.scale, norm.bias),
    }


SECTIONS = (
    spectrum,
    projection,
    cosine,
    isotropy,
    coordinates,
    frequency,
    subspace,
    hidden,
    tokens,
)


@cache
def twins(name: str) -> dict[str, float | None]:
    """``family.name`` to its twin's value; None where the value must be undefined."""
    return {
        f"{section.__name__}.{key}": value
        for section in SECTIONS
        for key, value in section(case(name)).items()
    }
