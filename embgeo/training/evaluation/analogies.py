"""Word analogies by 3CosAdd: the answer is the word whose row is nearest to b − a + c."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.values import Quantity, format_number
from embgeo.training.data.analogies import SEMANTIC, SYNTACTIC, Analogy
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.study.spread import take_percentiles

#: Cosines of a block of questions.
BLOCK = 2**22
#: The least number of questions for an accuracy.
LEAST_QUESTIONS = 10
DRAWS = 1_000

#: Title and kinds of questions by score.
SCORES = {
    "analogies": ("Analogies", (SEMANTIC, SYNTACTIC)),
    "analogies_semantic": ("Analogies, semantic", (SEMANTIC,)),
    "analogies_syntactic": ("Analogies, syntactic", (SYNTACTIC,)),
}
QUANTITIES = tuple(
    Quantity(
        f"test.{name}",
        title,
        f"Share of the {' and '.join(kinds)} questions “a is to b as c is to …” whose answer is "
        "the word with the largest cosine to b − a + c (3CosAdd), other than a, b and c; "
        "questions with a word that is not in the vocabulary are left out.",
        "argmax_{x ∉ {a, b, c}} cos(u_x, û_b − û_a + û_c)",
        "Mikolov et al. 2013; Levy and Goldberg 2014, Eq. 1",
        better="higher",
    )
    for name, (title, kinds) in SCORES.items()
)

Right = dict[str, Mask]


def answer_analogies(W: FloatArray, vocabulary: Vocabulary, questions: Sequence[Analogy]) -> Right:
    """Whether each question is answered correctly, by kind, for questions with non-zero rows only.

    `W`: a row for each token of the vocabulary, shape (N, d); computed in float64.
    """
    row = vocabulary.map_rows()
    U = W.astype(np.float64)
    norms = np.linalg.norm(U, axis=1, keepdims=True)
    U /= np.where(norms > 0.0, norms, 1.0)
    none = np.flatnonzero(norms[:, 0] == 0.0)
    for place in none.tolist():
        del row[vocabulary.tokens[place]]
    found = {}
    for kind in (SEMANTIC, SYNTACTIC):
        places = [
            [row[word] for word in one.words]
            for one in questions
            if one.kind == kind and all(word in row for word in one.words)
        ]
        asked = np.array(places, dtype=np.int64).reshape(-1, 4)
        step = max(1, BLOCK // len(U))
        blocks = [asked[at : at + step] for at in range(0, len(asked), step)]
        found[kind] = np.concatenate(
            [np.zeros(0, dtype=bool), *(_answer(U, none, block) for block in blocks)]
        )
    return found


def _answer(U: FloatArray, none: IntArray, asked: IntArray) -> Mask:
    """Whether the answer has the row with the largest cosine."""
    a, b, c, answer = asked.T
    scores = (U[b] - U[a] + U[c]) @ U.T
    scores[:, none] = -np.inf
    np.put_along_axis(scores, asked[:, :3], -np.inf, axis=1)
    return np.asarray(scores.argmax(axis=1) == answer)


def select_right(right: Right, score: str) -> Mask:
    """The answers to the questions of a score."""
    return np.concatenate([right[kind] for kind in SCORES[score][1]])


def score_analogies(right: Right) -> dict[str, float | None]:
    """Accuracy by score; None for few questions."""
    found = {name: select_right(right, name) for name in SCORES}
    return {n: float(r.mean()) if len(r) >= LEAST_QUESTIONS else None for n, r in found.items()}


def describe_analogies(right: Right, asked: int) -> str:
    """Describe how many questions have all words, and each accuracy with its interval."""
    generator, parts = np.random.default_rng(0), []
    for name, accuracy in score_analogies(right).items():
        if accuracy is None:
            continue
        n = len(select_right(right, name))
        # A bootstrap of questions draws the number of correct ones.
        low, high = take_percentiles(generator.binomial(n, accuracy, DRAWS) / n)
        interval = f"{format_number(low, 2)} to {format_number(high, 2)}; {n:,} questions"
        parts.append(f"{SCORES[name][0].lower()} {format_number(accuracy, 3)} ({interval})")
    known = sum(len(one) for one in right.values())
    said = f"; accuracy (95 % over other questions, a bootstrap): {'; '.join(parts)}"
    return f"{known:,} of {asked:,} analogies have all words" + (said if parts else "")
