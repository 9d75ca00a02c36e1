"""Every file that the package writes is made whole by `embgeo.files.saved`, and follows no link."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2] / "embgeo"
#: Calls that make, change or move files, by the name of the function or method.
WRITERS = frozenset({
    "write_text", "write_bytes", "savefig", "to_csv", "tofile", "savez", "savetxt", "mkdtemp",
    "copyfile", "copytree", "copy2", "move", "link", "symlink", "symlink_to", "hardlink_to",
    "mkstemp", "TemporaryDirectory", "TemporaryFile", "extractall", "touch",
})  # fmt: skip
OPENERS = frozenset({"open", "File", "ZipFile", "memmap"})
#: Numbers of such calls in other files, and why they are there.
ALLOWED = {
    "files/saved.py": (4, "the functions themselves"),
    "files/scratch.py": (4, "temporary files of this process"),
    "files/records.py": (2, "an archive inside atomic_file"),
    "workflows/folders.py": (6, "a folder takes the place of another; an output that is a device"),
    "io/formats/arrow.py": (2, "the limited process fills the scratch file of its parent"),
    "io/formats/hdf5.py": (2, "the limited process fills the scratch file of its parent"),
    "io/labels/tokenizer_runs.py": (1, "the limited process fills the scratch file of its parent"),
    "io/places/ranges.py": (2, "the cache keeps the pieces of a broken download"),
    "io/places/kept.py": (1, "a complete download takes its digest as its name"),
    "training/loop/facts.py": (1, "/proc/self/clear_refs"),
    "workflows/gate.py": (1, "the summary of a step, to which all tools add"),
    "charts/render/paper.py": (3, "matplotlib writes pictures of PGF to a folder of its own"),
    "report/card.py": (1, "a picture in memory"),
    "report/notebook.py": (1, "a folder for the browser"),
}


def writes(call: ast.Call) -> bool:
    """Tell whether a call makes, changes or moves a file."""
    is_method = isinstance(call.func, ast.Attribute)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in OPENERS:
        given = [k.value for k in call.keywords if k.arg == "mode"]
        given += call.args[: 3 if name == "memmap" else 2]
        texts = [n.value for one in given for n in ast.walk(one) if isinstance(n, ast.Constant)]
        return any(re.fullmatch(r"[wax]b?\+?|r[b+]*\+b?", str(text)) for text in texts)
    if name in ("replace", "rename"):  # of a path; that of a string has two arguments
        return is_method and len(call.args) == 1 and not call.keywords
    return name in WRITERS


def test_the_package_writes_files_with_two_functions() -> None:
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.walk(ast.parse(file.read_text("utf-8")))
        lines = [node.lineno for node in tree if isinstance(node, ast.Call) and writes(node)]
        name = file.relative_to(ROOT).as_posix()
        if len(lines) != ALLOWED.get(name, (0, ""))[0]:
            found[name] = lines
    assert not found, "use write_file, copy_file or write_whole"
