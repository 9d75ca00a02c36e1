"""The other end of a call: a function of a module, its arguments, and where its result goes."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from benchmarks.harness.call import Failed, Wrong


def main(module: str, function: str, arguments: str, out: str) -> None:
    try:
        result = getattr(import_module(module), function)(**json.loads(arguments))
    except Wrong as wrong:
        result = {"wrong": str(wrong)}
    except Failed as failed:
        result = {"failed": str(failed)}
    Path(out).write_text(json.dumps(result))
