"""What a file holds and is not read: one note for each reason, however many there are."""

from __future__ import annotations

from embgeo.io.bounded.guard import short

_LISTED = 4


class LeftOut:
    """Collects names by the reason for which they are left out."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, reason: str) -> None:
        """Note that `name` is not read because `reason`, a clause such as "it holds no numbers"."""
        named = self._names.setdefault(reason, [])
        if len(named) < _LISTED:
            named.append(short(name))
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def notes(self) -> tuple[str, ...]:
        """A sentence for each reason."""
        made = []
        for reason, names in self._names.items():
            more = self._counts[reason] - len(names)
            listed = ", ".join(names) + (f" and {more:,} more" if more else "")
            made.append(f"not read, because {reason}: {listed}")
        return tuple(made)

    def because(self) -> str:
        """The first note in brackets, for an error about a file of which nothing is left."""
        notes = self.notes()
        return f" ({notes[0]})" if notes else ""
