"""Matrices from whatever holds one in memory."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse

import embgeo
from embgeo.core.errors import BadOption, LabelMismatch
from embgeo.core.matrix import Matrix
from embgeo.io.memory import as_matrix
from embgeo.io.memory.objects import find_frequency
from tests.support.refusals import refusal
from tests.support.sampling import each_value

ROWS = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
TOKENS = [f"t{row}" for row in range(12)]


def same(matrix: Matrix, rows: npt.NDArray[Any] = ROWS) -> bool:
    return np.array_equal(np.asarray(matrix.data, np.float64), np.asarray(rows, np.float64))


# --- Arrays -----------------------------------------------------------------------------------


def test_an_array_is_taken_without_a_copy() -> None:
    matrix = as_matrix(ROWS)
    assert np.shares_memory(matrix.data, ROWS)
    assert (matrix.tokens, matrix.frequency, matrix.output) == (None, None, None)
    assert as_matrix(matrix) is matrix
    for order in ([0, 1, 3, 2, 4], [3, 2, 1, 0], [1, 2, 3]):
        np.testing.assert_array_equal(Matrix(ROWS).stored(np.array(order)), ROWS[order])


class Foreign:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return ROWS.astype(ml_dtypes.bfloat16)


def test_arrays_of_other_libraries_and_lists() -> None:
    assert as_matrix(Foreign()).dtype == "bfloat16"
    assert same(as_matrix(ROWS.tolist()))


def test_masked_entries_are_not_finite_and_leave_their_row_out() -> None:
    masked = np.ma.masked_array(ROWS, mask=np.zeros_like(ROWS, bool))
    masked[3, 1] = np.ma.masked
    analysis = embgeo.analyze(masked, sections=["suspects"], reference=False)
    assert analysis["suspects.nonfinite"].value == 1


def test_what_holds_no_matrix() -> None:
    for W in (
        "model.pt",
        b"model.pt",
        None,
        object(),
        {"a": ROWS},
        ["a", "b"],
        [[1.0], [1.0, 2.0]],
        ROWS[0],
        ROWS.astype(int),
        ROWS > 0,
        ROWS * 1j,
        np.zeros((0, 4)),
        scipy.sparse.eye(5).tocsr(),
    ):
        with refusal(BadOption):
            as_matrix(W)


# --- Tokens and counts ------------------------------------------------------------------------


def test_tokens_in_a_row() -> None:
    for tokens in (TOKENS, tuple(TOKENS), np.array(TOKENS), pd.Index(TOKENS), iter(TOKENS)):
        assert as_matrix(ROWS, tokens=tokens).tokens == tuple(TOKENS)


def test_tokens_that_do_not_fit() -> None:
    for tokens in (
        TOKENS[:-1],
        [*TOKENS, "t"],
        "abcdefghijkl",
        7,
        [*TOKENS[:-1], None],
        {"a": "b"},
        {"a": -1},
        {},
        set(TOKENS),
        pd.Series(TOKENS)[::-1],
    ):
        with refusal((BadOption, LabelMismatch)):
            as_matrix(ROWS, tokens=tokens)


def test_a_vocabulary_may_be_shorter_have_gaps_and_hide_spaces() -> None:
    vocabulary = {"Ġthe": 0, "Ġof": 2, "ing": np.int64(3)}
    for tokens in (vocabulary, SimpleNamespace(get_vocab=lambda: vocabulary)):
        matrix = as_matrix(ROWS, tokens=tokens)
        assert matrix.tokens is not None
        assert matrix.tokens[:5] == (" the", "<row 1>", " of", "ing", "<padding row 4>")
        assert {reason: rows.tolist() for reason, rows in matrix.masked.items()} == {
            "padding beyond the vocabulary": list(range(4, 12))
        }


def test_two_tokens_of_one_row_are_told() -> None:
    vocabulary = {token: row for row, token in enumerate(TOKENS)} | {"again": 3}
    matrix = as_matrix(ROWS, tokens=vocabulary)
    assert matrix.tokens is not None
    assert matrix.tokens[2:5] == ("t2", "again", "t4")
    note = "tokens not shown, as a later one has the same row: 1"
    assert note in matrix.origin.notes


def test_ids_are_no_counts() -> None:
    ids = {f"t{row}": row * 7 % 100 for row in range(100)}
    with refusal(BadOption):
        as_matrix(np.ones((100, 2)), tokens=list(ids), counts=ids)


def test_a_vocabulary_of_another_model_is_told() -> None:
    matrix = as_matrix(ROWS, tokens={f"t{row}": row for row in range(20)})
    assert matrix.tokens == tuple(TOKENS)
    assert "8 tokens of the vocabulary lie beyond the last row" in matrix.origin.notes


def test_counts_of_gensim_that_are_none() -> None:
    for counts in (None, [1.0, np.nan], [-1.0, 3.0], [0.0, 0.0]):
        kept = {} if counts is None else {"count": np.array(counts)}
        assert find_frequency(SimpleNamespace(expandos=kept), ["a", "b"]) is None


def test_counts_by_row_and_by_token() -> None:
    by_row = as_matrix(ROWS, counts=range(12))
    assert by_row.frequency is not None
    assert by_row.frequency.counts.tolist() == list(range(12))
    by_token = as_matrix(ROWS, tokens=TOKENS, counts=Counter({"t3": 5, "t0": 2, "else": 9}))
    assert by_token.frequency is not None
    assert by_token.frequency.counts.tolist() == [2, 0, 0, 5, *[0] * 8]
    assert any("10 of 12 tokens are not in counts" in note for note in by_token.origin.notes)
    # A Series by token, as value_counts() makes it, may be in any order.
    counts = pd.Series([2, 5, 9, 1], index=["t0", "t3", "else", "t0"])
    by_name = as_matrix(ROWS, tokens=TOKENS, counts=counts)
    assert by_name.frequency is not None
    assert by_name.frequency.counts.tolist() == [3, 0, 0, 5, *[0] * 8]
    by_number = as_matrix(ROWS, tokens=pd.Series(TOKENS), counts=pd.Series(range(12)))
    assert by_number.frequency is not None
    assert by_number.frequency.counts.tolist() == list(range(12))
    ranked = as_matrix(ROWS, rank_order=True)
    assert ranked.frequency is not None
    assert ranked.frequency.kind == "rank"


def test_counts_that_do_not_fit() -> None:
    for options in (
        {"counts": range(11)},
        {"counts": [-1] * 12},
        {"counts": [0.5] * 12},
        {"counts": [np.nan] * 12},
        {"counts": [2.0**60] * 12},
        {"counts": ["a"] * 12},
        {"counts": {"t0": 1}},
        {"counts": {"x": 1}, "tokens": TOKENS},
        {"counts": range(12), "rank_order": True},
        {"counts": np.ma.masked_less(np.arange(12), 3)},
        {"counts": pd.Series(range(12))[::-1]},
    ):
        with refusal():
            as_matrix(ROWS, **options)


def test_hidden_states_of_a_batch() -> None:
    states = np.ones((2, 3, 4))
    for hidden in (states, states.reshape(6, 4), Matrix(states.reshape(6, 4))):
        found = as_matrix(ROWS, hidden=hidden).hidden
        assert found is not None
        assert (found.n, found.d) == (6, 4)
    analysis = embgeo.analyze(ROWS, hidden=states, sections=["hidden"], reference=False)
    assert analysis.find_scalar("hidden.margin") is not None


# --- pandas -----------------------------------------------------------------------------------


def test_a_frame_with_and_without_names() -> None:
    plain = as_matrix(pd.DataFrame(ROWS))
    assert (plain.tokens, plain.dtype) == (None, "float32")
    named = as_matrix(pd.DataFrame(ROWS, index=TOKENS))
    assert named.tokens == tuple(TOKENS)
    assert same(named)


def test_a_frame_of_whole_numbers_and_gaps() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": pd.array([1, None, 3], dtype="Int64")})
    assert np.isnan(as_matrix(frame).data[1, 1])
    assert as_matrix(frame).data[2].tolist() == [3.0, 3.0]


def test_one_column_of_words_has_the_tokens_and_another_is_refused() -> None:
    frame = pd.DataFrame(ROWS).assign(word=TOKENS)
    for one in (frame, frame.set_index("word"), frame.astype({"word": "string"})):
        assert as_matrix(one).tokens == tuple(TOKENS)
        assert same(as_matrix(one))
    # Names of columns may stand twice.
    twice = frame.set_axis(["x"] * ROWS.shape[1] + ["word"], axis=1)
    assert same(as_matrix(twice))
    # A second column of words, words beside an index, or something else than words.
    for other in (
        frame.assign(kind=TOKENS),
        frame.set_index(pd.Index(TOKENS)),
        pd.DataFrame(ROWS).assign(known=True),
        pd.DataFrame(ROWS).assign(vector=[*ROWS]),
        # Ids or counts, which are no part of the vectors.
        frame.assign(count=range(12)),
        frame.assign(count=np.arange(12.0)),
        frame.assign(count=pd.array([1, None] * 6, dtype="Int64")),
    ):
        with refusal(BadOption):
            as_matrix(other)


def test_frames_of_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    columns = {f"x{n}": ROWS[:, n] for n in range(ROWS.shape[1])}
    plain, named = polars.DataFrame(columns), polars.DataFrame({"word": TOKENS, **columns})
    assert (as_matrix(plain).tokens, as_matrix(named).tokens) == (None, tuple(TOKENS))
    assert same(as_matrix(plain))
    assert same(as_matrix(named))
    gaps = as_matrix(polars.DataFrame({"a": [1, 2], "b": [1, None]})).data
    assert gaps[0].tolist() == [1.0, 1.0]
    assert np.isnan(gaps[1, 1])
    with refusal(BadOption):
        as_matrix(named.with_columns(kind=polars.Series(TOKENS)))


# --- gensim -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_gensim_vectors_with_their_tokens_and_counts() -> None:
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(4)
    vectors.add_vectors(TOKENS, ROWS)
    assert as_matrix(vectors).tokens == tuple(TOKENS)
    assert as_matrix(vectors).frequency is None
    for row, token in enumerate(TOKENS):
        vectors.set_vecattr(token, "count", 200 - row * row)
    found = as_matrix(vectors).frequency
    assert found is not None
    assert (found.kind, found.counts[2]) == ("counts", 196)
    for row, token in enumerate(TOKENS):  # what gensim makes up where a file has no counts
        vectors.set_vecattr(token, "count", 12 - row)
    found = as_matrix(vectors).frequency
    assert found is not None
    assert found.kind == "rank"


def test_a_trained_gensim_model() -> None:
    models = pytest.importorskip("gensim.models")
    texts = [["a", "b", "a"], ["a", "c"]] * 5
    model = models.Word2Vec(texts, vector_size=4, min_count=1, epochs=1, workers=1, seed=1)
    matrix = as_matrix(model)
    assert matrix.tokens is not None
    assert matrix.frequency is not None
    assert dict(zip(matrix.tokens, matrix.frequency.counts, strict=True)) == {
        "a": 15,
        "b": 5,
        "c": 5,
    }
    assert matrix.origin.format == "gensim vectors"


def test_gensim_before_4() -> None:
    old = SimpleNamespace(
        vectors=ROWS,
        index2word=TOKENS,
        vocab={token: SimpleNamespace(count=200 - row * row) for row, token in enumerate(TOKENS)},
    )
    found = as_matrix(SimpleNamespace(wv=old))
    assert found.tokens == tuple(TOKENS)
    assert found.frequency is not None
    assert found.frequency.counts[1] == 199


# --- torch ------------------------------------------------------------------------------------


def test_tensors_and_parameters_without_a_copy(torch: Any) -> None:
    tensor = torch.from_numpy(ROWS)
    assert np.shares_memory(as_matrix(tensor).data, ROWS)
    parameter = torch.nn.Parameter(tensor)
    assert same(as_matrix(parameter))
    assert same(as_matrix(parameter * 2), ROWS * 2)  # with a gradient function
    assert same(as_matrix(tensor.T.contiguous().T))


@each_value
@pytest.mark.parametrize(
    "name", ["float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]
)
@pytest.mark.parametrize("strided", [False, True])
def test_dtypes(torch: Any, name: str, strided: bool) -> None:
    tensor = torch.from_numpy(ROWS).to(getattr(torch, name))
    if strided:
        tensor = tensor.T.contiguous().T
    matrix = as_matrix(tensor)
    assert matrix.dtype == name
    assert same(matrix, tensor.to(torch.float32).numpy())


def test_tensors_without_entries(torch: Any) -> None:
    with refusal(BadOption):
        as_matrix(torch.empty(5, 3, device="meta"))
    with refusal(BadOption):
        as_matrix(torch.eye(5).to_sparse())
    partitioned = torch.nn.Parameter(torch.empty(0))
    partitioned.ds_id = 1
    with refusal(BadOption):
        as_matrix(partitioned)


def test_tensors_that_are_gathered(torch: Any) -> None:
    class Sharded(torch.Tensor):  # type: ignore[misc]
        def full_tensor(self) -> Any:
            return torch.from_numpy(ROWS)

    assert same(as_matrix(torch.zeros(2, 4).as_subclass(Sharded)))


def model_of(torch: Any, *, tied: bool = False, rows: int = 12) -> Any:
    """A model like those of transformers: a small other embedding, the tokens', and a head."""

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.positions = torch.nn.Embedding(5, 4)
            self.tokens = torch.nn.Embedding(12, 4)
            self.mixer = torch.nn.Linear(40, 400)
            self.head = torch.nn.Linear(4, rows, bias=False)
            if tied:
                self.head.weight = self.tokens.weight

        def get_input_embeddings(self) -> Any:
            return self.tokens

        def get_output_embeddings(self) -> Any:
            return self.head

    return Model()


def test_layers(torch: Any) -> None:
    layer = torch.nn.Embedding.from_pretrained(torch.from_numpy(ROWS))
    assert same(as_matrix(layer))
    assert as_matrix(layer).origin.tensor == "weight"
    assert as_matrix(torch.nn.Linear(4, 12)).n == 12
    with refusal(BadOption):
        as_matrix(torch.nn.LayerNorm(4))


def test_models_that_name_their_embeddings(torch: Any) -> None:
    model = model_of(torch)
    matrix = as_matrix(model)
    assert same(matrix, model.tokens.weight.detach().numpy())
    assert matrix.origin.tensor == "tokens.weight"
    assert matrix.origin.reason == "returned by get_input_embeddings"
    assert matrix.output is not None
    assert same(matrix.output, model.head.weight.detach().numpy())
    analysis = embgeo.analyze(model, sections=["subspace"], reference=False)
    assert analysis.provenance["output"]["tensor"] == "head.weight"
    assert analysis.find_scalar("subspace.distance") is not None


def test_tied_models_and_heads_of_another_size(torch: Any) -> None:
    tied = as_matrix(model_of(torch, tied=True))
    assert tied.output is None
    assert tied.origin.tied_by == "head.weight is the same tensor"
    analysis = embgeo.analyze(model_of(torch, tied=True), sections=["cosine", "subspace"])
    assert "tied" in analysis.absent["subspace"]
    other = as_matrix(model_of(torch, rows=3))
    assert other.output is None
    assert "another number of rows" in other.origin.notes[0]


def test_what_a_model_is_wrapped_in_does_not_matter(torch: Any) -> None:
    wrapper = torch.nn.Module()
    wrapper.positions = torch.nn.Embedding(100, 4)
    wrapper.module = model_of(torch)
    assert as_matrix(wrapper).origin.tensor == "module.tokens.weight"


def test_models_that_cannot_say_give_their_largest_embedding(torch: Any) -> None:
    model = model_of(torch)
    plain = as_matrix(torch.nn.ModuleDict(dict(model.named_children())))
    assert plain.origin.tensor == "tokens.weight"
    assert plain.origin.reason == "the largest embedding of the module"
    for error in (NotImplementedError, AttributeError):

        def fail(error: type[Exception] = error) -> None:
            raise error

        model.get_input_embeddings = fail
        assert as_matrix(model).origin.reason == "the largest embedding of the module"
    model.get_input_embeddings = lambda: None
    assert as_matrix(model).origin.reason == "the largest embedding of the module"
    # Not of positions, and none of several that nothing tells apart.
    model.positions = torch.nn.Embedding(1000, 4)
    assert as_matrix(model).origin.tensor == "tokens.weight"
    model.target = torch.nn.Embedding(*model.tokens.weight.shape)
    own, model.target.weight = model.target.weight, model.tokens.weight
    assert as_matrix(model).origin.tensor == "tokens.weight"
    model.target.weight = own
    with refusal(BadOption):
        as_matrix(model)


# --- The same numbers -------------------------------------------------------------------------


def test_every_road_leads_to_the_same_numbers(torch: Any) -> None:
    roads = [ROWS, ROWS.tolist(), torch.from_numpy(ROWS), pd.DataFrame(ROWS), Matrix(ROWS)]
    found = [embgeo.analyze(W, sections=["cosine", "spectrum"]).scalars for W in roads]
    for scalars in found:
        for one, first in zip(scalars, found[0], strict=True):
            assert (one.name, one.undefined) == (first.name, first.undefined)
            assert one.value == (first.value and pytest.approx(first.value, rel=1e-6)), one.name
