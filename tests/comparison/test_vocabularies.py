"""Rows before and after tokens were added, with planted differences."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

import embgeo
from embgeo.comparison.vocabularies import compare_rows
from embgeo.core.matrix import Matrix
from embgeo.report.text.vocabularies import render
from tests.support.command import call
from tests.support.matrices import gaussian

NAMES = ("old", "new")


def matrix(rows: np.ndarray, tokens: str, **more: object) -> Matrix:
    return Matrix(rows, tokens=tuple(tokens), **more)


def test_added_removed_moved_and_changed() -> None:
    W = gaussian(0, 26, 4)
    before = matrix(W, "abcdefghijklmnopqrstuvwxyz")
    # z takes the place of x, which is gone, b gets another row, three are new: one zero, two alike.
    rows = np.vstack([W[:23], W[25], W[24], np.zeros((1, 4)), np.ones((2, 4))])
    rows[1] += 1e-9
    after = matrix(rows, "abcdefghijklmnopqrstuvwzy123")
    found = compare_rows(before, after, NAMES, ())
    assert (found.added, found.removed, found.moved) == (3, 1, 1)
    assert found.removed_examples == ("x",)
    side = found.input
    assert (side.rows, side.same, side.changed) == ((26, 28), 24, 1)
    assert side.norms == (0.0, 2.0, 2.0)
    assert side.median_before == np.median(np.linalg.norm(W, axis=1))
    assert found.output is None
    lines = "\n".join(render(found))
    assert "old → new: 3 tokens added, 1 removed, 1 moved" in lines
    assert "no added row stands out" in lines


def test_both_sides_and_a_cut_matrix() -> None:
    W, U = gaussian(0, 30, 4), gaussian(1, 30, 4)
    before = replace(Matrix(W), output=Matrix(U))
    after = replace(Matrix(W[:25]), output=Matrix(U[:25]), vocabulary_size=30)
    found = compare_rows(before, after, NAMES, ())
    assert (found.added, found.removed, found.missing_rows) == (0, 5, (0, 5))
    assert found.output is not None
    assert (found.input.same, found.output.same) == (25, 25)
    lines = list(render(found))
    assert "  new has 5 tokens without a row" in lines
    assert "new  30 → 25 rows, fewer than before" not in lines
    assert any(line.endswith("30 → 25 rows, fewer than before") for line in lines)


def test_tokens_without_an_output_row_are_not_compared_there() -> None:
    """Their places in the shorter output are filled with other rows."""
    W, U = gaussian(0, 30, 4), gaussian(1, 30, 4)
    filled = U.copy()
    filled[26:] = U[3]
    shorter = Matrix(filled, masked={"without a row in the output matrix": np.arange(26, 30)})
    before, after = replace(Matrix(W), output=Matrix(U)), replace(Matrix(W), output=shorter)
    found = compare_rows(before, after, NAMES, ())
    assert (found.input.rows, found.input.same) == ((30, 30), 30)
    assert found.output is not None
    assert (found.output.rows, found.output.same, found.output.changed) == ((30, 26), 26, 0)
    back = compare_rows(after, before, NAMES, ()).output
    assert back is not None
    assert (back.rows, back.same, back.changed) == ((26, 30), 26, 0)


def test_bits_and_types() -> None:
    W = gaussian(0, 30, 4).astype(ml_dtypes.bfloat16)
    W[3] = np.nan
    assert compare_rows(Matrix(W), Matrix(W.copy()), NAMES, ()).input.same == 30
    wide = compare_rows(Matrix(W), Matrix(W.astype(np.float32)), NAMES, ())
    assert (wide.input.same, wide.input.changed) == (29, 1)
    narrow = compare_rows(Matrix(W), Matrix(W[:, :3]), NAMES, ())
    assert narrow.input.same == 0


def test_the_command(tmp_path) -> None:
    W = gaussian(0, 30, 4)
    np.save(tmp_path / "old.npy", W)
    np.save(tmp_path / "new.npy", np.vstack([W, W[:2]]))
    paths = [str(tmp_path / name) for name in ("old.npy", "new.npy")]
    done = call("diff", *paths, "--added")
    assert done.exit_code == 0, done.output
    assert "30 with the same bits, 0 changed" in done.output
    assert {path.name for path in tmp_path.iterdir()} == {"old.npy", "new.npy"}
    change = embgeo.compare_vocabularies(*paths)
    assert (change.added, change.names) == (2, ("old", "new"))
    assert [(one.reason, one.rows.tolist()) for one in change.suspects] == [("duplicate", [30, 31])]
    assert "2 duplicates of 2 tokens  row 30 row 31" in done.output
    settings = tmp_path / "few.toml"
    settings.write_text('[analyze]\nrows = "0:20"\npairs = 3\n')
    assert "20 → 20 rows" in call("diff", *paths, "--added", "--config", settings).output
    alone = call("diff", paths[0], "--added")
    assert alone.exit_code == 2
    assert "--added: takes two checkpoints" in alone.output
    for idle in (("-o", "out"), ("--track",), ("--queries", "5")):
        refused = call("diff", *paths, "--added", *idle)
        assert refused.exit_code == 2
        assert "has no effect with --added" in refused.output


def test_an_output_of_one_side_alone_is_not_compared() -> None:
    W, U = gaussian(0, 12, 4), gaussian(1, 12, 4)
    tied, untied = Matrix(W, name="in"), replace(Matrix(W, name="in"), output=Matrix(U, name="out"))
    assert compare_rows(tied, untied, NAMES, ()).output is None
    assert compare_rows(untied, tied, NAMES, ()).output is None
    both = compare_rows(untied, untied, NAMES, ())
    assert both.output is not None
    assert (both.input.tensor, both.output.tensor) == ("in", "out")


def test_norms_of_added_rows_are_smallest_median_and_largest() -> None:
    W = gaussian(0, 12, 4)
    added = np.diag([1.0, 2.0, 4.0, 8.0])
    found = compare_rows(Matrix(W), Matrix(np.vstack([W, added])), NAMES, ())
    assert found.input.norms == (1.0, 3.0, 8.0)
