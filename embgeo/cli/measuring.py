"""What to measure, as the command line says it, checked before anything is read."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.options import Options
    from embgeo.stats.resources import Resources

#: The sections that each option is about: without them the option would do nothing.
SECTION = {
    "pairs": ("cosine",),
    "isotropy_rows": ("isotropy",),
    "isotropy_runs": ("isotropy",),
    "sphere": ("isotropy",),
    "popular_share": ("frequency",),
    "neighbors": ("frequency",),
    "neighbors_of": ("tokens", "frequency"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options as they were given; None (or empty) where they were not."""

    sections: tuple[str, ...] | None
    seed: int
    pairs: str | None
    popular_share: float | None
    isotropy_rows: int | None
    isotropy_runs: int | None
    sphere: bool | None
    neighbors: tuple[str, ...]
    precision: Literal["float64", "float32"] = "float64"
    neighbors_of: Literal["sample", "all"] | None = None

    def check(self) -> None:
        """Refuse values without meaning, and options that would do nothing.

        Raises
        ------
        BadOption
        """
        share = self.popular_share
        if share is not None and not 0 < share < 1:
            raise BadOption(f"{share} is not a share between 0 and 1", where="--popular-share")
        if self.pairs not in (None, "all") and not (self.pairs.isascii() and self.pairs.isdigit()):
            raise BadOption(
                f"{self.pairs!r} is not a number of pairs",
                where="--pairs",
                way_out="give N, 0 for none, or all",
            )
        if self.isotropy_runs is not None and self.isotropy_rows is None:
            raise BadOption(
                "says how often, but not how many rows are sampled",
                where="--isotropy-runs",
                way_out="give --isotropy-rows too",
            )
        for name, about in SECTION.items():
            given = getattr(self, name) not in (None, ())
            if given and self.sections is not None and not set(about) & set(self.sections):
                raise BadOption(
                    f"is about the section {about[0]}, which --sections leaves out",
                    where=f"--{name.replace('_', '-')}",
                    way_out=f"add {about[0]} to --sections",
                )

    def given(self) -> tuple[str, ...]:
        """Names of the options that differ from their defaults."""
        plain = Wanted(None, 0, None, None, None, None, None, ())
        return tuple(
            f"--{f.name.replace('_', '-')}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(plain, f.name)
        )

    def options(self, matrix: Matrix) -> Options:
        """The options of the analysis, once it is known what the matrix brings.

        Raises
        ------
        BadOption
            If an option needs token frequencies and there are none.
        """
        for name in ("popular_share", "neighbors"):
            if getattr(self, name) not in (None, ()) and matrix.frequency is None:
                raise BadOption(
                    "needs to know which tokens are popular",
                    where=f"--{name.replace('_', '-')}",
                    way_out="give --counts FILE, --corpus FILE or --rank-order",
                )
        return self.plain_options(matrix.tokens)

    def plain_options(self, tokens: tuple[str, ...] | None) -> Options:
        """The options of the analysis of rows with these tokens."""
        from embgeo.core.options import Options

        plain = Options()
        pairs = str(plain.pairs) if self.pairs is None else self.pairs
        return Options(
            seed=self.seed,
            pairs=None if pairs == "all" else int(pairs),
            popular_share=plain.popular_share if self.popular_share is None else self.popular_share,
            isotropy_rows=self.isotropy_rows,
            isotropy_runs=plain.isotropy_runs if self.isotropy_runs is None else self.isotropy_runs,
            sphere=self.sphere,
            precision=self.precision,
            neighbors_of=self.neighbors_of or plain.neighbors_of,
            asked=tuple(asked(text, tokens) for text in self.neighbors),
        )


#: Bytes by unit; without one, megabytes would be as likely meant as bytes.
UNITS = {"MB": 10**6, "MIB": 2**20, "GB": 10**9, "GIB": 2**30, "TB": 10**12, "TIB": 2**40}
LEAST_MEMORY = 64 * 10**6


def chosen_resources(memory: str | None, threads: int | None, device: str = "cpu") -> Resources:
    """Memory, threads and device as the command line says them.

    Raises
    ------
    BadOption, EmbgeoError
        A size that is none, or a device that is not there.
    """
    from embgeo.stats.backend.choose import check_device
    from embgeo.stats.resources import DEFAULT_MEMORY, Resources

    check_device(device)
    return Resources(DEFAULT_MEMORY if memory is None else size_in_bytes(memory), threads, device)


def size_in_bytes(text: str) -> int:
    number = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([A-Za-z]{2,3})", text.strip())
    unit = UNITS.get(number[2].upper()) if number else None
    if number is None or unit is None:
        wrong = "has no unit" if text.strip().isdecimal() else "is no size"
        raise BadOption(f"{text!r} {wrong}", where="--memory", way_out="write it as in 2GB")
    size = int(float(number[1]) * unit)
    if size < LEAST_MEMORY:
        raise BadOption(
            f"{text} is too little to work in", where="--memory", way_out="give 64MB or more"
        )
    return size


def asked(text: str, tokens: tuple[str, ...] | None) -> tuple[str, tuple[str, ...]]:
    """``token`` or ``token=a,b``; a token that itself holds = or a comma is taken as it stands."""
    if tokens is not None and text in tokens:
        return text, ()
    token, equals, others = text.partition("=")
    return (token, tuple(others.split(","))) if equals and others else (text, ())
