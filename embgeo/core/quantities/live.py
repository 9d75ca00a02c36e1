"""Rows of an embedding while it trains: numbers that cost a part of one reading of the matrix."""

from embgeo.core.values import Quantity

_NORM = "‖w_i‖₂"

NORM_MIN = Quantity(
    "live.norm_min", "Smallest norm, live", "The shortest row that is not zero.", f"min {_NORM}"
)
NORM_MEDIAN = Quantity(
    "live.norm_median",
    "Median norm, live",
    "The length in the middle of all rows that are not zero.",
    f"median {_NORM}",
)
NORM_MAX = Quantity("live.norm_max", "Largest norm, live", "The longest row.", f"max {_NORM}")
ZERO_ROWS = Quantity(
    "live.zero_rows", "Zero rows, live", "Rows whose entries are all zero.", "#{i : w_i = 0}"
)
NONFINITE_ROWS = Quantity(
    "live.nonfinite_rows",
    "Non-finite rows, live",
    "Rows with an entry that is not a finite number.",
)
UNCHANGED_ROWS = Quantity(
    "live.unchanged_rows",
    "Rows never updated, live",
    "Rows that were the same, bit by bit, at each look since the first. Weight decay changes every "
    "row; without it, a row changes only where its token occurs or its logit gets a gradient.",
    "#{i : w_i(t) = w_i(0) for all t}",
)


def _decile(number: int) -> Quantity:
    which = {1: ", the rarest tokens", 10: ", the most frequent tokens"}.get(number, "")
    return Quantity(
        f"live.norm_decile_{number}",
        f"Median norm, frequency decile {number}, live",
        f"The median length of rows of the {number}. tenth by frequency{which}.",
        f"median {_NORM}",
    )


DECILES = tuple(map(_decile, range(1, 11)))
