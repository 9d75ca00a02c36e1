"""LaTeX tables: their shape, their numbers, and text that tries to be LaTeX."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embgeo.charts.render.paper import VENUES, Venue
from embgeo.core.values import Quantity, Scalar, Table
from embgeo.publish.latex import TABLES
from embgeo.publish.latex.latex_table import (
    LIMIT,
    Latex,
    LatexTable,
    TableColumn,
    latex_number,
    latex_text,
    lay_out,
    render_body,
    render_table,
)
from embgeo.result.analysis import Analysis
from tests.support.paper_samples import add_neighbors
from tests.support.record import check_record
from tests.support.sample_analysis import HOSTILE, sample, with_scalar, without
from tests.support.sample_runs import sample_training

ICLR = VENUES["iclr"]
NEAR = ("token", "class", "count", *(f"neighbor {i}" for i in range(1, 7)))


def named(name: str) -> LatexTable:
    return next(t for t in TABLES if t.name == name)


def latex(
    name: str, methods: Sequence[TableColumn], signs: str = "both", venue: str = "iclr"
) -> str:
    table = named(name)
    assert [table.missing(m.analysis) for m in methods] == [""] * len(methods)
    return render_table(table, table.fill(methods, signs, VENUES[venue]), "made by a test")


def with_neighbors(
    analysis: Analysis,
    rows: list[tuple[str, ...]],
    ranks: list[tuple[str, str, int]],
    rare: Collection[str] = (),
) -> Analysis:
    """The analysis with these tables of neighbors, and their words asked for."""
    near = Table(
        Quantity("frequency.neighbors", "", ""), NEAR, tuple((r[0], r[1], 5, *r[2:]) for r in rows)
    )
    places = Table(
        Quantity("frequency.neighbor_ranks", "", ""),
        ("token", "neighbor", "cosine", "rank"),
        tuple((word, other, 0.5, rank) for word, other, rank in ranks),
    )
    near, places = (
        replace(
            table,
            rare=tuple(
                (i, j)
                for i, row in enumerate(table.rows)
                for j, cell in enumerate(row)
                if cell in rare
            ),
        )
        for table in (near, places)
    )
    kept = [t for t in analysis.tables if not t.name.startswith("frequency.neighbor")]
    words = [(row[0], ()) for row in rows]
    return add_neighbors(replace(analysis, tables=(*kept, near, places)), *words)


def sampled(analysis: Analysis) -> Analysis:
    more = tuple(
        Scalar(Quantity(f"isotropy.{i}_sampled", "", ""), 0.24, 0.001, "10 samples of 40,000 rows")
        for i in ("i1", "i2")
    )
    return replace(analysis, scalars=(*analysis.scalars, *more))


def list_columns() -> dict[str, tuple[str, list[TableColumn]]]:
    """By what is recorded of them: the name of a table, and its columns."""
    cone = TableColumn("Base_line", sample("cone"))
    round_one = TableColumn("b" * 30, sample("isotropic"))
    samples = [TableColumn(f"50% $x$ {i}", sampled(sample(seed=i))) for i in range(2)]
    study = sample_training(methods=("mle", "cosreg"))
    runs = [TableColumn(name, sample(), study.runs_of(name)) for name in ("mle", "cosreg")]
    run = study.runs[0]
    alike = {**run.numbers, "test.perplexity": run.numbers["test.perplexity"] * (1.0 + 1e-9)}
    twice = {"m0": (run,), "m1": (replace(run, numbers=alike),)}
    ones = [TableColumn(label, sample(), runs_of) for label, runs_of in twice.items()]
    undefined = with_scalar(sample(), "isotropy.i1", value=None, undefined="too small")
    marked = with_scalar(sample(), "isotropy.i2", caveats=("basis_dependent",))
    vocabulary = Analysis(
        provenance={},
        tokens=("citizens", "adults", "bliss", "dismiss", "*"),
        popular=np.array([True, True, False, False, True]),
    )
    near = with_neighbors(
        vocabulary,
        [("citizens", "popular", "bliss", "adults", "dismiss", "* *", "adults", "adults"),
         ("bliss", "rare", "citizens")],
        [("citizens", "bliss", 771), ("citizens", "adults", 12_345), ("bliss", "citizens", 3)],
        rare={"bliss", "dismiss"},
    )  # fmt: skip
    six = with_neighbors(sample(), [(f"word{i}", "rare", "near") for i in range(6)], [])
    return {
        "isotropy": ("isotropy", [cone, round_one]),
        "isotropy of samples": ("isotropy", samples),
        "isotropy of samples in one": ("isotropy", [samples[0], cone]),
        "numbers": ("numbers", [cone, round_one]),
        "numbers of a study": ("numbers", runs),
        "numbers of scores alike": ("numbers", ones),
        "undefined, and of a basis": (
            "isotropy",
            [TableColumn("a", undefined), TableColumn("b", marked)],
        ),
        "neighbors": ("neighbors", [TableColumn("Orig.", near), TableColumn("FRAGE", near)]),
        "neighbors of six words": ("neighbors", [TableColumn("a", six)]),
    }


@pytest.mark.parametrize("case", list_columns())
def test_tables_are_those_that_were_read(case: str) -> None:
    """Their source, their numbers, and below which width of a column they span two."""
    name, columns = list_columns()[case]
    lines = []
    for signs in ("both", "one")[: 1 + (case == "isotropy")]:
        lines += latex(name, columns, signs).splitlines()
        widths = np.arange(0.5, 9.0, 0.05)
        wide = [
            named(name).fill(columns, signs, Venue(w, 99.0)).values["environment"] == "table*"
            for w in widths
        ]
        lines.append(f"two columns below {widths[sum(wide)]:.2f} inches")
        table = named(name).fill(columns, signs, ICLR)
        lines += [" | ".join(map(str, row)) for row in (table.columns, *table.rows)]
    check_record(Path(__file__).with_name("tables.txt"), case, lines, apart=0.001)


def test_points_stand_below_each_other_and_the_most_isotropic_value_is_bold() -> None:
    def of(i1: float, i2: float) -> Analysis:
        changed = with_scalar(sample(), "isotropy.i1", value=i1)
        return with_scalar(changed, "isotropy.i2", value=i2)

    methods = [TableColumn("a", of(0.0912, 1e-9)), TableColumn("b", of(0.7667, 0.25))]
    body = [
        list(row["cells"][:2])
        for row in named("isotropy").fill(methods, "both", ICLR).values["body"]
    ]
    assert body[0] == ["$0.0912$", r"$\mathbf{1\times10^{-9}}$"]
    assert body[1] == [r"$\mathbf{0.7667}$", "$0.25$"]
    assert "Bold: the most isotropic." in latex("isotropy", methods)
    alone = latex("isotropy", methods[:1])
    assert "Bold" not in alone
    assert "mathbf" not in alone


def test_unlike_numbers_are_not_called_closest() -> None:
    one, other = sample("cone"), sample("isotropic")
    shares = (0.2, 0.5)
    methods = [
        TableColumn(str(share), replace(a, provenance={"options": {"popular_share": share}}))
        for share, a in zip(shares, (one, other), strict=True)
    ]
    text = " ".join(latex("numbers", methods).split())
    assert "Probe AUC, Rare nbrs.: not comparable, 0.5: the baseline was measured with" in text
    assert "share = 0.2{,} not 0.5." in text
    bold = [cell for cell in text.split("&") if "mathbf" in cell]
    assert len(bold) == 4  # of six columns


def test_a_wide_table_spans_the_columns_of_the_page_or_is_split() -> None:
    for columns, environment, widths in (
        (2, "table", [3]),
        (5, "table*", [6]),
        (12, "table*", [7, 7]),
    ):
        cell = Latex("$0.123456789$")
        heads = [Latex("Method"), *[cell] * columns]
        values = lay_out(heads, [heads], VENUES["acl"], Latex("A table."), "x")
        assert values["environment"] == environment
        assert [len(block["heads"]) for block in values["blocks"]] == widths
        assert all(block["width"] <= VENUES["acl"].text * 72.27 for block in values["blocks"])
        assert render_body("grid", values).count("Method") == 2 * len(widths)
        # Of a venue with one column, nothing spans two.
        assert lay_out(heads, [heads], ICLR, Latex(""), "x")["environment"] == "table"


def test_isotropy_needs_its_section() -> None:
    assert "isotropy" in named("isotropy").missing(without(sample(), "isotropy"))


def test_neighbors_have_to_be_asked_for() -> None:
    assert "--show-neighbors" in named("neighbors").missing(add_neighbors(sample()))


def test_text_as_latex() -> None:
    for text, source in (
        ("plain", "plain"),
        ("", r"\emph{(empty)}"),
        (" the ", r"\textvisiblespace{}the\textvisiblespace{}"),
        ("a b", "a b"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("--", "{-}{-}"),
        ("a\nb", r"a\textbackslash{}nb"),
        ("naïve", r"na\"{i}ve"),
        ("Łódź", r"\L{}\'{o}d\'{z}"),
        ("ﬁ", r"\embgeochar{ﬁ}{FB01}"),
        ("\u202e", r"\embgeochar{}{202E}"),
        ("\u0301", r"\embgeochar{}{0301}"),
        ("\ud800", r"\embgeochar{}{D800}"),
        ("[x", "{[}x"),
        ("x" * 40, "x" * (LIMIT - 1) + r"\dots{}"),
    ):
        assert latex_text(text) == source


def test_numbers_as_latex() -> None:
    for text, source in (
        ("0.24", "$0.24$"),
        ("−1", "$-1$"),
        ("1.5e-08", r"$1.5\times10^{-8}$"),
        ("1 − 1e-08", r"$1 - 1\times10^{-8}$"),
        ("12,345", "$12{,}345$"),
    ):
        assert latex_number(text) == source


def hostile_document(folder: Path, encoding: str) -> None:
    """A document with all tables, made of hostile labels, words and neighbors."""
    words = [(token, "rare", *HOSTILE[:6]) for token in HOSTILE]
    signs = [chr(c) for c in (*range(33, 127), *range(161, 0x180))]
    # In the first column: each sign once at the start of a row.
    ranks = [(HOSTILE[0], text, 7) for text in (*HOSTILE, *signs, *(2 * c for c in signs))]
    analysis = with_neighbors(sample(), words, ranks)
    methods = [TableColumn(label, analysis) for label in (r"\end{document}", "a & b", "% [*]")]
    inputs = ""
    for name, of in (("numbers", methods), ("isotropy", methods), ("neighbors", methods[:1])):
        text = latex(name, of)
        (folder / f"{name}.tex").write_text(text, "utf-8")
        inputs += f"\\input{{{name}}}\n"
    (folder / "paper.tex").write_text(
        "\\documentclass{article}\n"
        f"\\usepackage[{encoding}]{{fontenc}}\n\\usepackage{{booktabs}}\n"
        "\\usepackage[paperheight=200in,paperwidth=30in,margin=1in]{geometry}\n"
        f"\\begin{{document}}\n{inputs}The end.\n\\end{{document}}\n",
        "utf-8",
    )


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("encoding", ["OT1", "T1"])
def test_hostile_tables_compile(tmp_path: Path, encoding: str) -> None:
    hostile_document(tmp_path, encoding)
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    log = (tmp_path / "paper.log").read_text("latin-1")
    assert run.returncode == 0, log[-2000:]
    assert "Missing character" not in log
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
