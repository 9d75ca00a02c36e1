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
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile, argument
from embgeo.files.guard import cannot_read
from embgeo.training.components import MODELS, TASKS
from embgeo.training.registry import METHODS, Method, describe_class, is_name
from embgeo.training.study.numbers import OF_LANGUAGE_MODELS
from embgeo.training.study.record import Role

if TYPE_CHECKING:  # a typo in the settings is found without torch
    from embgeo.training.models import LanguageModel
    from embgeo.training.tasks import Task

#: Files that this process loaded: path → SHA-256, and what it registered, by name.
_LOADED: dict[Path, tuple[str, list[tuple[dict[str, Any], str]]]] = {}
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
    found: tuple[str, dict[str, Any], Callable[[Any], str]] = ("model", MODELS, check_model)
    if isinstance(thing, Method):
        found = ("method", METHODS, check_method)
    elif isinstance(thing, type) and hasattr(thing, "EVALUATOR"):
        found = ("task", TASKS, check_task)
    kind, known, check = found
    where = argument("plugins")
    try:
        name = check(thing)
        if not is_name(name):
            raise ValueError(f"its name is {name!r}; a name is of letters, digits, - and _")
        entry = thing if isinstance(thing, Method) else describe_class(thing)
    except (ValueError, AttributeError) as error:
        raise BadOption(f"cannot be registered ({error})", where=where) from error
    refuse_if(name in known, where, f"there is a {kind} {name!r} already", "")
    known[name] = entry
    _ADDING.append((known, name))
    return thing


def check_model(kind: type[LanguageModel]) -> str:
    """Return the name of a model; ValueError if the model is not usable."""
    from embgeo.training.models import LanguageModel

    if not (isinstance(kind, type) and issubclass(kind, LanguageModel)):
        raise ValueError("it is not a LanguageModel")
    if kind.layers_of is LanguageModel.layers_of:
        raise ValueError(f"{kind.__name__} has no layers_of")
    return kind.NAME


def check_method(method: Method) -> str:
    """Return the name of a method; ValueError if the method is not usable."""
    from embgeo.training.methods import Regularizer, Step

    parts = method.classes if isinstance(method.parts, tuple) else (None,)
    if not all(isinstance(part, type) and issubclass(part, Regularizer) for part in parts):
        raise ValueError("its parts are not a tuple of classes of regularizers")
    for part in method.classes:
        if not (method.source or hasattr(part, "SOURCE")):
            raise ValueError(f"{part.__name__} has no SOURCE")
        if part.ROLE not in get_args(Role):
            raise ValueError(f"{part.__name__} is for the layer {part.ROLE!r}, which no model has")
        if unknown := set(part.NEEDS) - {field.name for field in fields(Step)}:
            raise ValueError(f"{part.__name__} needs {min(unknown)!r}, which no step has")
        describe_class(part)
    if method.reference not in ("", method.name, *METHODS):
        raise ValueError(f"its reference {method.reference!r} is not a method")
    return method.name


def check_task(kind: type[Task]) -> str:
    """Return the name of a task; ValueError if it is not usable."""
    from embgeo.training.tasks import Task

    if not issubclass(kind, Task):
        raise ValueError("it is not a Task")
    for name in ("load", "feed", "loss", "EVALUATOR"):
        if getattr(kind, name) is getattr(Task, name):
            raise ValueError(f"{kind.__name__} has no {name}")
    if not (kind.MODELS or hasattr(kind.SETTINGS, "MODELS")):
        raise ValueError(f"{kind.__name__} has no MODELS")
    known = {quantity.name for quantity in (*kind.QUANTITIES, *OF_LANGUAGE_MODELS)}
    if f"valid.{kind.QUALITY}" not in known:
        raise ValueError(f"QUANTITIES of {kind.__name__} lack valid.{kind.QUALITY}")
    if odd := [q.name for q in kind.QUANTITIES if q.better not in ("higher", "lower", None)]:
        raise ValueError(f"better of {odd[0]} is neither higher nor lower")
    return kind.NAME


def load_plugins(paths: Sequence[Path]) -> dict[str, str]:
    """Run files that register things, and return the SHA-256 of each by its name.

    A file that this process loaded before is run again only if it has changed; its earlier
    registrations are removed first.
    """
    found: dict[str, str] = {}
    for path in paths:
        cause = f"two plug-ins are called {path.name}"
        refuse_if(path.name in found, argument("plugins"), cause, "")
        try:
            code = path.read_bytes()
        except OSError as error:
            raise cannot_read(path, error) from error
        digest = found[path.name] = hashlib.sha256(code).hexdigest()
        before, added = _LOADED.pop(path.resolve(), ("", []))
        if before != digest:
            forget(added)
            added = run_file(path, code)
        _LOADED[path.resolve()] = digest, added
    return found


def forget(added: Sequence[tuple[dict[str, Any], str]]) -> None:
    for known, name in added:
        del known[name]


def run_file(path: Path, code: bytes) -> list[tuple[dict[str, Any], str]]:
    """Run the code of a file, and return what it registered.

    An exception becomes a one-line error that names the file, and leaves nothing registered.
    """
    module = ModuleType(f"embgeo_plugin_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where type hints of its classes are looked up
    _ADDING.clear()
    try:
        exec(compile(code, str(path.resolve()), "exec"), vars(module))
    except BaseException as error:
        forget(_ADDING)
        if isinstance(error, EmbgeoError):
            raise BadOption(error.cause, where=path, way_out=error.way_out) from error
        if not isinstance(error, Exception | SystemExit):
            raise
        cause = f"the plug-in cannot be loaded: {type(error).__name__}: {error}"
        raise UnreadableFile(f"{cause}{find_line(error, path)}", where=path) from error
    refuse_if(not _ADDING, str(path), "registers nothing", "call register(…) in it")
    return list(_ADDING)


@contextmanager
def naming_plugins(files: Sequence[Path | str] | None) -> Iterator[None]:
    """Turn exceptions of a training with plug-ins into one-line errors with file and line.

    An exception that no line of a plug-in raised is usually about a value that it returned, so the
    error names the files, too. Errors of embgeo, the operating system and lacking memory are kept.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        paths = [Path(file) for file in files or ()]
        lines = {path: line for path in paths if (line := find_line(error, path))}
        kept = isinstance(error, OSError | MemoryError) and not lines
        if isinstance(error, EmbgeoError) or not paths or kept:
            raise
        cause = f"{type(error).__name__}: {error}"
        for path, line in lines.items():
            raise EmbgeoError(f"{cause}{line}", where=path) from error
        raise EmbgeoError(
            f"{cause}, in what uses this plug-in",
            where=" and ".join(map(str, paths)),
            way_out="compare what its functions give with docs/plugins.md; --debug shows where",
        ) from error


def find_line(error: BaseException, path: Path) -> str:
    """Return ``" (line 3)"`` for the line of a file that raised an error; empty if unknown."""
    if isinstance(error, SyntaxError):
        return ""
    name = f"{path.resolve()}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
    return f" (line {lines[-1]})" if lines else ""


def require_plugins(recorded: Mapping[str, str], loaded: Mapping[str, str]) -> None:
    """Refuse a study that was started with other plug-ins."""
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
                way_out=f"train in another folder with {argument('out')}",
            )
