"""The command line, called as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from embgeo.cli.app import run
from tests.support.refusals import check_message

ROOT = Path(__file__).parents[2]
#: The entry point, of this tree whatever is installed.
MAIN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import embgeo.cli.app as a; a.main()"


def spawn(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """embgeo in a process of its own, as people call it."""
    command = [sys.executable, "-W", "error", "-c", MAIN, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, timeout=120, **options
    )


def call(*arguments: object) -> Result:
    runner = CliRunner()
    with runner.isolation() as streams:
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        out, err, both = (stream.getvalue() for stream in streams)
    return Result(runner, out, err, both, None, code, None)


def content(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder with its bytes: equal means that nothing was touched."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refused(*arguments: object, measured: bool = False) -> str:
    """The one line that a call ends with, which is the one of the snapshot.

    No file is touched, and nothing said but measuring.
    """
    before = content(Path())
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert bool(result.stdout) is measured
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("embgeo: ")
    assert not result.stderr.startswith("embgeo: unexpected")
    assert "Traceback" not in result.stderr
    assert content(Path()) == before
    message = result.stderr.removeprefix("embgeo: ").removesuffix("\n")
    check_message(message)
    return message
