"""What the verdict says of hand-made numbers, on either side of what it distinguishes.

The words are recorded in verdicts.txt, to be read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.quantities import QUANTITIES
from embgeo.core.suspects import REASONS, Reason, Suspects
from embgeo.core.values import Table
from embgeo.diagnosis.verdict import judge
from embgeo.result.analysis import Analysis
from tests.support.record import check_record

RECORD = Path(__file__).with_name("verdicts.txt")
#: A number, with what belongs to it; None if it is not measured, a text why it is undefined.
Number = float | str | tuple[float, dict[str, Any]] | None
Numbers = Mapping[str, Number]


def of(value: float, reference: float | None = None, error: float | None = None) -> Number:
    more: dict[str, Any] = {}
    if reference is not None:
        more["reference"] = reference
    if error is not None:
        more["standard_error"] = error
    return value, more


#: 1,000 rows of 32 dimensions that nothing is wrong with.
ORDINARY: Numbers = {
    "cosine.mean": 0.01,
    "cosine.std": 0.18,
    "cosine.max_dimension_share": 0.1,
    "cosine.clusters": 1.0,
    "cosine.silhouette": 0.1,
    "spectrum.top_share": of(0.1, 0.05),
    "spectrum.effective_rank": of(28.0, 31.0),
    "spectrum.largest_p": 1e-6,
    "isotropy.i1": of(0.7, 0.8),
    "isotropy.i1_unit_rows": of(0.9, 0.95),
    "isotropy.eigengap": 0.01,
    "coordinates.variance_ratio": 2.0,
    "coordinates.rogue_coordinates": 0.0,
    "coordinates.rogue_share": 0.0,
    "suspects.zero": 0.0,
    "tokens.norm_median": 1.0,
    "tokens.norm_rms": 1.1,
    "tokens.norm_variation": 0.3,
    "tokens.long_rows": 0.0,
    "tokens.long_rows_energy": 0.0,
    "tokens.damaged_gap": 0.2,
    "frequency.probe_auc": of(0.55, None, 0.02),
    "frequency.neighbor_rarity_rare": of(0.81, 0.8, 0.01),
    "frequency.neighbor_rarity_popular": of(0.78, 0.8, 0.01),
    "frequency.norm_spearman": 0.05,
}
INITIAL: Numbers = {
    "cosine.mean": 0.0,
    "spectrum.largest_p": 0.5,
    "tokens.norm_variation": 0.12,
    "frequency.probe_auc": of(0.5, None, 0.02),
}
CONE: Numbers = {"cosine.mean": 0.4, "cosine.std": 0.1}
CLUSTERS: Numbers = {"cosine.clusters": 3.0, "cosine.silhouette": 0.8}
LINE: Numbers = {"cosine.mean": 0.0, "cosine.std": 0.7}
NAMES = tuple(f"token{i}" for i in range(1000))


def table(name: str, rows: int, *columns: str) -> Table:
    if name == "cosine.top_dimensions":
        cells = tuple((i, float(columns[0])) for i in range(rows))
        return Table(QUANTITIES[name], ("coordinate", "share"), cells)
    cells = tuple((100 * i + 7, NAMES[100 * i + 7], 1, 0.5) for i in range(rows))
    return Table(QUANTITIES[name], ("row", "token", "count", "angle (°)"), cells)


TABLES = tuple(table(f"tokens.{name}", 7) for name in ("nearest_to_mean", "largest_norms"))


def suspects(reason: Reason, count: int, **more: Any) -> Suspects:
    """Every third row from row 4 on."""
    rows = np.arange(4, 4 + 3 * count, 3)
    given = {"serious": np.ones(count, bool), "tokens": tuple(f"token{row}" for row in rows)}
    return Suspects(reason, more.pop("side", "input"), rows, **{**given, **more})


def only(*found: Suspects) -> dict[str, Any]:
    return {"suspects": found}


CLUMP = only(suspects("clump", 40, serious=np.zeros(40, bool), values=np.full(40, 20.0)))


def cases() -> Iterator[tuple[str, Numbers, dict[str, Any]]]:
    """Name, numbers in place of the ordinary ones, and facts."""
    yield "ordinary", {}, {}
    yield "without counts", dict.fromkeys(n for n in ORDINARY if n[:9] == "frequency"), {}
    yield "no tokens", {}, {"tokens": None}
    # Cones
    for mean in (-0.05, 0.0004, 0.05, 0.088, 0.089, 0.0999, 0.1, 0.2999, 0.3):
        yield f"mean cosine {mean}", {"cosine.mean": mean}, {"tables": TABLES}
    yield "no spread is known of one row", {"cosine.mean": 0.2}, {"kept": 1}
    evidence: Numbers = {
        "cosine.positive_share": 0.97,
        "cosine.cone_half_angle_median": of(50.0, 89.0),
    }
    yield "cone with evidence", {**CONE, **evidence}, {"tables": TABLES}
    yield "no reference of the angle", {**CONE, "cosine.cone_half_angle_median": 50.0}, {}
    scattered: Numbers = {"suspects.mean_cosine_others": 0.35}
    some = only(suspects("untrained", 200))
    yield "scattered", {"cosine.mean": 0.2, **scattered}, some
    yield "scattered, no other state", {"cosine.mean": 0.31, **scattered}, some
    equal = only(suspects("duplicate", 300))
    yield "duplicates make it", {**CONE, "suspects.mean_cosine_others": 0.05}, equal
    yield "duplicates do not", {**CONE, "suspects.mean_cosine_others": 0.1}, equal
    yield "nonnegative", CONE, {"nonnegative": True}
    yield "nonnegative, faint", {"cosine.mean": 0.09}, {"nonnegative": True}
    yield "nonnegative, none", {"cosine.mean": 0.01}, {"nonnegative": True}
    yield "nonpositive", CONE, {"nonpositive": True}
    # Clusters
    for between in (-0.51, -0.5, 0.0999, 0.1):
        for count in (2.0, 3.0):
            both = {**CLUSTERS, "cosine.clusters": count, "cosine.mean_between_clusters": between}
            yield f"{count:g} clusters, {between} between", {**CONE, **both}, {"tables": TABLES}
    for silhouette in (0.59, 0.6, 0.69, 0.7):
        both = {"cosine.clusters": 2.0, "cosine.silhouette": silhouette}
        yield f"silhouette {silhouette}", {**both, "cosine.mean_between_clusters": 0.0}, {}
    wide: Numbers = {"cosine.clusters": 3.0, "cosine.silhouette": 0.2}
    yield "wide groups", {**CONE, **wide, "cosine.mean_between_clusters": 0.05}, {}
    two = {**wide, "cosine.clusters": 2.0, "cosine.mean_between_clusters": 0.05}
    yield "two wide groups", {**CONE, **two}, {}
    yield "wide groups in it", {**CONE, **wide, "cosine.mean_between_clusters": 0.2}, {}
    yield "one cluster", {**CLUSTERS, "cosine.clusters": 1.0}, {}
    # Spectra and long rows
    for share in (0.2, 0.38, 0.39, 0.5, 0.56, 0.57):
        numbers = {"spectrum.top_share": of(share, 0.05), "cosine.std": 0.5, "cosine.mean": 0.05}
        yield f"top share {share}", numbers, {"tables": TABLES}
    yield "top share, few rows", {"spectrum.top_share": of(0.6, 0.1)}, {"kept": 30, "d": 100}
    for kept in (30, 300):
        few = {"spectrum.top_share": of(0.35, 0.1), "cosine.std": 0.5}
        yield f"top share, {kept} rows of 300", few, {"kept": kept, "d": 300}
    yield "no reference", {"spectrum.top_share": 0.1, "spectrum.effective_rank": 10.0}, {}
    for rank in (15.6, 15.5, 6.3, 6.2):
        yield f"effective rank {rank}", {"spectrum.effective_rank": of(rank, 31.0)}, {}
    both = {"spectrum.top_share": of(0.9, 0.05), "spectrum.effective_rank": of(2.0, 31.0)}
    yield "share and rank", {**both, "cosine.std": 0.9}, {}
    long: Numbers = {
        "spectrum.top_share": of(0.9, 0.05),
        "tokens.long_rows": 3.0,
        "tokens.long_rows_energy": 0.95,
    }
    yield "long rows", long, {"tables": TABLES}
    yield "one long row", {**long, "tokens.long_rows": 1.0}, {"tables": TABLES}
    for count, energy in ((50.0, 0.5), (51.0, 0.95), (3.0, 0.499)):
        more = {"tokens.long_rows": count, "tokens.long_rows_energy": energy}
        yield f"{count:g} long rows with {energy}", {**long, **more}, {"tables": TABLES}
    small = {**long, "spectrum.top_share": of(0.3, 0.05)}
    yield "long rows, spread", small, {"tables": TABLES}
    yield "long rows on a line", {**small, "cosine.std": 0.4}, {"tables": TABLES}
    for rms in (4.99, 5.0):
        yield f"norms of {rms} medians", {"tokens.norm_rms": rms}, {"tables": TABLES}
    many: Numbers = {"tokens.norm_rms": 9.0}
    yield "dead rows explain norms", many, only(suspects("damaged", 51))
    yield "few dead rows do not", many, only(suspects("damaged", 50))
    yield (
        "short rows explain norms",
        many,
        only(suspects("short", 600, serious=np.zeros(600, bool))),
    )
    # Both sides of the origin, isotropy
    for std in (0.31, 0.3163, 0.547, 0.548):
        yield f"spread of cosines {std}", {"cosine.mean": 0.0, "cosine.std": std}, {}
    yield "line", LINE, {}
    for i1, reference in ((0.51, 0.95), (0.5, 0.95), (0.34, 0.95), (0.33, 0.95), (0.33, 0.75)):
        yield f"I1 {i1} by {reference}", {"isotropy.i1_unit_rows": of(i1, reference)}, {}
    yield "I1 without a reference", {"isotropy.i1_unit_rows": 0.3, "isotropy.i1": None}, {}
    yield "I1 of 0", {"isotropy.i1_unit_rows": of(0.0, 0.95)}, {}
    yield "no I1", {"isotropy.i1_unit_rows": None}, {}
    for gap in (9e-7, 1e-6):
        yield f"gap {gap}", {"isotropy.eigengap": gap}, {}
    yield "isotropy refuted by a cone", CONE, {}
    # Coordinates
    for share, ratio in ((0.049, 200.0), (0.05, 24.0), (0.05, 25.0), (0.25, 99.0), (0.25, 100.0)):
        for count in (1.0, 2.0):
            numbers = {
                "coordinates.rogue_share": share,
                "coordinates.variance_ratio": ratio,
                "coordinates.rogue_coordinates": count,
            }
            yield f"{count:g} wide of {share}, {ratio:g}", numbers, {}
    of_two = {"coordinates.rogue_share": 0.99, "coordinates.variance_ratio": 200.0}
    for d in (1, 2):
        more = {**of_two, "coordinates.rogue_coordinates": 1.0}
        yield f"one wide of {d} dimensions", more, {"d": d}
    yield "no wide one", {"coordinates.variance_ratio": 20.0}, {}
    for share in (0.43, 0.44, 0.49, 0.65):
        yield f"one makes {share}", {**CONE, "cosine.max_dimension_share": share}, {}
    faint: Numbers = {"cosine.mean": 0.09, "cosine.max_dimension_share": 0.9}
    yield "one makes a faint cone", {**faint, "coordinates.mean_cosine_without_1": 0.001}, {}
    yield "one makes hardly a cone", {**faint, "cosine.mean": 0.05}, {}
    yield "one makes no cone", {**faint, "cosine.mean": 0.0001}, {}
    for count_of, share in ((2, 0.43), (2, 0.44), (3, 0.33)):
        tables = (table("cosine.top_dimensions", count_of, str(share)),)
        yield f"{count_of} make {share} each", CONE, {"tables": tables, "d": 32}
    no_variance = {**CONE, "coordinates.variance_ratio": None, "cosine.max_dimension_share": 0.9}
    yield "no variances", no_variance, {}
    apart: Numbers = {
        "frequency.neighbor_rarity_rare": of(0.95, 0.8, 0.01),
        "frequency.neighbor_rarity_popular": of(0.3, 0.8, 0.01),
    }
    # Frequency
    yield "apart", apart, {}
    for rare, popular in ((0.9, 0.7), (0.9, 0.71), (0.9, 0.4), (0.9, 0.41), (0.83, 0.2)):
        both = {
            "frequency.neighbor_rarity_rare": of(rare, 0.8, 0.01),
            "frequency.neighbor_rarity_popular": of(popular, 0.8, 0.01),
        }
        yield f"rare {rare}, frequent {popular}", both, {}
    unsure = {
        "frequency.neighbor_rarity_rare": of(0.95, 0.8, 0.01),
        "frequency.neighbor_rarity_popular": of(0.6, 0.8, 0.12),
    }
    yield "popular not surely", unsure, {}
    without_chance = {**apart, "frequency.neighbor_rarity_rare": 0.95}
    yield "no base rate", without_chance, {}
    yield "no neighbors", {"frequency.neighbor_rarity_rare": None}, {}
    for auc, error in ((0.69, 0.01), (0.7, 0.01), (0.75, 0.09), (0.75, None)):
        yield f"AUC {auc} ± {error}", {"frequency.probe_auc": of(auc, None, error)}, {}
    for rho in (-0.3, 0.29, 0.3):
        yield f"norms {rho}", {"frequency.norm_spearman": rho}, {}
    yield "norms of few", {"frequency.norm_spearman": 0.4}, {"kept": 57}
    yield "norms of some", {"frequency.norm_spearman": 0.4}, {"kept": 58}
    for weighted in (0.0999, 0.1):
        yield f"weighted {weighted}", {"frequency.weighted_mean_cosine": weighted}, {}
    # Initializations
    yield "initialization", INITIAL, {}
    yield "initialization, no counts", {**INITIAL, "frequency.probe_auc": None}, {}
    for p in (0.0099, 0.01, 0.0199):
        yield f"initialization, p = {p}", {**INITIAL, "spectrum.largest_p": p}, {}
    for auc in (0.5, 0.51):
        yield f"initialization, AUC {auc}", {**INITIAL, "frequency.probe_auc": auc}, {}
    for mean in (-0.0007, -0.0008, 0.0008):
        yield f"initialization, mean {mean}", {**INITIAL, "cosine.mean": mean}, {}
    yield "initialization, norms", {**INITIAL, "tokens.norm_variation": 0.135}, {}
    yield "initialization, rank", {**INITIAL, "frequency.norm_spearman": -0.2}, {}
    yield "initialization, clump", INITIAL, CLUMP
    equal_row: Numbers = {**INITIAL, "suspects.duplicate": 1.0}
    yield "initialization, equal row", equal_row, only(suspects("duplicate", 1))
    yield "initialization, long rows", {**INITIAL, **long}, {}
    # Suspects
    yield from of_suspects(apart)
    # Few rows, missing numbers
    for kept, d in ((29, 8), (30, 8), (30, 300), (30, 301), (0, 300)):
        yield f"{kept} rows of {d}", CONE, {"kept": kept, "d": d}
    yield "one dimension", CONE, {"d": 1}
    yield "no dimensions known", CONE, {"d": None}
    yield "a section left out", dict.fromkeys(n for n in ORDINARY if n[:4] == "spec"), {
        "sections": ["cosine", "isotropy"]}  # fmt: skip
    yield "a section in vain", dict.fromkeys(n for n in ORDINARY if n[:4] == "spec"), {
        "sections": ["cosine", "spectrum"]}  # fmt: skip
    yield "a family absent", dict.fromkeys(n for n in ORDINARY if n[:4] == "freq"), {
        "absent": {"frequency": "no counts were given."}}  # fmt: skip
    yield "undefined", {"cosine.mean": "a single row has no pairs"}, {}
    yield "undecided and apart", {**apart, "spectrum.top_share": "too small"}, {}
    yield "isotropy alone", {"isotropy.i1_unit_rows": of(0.3, 0.95)}, {}
    yield "mild and degenerate", LINE, only(suspects("duplicate", 60))


def of_suspects(apart: Numbers) -> Iterator[tuple[str, Numbers, dict[str, Any]]]:
    for reason in REASONS:
        for count in (1, 6):
            yield f"{count} {reason}", {}, only(suspects(reason, count))
    yield "of tokens that nothing uses", {}, only(suspects("zero", 3, serious=np.zeros(3, bool)))
    for count in (49, 50, 249, 250):
        half = count // 2
        equal, near = suspects("duplicate", half), suspects("near_identical", count - half)
        yield f"{count} alike", {}, only(equal, near)
        yield f"{count} alike of the output", {}, only(suspects("mean", count, side="output"))
    of_output = suspects("zero", 4, side="output")
    yield "both sides", {}, only(suspects("zero", 2), of_output)
    named = ("<s>", "a", "<|im_start|>")
    yield "special tokens", {}, only(suspects("damaged", 3, tokens=named), suspects("mean", 9))
    yield "without tokens", {}, {**only(suspects("zero", 2, tokens=None)), "tokens": None}
    zero = only(suspects("zero", 12))
    yield "zero rows beside a cone", CONE, zero
    yield "zero rows beside an initialization", INITIAL, zero
    yield "zero rows and apart", apart, zero
    yield "zero and undecided", {"spectrum.top_share": None}, zero
    yield "clump", {}, CLUMP
    yield "clump and apart", apart, CLUMP
    yield "clump and cone", CONE, CLUMP
    yield "clump, spectrum unknown", {"spectrum.top_share": None}, CLUMP
    for kept in (0, 1):
        yield f"{kept} rows left, constant", {}, {**only(suspects("constant", 1)), "kept": kept}
    yield "not searched", {"suspects.zero": None}, {}


def make(numbers: Numbers, facts: Mapping[str, Any]) -> Analysis:
    scalars = []
    for name, number in {**ORDINARY, **numbers}.items():
        quantity = QUANTITIES[name]
        if isinstance(number, str):
            scalars.append(quantity.undefined(number))
        elif number is not None:
            value, more = number if isinstance(number, tuple) else (number, {})
            scalars.append(quantity.measured(value, **more))
    provenance = {"kept": 1000, "d": 32, **facts}
    known = {
        key: provenance.pop(key) for key in ("tables", "absent", "suspects") if key in provenance
    }
    names = provenance.pop("tokens", NAMES)
    return Analysis(provenance=provenance, scalars=tuple(scalars), tokens=names, **known)


def write() -> Iterator[str]:
    """Each case, without the findings that are those of the first one."""
    usual: dict[str, tuple[str, str]] = {}
    for name, numbers, facts in cases():
        verdict = judge(make(numbers, facts))
        tone = "" if verdict.tone == verdict.state else f", {verdict.tone}"
        yield f"{name} [{verdict.state}{tone}]"
        yield f"  {verdict.headline}"
        found = {f.key: (f.word, f.sentence) for f in verdict.findings}
        for key, said in found.items():
            if usual.get(key) != said:
                yield f"  {key}, {said[0]}: {said[1]}"
        missing = [key for key in usual if key not in found]
        if missing:
            yield f"  not said: {', '.join(missing)}"
        usual = usual or found


def test_the_words_are_those_that_were_read() -> None:
    check_record(RECORD, "verdicts", write())
