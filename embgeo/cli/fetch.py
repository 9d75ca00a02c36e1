"""``embgeo fetch``: the parts of a remote model that an analysis reads, as a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_found, progress_bar


@guarded
def fetch(
    *,
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="hf://org/name[@revision][/path], s3://…, gs://…, az://… or https://…",
        ),
    ],
    out: Annotated[
        Path | None,
        o.option(
            "A new folder; by default the one in the cache, which is printed.",
            "-o",
            "--out",
            metavar="FOLDER",
        ),
    ] = None,
    tensor: o.Tensor = None,
    output: o.Output = None,
    transpose: o.Transpose = None,
    max_download: o.MaxDownload = None,
    whole: Annotated[bool, o.option("Fetch safetensors files whole, too.", "--whole")] = False,
    refresh: Annotated[
        bool, o.option("Check whether the branch or tag has moved.", "--refresh")
    ] = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Fetch the embedding, output matrix, final norm and tokenizer of a remote model.

    Example: embgeo fetch hf://org/name -o reduced
    """
    from embgeo.io.places.source_record import SOURCE_RECORD, bytes_text
    from embgeo.workflows.fetch import fetch as fetch_model

    with progress_bar(quiet) as progress:
        fetched = fetch_model(
            name,
            out,
            tensor=tensor,
            output=output,
            transpose=bool(transpose),
            max_download=max_download,
            whole=whole,
            refresh=refresh,
            progress=progress,
        )
    source = fetched.source
    read = f"{bytes_text(source.read)} of {bytes_text(source.size)}"
    lines = [f"{fetched.folder}: {read}, commit {fetched.commit[:12]}"]
    for stored in source.tensors:
        lines.append(f"  {stored.name}  {bytes_text(stored.stop - stored.start)} of {stored.file}")
    record = {"folder": str(fetched.folder), **SOURCE_RECORD.to_json(source)}
    print_found(record, lines, json_, quiet)
