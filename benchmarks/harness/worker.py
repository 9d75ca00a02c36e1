"""The other end of a call: python -m benchmarks.harness.worker MODULE FUNCTION ARGUMENTS OUT."""

from __future__ import annotations

import json
import sys
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


if __name__ == "__main__":
    main(*sys.argv[1:])
