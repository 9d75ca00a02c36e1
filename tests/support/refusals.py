"""Messages of refusals, compared with those of the last run that was looked at.

The file ``refusals.txt`` in a folder of tests has a line for each test that refuses something, and
below it, indented, its messages in their order. ``pytest -n 0 --update-refusals PATH`` writes them;
look at the difference before it is committed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import pytest

from embgeo.core.errors import EmbgeoError, UnreadableFile
from tests.support import sampling

ROOT = Path(__file__).parents[2]
FILE = "refusals.txt"
#: What pytest names the folder of a test.
TEMPORARY = re.compile(
    r"[^\s'\"]*[/\\]pytest-of-[^/\\]+[/\\]pytest-\d+([/\\]popen-gw\d+)?([/\\][\w.-]+)?"
)

#: Ports of servers on this machine, and the names of folders of the cache.
CHANCE = re.compile(r"(127\.0\.0\.1:)\d+|\b[0-9a-f]{12}-[0-9a-f]{16}\b")

#: Whether messages are written instead of compared (conftest.py).
UPDATE = False
#: The test that runs, and the messages that it has checked.
_running: tuple[Path, str] | None = None
_checked: list[str] = []
#: Names of all tests by module, before any is deselected.
COLLECTED: defaultdict[Path, set[str]] = defaultdict(set)


@contextmanager
def refusal(
    kind: type[Exception] | tuple[type[Exception], ...] = EmbgeoError,
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """The block is refused in one line, which is the one of the snapshot."""
    with pytest.raises(kind) as caught:
        yield caught
    assert getattr(caught.value, "cause", "no cause")
    assert not isinstance(caught.value, UnreadableFile) or caught.value.where
    check_message(str(caught.value))


def check_message(message: str) -> None:
    """Compare a message of one line with the next one of the test that runs."""
    assert message
    assert "\n" not in message, message
    assert _running is not None
    module, name = _running
    text = TEMPORARY.sub("TEMPORARY", message).replace(str(ROOT), "ROOT")
    # Last, as the tree itself may lie in the folder of temporary files.
    text = text.replace(str(ROOT.parent / "shared"), "BESIDE/shared")
    text = text.replace(gettempdir(), "TEMPORARY")
    # What a compressed file takes depends on the version of zlib.
    text = re.sub(r"\bfrom [\d,]+ (bytes|to [\d,]+ bytes)\b", r"from SIZE \1", text)
    text = CHANCE.sub(lambda found: f"{found[1] or ''}ANY", text)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    _checked.append(text)
    expected = read_snapshots(module.parent).get(f"{module.name}::{name}")
    if not UPDATE and not (sampling.AT_NIGHT and expected is None):
        number = len(_checked)
        how = f"pytest -n 0 --update-refusals {module.relative_to(ROOT)} writes {FILE}"
        assert (expected or [])[number - 1 : number] == [text], how


@contextmanager
def watch_test(item: pytest.Item) -> Iterator[None]:
    """The messages that are checked in the block are those of this test, and are all of them."""
    global _running
    name = item.nodeid.partition("::")[2]
    _running = item.path, name
    _checked.clear()
    yield
    held = read_snapshots(item.path.parent)
    key = f"{item.path.name}::{name}"
    if UPDATE:
        held.pop(key, None)
        if _checked:
            held[key] = list(_checked)
    elif key in held:
        assert len(held[key]) == len(_checked), f"{FILE} has more messages of {name}"


def check_module(module: Path, *, whole: bool) -> None:
    """No message is left of a test of this module that is gone."""
    held = read_snapshots(module.parent)
    names = {f"{module.name}::{name}" for name in COLLECTED[module]}
    gone = [
        key
        for key in held
        for file in (key.partition("::")[0],)
        if (file == module.name and key not in names) or not (module.parent / file).is_file()
    ]
    if UPDATE:
        for key in gone if whole else ():
            del held[key]
        write_snapshots(module.parent)
    elif whole:
        assert not gone, f"{FILE} has messages of tests that are gone: {gone}"


@cache
def read_snapshots(folder: Path) -> dict[str, list[str]]:
    """Messages by test of a folder."""
    held: dict[str, list[str]] = {}
    file, messages = folder / FILE, []
    for line in file.read_text("utf-8").split("\n")[:-1] if file.is_file() else ():
        if line.startswith("  "):
            messages.append(line[2:])
        else:
            held[line] = messages = []
    return held


def write_snapshots(folder: Path) -> None:
    held = read_snapshots(folder)
    lines = [line for key in sorted(held) for line in (key, *(f"  {each}" for each in held[key]))]
    if lines:
        (folder / FILE).write_text("\n".join([*lines, ""]), "utf-8", newline="\n")
    else:
        (folder / FILE).unlink(missing_ok=True)
