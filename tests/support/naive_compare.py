"""Slow, obvious twins of what takes two matrices; written from definitions, section 9."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg

from tests.support import naive


def column_space(W):
    """Orthonormal basis by SVD of columns scaled to length one."""
    lengths = np.linalg.norm(W, axis=0)
    return scipy.linalg.orth(W[:, lengths > 0] / lengths[lengths > 0])


def subspace_distance(X, Y):
    """√(‖V − UUᵀV‖² / C), V the smaller of the two."""
    U, V = sorted((column_space(X), column_space(Y)), key=lambda B: -B.shape[1])
    return np.linalg.norm(V - U @ (U.T @ V)) / math.sqrt(V.shape[1])


def principal_angles(X, Y):
    """Degrees, smallest first."""
    return np.sort(np.degrees(scipy.linalg.subspace_angles(column_space(X), column_space(Y))))


def cka(X, Y):
    """From the N×N Gram matrices, centered on both sides."""
    n = len(X)
    H = np.eye(n) - 1.0 / n
    K, L = H @ X @ X.T @ H, H @ Y @ Y.T @ H
    return (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))


def mean_cka(X, Y):
    """Over every way to pair the rows of X with those of Y."""
    return np.mean([cka(X, Y[list(order)]) for order in itertools.permutations(range(len(Y)))])


def hsic(K, L):
    """Song et al. 2012, Eq. 5: the sums written out over N×N matrices without diagonals."""
    n, ones = len(K), np.ones(len(K))
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    total = np.trace(K @ L) + (ones @ K @ ones) * (ones @ L @ ones) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (ones @ K @ L @ ones)) / (n * (n - 3))


def cka_debiased(X, Y):
    """From centered rows, which change nothing but the digits that are left in a narrow cone."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    K, L = X @ X.T, Y @ Y.T
    return hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L))


def cka_p(X, Y, orders):
    """Of the debiased CKA under these pairings of the rows."""
    found = cka_debiased(X, Y)
    reached = [cka_debiased(X, Y[order]) >= found - 1e-12 for order in orders]
    return (1 + sum(reached)) / (1 + len(reached))


def procrustes(X, Y):
    width = max(X.shape[1], Y.shape[1])
    X, Y = (np.pad(A, ((0, 0), (0, width - A.shape[1]))) for A in (X, Y))
    X, Y = X / np.linalg.norm(X), Y / np.linalg.norm(Y)
    return np.linalg.norm(X - Y @ scipy.linalg.orthogonal_procrustes(Y, X)[0])


def jaccards(X, Y, k):
    """Of the k nearest rows by cosine, for every row; equal cosines by row number."""
    found = []
    X, Y = naive.unit(X), naive.unit(Y)
    for i in range(len(X)):
        near = []
        for W in (X, Y):
            others = [j for j in range(len(W)) if j != i]
            near.append(set(sorted(others, key=lambda j: (-round(W[i] @ W[j], 12), j))[:k]))
        found.append(len(near[0] & near[1]) / len(near[0] | near[1]))
    return np.array(found)


def drops(X, Y, k):
    """Mean cosine with the k nearest rows of X there, minus that with the same rows in Y."""
    found = []
    X, Y = naive.unit(X), naive.unit(Y)
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        near = sorted(others, key=lambda j: (-round(X[i] @ X[j], 12), j))[:k]
        found.append(np.mean([X[i] @ X[j] - Y[i] @ Y[j] for j in near]))
    return np.array(found)


def mean_jaccard_of_random_sets(n, k):
    sets = [set(c) for c in itertools.combinations(range(n), k)]
    return np.mean([len(sets[0] & b) / len(sets[0] | b) for b in sets])


def effective_rank_of_change(X, Y):
    return naive.effective_rank(naive.singular_values(Y - X))
