"""Figures for papers: what is drawn, what is said beside it, what the files are."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing

import embgeo
from embgeo.charts.paper import PAPER_FIGURES, style
from embgeo.charts.paper.base import Choices, Made, PaperFigure, Subject
from embgeo.charts.paper.clouds import view_box
from embgeo.charts.paper.norms_by_frequency import quartiles
from embgeo.charts.paper.output import check_format, render
from embgeo.charts.paper.parameter import parameter_value
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.values import Cell
from embgeo.io.bounded.delimited import csv_lines
from embgeo.result.analysis import Analysis
from embgeo.training.study.log import Log
from tests.support.paper_samples import large_cloud, with_cloud
from tests.support.sample_analysis import HOSTILE, sample, with_scalar, without

PAGE = style.Page(3.25, style.plain_text)
LOG = Log(
    {
        "cosine.mean": (np.arange(5.0), np.linspace(0, 0.5, 5)),
        "train.loss": (np.arange(30.0), np.exp(-np.arange(30.0))),
    }
)


def named(name: str) -> PaperFigure:
    return next(f for f in PAPER_FIGURES if f.name == name)


def subjects() -> list[Subject]:
    """Two of everything."""
    return [
        Subject("one", sample("cone", n=200), LOG, x=0.0),
        Subject("two", sample("isotropic", n=200, seed=1), LOG, x=1.0),
    ]


def drawn(name: str, of: list[Subject], choices: Choices = Choices(), page: Any = PAGE) -> Made:
    figure = named(name)
    assert [figure.missing(s, choices) for s in of] == [""] * len(of)
    with style.settings():
        return figure.draw(of, page, choices)


def pdf(name: str, of: list[Subject], choices: Choices = Choices(), form: str = "pdf") -> bytes:
    with style.settings():
        made = named(name).draw(of, PAGE, choices)
        return render(made.drawing, name, form, "embgeo 0")[f"{name}.{form}"]


def rows(made: Made) -> list[dict[str, str]]:
    text = b"".join(csv_lines(made.data.columns, made.data.rows)).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


each_figure = pytest.mark.parametrize("figure", PAPER_FIGURES, ids=lambda f: f.name)


@each_figure
@pytest.mark.parametrize(("width", "count"), [(1.5, 1), (3.03, 5), (6.75, 2)])
def test_files_have_the_width_that_was_asked_for(
    figure: PaperFigure, width: float, count: int
) -> None:
    of = (subjects() * 3)[: max(count, figure.least)]
    made = drawn(figure.name, of, page=style.Page(width, style.plain_text))
    assert made.drawing.get_size_inches()[0] == width
    assert made.caption
    assert made.data.rows
    assert {len(row) for row in made.data.rows} == {len(made.data.columns)}
    made.drawing.draw_without_rendering()


@each_figure
def test_nothing_is_drawn_of_a_subject_without_values(figure: PaperFigure) -> None:
    for empty in (Subject("a"), Subject("a", Analysis(provenance={}), x=1.0)):
        assert figure.missing(empty, Choices())


@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
@pytest.mark.parametrize("name", ["scatter", "spectrum"])
def test_same_bytes_whatever_the_settings(name: str, form: str) -> None:
    import matplotlib

    of = subjects()
    first = pdf(name, of, form=form)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "savefig.dpi": 10}):
        assert pdf(name, of, form=form) == first
    assert not re.search(rb"CreationDate|dc:date|20\d\d-\d\d-\d\dT", first)


def test_same_bytes_in_another_process() -> None:
    """Subsets of fonts have names made of hashes, which may differ between processes."""
    code = (
        "import hashlib\n"
        "from tests.charts.test_paper import pdf, subjects\n"
        "for name in ('scatter', 'spectrum'):\n"
        "    for form in ('pdf', 'svg'):\n"
        "        print(hashlib.sha256(pdf(name, subjects(), form=form)).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


@pytest.fixture(scope="module")
def every_pdf() -> dict[str, bytes]:
    return {figure.name: pdf(figure.name, subjects()) for figure in PAPER_FIGURES}


@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="pdffonts (poppler) is not installed")
@each_figure
def test_fonts_are_embedded_and_none_is_type_3(
    figure: PaperFigure, every_pdf: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(every_pdf[figure.name])
    run = subprocess.run(
        ["pdffonts", str(tmp_path / "a.pdf")], capture_output=True, text=True, check=True
    )
    fonts = run.stdout.splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "STIX" in line
        assert "Type 3" not in line
        assert re.search(r" yes yes (yes|no) ", line), line


def test_no_file_holds_a_type_3_font(every_pdf: dict[str, bytes]) -> None:
    for content in every_pdf.values():
        assert b"/Subtype /Type0" in content
        assert b"/Type3" not in content


@pytest.mark.parametrize("color", ["class", "none", "frequency"])
def test_fifty_thousand_points_stay_below_300_kilobytes(color: str) -> None:
    of = [Subject("large", large_cloud(50_000))]
    with style.settings():
        page = style.Page(6.75, style.plain_text)
        made = named("scatter").draw(of, page, Choices(color))
        content = render(made.drawing, "scatter", "pdf", "embgeo 0")["scatter.pdf"]
    assert content.count(b"/Subtype /Image") >= 1
    assert 10_000 < len(content) < 300_000
    assert len(made.data.rows) == 50_000


# --- scatter ---------------------------------------------------------------------------------


def cloud_of(made: Made, panel: int = 0) -> PathCollection:
    (cloud,) = [c for c in made.drawing.axes[panel].collections if isinstance(c, PathCollection)]
    return cloud


def test_every_point_is_drawn_in_the_color_of_its_class() -> None:
    analysis = sample()
    cloud = cloud_of(drawn("scatter", [Subject("a", analysis)]))
    offsets, colors = np.asarray(cloud.get_offsets()), cloud.get_facecolor()
    xy = next(p.xy for p in analysis.points if p.name == "projection.svd2")
    assert sorted(map(tuple, offsets)) == sorted(map(tuple, xy))
    assert analysis.popular is not None
    color = {True: style.POPULAR, False: style.RARE}
    from matplotlib.colors import to_hex

    place = {tuple(p): i for i, p in enumerate(xy)}
    for point, rgba in zip(offsets, colors, strict=True):
        popular = bool(analysis.popular[place[tuple(point)]])
        assert to_hex(rgba) == color[popular]
    assert cloud.axes is not None
    assert cloud.get_zorder() < cloud.axes.get_rasterization_zorder()


def test_neither_class_is_drawn_over_the_other() -> None:
    """The order of drawing is a mixture: each half of it holds both classes as the whole does."""
    analysis = sample(n=2000)
    cloud = cloud_of(drawn("scatter", [Subject("a", analysis)]))
    is_popular = cloud.get_facecolor()[:, 2] > 0.5  # the blue one
    assert 0.15 < is_popular[:1000].mean() < 0.25
    assert 0.15 < is_popular[1000:].mean() < 0.25


def test_scales_are_equal_on_both_axes_and_the_origin_is_seen() -> None:
    shifted = with_cloud(
        sample(), "projection.svd2", np.random.default_rng(0).normal(50, 1, (600, 2))
    )
    made = drawn("scatter", [Subject("a", shifted), Subject("b", sample())])
    made.drawing.draw_without_rendering()
    for ax in made.drawing.axes:
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        assert left < 0 < right
        assert bottom < 0 < top
        box = ax.get_window_extent()
        assert box.width / (right - left) == pytest.approx(box.height / (top - bottom), rel=1e-6)


def test_points_outside_the_picture_are_counted() -> None:
    xy = np.random.default_rng(0).standard_normal((4000, 2))
    xy[:2] = [[1e6, 0.0], [0.0, -1e6]]
    view = view_box(xy, 0.8)
    inside = view.holds(xy)
    assert not inside[:2].any()
    assert inside.mean() > 0.997
    far = with_cloud(sample(n=4000), "projection.svd2", xy)
    made = drawn("scatter", [Subject("a", far)])
    made.drawing.draw_without_rendering()
    (left, right), (bottom, top) = made.drawing.axes[0].get_xlim(), made.drawing.axes[0].get_ylim()
    seen = (xy >= [left, bottom]).all(axis=1) & (xy <= [right, top]).all(axis=1)
    assert not seen[:2].any()
    assert made.notes == (f"a: {(~seen).sum()} of 4,000 points lie outside the picture",)


def test_one_point_at_the_origin_has_a_picture() -> None:
    view = view_box(np.zeros((1, 2)), 0.7)
    assert view.left < view.right
    assert view.bottom < view.top


def test_frequency_colors_have_one_scale_for_all_panels() -> None:
    choices = Choices("frequency")
    made = drawn("scatter", [Subject("a", sample()), Subject("b", sample(seed=2))], choices)
    first, second = (cloud_of(made, panel) for panel in (0, 1))
    colors = [{tuple(map(float, c)) for c in cloud.get_facecolor()} for cloud in (first, second)]
    assert colors[0] == colors[1]
    assert len(colors[0]) > 5
    assert made.drawing.axes[-1].get_xlabel() == "1 + count"


def test_colors_fall_back_where_frequencies_are_not_known() -> None:
    plain = sample(counts=False)
    assert named("scatter").missing(Subject("a", plain), Choices("frequency"))
    alone = drawn("scatter", [Subject("a", plain)])
    assert not alone.drawing.legends
    beside = drawn("scatter", [Subject("a", plain), Subject("b", sample())])
    texts = [t.get_text() for t in beside.drawing.legends[0].get_texts()]
    assert texts == ["popular tokens", "rare tokens", "frequency not known"]


def test_a_vocabulary_known_by_rank_has_ranks() -> None:
    analysis = sample(n=100)
    said = {**analysis.provenance["frequency"], "kind": "rank"}
    n = analysis.provenance["n"]
    ranked = replace(
        analysis,
        provenance={**analysis.provenance, "frequency": said},
        counts=np.arange(n, 1.0, -1.0),
    )
    found = rows(drawn("scatter", [Subject("a", ranked)]))
    assert [row["rank"] for row in found[:3]] == ["1.0", "2.0", "3.0"]
    assert {row["count"] for row in found} == {""}
    made = drawn("norms-by-frequency", [Subject("a", ranked), Subject("b", analysis)])
    assert made.drawing.axes[0].get_xlabel() == "frequency rank"


def test_many_panels_are_thinned_out_and_that_is_said() -> None:
    analysis = sample(n=60)
    of = [Subject(f"{i}", analysis) for i in range(30)]
    made = drawn("scatter", of)
    assert len(made.drawing.axes) == 12
    assert made.notes[0] == "12 of 30 are shown"
    assert {row["analysis"] for row in rows(made)} >= {"0", "29"}


# --- curves ----------------------------------------------------------------------------------


def test_spectra_are_those_of_the_analyses() -> None:
    of = subjects()
    made = drawn("spectrum", of)
    for subject in of:
        assert subject.analysis is not None
        series = subject.analysis["spectrum.singular_values"]
        values = [float(r["normalized singular value"]) for r in rows(made)
                  if r["analysis"] == subject.label]  # fmt: skip
        assert values == pytest.approx(series.y["uncentered"][: len(values)])  # type: ignore[union-attr]
        assert values[0] == 1.0
    assert made.drawing.axes[0].get_yscale() == "linear"
    assert drawn("spectrum-log", of).drawing.axes[0].get_yscale() == "log"


def test_lines_differ_in_more_than_color() -> None:
    looks = [style.line(i, 100) for i in range(28)]
    assert len({(look["color"], str(look["linestyle"])) for look in looks}) == 28
    assert len({str(look["linestyle"]) for look in looks[:4]}) == 4
    assert style.line(0, 5)["marker"]
    assert not style.line(0, 500)["marker"]


def test_densities_of_cosines_sum_to_one() -> None:
    found = rows(drawn("cosines", subjects()))
    for label in ("one", "two"):
        own = [r for r in found if r["analysis"] == label]
        area = sum(float(r["density"]) * (float(r["to"]) - float(r["from"])) for r in own)
        assert area == pytest.approx(1.0)


def test_a_high_peak_does_not_hide_the_other_histograms() -> None:
    analysis = sample("isotropic")
    peaked = replace(
        analysis,
        histograms=tuple(
            replace(h, counts=np.where(np.arange(len(h.counts)) == 7, 1e5, 0.0))
            if h.name == "cosine.histogram"
            else h
            for h in analysis.histograms
        ),
    )
    both = drawn("cosines", [Subject("a", analysis), Subject("b", peaked)])
    assert both.drawing.axes[0].get_yscale() == "log"
    assert drawn("cosines", [Subject("a", analysis)]).drawing.axes[0].get_yscale() == "linear"


def test_the_ends_of_the_partition_function_give_i1() -> None:
    analysis = sample("cone")
    found = [float(r["z"]) for r in rows(drawn("partition", [Subject("a", analysis)]))
             if r["scale"] == "raw"]  # fmt: skip
    i1 = analysis.scalar("isotropy.i1")
    assert i1 is not None
    assert i1.value == pytest.approx(min(found) / max(found))
    assert len(found) == 2 * 16


def test_quartiles_of_norms_hold_every_token_once() -> None:
    counts = 1.0 + np.floor(1e5 / np.arange(1, 2001))
    norms = np.log10(counts)
    bins = quartiles(counts, norms)
    assert bins[:, 4].sum() == 2000
    assert (bins[:, 4] >= 20).all()
    assert (np.diff(bins[:, 0]) > 0).all()
    assert (bins[:, 1] <= bins[:, 2]).all()
    assert (np.diff(bins[:, 2]) > 0).all()  # norms grow with the frequency here
    alone = quartiles(np.ones(5), np.arange(5.0))
    assert alone.tolist() == [[1.0, 1.0, 2.0, 3.0, 5.0]]


# --- sweep and training ----------------------------------------------------------------------


def swept(values: dict[float, float]) -> list[Subject]:
    base = sample(n=60)
    return [
        Subject(f"beta{x}", with_scalar(base, "subspace.distance", value=y), x=x)
        for x, y in values.items()
    ]


def test_a_sweep_is_in_the_order_of_the_parameter() -> None:
    made = drawn("sweep", swept({1.0: 0.06, 0.0: 0.99, 0.5: 0.2}), Choices(parameter="beta"))
    found = [(float(r["beta"]), float(r["value"])) for r in rows(made)]
    assert found == [(0.0, 0.99), (0.5, 0.2), (1.0, 0.06)]
    ax = made.drawing.axes[0]
    assert ax.get_xlabel() == r"$\beta$"
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylabel() == "distance of input and output space"
    assert "chance" in made.caption


def test_wide_parameters_have_a_logarithmic_axis() -> None:
    scale = [
        drawn("sweep", swept(dict.fromkeys(xs, 0.5))).drawing.axes[0].get_xscale()
        for xs in ((1.0, 2.0, 100.0), (0.0, 1.0, 100.0), (1.0, 2.0))
    ]
    assert scale == ["log", "linear", "linear"]


def test_a_sweep_of_several_scalars_has_a_panel_for_each() -> None:
    made = drawn(
        "sweep", swept({0.0: 0.5, 1.0: 0.5}), Choices(scalars=("cosine.mean", "x.y", "isotropy.i1"))
    )
    assert {r["name"] for r in rows(made)} == {"cosine.mean", "isotropy.i1"}
    assert len(made.drawing.axes) == 2


def test_runs_in_a_sweep_give_their_last_value() -> None:
    made = drawn("sweep", [Subject("a", log=LOG, x=0.0), Subject("b", log=LOG, x=1.0)],
                 Choices(scalars=("cosine.mean",)))  # fmt: skip
    assert [r["value"] for r in rows(made)] == ["0.5", "0.5"]


def test_why_a_sweep_lacks_a_value() -> None:
    missing = named("sweep").missing
    assert "--x" in missing(Subject("a", sample()), Choices())
    tied = Subject("a", sample(untied=False), x=1.0)
    assert missing(tied, Choices()) == "the model is tied: it has no output matrix of its own"
    undefined = with_scalar(sample(), "subspace.distance", value=None, undefined="no rank")
    assert missing(Subject("a", undefined, x=1.0), Choices()).endswith("not defined: no rank")


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("runs/beta=0.25.embgeo", "beta", 0.25),
        ("beta0.5", "beta", 0.5),
        ("tau_10/model", "tau", 10.0),
        ("tau-2.embgeo", "tau", 2.0),
        ("lr1e-3", "lr", 0.001),
        ("beta1/beta2", "beta", 2.0),
        ("beta2", "eta", None),
        ("BETA2", "beta", 2.0),
        ("model", "beta", None),
        ("beta", "beta", None),
        ("x+y3", "x+y", 3.0),
    ],
)
def test_values_of_parameters_in_names(name: str, parameter: str, value: float | None) -> None:
    assert parameter_value(name, parameter) == value


def test_training_shows_what_is_asked_for_and_says_what_is_not_shown() -> None:
    wide = Log({f"a.{i}": (np.arange(3.0), np.arange(3.0)) for i in range(7)})
    made = drawn("training", [Subject("a", log=wide)])
    assert len(made.drawing.axes) == 4
    assert made.notes == ("3 more in the logs: choose with --scalar",)
    made = drawn("training", [Subject("a", log=wide)], Choices(scalars=("a.6",)))
    assert [ax.get_title() for ax in made.drawing.axes] == ["a.6"]
    assert named("training").missing(Subject("a", log=wide), Choices(scalars=("b.1",)))


def test_steps_are_shown_in_thousands() -> None:
    log = Log({"a.b": (np.array([0.0, 20_000.0]), np.zeros(2))})
    made = drawn("training", [Subject("a", log=log)])
    made.drawing.draw_without_rendering()
    assert "20k" in [t.get_text() for t in made.drawing.axes[0].get_xticklabels()]


# --- hostile text ----------------------------------------------------------------------------


def test_labels_are_drawn_letter_by_letter() -> None:
    labels = [*HOSTILE, "_underscore"]
    of = [Subject(label, log=LOG) for label in labels]
    made = drawn("training", of, Choices(scalars=("cosine.mean", "train.loss")))
    with style.settings():
        render(made.drawing, "training", "svg", "embgeo 0")
    texts = [text.get_text() for text in made.drawing.legends[0].get_texts()]
    assert len(texts) == len(labels)
    assert texts[-1] == "_underscore"
    for text in texts:
        assert "$" not in text.replace(r"\$", "")
        assert len(text) <= 8 * style.LIMIT
        assert text.isprintable()
    assert texts[labels.index("\u202eevil\u202c")] == "‹U+202E›evil‹U+202C›"
    assert texts[labels.index("日本語")] == "‹U+65E5›‹U+672C›‹U+8A9E›"


def test_a_mathematical_title_is_no_mathematics() -> None:
    made = drawn("scatter", [Subject("$x$", sample(n=60)), Subject("b", sample(n=60))])
    assert made.drawing.axes[0].get_title() == r"\$x\$"


def test_hostile_tokens_survive_in_the_data() -> None:
    made = drawn("scatter", [Subject("a", sample(hostile=True))])
    tokens = [row["token"] for row in rows(made)]
    expected = [t.encode("utf-8", "backslashreplace").decode() for t in HOSTILE]
    assert tokens[: len(HOSTILE)] == expected


def test_cells_of_the_data() -> None:
    table: list[tuple[Cell, ...]] = [("a,b", 1, None), ('q"', 0.1, 1e-300)]
    assert b"".join(csv_lines(("x", "y", "z"), table)) == b'x,y,z\n"a,b",1,\n"q""",0.1,1e-300\n'


# --- formats ---------------------------------------------------------------------------------


def test_pgf_without_latex_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BadOption, match="no pdflatex; install TeX, or choose pdf"):
        check_format("pgf")
    check_format("pdf")


def test_left_out_sections_are_named() -> None:
    cut = Subject("a", without(sample(), "spectrum", "isotropy", "tokens", "cosine", "projection"))
    for name, section in (
        ("spectrum", "spectrum"), ("partition", "isotropy"), ("scatter", "projection"),
        ("norms-by-frequency", "tokens"), ("cosines", "cosines"),
    ):  # fmt: skip
        assert section in named(name).missing(cut, Choices())


ROWS = np.random.default_rng(0).standard_normal((30, 4))
ODD = {
    "one row": (ROWS[:1], None),
    "equal rows": (np.ones((20, 4)), np.arange(20.0)),
    "equal counts": (ROWS, np.full(30, 7.0)),
    "one word seen": (ROWS, np.arange(30) == 0),
    "beyond floats": (1e100 * ROWS, np.arange(30.0)),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_matrices_are_drawn_without_a_warning(name: str) -> None:
    rows, counts = ODD[name]
    known = None if counts is None else Frequency("counts", counts.astype(float), "made up")
    analysis = embgeo.analyze(Matrix(rows, frequency=known), reference=False)
    subject = Subject("odd", analysis, x=1.0)
    choices = Choices("class" if counts is None else "frequency")
    for figure in PAPER_FIGURES:
        if not figure.missing(subject, choices) and figure.least == 1:
            with style.settings():
                figure.draw([subject], PAGE, choices).drawing.draw_without_rendering()


def test_drawings_are_matplotlib_figures_without_pyplot() -> None:
    assert isinstance(drawn("spectrum", subjects()).drawing, Drawing)
    assert "matplotlib.pyplot" not in sys.modules
