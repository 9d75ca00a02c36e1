"""Provenance of a result: file, tensor, options, conventions, versions."""

import hashlib
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from operator import le
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray, Mask
from embgeo.core.matrix import Matrix, Origin, tied_note
from embgeo.core.options import Options
from embgeo.core.values import Note, NoteCode, format_number
from embgeo.core.version import VERSION
from embgeo.measure.passes import Passes
from embgeo.metrics import Facts
from embgeo.metrics.coordinates import are_principal
from embgeo.metrics.subspace import find_dead_output_rows
from embgeo.stats import Moments

#: Packages whose version can change a number.
PACKAGES = ("numpy", "scipy", "ml_dtypes")
#: Those that compute on a device as well.
DEVICE_PACKAGES = ("torch", "array-api-compat")

IN_SINGLE = (
    "products for Z, the scatter of unit rows and scatters of more than 1e10 products in float32 "
    "where entries are stored so and neither a long mean, short rows nor a steep spectrum would "
    "cost digits, good to 1e-6 (a gap of eigenvalues: of the eigenvalue)"
)
CONVENTIONS = {
    "rows": "zero, non-finite, damaged and masked rows are left out of every statistic",
    "accumulation": f"float64, whatever the file's dtype; {IN_SINGLE}",
    "spectrum": "singular values, not eigenvalues; uncentered unless it says centered",
    "cosine": "over ordered pairs i ≠ j; the CosReg term divides by N²",
    "isotropy": "E holds v and −v unless one-sided; natural logarithms; errors of log Z are "
    "absolute: a Z is good to 1e-6 of itself",
    "signs": "svd2 and one-sided isotropy: ⟨mean row, v⟩ ≥ 0; pca2: largest entry positive",
    "popular": "by falling count; tokens of equal counts are in one class",
}


#: Median norms outside of these are hardly those of embeddings.
NORMS = (1e-12, 1e12)
#: Fewer tokens may be in alphabetical order by chance.
FEWEST_SORTED = 10


def notes(
    matrix: Matrix,
    facts: Facts,
    hidden_left_out: int = 0,
    dead_output_rows: int = 0,
    median_norm: float = 1.0,
) -> tuple[Note, ...]:
    """Collect the notes about the rows that a reader needs before any number."""
    origin = matrix.origin
    said = [Note("tied", text) for text in tied_note(origin.tied_by)]
    if matrix.output is not None and (name := matrix.output.origin.tensor):
        transpose = " --transpose" if matrix.output.origin.transposed else ""
        way = f"--tensor {name}{transpose} judges the output matrix"
        said.append(Note("output", f"the verdict is about the input embedding; {way}"))
    said += [Note("loading", text) for text in origin.notes]
    if matrix.frequency is not None and matrix.frequency.kind == "rank":
        tokens = matrix.tokens or ()
        if len(tokens) >= FEWEST_SORTED and all(map(le, tokens, tokens[1:])):
            asked = "tokens are in alphabetical order; are rows sorted by frequency, too?"
            said.append(Note("loading", asked))
    shown = {name for token, others in facts.options.show_neighbors for name in (token, *others)}
    kept = facts.kept.tolist() if shown else []
    rows = Counter(token for row in kept if (token := facts.token(row)) in shown)
    said += [
        Note("loading", f"{n:,} rows are called {token!r}; neighbors are those of the first")
        for token, n in rows.items()
        if n > 1
    ]
    if not NORMS[0] < median_norm < NORMS[1]:
        norm = format_number(median_norm, 3)
        asked = "were the bytes read in the right order, as the right dtype?"
        said.append(Note("loading", f"the median norm is {norm}; {asked}"))
    longest = format_number(float(facts.small_norms.max(initial=0.0)), 3)
    padding = sum(map(facts.is_padding, facts.zero.tolist()))
    left_out: list[tuple[NoteCode, int, str]] = [
        *(("masked", len(rows), f"left out: {reason}") for reason, rows in matrix.masked.items()),
        ("zero", len(facts.zero) - padding, "left out: exactly zero"),
        ("zero", padding, "left out: exactly zero, as padding"),
        ("nonfinite", len(facts.nonfinite), "left out: non-finite"),
        ("damaged", len(facts.small), f"left out: damaged, their norms are at most {longest}"),
        (
            "damaged",
            dead_output_rows,
            "left out of the subspace distance: damaged in the output matrix",
        ),
    ]
    said += [Note(code, f"{count_words(n, 'row')} {why}") for code, n, why in left_out if n]
    if facts.listed is not None:
        said.append(
            Note("listed", f"maps and columns show {len(facts.listed):,} of {facts.m:,} rows")
        )
    if hidden_left_out:
        states = count_words(hidden_left_out, "hidden state")
        said.append(Note("hidden", f"{states} left out: non-finite"))
    return tuple(dict.fromkeys(said))


def hash_counts(counts: FloatArray, tokens: Sequence[str] | None) -> str:
    """Return the SHA-256 of counts sorted by token, or by row where there are no tokens."""
    if tokens is not None:
        counts = np.array([count for _, count in sorted(zip(tokens, counts, strict=True))])
    return hashlib.sha256(counts.tobytes()).hexdigest()


def provenance(
    measurement: Passes,
    popular: Mask | None,
    reference: dict[str, Any] | None,
    command: str,
) -> dict[str, Any]:
    """Build the provenance of an analysis as JSON (``docs/analysis-json.md``)."""
    reader, facts, options = measurement.reader, measurement.facts, measurement.options
    matrix, origin = reader.matrix, reader.matrix.origin
    moments = measurement.shared.get(Moments, "rows")
    frequency = None
    sections = list(dict.fromkeys(family.section for family in measurement.families))
    if matrix.frequency is not None and "frequency" in sections:
        frequency = {
            "kind": matrix.frequency.kind,
            "source": matrix.frequency.source,
            "sha256": hash_counts(matrix.frequency.counts, matrix.tokens),
            "popular_share": options.popular_share,
            "n_popular": 0 if popular is None else int(popular.sum()),
            "n_rare": 0 if popular is None else int((~popular).sum()),
        }
    output = None
    if matrix.output is not None:
        output = {
            "tensor": matrix.output.origin.tensor,
            "stored_shape": list(matrix.output.origin.stored_shape),
            "dtype": matrix.output.dtype,
            "transposed": matrix.output.origin.transposed,
            **_decoded(matrix.output.origin),
        }
    return {
        "file": origin.path,
        "format": origin.format,
        "tensor": origin.tensor or matrix.name,
        "chosen_because": origin.reason,
        "stored_shape": list(origin.stored_shape or matrix.data.shape),
        "dtype": origin.dtype or matrix.dtype,
        **_decoded(origin),
        "transposed": origin.transposed,
        "row_range": None if origin.rows is None else list(origin.rows),
        "sha256": origin.sha256,
        "repairable": origin.repairable,
        "n": matrix.n,
        "d": matrix.d,
        "kept": facts.m,
        **({} if facts.listed is None else {"listed": len(facts.listed)}),
        "masked": count_left_out(matrix, facts),
        "nonnegative": facts.nonnegative,
        "nonpositive": facts.nonpositive,
        "principal_axes": facts.d > 1 and moments is not None and are_principal(moments),
        "zero_entries": measurement.shared.zero_entries,
        "frequency": frequency,
        "output": output,
        "hidden": None if matrix.hidden is None else describe_hidden(matrix.hidden),
        "reference": reference,
        "sections": sections,
        "options": asdict(options)
        | {"show_neighbors": [[token, list(others)] for token, others in options.show_neighbors]},
        "seed": options.seed,
        "conventions": conventions(options),
        "command": command,
        "device": reader.device,
        "versions": versions(reader.device),
    }


def _decoded(origin: Origin) -> dict[str, Any]:
    """Describe how a matrix was decoded or joined, and from which tensors.

    Nothing if it was not.
    """
    if not origin.form:
        return {}
    return {"decoded": {"form": origin.form, "tensors": list(origin.parts)}}


def describe_hidden(states: Matrix) -> dict[str, Any]:
    return {
        "file": states.origin.path,
        "tensor": states.origin.tensor or states.name,
        "states": states.n,
        "dtype": states.dtype,
        "sha256": states.origin.sha256,
    }


def count_left_out(matrix: Matrix, facts: Facts) -> dict[str, int]:
    """Count the rows that are left out, by reason."""
    rows = {"exactly zero": facts.zero, "non-finite": facts.nonfinite, "damaged": facts.small}
    return {reason: len(own) for reason, own in (matrix.masked | rows).items() if len(own)}


def count_dead_output_rows(measurement: Passes) -> int:
    """Count the kept rows that the subspace distance leaves out; 0 if it was not measured."""
    if not any(family.section == "subspace" for family in measurement.families):
        return 0
    return len(find_dead_output_rows(measurement.facts, measurement.shared))


def conventions(options: Options) -> dict[str, str]:
    """Return the conventions that hold for every number of this analysis."""
    if options.precision == "float64":
        return CONVENTIONS
    single = f"float64, but products for the spectrum in float32 as requested; {IN_SINGLE}"
    return CONVENTIONS | {"accumulation": single}


def count_words(count: int, what: str) -> str:
    return f"{count:,} {what} is" if count == 1 else f"{count:,} {what}s are"


def versions(device: str = "cpu") -> dict[str, str]:
    """Return the versions of embgeo, Python and the packages that compute."""
    found = {"embgeo": VERSION, "python": platform.python_version()}
    packages = PACKAGES if device == "cpu" else PACKAGES + DEVICE_PACKAGES
    return found | {package: installed(package) for package in packages}


@cache
def installed(package: str) -> str:
    """Return the version of an installed package; cached, because the lookup reads files."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
