"""Reduced model folders of remote models, for what needs files: ``fetch``, repairs, clusters."""

import json
from pathlib import Path

from embgeo.core.errors import writing
from embgeo.core.source import Source
from embgeo.io.load import open_place
from embgeo.io.model.choice import choose
from embgeo.io.places import cache, ranges
from embgeo.io.places.finding import SourcePlace, find_place
from embgeo.io.places.kept import open_kept
from embgeo.io.places.reduced import check_plan, reduce_model, write_folder
from embgeo.io.places.source_record import require_kept


def find_files(source: Source) -> SourcePlace:
    """Find a source as files on this machine; of a remote one a reduced folder is made."""
    place = find_place(source.path)
    return place if place.kept is None else export_model(place, source)


def fetch_model(
    source: Source,
    *,
    whole: bool = False,
    refresh: bool = False,
    report: ranges.ReportBytes | None = None,
) -> Path:
    """Return a reduced folder of a remote model in embgeo's cache.

    `whole` keeps the files with weights whole, and `refresh` checks whether the branch or tag has
    moved.
    """
    name = str(source.path)
    if refresh:
        open_kept(name, refresh=True)
    kept = open_kept(name)
    kept.report = report
    place = SourcePlace(kept.path, name, kept=kept)
    return export_model(place, source, whole=whole).path


def export_model(place: SourcePlace, source: Source, *, whole: bool = False) -> SourcePlace:
    """Make the reduced folder of a remote model in embgeo's cache, unless it is there."""
    kept = place.kept
    assert kept is not None
    choices = [source.tensor, source.output, source.transpose, whole, kept.chosen]
    key = cache.hash_text(json.dumps([str(kept.path), choices]))
    target = cache.own_cache() / "reduced" / f"{kept.commit[:12]}-{key}"
    if target.is_dir():
        return SourcePlace(require_kept(target), place.given, place.name)
    kept.most = source.most_bytes
    with kept.naming():
        checkpoint = open_place(place, source)
        choice = choose(
            checkpoint,
            tensor=source.tensor,
            output=source.output,
            transpose=source.transpose,
        )
        reduced = reduce_model(kept, checkpoint, choice)
        if whole:
            kept.check_room(reduced.size, reduced.size)
        else:
            check_plan(reduced, checkpoint, choice)
        work = target.with_name(f"{target.name}.part")
        with writing(work, "choose another folder with the environment variable EMBGEO_CACHE"):
            work.mkdir(parents=True, exist_ok=True)
            write_folder(reduced, work, whole=whole)
            work.rename(target)
    return SourcePlace(target, place.given, place.name)
