"""Matrices that an expert was shown, with what the expert said of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.quantities import coordinates, cosine, spectrum, tokens
from embgeo.core.values import Scalar
from embgeo.diagnosis.verdict import Verdict, judge
from embgeo.measure.analyze import analyze
from embgeo.result.analysis import Analysis
from tests.support.sampling import each_value

Rows = npt.NDArray[np.float64]
N, D = 1000, 32


def measure(rows: Rows, seed: int = 0, **more: Any) -> Analysis:
    """Without what only a page shows."""
    options = embgeo.Options(pairs=500, seed=seed)
    return analyze(embgeo.Matrix(rows), options=options, page=False, **more)


def look(rows: Rows, **more: Any) -> Verdict:
    return measure(rows, **more).verdict


def said(verdict: Verdict) -> str:
    return " ".join([verdict.headline, *(finding.sentence for finding in verdict.findings)])


def normal(seed: int, n: int = N, d: int = D) -> Rows:
    return np.random.default_rng(seed).standard_normal((n, d))


def trained(seed: int = 1, n: int = N, d: int = D) -> Rows:
    """A spectrum that falls, as after training."""
    rotation = np.linalg.qr(normal(99, d, d))[0]
    return normal(seed, n, d) * np.arange(1, d + 1) ** -0.4 @ rotation


def judged(*scalars: Scalar, kept: int = N, d: int = D, **provenance: Any) -> Verdict:
    """Of hand-made numbers."""
    return judge(Analysis(provenance={"kept": kept, "d": d, **provenance}, scalars=scalars))


# Cone or clusters -------------------------------------------------------------------------------


def groups(degrees: float, sizes: tuple[int, ...], noise: float = 0.01) -> Rows:
    """Groups of directions with this angle between any two, turned away from the axes."""
    near, k = np.cos(np.radians(degrees)), len(sizes)
    gram = np.full((k, k), near) + (1 - near) * np.eye(k)
    frame = np.linalg.qr(normal(98, D, D))[0][: len(sizes)]
    centers = np.linalg.cholesky(gram + 1e-9 * np.eye(len(sizes))) @ frame
    return np.repeat(centers, sizes, axis=0) + noise * normal(2, sum(sizes))


@each_value
@pytest.mark.parametrize("degrees", [10, 25, 45])
@pytest.mark.parametrize("count", [2, 4])
def test_groups_inside_one_cone_are_a_cone_with_clusters_in_it(degrees: int, count: int) -> None:
    verdict = look(groups(degrees, (N // count,) * count, noise=0.003))
    assert verdict.state == "degenerate"
    assert verdict.headline.startswith("Narrow cone")
    assert f"{count} clusters lie in it" in said(verdict)


def test_groups_at_right_angles_are_clusters_without_a_cone() -> None:
    verdict = look(groups(90, (500, 500)))
    assert verdict.headline.startswith("Large mean cosine without a cone")
    assert "The rows form 2 clusters" in said(verdict)
    finding = verdict.finding("clusters")
    assert finding is not None
    assert "two modalities" in finding.sentence


def modalities(between: float, inside: float, d: int = 128) -> Rows:
    """Two halves with these mean cosines between and inside them."""
    own = normal(5, N, d)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    common, *sides = np.linalg.qr(normal(6, d, 3))[0].T
    side = np.where(np.arange(N)[:, None] < N // 2, sides[0], sides[1])
    return np.asarray(
        np.sqrt(1 - inside) * own + np.sqrt(between) * common + np.sqrt(inside - between) * side
    )


def test_two_modalities_in_one_cone_are_named() -> None:
    """As wide as those of CLIP: their silhouette is 0.2."""
    verdict = look(modalities(0.2, 0.5))
    assert verdict.headline.startswith("Narrow cone")
    assert "2 clusters lie in it" in said(verdict)
    finding = verdict.finding("cone")
    assert finding is not None
    assert "two modalities" in finding.sentence
    assert "usual for such models" in finding.sentence


@pytest.mark.slow
def test_one_cone_has_no_groups() -> None:
    for rows in (modalities(0.3, 0.3), normal(7) + 1.0, normal(7, N, 3) + 1.0):
        assert "cluster" not in look(rows).headline


def test_the_two_ends_of_one_line_are_a_line_and_no_clusters() -> None:
    verdict = look(groups(180, (300, 300)))
    assert "wo-sided collapse" in verdict.headline
    assert "cluster" not in verdict.headline
    finding = verdict.finding("clusters")
    assert finding is not None
    assert "the two ends of one line" in finding.sentence
    assert "two modalities" not in finding.sentence


@pytest.mark.parametrize(("degrees", "cone"), [(90, False), (60, True)])
def test_clusters_make_a_mean_cosine_without_a_cone(degrees: float, cone: bool) -> None:
    verdict = look(groups(degrees, (600, 400)), sections=["cosine", "tokens"])
    assert ("without a cone" in verdict.headline) is not cone


@pytest.mark.slow
def test_clouds_on_a_map_are_groups_of_directions() -> None:
    """Expert: a map with 12 clouds; angles to its origin mean nothing, and some clouds lie behind
    others.
    """
    centers, at = 60 * normal(0, 12, 2), np.random.default_rng(1).integers(0, 12, 300)
    finding = look(centers[at] + 3 * normal(2, 300, 2), sections=["cosine"]).finding("clusters")
    assert finding is not None
    assert finding.sentence.endswith("as seen from the origin count once.")
    other = look(groups(90, (150, 150)), sections=["cosine"]).finding("clusters")
    assert other is not None
    assert "a map" not in other.sentence


def test_a_cluster_of_five_rows_makes_nothing() -> None:
    verdict = look(groups(180, (595, 5)))
    assert verdict.headline.startswith("Narrow cone")
    assert "cluster" not in verdict.headline


def test_one_quadrant_of_a_plane_is_a_cone() -> None:
    angle = np.random.default_rng(3).uniform(0, np.pi / 2, N) + 0.1
    verdict = look(np.c_[np.cos(angle), np.sin(angle)])
    assert verdict.headline.startswith("Narrow cone")


@pytest.mark.parametrize(("between", "is_cone"), [(0.099, False), (0.1, True)])
def test_pairs_between_clusters_decide(between: float, is_cone: bool) -> None:
    verdict = judged(
        cosine.MEAN.measured(0.5),
        cosine.CLUSTERS.measured(2),
        cosine.SILHOUETTE.measured(0.9),
        cosine.MEAN_BETWEEN_CLUSTERS.measured(between),
    )
    assert ("2 clusters lie in it" in said(verdict)) is is_cone
    assert ("without a cone" in verdict.headline) is not is_cone


@pytest.mark.slow
def test_every_cluster_is_counted() -> None:
    """Twenty groups were 11 clusters: each holds a twentieth of the rows."""
    assert "The rows form 20 clusters" in said(look(groups(90, (50,) * 20)))


def test_wide_groups_at_right_angles_make_a_mean_cosine_without_a_cone() -> None:
    """As three scripts do: the rows of each have a mean cosine of 0.35."""
    rows = trained(d=64)
    for k in range(3):
        rows[k::3] += 2.5 * np.eye(64)[k + 8]
    assert "large mean cosine without a cone" in look(rows).headline.lower()


def test_a_faint_cone_of_rows_without_negative_entries_is_named_so() -> None:
    verdict = look(np.maximum(normal(20, N, 64) - 1.0, 0.0))
    assert verdict.headline == "Healthy."
    assert "Faint cone" in said(verdict)
    assert "No entry is negative" in said(verdict)


# Dead rows and padding --------------------------------------------------------------------------


@pytest.mark.slow
def test_more_dead_rows_are_never_milder() -> None:
    for dead in (49, 51, 520):
        rows = trained()
        rows[np.random.default_rng(4).permutation(N)[:dead]] *= 1e-6
        verdict = look(rows)
        assert verdict.state == "degenerate"
        assert verdict.headline == f"Healthy, except for {dead} faulty tokens."


@pytest.mark.slow
def test_rows_one_to_two_decades_shorter_are_not_a_few_long_rows_beside_them() -> None:
    for short in (300, 600, 900):
        rows = trained()
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows[np.random.default_rng(4).permutation(N)[:short]] *= 10**-1.5
        rows *= 1.0 + 1e-3 * normal(5, N, 1)  # equal norms have no modes
        found = measure(rows)
        assert [len(own) for own in found.suspects] == [min(short, N - short)]
        assert "long rows" not in said(found.verdict)


def test_norms_without_few_long_rows_are_unequal() -> None:
    """The share of "a few long rows" was no share of any rows."""
    rows = trained() * np.exp(1.5 * normal(21, N, 1))
    verdict = look(rows)
    assert "unequal norms (root mean square " in said(verdict)


def test_a_zero_row_0_and_a_zero_tail_are_padding_where_no_token_is_known() -> None:
    rows = trained()
    rows[0], rows[-40:] = 0.0, 0.0
    found = measure(rows)
    assert found.verdict.state == "healthy"
    assert "41 rows are left out: exactly zero, as padding" in [str(note) for note in found.notes]
    labeled = embgeo.analyze(rows, tokens=[f"w{i}" for i in range(N)], pairs=500)
    assert labeled.verdict.state == "degenerate"
    rows[500] = 0.0
    assert "1 zero row: " in said(look(rows))


def test_zero_rows_at_the_ends_are_no_padding_where_others_are_as_likely() -> None:
    for between, last, padding in (
        ((), 1, 2),
        ((500,), 1, 2),
        (range(100, 700), 3, 0),
        (range(100, 700), 9, 9),
        (range(9, 33), 499, 500),
        (range(9, 36), 499, 499),
    ):
        rows = trained()
        rows[[0, *between]], rows[N - last :] = 0.0, 0.0
        found = embgeo.analyze(rows, sections=["suspects"], reference=False)
        assert sum(len(own) for own in found.suspects if own.reason == "no_token") == padding


def test_long_rows_are_doubted_where_most_rows_are_damaged() -> None:
    """Expert: 300 rows hold garbage, norms of 1e20; the other 700 are sound.

    Norms alone cannot tell that from a codebook of which 70% are dead.
    """
    rows = trained()
    rows[np.random.default_rng(4).permutation(N)[:300]] *= 1e20
    finding = look(rows).finding("suspects")
    assert finding is not None
    assert finding.sentence.endswith("or the 300 longer ones.")


@pytest.mark.parametrize(("dead", "said"), [(500, False), (501, True)])
def test_only_where_most_rows_are_damaged_the_others_are_doubted(dead: int, said: bool) -> None:
    rows = trained()
    rows[:dead] *= 1e-6
    finding = look(rows).finding("suspects")
    assert finding is not None
    assert ("norms alone" in finding.sentence) is said


def embed_bytes(decades: float, seed: int = 22, d: int = 256) -> Rows:
    """Of 256 bytes the 13 that no UTF-8 text has keep their initial rows, so much shorter."""
    rows = trained(seed, 256, d)
    norms = 0.02 * d**0.5 * 10**decades * np.exp(0.2 * normal(seed + 1, 256, 1))
    rows *= norms / np.linalg.norm(rows, axis=1, keepdims=True)
    never = [0xC0, 0xC1, *range(0xF5, 0x100)]
    rows[never] = 0.02 * normal(seed + 2, len(never), d)
    return rows


@pytest.mark.parametrize("decades", [0.5, 0.8])
def test_thirteen_bytes_that_no_text_has_were_never_trained(decades: float) -> None:
    """Expert: 13 bytes still have their initial rows, short and equally long; the rest is sound."""
    verdict = look(embed_bytes(decades))
    assert verdict.state == "mild"
    assert verdict.headline == "Healthy, except for 13 faulty tokens."
    assert "13 rows never trained" in said(verdict)


def test_as_many_short_bytes_with_a_common_direction_were_trained() -> None:
    rows = embed_bytes(0.8)
    rows[[0xC0, 0xC1, *range(0xF5, 0x100)]] += 0.02
    assert "never trained" not in said(look(rows))


# Initializations --------------------------------------------------------------------------------

G = np.random.default_rng(5)
INITIAL = {
    "normal": 0.02 * G.standard_normal((1000, 64)),
    "normal, float16": (0.02 * G.standard_normal((1000, 64))).astype(np.float16),
    "uniform": G.uniform(-0.1, 0.1, (1000, 64)),
    "Xavier": np.sqrt(6 / 2100) * G.uniform(-1, 1, (1000, 100)),
    "word2vec": (G.random((1000, 100)) - 0.5) / 100,
    "fastText": G.uniform(-1, 1, (1000, 50)) / 50,
    "orthogonal": np.linalg.qr(G.standard_normal((1000, 64)))[0],
    "three dimensions": G.standard_normal((1000, 3)),
}


@pytest.mark.slow
def test_rows_of_an_initialization_hold_no_structure() -> None:
    for name in INITIAL:
        headline = look(INITIAL[name]).headline
        assert headline == "Untrained: the rows look like an initialization."


@pytest.mark.slow
def test_rows_with_any_structure_are_not_like_an_initialization() -> None:
    for rows in (
        trained(),
        normal(6) + 0.05,
        normal(7) * np.exp(0.3 * normal(8, N, 1)),
        np.repeat(normal(9, N // 2), 2, axis=0),
    ):
        assert "initialization" not in look(rows).headline


def test_limits_of_an_initialization() -> None:
    for mean, p, variation, found in (
        (0.0, 0.5, 0.1, True),
        (0.0, 0.0099, 0.1, False),
        (0.0, 0.01, 0.1, True),
        (0.0, 0.5, 0.16, False),
        (0.002, 0.5, 0.1, False),
    ):
        verdict = judged(
            cosine.MEAN.measured(mean),
            spectrum.LARGEST_P.measured(p),
            tokens.NORM_VARIATION.measured(variation),
        )
        assert (verdict.finding("initialization") is not None) is found


# Headline, coordinates, duplicates, few rows, orthant ---------------------------------------------


def test_the_headline_names_what_reached_the_state_first() -> None:
    """One coordinate with 6% of the variance is mild; the cone is what is degenerate."""
    rows = normal(10, 2000, 64) + 1.0
    rows[:, 0] += 3.0 * normal(11, 2000, 1)[:, 0] * 2.0
    assert look(rows).headline.startswith("Narrow cone")


def test_three_rogue_coordinates_are_named_together() -> None:
    rows = trained()
    rows[:, [3, 7, 9]] *= 15.0
    assert "3 coordinates carry 9" in said(look(rows))


def test_coordinates_that_make_the_mean_cosine_together_are_named_together() -> None:
    rows = trained(d=64)
    rows[:, [3, 7, 9]] += 10.0
    assert "3 coordinates contribute 99.99" in said(look(rows))


def test_the_mean_cosine_without_another_coordinate_than_the_one_that_makes_it_is_not_said() -> (
    None
):
    """The constant eigenvector of a graph's Laplacian: it makes all of the mean cosine."""
    columns = np.linalg.qr(np.c_[np.ones(N), normal(3)[:, 1:]])[0]
    verdict = look(columns * np.r_[3.0, 3.2, np.ones(D - 2)] + 0.01 * normal(4))
    finding = next(f for f in verdict.findings if f.key == "coordinate")
    assert "Without" not in finding.sentence


def test_limits_of_wide_coordinates() -> None:
    for share, ratio, state in (
        (0.249, 100.0, "mild"),
        (0.25, 100.0, "degenerate"),
        (0.8, 99.0, "mild"),
        (0.049, 30.0, ""),
    ):
        finding = judged(
            spectrum.TOP_SHARE.measured(0.9),
            spectrum.EFFECTIVE_RANK.measured(2.0, reference=D),
            coordinates.VARIANCE_RATIO.measured(ratio),
            coordinates.ROGUE_COORDINATES.measured(3),
            coordinates.ROGUE_SHARE.measured(share),
        ).finding("coordinate")
        assert (finding.state if finding else "") == state


@pytest.mark.slow
def test_wide_coordinates_that_stand_apart_are_no_principal_axes() -> None:
    """Expert: a rogue coordinate that makes a third of every squared distance.

    In principal axes of an ordinary spectrum the first of 256 has a share of 16%: with a quarter of
    the variance it is named and no fault, with 38%, the odds of which are three times those, it is.
    """
    for factor, state in ((9.2, "healthy"), (12.5, "mild")):  # 85 and 156 medians
        rows = normal(26, 2_000, 256)
        rows[:, 70] *= factor
        verdict = look(rows, sections=["spectrum", "cosine", "coordinates"])
        finding = verdict.finding("coordinate")
        assert finding is not None
        assert finding.state == state


def test_principal_axes_of_an_ordinary_spectrum_are_no_fault_of_coordinates() -> None:
    """Expert: a table after PCA (LSA, model2vec); its first coordinates are its first directions.

    They were "degenerate" next to "no collapsed spectrum".
    """
    verdict = look(normal(23, N, 256) * np.arange(1, 257) ** -0.5)
    assert verdict.state == "healthy"
    assert verdict.finding("coordinate") is None


def advice(rows: Rows, key: str = "cone") -> str:
    finding = look(rows).finding(key)
    assert finding is not None
    assert finding.is_fault
    return finding.advice


@pytest.mark.slow
def test_advice_follows_the_cause() -> None:
    """A plain cone is trained apart; groups and signs are not, and shown as what they are."""
    cone = normal(27, N, D) + 1.0
    assert "cosreg" in advice(cone)
    assert "sc-exp" in advice(cone + 2.0, "spectrum")
    sides = cone.copy()
    sides[::2, 0] += 12.0
    sides[1::2, 1] += 12.0
    for rows in (sides, np.log(np.random.default_rng(2).dirichlet(np.full(D, 0.5), N) + 1e-9)):
        assert not any(word in advice(rows) for word in ("cosreg", "sc-exp"))
    made = normal(30, N, D)
    made[:, 3] += 9.0
    assert "cosreg" not in advice(made)
    opposite = np.where(np.arange(N)[:, None] % 2, 9.0, -9.0) * np.eye(D)[0] + normal(31)
    assert advice(opposite, "spectrum") == advice(opposite, "two-sided")
    signed = np.where(np.abs(normal(32, N, 256)) > 2.0, normal(33, N, 256), 0.0)
    assert "usual for codes of a sparse" in said(look(signed[np.any(signed, axis=1)]))
    twins = np.vstack([cone[:500], cone[:500] + 0.01 * normal(29, 500)]) - 1.0
    assert "embgeo repair" in advice(twins, "suspects")
    codes = np.maximum(normal(28, N, 256) - 1.8, 0.0) + np.eye(256)[0]
    finding = look(codes, sections=["cosine"]).finding("cone")
    assert finding is not None
    assert "No entry is negative, and 96" in finding.sentence
    assert "active" in finding.advice
    codes = np.maximum(normal(28, N, 64), 0.0)
    finding = look(codes, sections=["cosine"]).finding("cone")
    assert finding is not None
    assert finding.fault == "narrow cone"
    assert "No entry is negative" in finding.sentence


def test_a_nested_table_is_not_to_be_standardized() -> None:
    """Its first eight columns are wide; the same columns anywhere else are rogue coordinates."""
    nested = normal(34, N, 64) * np.repeat([9.0, 3.0, 1.0], [8, 8, 48])
    for rows, expected in ((nested, False), (nested[:, ::-1], True)):
        finding = look(rows).finding("coordinate")
        assert finding is not None
        assert ("standardize" in finding.advice) is expected


def test_a_circle_is_no_line() -> None:
    angle = 2 * np.pi * np.arange(366) / 366
    rows = np.c_[np.cos(angle), np.sin(angle)] @ np.linalg.qr(normal(24, 16, 16))[0][:2]
    finding = look(rows + 0.02 * normal(25, 366, 16)).finding("two-sided")
    assert finding is not None
    assert finding.sentence.startswith("Two-sided collapse onto few directions through the origin")


@pytest.mark.parametrize(("squared", "where"), [(0.599, "few directions"), (0.6, "a line")])
def test_limits_of_a_line(squared: float, where: str) -> None:
    verdict = judged(cosine.MEAN.measured(0.0), cosine.STD.measured(squared**0.5 + 1e-12))
    finding = verdict.finding("two-sided")
    assert finding is not None
    assert f"onto {where} through the origin" in finding.sentence


def test_rows_with_a_twin_are_near_identical() -> None:
    rows = np.repeat(trained(n=500), 2, axis=0) + 1e-5 * normal(12)
    verdict = look(rows)
    assert verdict.state == "degenerate"
    assert "1,000 near-identical rows in 500 groups" in said(verdict)


def test_too_few_rows_are_not_judged() -> None:
    for n, d, enough in ((29, 8, False), (30, 8, True), (31, 320, False), (32, 320, True)):
        verdict = look(normal(13, n, d))
        assert ("too few rows" in verdict.headline) is not enough
        assert (verdict.state == "undecided") is not enough


def test_of_few_rows_damage_and_duplicates_are_judged() -> None:
    rows = normal(14, 5, 64)
    rows[2:] = rows[0]
    assert look(rows).state == "degenerate"


@pytest.mark.slow
def test_rows_without_negative_entries_are_named_so() -> None:
    g = np.random.default_rng(15)
    relu = np.maximum(g.standard_normal((N, D)), 0.0)
    for rows, sign, usual in (
        (relu, "negative", "after a ReLU"),
        (-relu, "positive", "for logarithms of probabilities"),
        ((g.random((N, D)) < 0.3) * -1.0, "positive", "for logarithms of probabilities"),
        (g.poisson(1.0, (N, D)) * 1.0, "negative", "after a ReLU"),
    ):
        verdict = look(rows, sections=["cosine"])
        assert f"No entry is {sign}" in said(verdict)
        finding = verdict.finding("cone")
        assert finding is not None
        assert f"usual {usual}" in finding.sentence
        rows[7, 3] = -1e-3 if sign == "negative" else 1e-3
        assert "No entry" not in said(look(rows, sections=["cosine"]))


# Findings together ------------------------------------------------------------------------------


def test_no_healthy_finding_contradicts_another() -> None:
    """ "Nearly isotropic" stood below "one direction carries 99.7%"."""
    side = np.where(np.arange(N) % 2, 1.0, -1.0)[:, None]
    verdict = look(5.0 * side * np.eye(D)[0] + 0.2 * normal(16))
    assert verdict.state == "degenerate"
    isotropy = verdict.finding("isotropy")
    assert isotropy is None or isotropy.state != "healthy"


@pytest.mark.slow
def test_no_state_depends_on_the_seed() -> None:
    for rows in (trained(), normal(17) + 0.6, groups(90, (500, 500))):
        found = [look(rows, seed=seed) for seed in range(3)]
        assert len({(one.state, tuple(f.state for f in one.findings)) for one in found}) == 1


def test_norms_that_fall_by_rank_do_not_separate_rare_tokens() -> None:
    """Expert: isotropic directions; frequent rows are longer, which is ordinary."""
    rows = trained(27)
    rows *= np.linspace(2.0, 0.8, N)[:, None] / np.linalg.norm(rows, axis=1, keepdims=True)
    counts = np.arange(10 * N, 9 * N, -1)
    found = embgeo.analyze(rows, counts=counts, sections=["cosine", "frequency"])
    finding = found.verdict.finding("frequency")
    assert finding is not None
    assert finding.word == "not separated"
    assert "Norm correlates with frequency (Spearman 1" in finding.sentence


@pytest.mark.parametrize("silhouette", [0.59, 0.6])
def test_two_groups_are_explained_once(silhouette: float) -> None:
    verdict = judged(
        cosine.MEAN.measured(0.9),
        cosine.CLUSTERS.measured(2.0),
        cosine.SILHOUETTE.measured(silhouette),
        cosine.MEAN_BETWEEN_CLUSTERS.measured(0.7),
    )
    said = [f.sentence for f in verdict.findings if "two modalities" in f.sentence]
    assert len(said) == 1
