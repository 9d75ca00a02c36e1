"""The report of a comparison of training methods: perplexity, geometry, claims, curves, embeddings.

It extends the report of a comparison of matrices, which are the embeddings of the first seed.
Every string is untrusted text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from embgeo.charts import training as training_chart
from embgeo.charts.items import method_items
from embgeo.charts.specification import Choices
from embgeo.comparison.comparison import Comparison
from embgeo.core.numbers import format_optional
from embgeo.core.quantities import isotropy
from embgeo.core.text import capital, visible
from embgeo.core.values import format_number
from embgeo.report import study_tables
from embgeo.report.comparison import SECTIONS as OF_COMPARISON
from embgeo.report.comparison import context as of_comparison
from embgeo.report.comparison import quantities_of_comparison
from embgeo.report.page import Gallery, code, draw_charts, environment
from embgeo.report.tables import group_by_family, provenance_rows
from embgeo.training.study import deciding, wording
from embgeo.training.study.record import Learning, Study
from embgeo.training.study.spread import LEAST_SEEDS, Direction, SeedDifference

_SECTIONS = (
    ("balance", ""),
    ("training", "Over training"),
    ("claims", "Claims of the papers"),
    ("all-numbers", "All numbers of the methods"),
    ("trained", "How each was trained"),
)


def render(study: Study, comparison: Comparison | None) -> str:
    """Render the whole page as text; equal results give equal text.

    `comparison` is the one of the embeddings; None if there is a single method.
    """
    return environment().get_template("training.html.j2").render(context(study, comparison))


def context(study: Study, comparison: Comparison | None) -> dict[str, Any]:
    gallery = draw_methods(study)
    if comparison is None:
        found: dict[str, Any] = {
            "figures": gallery,
            "defined": frozenset(q.name for q in study.quantities),
            **code(gallery.charts, None),
        }
    else:
        found = of_comparison(comparison, gallery)
    found |= describe_methods(study, comparison)
    found["defined"] = found["defined"] | {q.name for q in study.quantities}
    found["sections"] = sections(study, comparison, found["figures"])
    return found


def draw_methods(study: Study) -> Gallery:
    subjects = method_items(study)
    return draw_charts(subjects, "training", Choices(scalars=training_chart.page_names(subjects)))


def describe_methods(study: Study, comparison: Comparison | None) -> dict[str, Any]:
    """Write the variables about the methods."""
    shared = shared_deviations(study)
    own = {q.name: q for q in study.quantities}
    theirs = [] if comparison is None else quantities_of_comparison(comparison)
    versions = study.provenance.get("versions") or {}
    settings = study.provenance.get("settings") or {}
    return {
        "title": f"{subject(study)} – embgeo train",
        "subject": subject(study),
        "facts": facts(study),
        "version": str(versions.get("embgeo", "")),
        "headlines": headlines(study),
        "tone": "undecided" if wording.describe_few_seeds(study) else "change",
        "quality": visible(wording.spell_score(deciding.quality_name(study.runs))),
        "balance_title": visible(title_balance(study)),
        "seeds": study.seeds,
        "heads": study_tables.heads(study),
        "method_rows": study_tables.method_rows(study, study_tables.heads(study)),
        "first_heads": study_tables.first_heads(study),
        "first_rows": study_tables.method_rows(study, study_tables.first_heads(study)),
        "sentences": study.sentences,
        "claims": [study_tables.claim_row(study, outcome) for outcome in study.outcomes],
        "trained": [
            {
                "name": visible(m.name),
                "title": visible(m.title),
                "source": m.source,
                "reference": visible(m.reference) if m.reference else "",
                "settings": study_tables.settings_text(m.settings),
                "deviations": [text for text in m.deviations if text not in shared],
            }
            for m in study.methods
        ],
        "shared_deviations": shared,
        "run_rows": run_rows(study),
        "shared_settings": study_tables.settings_text(
            {k: v for k, v in settings.items() if k != "method"}
        ),
        "training_provenance": provenance_rows(
            {k: v for k, v in study.provenance.items() if k != "settings"}
        ),
        "training_notes": study.notes,
        "training_warnings": [warning.text for warning in study.warnings],
        "embeddings": comparison is not None,
        "first_seed": study.shown_seed,
        "methods": group_by_family(
            (*own.values(), *(q for q in theirs if q.name not in own)), lambda q: q.family
        ),
        "same_start": len({run.initial for run in study.runs if run.seed == study.seeds[0]}),
    }


def shared_deviations(study: Study) -> list[str]:
    """Return the deviations from the publications that all methods share."""
    first, *others = study.methods
    if not others:
        return []
    return [text for text in first.deviations if all(text in m.deviations for m in others)]


def subject(study: Study) -> str:
    """Return ``"8 methods on pydocs"``."""
    corpus = study.provenance.get("corpus") or {}
    n = len(study.methods)
    name = visible(str(corpus.get("name", "a text")))
    return f"{n} methods on {name}" if n > 1 else f"{visible(study.baseline.name)} on {name}"


def facts(study: Study) -> list[str]:
    """Return the line under the title: model, corpus, steps and seeds."""
    corpus = study.provenance.get("corpus") or {}
    settings = study.provenance.get("settings") or {}
    tokens = corpus.get("tokens") or {}
    counted = study_tables.name_unit(corpus)
    model = settings.get("model") or {}
    parts = [
        visible(str(model.get("name", ""))),
        f"{corpus.get('rows', 0):,} rows" if corpus.get("rows") else "",
        f"{tokens['train']:,} training {counted}" if tokens.get("train") else "",
        f"{range_text([run.steps for run in study.runs])} steps",
        f"{range_text([run.epochs for run in study.runs])} epochs",
        f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''}",
    ]
    return [part for part in parts if part]


def range_text(values: Sequence[float]) -> str:
    """Return ``"450"``, or ``"300–900"`` for runs that early stopping ended."""
    ends = [format_number(end, 3) for end in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def run_rows(study: Study) -> list[dict[str, str]]:
    return [
        {
            "method": visible(run.method),
            "seed": str(run.seed),
            "valid": format_optional(run.numbers.get(f"valid.{run.quality}")),
            "test": format_optional(run.numbers.get(f"test.{run.quality}")),
            "steps": f"{run.steps:,}",
            "seconds": format_number(run.seconds, 3),
            "folder": visible(run.folder),
            "initial": run.initial[:12],
        }
        for run in study.runs
    ]


def title_balance(study: Study) -> str:
    """Return ``"Perplexity and geometry"``."""
    return f"{capital(wording.spell_score(deciding.quality_name(study.runs)))} and geometry"


def sections(study: Study, comparison: Comparison | None, figures: Gallery) -> list[dict[str, str]]:
    """Return the table of contents."""
    present = {"claims": bool(study.outcomes)}
    present |= {key: key in figures for key in ("balance", "training")}
    known = [
        (key, title or title_balance(study)) for key, title in _SECTIONS if present.get(key, True)
    ]
    if comparison is None:
        known += [("methods", "Methods")]
    else:
        known += [entry for entry in OF_COMPARISON if entry[0] != "training"]
    return [{"id": key, "title": text} for key, text in known]


#: Methods that a sentence names, at most; the table has the others.
MOST_NAMED = 4
DIRECTIONS: dict[Direction, str] = {
    "lower": "lower with",
    "higher": "higher with",
    "open": "within seeds with",
}
#: A caution if the runs had not converged.
UNFINISHED: dict[Learning, str] = {
    "converged": "",
    "learning": "Models were still learning at the end: this compares training speed.",
    "unknown": "Models may not have converged.",
}


def headlines(study: Study) -> tuple[str, ...]:
    """Return the effects of the methods on perplexity and isotropy, and how many claims held."""
    name = deciding.quality_name(study.runs)
    quality, geometry = {}, {}
    for method in study.methods:
        if study.runs_of(method.reference) and deciding.has_same_size(study, method):
            quality[method.name] = deciding.compare_with_control(study, method, name)
            geometry[method.name] = deciding.compare_with_control(
                study, method, isotropy.I1_UNIT_ROWS.name, method.role
            )
    unfinished = UNFINISHED[deciding.judge_all(study.runs)] if any(quality.values()) else ""
    if any(quality.values()) and (few := wording.describe_few_seeds(study)):
        return tuple(filter(None, (*few, unfinished)))
    said = (
        sentence(wording.describe_quality(name), quality),
        unfinished,
        sentence(isotropy.I1_UNIT_ROWS.title, geometry),
        claims_line(study),
    )
    alone = f"One method, {visible(study.baseline.name)}: nothing to compare it with."
    return tuple(part for part in said if part) or (alone,)


def sentence(what: str, differences: Mapping[str, SeedDifference | None]) -> str:
    """Return ``"Test perplexity against each control: lower with cosreg (−1.4%)."``."""
    known = {visible(name): held for name, held in differences.items() if held is not None}
    if not known:
        return ""
    head = f"{capital(what)} against each control"
    if any(held.interval is None for held in known.values()):
        named = [f"{name} {held.change}" for name, held in known.items()]
        return f"{head}, fewer than {LEAST_SEEDS} seeds: {join_names(named)}."
    parts = []
    for side, words in DIRECTIONS.items():
        named = [f"{name} ({held.change})" for name, held in known.items() if held.side() == side]
        if named:
            parts.append(f"{words} {join_names(named)}")
    return f"{head}: {'; '.join(parts)}."


def join_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    left = len(names) - MOST_NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:MOST_NAMED])} and {left} more"


def claims_line(study: Study) -> str:
    """Count how many claims held."""
    count = deciding.count_verdicts(study.outcomes)
    if not sum(count.values()):
        return ""
    left = count["not decidable"]
    if left == sum(count.values()):
        few = len(study.seeds) < LEAST_SEEDS
        why = f" with fewer than {LEAST_SEEDS} seeds" if few else ""
        return f"None of {left} claims of the papers can be decided{why}."
    return (
        f"Claims of the papers: {count['reproduced']} reproduced, {count['not reproduced']} not, "
        f"{count['nominal']} nominal, {left} not decidable."
    )
