"""Write ``docs/metrics.md`` from the quantities in the code: ``python docs/make_metrics.py``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from embgeo.core.quantities import QUANTITIES
from embgeo.core.values import Quantity
from embgeo.measure.provenance import CONVENTIONS
from embgeo.measure.reference import NO_REFERENCE
from embgeo.metrics import SECTIONS

TARGET = Path(__file__).with_name("metrics.md")

OPENING = """\
# Metrics

<!-- Made by docs/make_metrics.py from the code; change the quantities there, then run it. -->

Every value that an analysis can hold, with its formula, source and use. A key is what
`analysis.json` calls it and what `analysis["…"]` takes.

`W` is the N × d matrix with a row `w_i` for each token, M the number of rows that are kept,
`ŵ_i = w_i/‖w_i‖`, `μ` the mean row, `σ_k` a singular value, `λ_k` an eigenvalue of WᵀW, and
`Z(a) = Σ_i exp⟨w_i, a⟩` for a unit vector `a`.

The last column names the source, and who reads the number or which question it answers.
"""

REFERENCES = """\
Numbers about geometry have the value of isotropic Gaussian rows with the same N, d, norms and
counts next to them; within clusters, of rows that are isotropic around the centers. Probes,
neighbors and correlations are compared with chance. Counts and lengths of rows have no reference,
nor has what is measured between two matrices. The other numbers without one are
"""

#: Package, its number, embgeo's, and how they differ.
PEERS = (
    ("IsoScore", "`IsoScore`, `IsoScore_star` with ζ = 0", "`isotropy.isoscore`", "the same"),
    ("weightwatcher", "`stable_rank`", "1 / `spectrum.top_share`", "it is the inverse"),
    ("weightwatcher", "`rank_loss`", "d − `spectrum.numerical_rank`", "it is what is missing"),
    ("weightwatcher", "`sv_max` / `sv_min`", "`spectrum.condition_number`", "the same"),
    (
        "weightwatcher",
        "`entropy`",
        "`spectrum.effective_rank`",
        "entropy of σ² over the logarithm of the rank there, exponential of the entropy of σ here",
    ),
    ("weightwatcher", "`log_norm`", "log₁₀(M · `tokens.norm_rms`²)", "the same"),
    (
        "powerlaw",
        "`alpha` of the eigenvalues",
        "`spectrum.decay`, γ of the polynomial",
        "α = 1 + 1/(2γ) where the law is exact; the tail by maximum likelihood there, all σ_k by "
        "least squares here, so that they differ on spectra that follow no power law",
    ),
    (
        "TracyWidom",
        "`cdfinv`",
        "`spectrum.largest_p`",
        "to 0.004: a gamma distribution of the same moments here",
    ),
    (
        "scikit-dimension",
        "`TwoNN`",
        "`tokens.intrinsic_dimension`",
        'the same with `method="mle", discard_fraction=0`; by default a line through 90% of the '
        "ratios there",
    ),
    ("kiez", "`k_skewness`", "`tokens.hubness`", "the same; equally near rows share places here"),
    (
        "diptest",
        "`dipstat`",
        "modes of norms in `suspects.untrained`",
        "twice the dip, to 0.004: 1,024 cells and 128 levels here",
    ),
    ("torchmetrics", "`pairwise_cosine_similarity`", "`cosine.mean`", "mean over i ≠ j: the same"),
    ("torchmetrics", "`binary_auroc`", "`frequency.probe_auc`", "the same of the same scores"),
    ("torchmetrics", "`spearman_corrcoef`", "`frequency.norm_spearman`", "the same"),
    ("MLstatkit", "`Delong_test`, its interval", "error of `frequency.probe_auc`", "the same"),
    ("ckatorch", "`cka_base`", "`compare.cka`", "the same"),
    ("ckatorch", "`cka_base(unbiased=True)`", "`compare.cka_debiased`", "the same"),
    ("torch_cka", "`CKA`", "`compare.cka_debiased`", "the same in one batch; float32 there"),
    ("repsim", '`cka("linear", "gretton")`', "`compare.cka`", "the same"),
    (
        "repsim",
        '`hsic("linear", "song")`',
        "`compare.cka_debiased`",
        "HSIC_xy / √(HSIC_xx · HSIC_yy): the same; its own `cka` divides the unbiased estimate by "
        "biased ones",
    ),
    (
        "repsim",
        '`cca("yanai")`',
        "1 − `compare.subspace_distance`²",
        "the same of centered matrices; it centers, embgeo does not",
    ),
)

PEERS_OPENING = """\
What other packages compute on the same matrices, as `tests/peers` finds by running them.
weightwatcher's own CKA is uncentered and therefore another number.
"""

TITLES = {
    "spectrum": "Spectrum",
    "projection": "Projections",
    "cosine": "Pairwise cosine",
    "isotropy": "Isotropy",
    "coordinates": "Coordinates",
    "frequency": "Rare against frequent",
    "subspace": "Input against output embedding",
    "hidden": "Hidden states and the final LayerNorm",
    "tokens": "Tokens",
}


def prose(text: str) -> str:
    """Text that cannot end its table cell, nor be taken for markup."""
    for sign in "\\|*_<":
        text = text.replace(sign, f"\\{sign}")
    return text


def formula(text: str) -> str:
    """A span of code; a bar ends a table's cell even there."""
    bars = text.replace("|", "\\|")
    return f"`{bars}`" if text else ""


def section(title: str, members: list[Quantity]) -> str:
    head = "| value | meaning and formula | source, and who reads it |\n|---|---|---|\n"
    first: dict[str, Quantity] = {}
    # What most of them say is said once, above.
    often = Counter(part for q in members for part in q.meaning.rstrip(".").split(". "))
    common = [part for part, count in often.items() if 2 * count > len(members) > 2]
    members = [replace(q, meaning=drop(q.meaning, common)) for q in members]
    rows = [row(q, first.setdefault(q.formula, q)) for q in members]
    above = "".join(f"{prose(part)}.\n\n" for part in common)
    return f"\n## {title}\n\n{above}{head}{''.join(rows)}"


def drop(meaning: str, sentences: list[str]) -> str:
    return (
        ". ".join(part for part in meaning.rstrip(".").split(". ") if part not in sentences) + "."
    )


def row(q: Quantity, first: Quantity) -> str:
    """A row of three cells: key and name, meaning and formula, source and reader.

    What the `first` quantity of the same formula says is not said again.
    """
    name = f"{prose(q.title)}{f' ({q.unit})' if q.unit else ''}"
    meaning, defined, source = q.meaning, formula(q.formula), q.source
    said = set(first.meaning.split(". ")) & set(meaning.split(". "))
    if q is not first and said:
        meaning = ". ".join(part for part in meaning.split(". ") if part not in said)
        defined = f"Formula and source as of `{first.name}`"
        source = ""
    cells = (
        (f"`{q.name}`", name),
        (prose(meaning), defined),
        (prose(source), prose(q.why)),
    )
    return f"| {' | '.join('<br>'.join(filter(None, cell)) for cell in cells)} |\n"


def references() -> str:
    """What is compared with isotropic rows, and what is not."""
    listed = "".join(f"- `{name}`: {prose(reason)}.\n" for name, reason in NO_REFERENCE.items())
    return f"\n## References\n\n{REFERENCES}\n{listed}"


def peers() -> str:
    """What agrees with other packages, and what differs by convention."""
    rows = "".join(
        f"| {package} | {theirs} | {ours} | {prose(difference)} |\n"
        for package, theirs, ours, difference in PEERS
    )
    head = "| package | its number | embgeo's | difference |\n|---|---|---|---|\n"
    return f"\n## Other packages\n\n{PEERS_OPENING}\n{head}{rows}"


def document() -> str:
    conventions = "".join(f"- {name}: {prose(text)}\n" for name, text in CONVENTIONS.items())
    families = dict.fromkeys([*TITLES, *(q.family for q in QUANTITIES.values())])
    sections = (
        section(
            TITLES.get(family, family.capitalize()),
            [q for q in QUANTITIES.values() if q.family == family],
        )
        for family in families
    )
    names = ", ".join(f"`{name}`" for name in SECTIONS)
    return (
        f"{OPENING}\nThe sections, as `--sections` and `embgeo.analyze` take them: {names}.\n"
        f"\nConventions, the same in every analysis:\n\n{conventions}{''.join(sections)}"
        f"{references()}{peers()}"
    )


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
