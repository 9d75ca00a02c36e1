"""What an analysis is asked for: from plain arguments to a matrix and what is measured of it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from embgeo.core.arguments import parse_size
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import Options, choose_sections
from embgeo.core.progress import report_bytes
from embgeo.core.source import Source

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress
    from embgeo.stats.resources import Resources

#: Options that mean nothing where token frequencies are unknown.
NEED_FREQUENCIES = ("popular_share",)
LEAST_MEMORY = 64 * 10**6


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """A matrix in a file, and what is to be measured of it.

    Attributes
    ----------
    source : Source
    given : mapping of str to object
        Fields of :class:`embgeo.core.options.Options` that were named; the others have their
        defaults.
    sections : tuple of str or None
        What to measure; None: everything.
    reference : bool
        Whether to measure isotropic rows too.
    resources : Resources or None
    """

    source: Source
    given: Mapping[str, Any]
    sections: tuple[str, ...] | None = None
    reference: bool = True
    resources: Resources | None = None

    @classmethod
    def of(
        cls,
        path: Any = "",
        *,
        sections: Any = None,
        reference: bool = True,
        resources: Resources | None = None,
        **settings: Any,
    ) -> Self:
        """From plain arguments, refused where they mean nothing.

        Raises
        ------
        BadOption
            An argument that does not exist, has a value without meaning, or would do nothing.
        """
        loading, measuring = split_settings(settings)
        chosen = choose_sections(sections)
        Options.of(measuring, chosen)
        source = Source(path, **loading)
        source.check()
        return cls(source, measuring, chosen, reference, resources)

    @property
    def options(self) -> Options:
        return Options.of(self.given, self.sections)

    def options_for(self, matrix: Matrix) -> Options:
        """The options, once it is known what the matrix brings."""
        for name in NEED_FREQUENCIES:
            if name in self.given and matrix.frequency is None:
                frequencies = f"{argument('counts', 'FILE')}, {argument('corpus', 'FILE')}"
                raise BadOption(
                    "needs to know which tokens are popular",
                    where=argument(name),
                    way_out=f"give {frequencies} or {argument('rank_order')}",
                )
        return self.options.for_tokens(matrix.tokens)

    def load(
        self, progress: Progress | None = None, *, on_demand: bool = False, **changes: Any
    ) -> Matrix:
        """The matrix; `changes` override fields of the source."""
        from embgeo import io

        return io.open_source(
            replace(self.source, **changes),
            report_bytes(progress, "counting the corpus"),
            on_demand=on_demand,
        )


def split_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of loading, and arguments of measuring."""
    known = [{one.name for one in fields(of)} - {"path"} for of in (Source, Options)]
    for name in settings:
        if not any(name in names for names in known):
            near = difflib.get_close_matches(name, set().union(*known), n=1)
            raise BadOption(
                "no argument has this name",
                where=argument(name),
                way_out=f"did you mean {argument(near[0])}?" if near else "see the documentation",
            )
    loading, measuring = (
        {name: value for name, value in settings.items() if name in names} for names in known
    )
    return loading, measuring


def choose_resources(
    memory: str | None = None, threads: int | None = None, device: str = "cpu"
) -> Resources:
    """Memory such as ``"2GB"``, threads and device.

    Raises
    ------
    BadOption, EmbgeoError
        A size that is none, or a device that does not exist.
    """
    from embgeo.stats.backend.choose import check_device
    from embgeo.stats.resources import DEFAULT_MEMORY, Resources

    check_device(device)
    return Resources(DEFAULT_MEMORY if memory is None else size_in_bytes(memory), threads, device)


def size_in_bytes(text: str) -> int:
    """``2GB`` as 2,000,000,000."""
    size = parse_size(text, "memory")
    if size < LEAST_MEMORY:
        raise BadOption(
            f"{text} is too little to work in",
            where=argument("memory"),
            way_out="give 64MB or more",
        )
    return size
