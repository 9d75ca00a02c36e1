"""What makes rows point the same way other than training, and the advice that fits it."""

from embgeo.core.quantities import cosine, suspects
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits

#: By the sign that no entry has, or "sparse": where that is usual.
USUAL = {
    "negative": "That is usual after a ReLU and for counts, binary rows and non-negative "
    "factorizations.",
    "positive": "That is usual for logarithms of probabilities and for negated distances.",
    "sparse": "That is usual for codes of a sparse autoencoder, counts and one-hot rows.",
}
_BY_SIGN = (
    "No training cure is needed: the sign of the entries makes the cosine, not their geometry. To "
    "compare rows by cosine, subtract the mean row first (Mu and Viswanath 2018)"
)
_OF_CODES = ", or compare which entries are active"
_OF_GROUPS = (
    "See on the map what the groups are (modalities, languages, input and output vectors), measure "
    "each of them alone, and center every group by itself before rows of different groups are "
    "compared (Rajaee and Pilehvar 2021; Liang et al. 2022). Training that pushes all rows apart "
    "does not close a gap between groups."
)
_OF_SUSPECTS = "Repair or leave out the suspects, which make the cosine, and measure again."


def find_sign(a: finding.Numbers) -> str:
    """Find the sign that no entry has: "negative", "positive", or empty."""
    if a.provenance.get("nonnegative"):
        return "negative"
    return "positive" if a.provenance.get("nonpositive") else ""


def share_of_zeros(a: finding.Numbers) -> float:
    return float(a.provenance.get("zero_entries") or 0.0)


def is_sparse(a: finding.Numbers) -> bool:
    """Tell whether nearly all entries are zero, as in codes of a sparse autoencoder."""
    return share_of_zeros(a) >= limits.SPARSE


def advise(a: finding.Numbers, usual: str) -> str:
    """Return the advice that follows the cause of a common direction; `usual` for a plain cone."""
    if find_sign(a):
        return f"{_BY_SIGN}{_OF_CODES if is_sparse(a) else ''}."
    others = finding.find_scalar(a, suspects.MEAN_COSINE_OTHERS)
    if others is not None and limits.CONE.state(float(others)) == "healthy":
        return _OF_SUSPECTS
    clusters = finding.find_scalar(a, cosine.CLUSTERS)
    return _OF_GROUPS if clusters is not None and clusters >= 2 else usual
