"""What a study found, in sentences."""

from collections.abc import Mapping

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import Quantity, format_number
from embgeo.diagnosis.thresholds import CONE
from embgeo.training.study import deciding, record
from embgeo.training.study.numbers import BITS_PER_BYTE, BLEU, CHRF, MACRO_F1, TOKENIZED_BLEU
from embgeo.training.study.spread import LEAST_SEEDS, SeedDifference, spread

#: Titles of scores that differ from their names.
SPELLED = {
    MACRO_F1: "macro-F1",
    BLEU: "BLEU",
    TOKENIZED_BLEU: "tokenized BLEU",
    CHRF: "chrF",
    BITS_PER_BYTE: "bits per byte",
}
#: The numbers of the geometry that sentences, the table of a terminal and figures report.
GEOMETRY = (cosine.MEAN, isotropy.I1_UNIT_ROWS, spectrum.EFFECTIVE_RANK, frequency.PROBE_AUC)


def spell_score(name: str) -> str:
    """Spell the name of a score, without its split: ``"BLEU"`` for "bleu" and "test.bleu"."""
    score = name.rpartition(".")[2]
    return SPELLED.get(score, score)


def describe_quality(name: str, valid: str = "validation") -> str:
    """Return ``"test perplexity"``; of ``valid.loss`` "validation loss"."""
    return f"{'test' if name.startswith('test.') else valid} {spell_score(name)}"


def describe_methods(study: record.Study) -> tuple[str, ...]:
    """Write one sentence per method, the baseline first."""
    return tuple(describe_method(study, method) for method in study.methods)


def describe_method(study: record.Study, method: record.StudyMethod) -> str:
    """Return ``"cosreg: perplexity 312.4 → 308.1 (−1.4%), mean cosine 0.119 → 0.005, …"``."""
    quality = deciding.quality_name(study.runs)
    shown: list[tuple[str, str, record.Role | None]] = [
        (quality, quality.partition(".")[2], None),
        *((quantity.name, quantity.label, method.role) for quantity in GEOMETRY),
    ]
    parts = []
    for name, word, role in shown:
        sides = [study.values(one, name, role) for one in (method.reference, method.name)]
        old, new = (format_values(values) for values in sides)
        if not method.reference and sides[1]:
            parts.append(f"{word} {new}")
        elif role is None and (held := deciding.compare_with_control(study, method, name)):
            parts.append(f"{word} {old} → {new} ({describe_change(study, name, held)})")
        elif role is not None and all(sides):
            parts.append(f"{word} {old} → {new}")
    against = f" against {method.reference}" if method.reference else ""
    return f"{method.name}{against}: {', '.join(parts)}"


def describe_change(study: record.Study, name: str, held: SeedDifference) -> str:
    """Return ``"−1.4%, better"``: the change of a score, and what its interval says."""
    seeds = "one seed" if held.seeds == 1 else f"{held.seeds} seeds"
    return f"{held.change}, {judge_change(held, study.quantity(name)) or seeds}"


def judge_change(held: SeedDifference, quantity: Quantity | None) -> str:
    """Return "better", "worse" or "within seeds"; empty where the interval says nothing."""
    side = held.side()
    if held.interval is not None and side == "open":
        return "within seeds"
    if held.interval is None or quantity is None or quantity.better is None:
        return ""
    return "better" if side == quantity.better else "worse"


def format_values(values: Mapping[int, float]) -> str:
    found = spread(list(values.values()))
    return "unknown" if found is None else format_number(found.mean, 3)


# --- Too few seeds to test ------------------------------------------------------------------------


def describe_few_seeds(study: record.Study) -> tuple[str, ...]:
    """Say what happened where there are too few seeds for an interval, and the way out.

    Empty if there are enough.
    """
    n = len(study.seeds)
    if n >= LEAST_SEEDS:
        return ()
    happened = [said for method in study.methods if (said := describe_what_happened(study, method))]
    more = f"embgeo train --resume -o FOLDER --seeds {LEAST_SEEDS}"
    return *happened, f"Too few seeds to test ({n}). {more} adds some."


def describe_what_happened(study: record.Study, method: record.StudyMethod) -> str:
    """Return ``"CosReg removed the cone in both seeds (0.54 → 0.00); perplexity 198 → 202."``.

    Empty for a control, and for a method whose control has no run of the same seed.
    """
    before, after = (
        study.values(one, cosine.MEAN.name, method.role) for one in (method.reference, method.name)
    )
    seeds = sorted(before.keys() & after.keys())
    parts = []
    if seeds:
        states = [(CONE.state(before[s]), CONE.state(after[s])) for s in seeds]
        ends = [
            format_number(sum(side[s] for s in seeds) / len(seeds), 2) for side in (before, after)
        ]
        where = {1: "its seed", 2: "both seeds"}.get(len(seeds), f"all {len(seeds)} seeds")
        words = "changed the mean cosine"
        if all(old != "healthy" and new == "healthy" for old, new in states):
            words = f"removed the cone in {where}"
        elif all(old == "healthy" and new != "healthy" for old, new in states):
            words = f"made a cone in {where}"
        parts.append(f"{method.title} {words} ({ends[0]} → {ends[1]})")
    held = deciding.compare_with_control(study, method, name := deciding.quality_name(study.runs))
    if method.reference and held is not None:
        change = f"{format_number(held.before, 3)} → {format_number(held.after, 3)}"
        said = spell_score(name)
        parts.append(f"{said} {change}" if parts else f"{method.title}: {said} {change}")
    return f"{'; '.join(parts)}." if parts else ""
