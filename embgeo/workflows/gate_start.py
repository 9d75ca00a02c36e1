"""``embgeo gate --init``: settings with rules against regressions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from embgeo.core.errors import BadOption, argument
from embgeo.io.remote.names import is_remote
from embgeo.rules.settings import OWN_NAME
from embgeo.workflows.folders import write_file

BASELINE_NAME = "baseline.json"
START = """\
# Rules of embgeo gate; paths are relative to this file.
[gate]
sources = {sources}
baseline = "{baseline}"
rules = [
    "tokens.damaged_rows == 0",
    "verdict rise <= 0",
    "cosine.mean rise <= 0.02",
    "spectrum.effective_rank drop <= 5%",
    "isotropy.i1_unit_rows drop <= 5%",
]
"""


def start_gate(sources: Sequence[Path | str], folder: Path | str = ".") -> Path:
    """Write ``embgeo.toml`` into `folder`, with rules about `sources`, and return its path."""
    path = Path(folder) / OWN_NAME
    if not sources:
        way_out = "name the checkpoint, or the saved analysis"
        raise BadOption("there is nothing to check", where=argument("init"), way_out=way_out)
    if path.exists():
        raise BadOption("exists", where=path, way_out="add a table [gate] to it, or remove it")
    for source in sources:
        if any("\ud800" <= character <= "\udfff" for character in str(source)):
            cause = "settings are UTF-8, and the name is not"
            raise BadOption(cause, where=source, way_out="rename it")
        if not (is_remote(source) or (Path(folder) / str(source).partition("::")[0]).exists()):
            raise BadOption("there is no such file", where=source, way_out="check the path")
    # TOML knows the escapes of JSON but neither pairs of surrogates nor a bare DEL.
    listed = json.dumps([str(source) for source in sources], ensure_ascii=False)
    named = listed.replace("\x7f", "\\u007f")
    write_file(path, START.format(sources=named, baseline=BASELINE_NAME))
    return path
