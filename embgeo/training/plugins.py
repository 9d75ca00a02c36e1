"""Models, methods and tasks from Python files of the user.

Loading a plug-in runs its code. Only files that the user names with ``--plugin`` (or as `plugins`
of `embgeo.train`) are loaded, never files that a checkpoint, a folder of runs or a file of settings
names. The settings of a study record the SHA-256 of its plug-ins; to resume the study, the user
names the same files again.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile, argument
from embgeo.training.registry import file_of

if TYPE_CHECKING:  # a typo in the settings is found without torch
    from embgeo.training.methods import Method
    from embgeo.training.models import LanguageModel
    from embgeo.training.tasks import Task

_CORRECT = "correct it there"
#: Files that this process loaded: path → SHA-256, and what it registered, by name.
_LOADED: dict[Path, tuple[str, tuple[tuple[dict[str, Any], str], ...]]] = {}
#: What the current file has registered so far.
_ADDING: list[tuple[dict[str, Any], str]] = []


def register(thing: type[LanguageModel] | Method | type[Task]) -> Any:
    """Add a model, a method or a task, under its own name.

    Parameters
    ----------
    thing : type of LanguageModel, Method, or type of Task
        A model has a `NAME` and ``layers_of``, a method a name and regularizers, a task a `NAME`.

    Returns
    -------
    object
        The thing itself, so that it can be a decorator of a class.

    Raises
    ------
    BadOption
        It is something else, or there is one of that name already.
    """
    kind, known, check = choose_kind(thing)
    try:
        name = check(thing)
    except (ValueError, AttributeError) as error:
        raise BadOption(
            f"cannot be registered ({error})", where=argument("plugins"), way_out=_CORRECT
        ) from error
    if name in known:
        raise BadOption(
            f"there is a {kind} {name!r} already",
            where=argument("plugins"),
            way_out="give it another name",
        )
    known[name] = thing
    _ADDING.append((known, name))
    return thing


def choose_kind(thing: object) -> tuple[str, dict[str, Any], Callable[[Any], str]]:
    """Choose the kind of what is registered, all of that kind by name, and its check."""
    from embgeo.training.methods import METHODS, Method
    from embgeo.training.methods.definitions import check_method
    from embgeo.training.models import MODELS, check_model
    from embgeo.training.tasks import TASKS, Task, check_task

    if isinstance(thing, Method):
        return "method", METHODS, check_method
    if isinstance(thing, type) and issubclass(thing, Task):
        return "task", TASKS, check_task
    return "model", MODELS, check_model


def load_plugins(paths: Sequence[Path]) -> dict[str, str]:
    """Run files that register things.

    Parameters
    ----------
    paths : sequence of Path
        A file that this process loaded before is run again only if it has changed; its earlier
        registrations are removed first.

    Returns
    -------
    dict of str to str
        SHA-256 by name of the file.

    Raises
    ------
    UnreadableFile
        A file that cannot be read, or whose code raises something.
    BadOption
        A file that registers nothing or the wrong thing, or two files of one name.
    """
    found: dict[str, str] = {}
    for path in paths:
        if path.name in found:
            raise BadOption(
                f"two plug-ins are called {path.name}",
                where=argument("plugins"),
                way_out="give each once, under a name of its own",
            )
        found[path.name] = load_plugin(path)
    return found


def load_plugin(path: Path) -> str:
    """Run a file, unless the same content was run before; return its SHA-256."""
    try:
        code = path.read_bytes()
    except OSError as error:
        cause = f"cannot be read: {error.strerror or error}"
        raise UnreadableFile(cause, where=path, way_out="give a file in Python") from error
    digest = hashlib.sha256(code).hexdigest()
    before, added = _LOADED.get(path.resolve(), ("", ()))
    if before == digest:
        return digest
    for known, name in added:
        del known[name]
    _LOADED.pop(path.resolve(), None)
    _ADDING.clear()
    try:
        run_file(path, code)
    except BaseException:
        for known, name in _ADDING:
            del known[name]
        raise
    if not _ADDING:
        raise BadOption("registers nothing", where=path, way_out="call register(…) in it")
    _LOADED[path.resolve()] = digest, tuple(_ADDING)
    return digest


def run_file(path: Path, code: bytes) -> None:
    """Run the code of a file; an exception becomes a one-line error that names the file."""
    module = ModuleType(f"embgeo_plugin_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where type hints of its classes are looked up
    try:
        exec(compile(code, str(path.resolve()), "exec"), vars(module))
    except EmbgeoError as error:
        raise BadOption(error.cause, where=path, way_out=error.way_out) from error
    except (Exception, SystemExit) as error:
        line = find_line(error, path)
        cause = f"the plug-in cannot be loaded: {type(error).__name__}: {error}{line}"
        raise UnreadableFile(cause, where=path, way_out=_CORRECT) from error


@contextmanager
def naming_plugins(files: Sequence[Path | str] | None) -> Iterator[None]:
    """Turn exceptions of a training with plug-ins into one-line errors with file and line.

    Plug-ins of installed packages are recognized by the modules of the objects that they register.
    An exception that no line of a plug-in raised is usually about a value that it returned, so the
    error names the files, too. Errors of embgeo, the operating system and lacking memory are kept.
    """
    try:
        yield
    except EmbgeoError:
        raise
    except (Exception, SystemExit) as error:
        cause, paths = f"{type(error).__name__}: {error}", [Path(file) for file in files or ()]
        for path in (*paths, *map(Path, list_files())):
            if line := find_line(error, path):
                raise EmbgeoError(f"{cause}{line}", where=path, way_out=_CORRECT) from error
        if not paths or isinstance(error, OSError | MemoryError):
            raise
        raise EmbgeoError(
            f"{cause}, in what uses this plug-in",
            where=" and ".join(map(str, paths)),
            way_out="compare what its functions give with docs/plugins.md; --debug shows where",
        ) from error


def list_files() -> list[str]:
    """List files of registered objects, without those of embgeo.

    A method has the files of its parts.
    """
    from embgeo.training.methods import METHODS
    from embgeo.training.models import MODELS
    from embgeo.training.tasks import TASKS

    things = [thing for known in (MODELS, METHODS, TASKS) for thing in known.values()]
    parts = [one for thing in things for one in getattr(thing, "parts", (thing,))]
    files = {file_of(one) for one in parts if not one.__module__.startswith("embgeo.")}
    return sorted(file for file in files if file is not None)


def find_line(error: BaseException, path: Path) -> str:
    """Return ``" (line 3)"`` for the line of a file that raised an error; empty if unknown."""
    if isinstance(error, SyntaxError):
        return ""
    name = f"{path.resolve()}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
    return f" (line {lines[-1]})" if lines else ""


def require_plugins(recorded: Mapping[str, str], loaded: Mapping[str, str]) -> None:
    """Refuse a study that was started with other plug-ins."""
    if not recorded:
        return
    for name, digest in recorded.items():
        if name not in loaded:
            raise BadOption(
                f"the runs were begun with the plug-in {name}, and its code runs only if it is "
                "named again",
                way_out=f"give it with {argument('plugins')}",
            )
        if loaded[name] != digest:
            raise BadOption(
                f"the plug-in {name} has changed since the runs were begun with it",
                where=argument("plugins"),
                way_out="take it back to what it was, or train in another folder",
            )
