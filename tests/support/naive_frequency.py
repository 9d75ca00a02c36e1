"""Slow, obvious twins of what sections 5 and 8 of the definitions say about tokens."""

from __future__ import annotations

import math

import numpy as np

from embgeo.numerics.halves import hash_numbers
from tests.support.naive import cosine_matrix, norms


def popular_rows(counts, share=0.2):
    """True for counts from one that leaves some out; of these, the one nearest to the share."""
    counts, size = np.asarray(counts), round(share * len(counts))
    classes = [counts >= least for least in np.unique(counts)[1:]]
    return min(classes, key=lambda popular: (abs(popular.sum() - size), -popular.sum()))


def norm_ratio(W, popular):
    lengths = norms(W)
    return np.median(lengths[popular]) / np.median(lengths[~popular])


def ranks(values):
    """Ranks from 1, the mean rank for ties, by counting."""
    return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    x, y = x - x.mean(), y - y.mean()
    return (x @ y) / math.sqrt((x @ x) * (y @ y))


def auc(scores, positive):
    """Share of (positive, negative) pairs in which the positive scores higher; ties count half."""
    wins = [
        1.0 if p > q else 0.5 if p == q else 0.0
        for p in scores[positive]
        for q in scores[~positive]
    ]
    return sum(wins) / len(wins)


def logistic_probabilities(X, y, X_new, C=1.0):
    """P(y = 1) for new rows: L2-regularized, class-balanced, columns standardized, by Newton."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    std[std == 0] = 1.0
    A = np.column_stack([(X - mean) / std, np.ones(len(X))])
    weight = np.where(y, len(y) / (2 * y.sum()), len(y) / (2 * (~y).sum())) * C
    penalty = np.append(np.ones(X.shape[1]), 0.0)
    beta = np.zeros(A.shape[1])

    def loss(b):
        margin = np.where(y, 1, -1) * (A @ b)
        return (weight * np.logaddexp(0, -margin)).sum() + 0.5 * (penalty * b * b).sum()

    for _ in range(200):
        p = 0.5 * (1 + np.tanh(A @ beta / 2))
        gradient = A.T @ (weight * (p - y)) + penalty * beta
        hessian = (A.T * (weight * p * (1 - p))) @ A + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while loss(beta - size * step) > loss(beta) and size > 1e-10:
            size /= 2
        beta = beta - size * step
        if np.abs(step).max() < 1e-12:
            break
    B = np.column_stack([(X_new - mean) / std, np.ones(len(X_new))])
    return 0.5 * (1 + np.tanh(B @ beta / 2))


def nearest(W, query, k):
    """The k rows of largest cosine with row `query`, itself left out, nearest first."""
    cosines = cosine_matrix(W)[query]
    order = sorted((j for j in range(len(W)) if j != query), key=lambda j: (-cosines[j], j))
    return order[:k]


def rank_of(W, query, other):
    """1 + the number of rows (other than the two) nearer to `query` than `other` is."""
    cosines = cosine_matrix(W)[query]
    return 1 + sum(cosines[j] > cosines[other] for j in range(len(W)) if j not in (query, other))


def neighbor_rarity(W, popular, k, queries):
    return np.mean([[not popular[j] for j in nearest(W, q, k)] for q in queries])


def frequency_bins(counts, rows, bins=10):
    """Rows by falling count in equal bins; bin 1 holds the most frequent. A hash splits ties."""
    hashes = hash_numbers(np.asarray(rows))
    order = sorted(range(len(counts)), key=lambda i: (-counts[i], hashes[i]))
    share = [place * bins // len(order) for place in range(len(order))]
    return [[i for i, s in zip(order, share, strict=True) if s == b] for b in range(bins)]


def weighted_mean_cosine(W, p):
    """Over all pairs of different rows, each as likely as its two tokens together."""
    unit = W / np.linalg.norm(W, axis=1)[:, None]
    pairs = [(i, j) for i in range(len(W)) for j in range(len(W)) if i != j]
    both = math.fsum(p[i] * p[j] * float(unit[i] @ unit[j]) for i, j in pairs)
    return both / math.fsum(p[i] * p[j] for i, j in pairs)
