"""Parquet: a row a token, with its provenance in the metadata of the schema."""

import json
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError
from embgeo.files.saved import write_file
from embgeo.publish.export.columns import collect_columns
from embgeo.publish.export.target import Request, Target

#: Key of the schema's metadata.
KEY = b"embgeo"


def write(request: Request, path: Path) -> None:
    pa, parquet = _pyarrow()
    columns = {
        # Arrow cannot hold lone surrogates.
        name: [str(token).encode("utf-8", "backslashreplace").decode() for token in values]
        if name == "token"
        else values
        for name, values in collect_columns(request.analysis).items()
    }
    table = pa.table(columns)
    record = json.dumps(request.record, allow_nan=False)
    table = table.replace_schema_metadata({KEY: record.encode()})
    write_file(path, lambda file: parquet.write_table(table, file, compression="zstd"))


def is_ours(path: Path) -> bool:
    _, parquet = _pyarrow()
    try:
        return KEY in (parquet.read_schema(path).metadata or {})
    except (OSError, ValueError):  # ArrowInvalid is a ValueError
        return False


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise EmbgeoError(
            "Parquet needs pyarrow", where="--to parquet", way_out="pip install 'embgeo[arrow]'"
        ) from error
    return pyarrow, parquet


TARGET = Target("parquet", ".parquet", write, is_ours)
