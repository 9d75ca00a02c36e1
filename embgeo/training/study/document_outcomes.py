"""Predicted classes of documents; a bootstrap and McNemar's test over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.values import Quantity, format_number
from embgeo.io.bounded.records import RecordFormat
from embgeo.numerics.scores import mcnemar
from embgeo.training.study.numbers import of_splits

ACCURACY, MACRO_F1 = "accuracy", "macro_f1"


@dataclass(frozen=True, slots=True)
class DocumentOutcomes:
    """True and predicted classes of documents."""

    LEAST_UNITS: ClassVar = 20
    DRAWS: ClassVar = 1_000

    #: ``"valid"`` or ``"test"``.
    split: str
    truth: tuple[int, ...]
    given: tuple[int, ...]

    def units(self, score: str) -> tuple[object, int] | None:
        """Return the true classes; accuracy and macro-F1 are about them."""
        return (self.truth, len(self.truth)) if score in (ACCURACY, MACRO_F1) else None

    @staticmethod
    def differences(held: Sequence[DocumentOutcomes], score: str, draws: int) -> FloatArray:
        """Return the mean difference of the score in each draw of documents."""
        # Documents with the same classes in all models are drawn as one group, which is faster.
        groups, sizes = np.unique(
            np.array([held[0].truth, *(one.given for one in held)]), axis=1, return_counts=True
        )
        truth, given = groups[0], groups[1:]
        generator, n = np.random.default_rng(0), int(sizes.sum())
        differences = []
        for _ in range(draws):
            weights = generator.multinomial(n, sizes / n).astype(np.float64)
            scores = [score_classes(truth, one, weights)[score] for one in given]
            differences.append(np.mean(np.subtract(scores[1::2], scores[::2])))
        return np.array(differences)


DOCUMENT_OUTCOMES = RecordFormat(
    "embgeo.documents",
    1,
    DocumentOutcomes,
    "documents.json",
    what="the classes that a run gives to documents",
    again="train it again with: embgeo train",
)


#: Quantities of the scores of both splits.
QUANTITIES = of_splits(
    Quantity(
        ACCURACY,
        "Accuracy",
        "Share of the documents of the {split} split that get their class.",
        "1/n Σ_i [ŷ_i = y_i]",
        better="higher",
    ),
    Quantity(
        MACRO_F1,
        "Macro-F1",
        "Mean over classes of the F1 of the {split} split, so that a rare class counts as much "
        "as a frequent one.",
        "1/C Σ_c 2·TP_c/(2·TP_c + FP_c + FN_c)",
        better="higher",
    ),
    Quantity(
        "loss",
        "Loss",
        "Mean negative log-probability of the class over the documents of the {split} split.",
        "−1/n Σ_i ln p(y_i | x_i)",
        unit="nats",
        better="lower",
    ),
)


def score_classes(
    truth: IntArray, given: IntArray, weights: FloatArray | None = None
) -> dict[str, float]:
    """Return the accuracy and macro-F1 of documents with integer weights; at least one document.

    As in scikit-learn, macro-F1 is the mean over classes that occur in `truth` or `given`.
    """
    n = int(max(truth.max(), given.max())) + 1
    table = np.bincount(truth * n + given, weights, n * n).reshape(n, n)
    right = np.diag(table)
    both = table.sum(axis=0) + table.sum(axis=1)
    f1 = 2.0 * right[both > 0] / both[both > 0]
    return {ACCURACY: float(right.sum() / table.sum()), MACRO_F1: float(f1.mean())}


def compare_documents(
    before: Mapping[int, DocumentOutcomes], after: Mapping[int, DocumentOutcomes]
) -> str:
    """Describe McNemar's test for each common seed; empty if the documents differ."""
    parts = []
    for seed in sorted(before.keys() & after.keys()):
        first, second = before[seed], after[seed]
        if (first.split, first.truth) != (second.split, second.truth):
            return ""
        old, new = (np.equal(one.given, one.truth) for one in (first, second))
        lost, won = int((old & ~new).sum()), int((new & ~old).sum())
        p = format_number(mcnemar(lost, won), 2)
        parts.append(f"seed {seed}: {lost:,} lost, {won:,} won, p = {p}")
    return "; ".join(parts)
