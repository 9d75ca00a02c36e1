"""What every test can rely on."""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import hypothesis
import pytest

from tests.support import refusals, sampling
from tests.support.no_network import guard_network

# The same examples in every run, and no test that fails because the machine is busy.
hypothesis.settings.register_profile("embgeo", deadline=None, derandomize=True)
hypothesis.settings.load_profile("embgeo")

# Until the tests are collected, none of which is ever garbage; they are not searched for any later.
gc.disable()

# Compiled files are kept, also where the environment asks for none: without them each worker
# rewrites the asserts of all tests, and each program that a test starts compiles the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if "PYTEST_XDIST_WORKER" in os.environ:
    # As many workers as cores: threads of BLAS would only wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes the user's cache."""
    os.environ["EMBGEO_CACHE"] = str(tmp_path_factory.mktemp("cache"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-refusals", action="store_true", help="write the messages of refusals.txt"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Cases that the usual runs leave out are not collected by them."""
    refusals.UPDATE = config.getoption("--update-refusals")
    if refusals.UPDATE and "PYTEST_XDIST_WORKER" in os.environ:
        raise pytest.UsageError("give -n 0 with --update-refusals")
    sampling.AT_NIGHT = config.getoption("markexpr") not in ("not nightly", "not slow")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Nightly tests and those of a browser are slow: ``-m "not slow"`` leaves out all of them."""
    refusals.COLLECTED[item.path].add(item.nodeid.partition("::")[2])
    if item.get_closest_marker("nightly") or item.get_closest_marker("browser"):
        item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """No test uses the network; its fixtures do not either."""
    marks = (item.get_closest_marker(name) for name in ("loopback", "browser"))
    with guard_network(loopback=any(marks)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What a test refuses is compared with its messages in refusals.txt."""
    with refusals.watch_test(item):
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def refusals_of_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module that runs whole leaves no message of a test that is gone."""
    yield
    if not sampling.AT_NIGHT:
        whole = not any("::" in name for name in request.config.args)
        refusals.check_module(request.path, whole=whole)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that the workers of xdist end at about the same time."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def not_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite runs on GitHub too: what it gates there is nothing to annotate."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limited processes answer in the process of the test, for tests of what they answer."""
    from embgeo.files import limited

    def exchange(request: dict[str, Any], text: Any) -> tuple[int, bytes]:
        with warnings.catch_warnings(action="ignore"):
            answer = limited.answer_request(json.loads(json.dumps(request)), text)
        return 0, json.dumps(answer).encode()

    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    monkeypatch.setattr(limited, "exchange", exchange)


@pytest.fixture
def outlines() -> Iterator[None]:
    """Reports are written without drawing, for tests that read something else of them."""
    from tests.support.outlined import outline_figures

    with outline_figures():
        yield


#: Folders whose tests write many reports; what figures look like is tested in charts and report.
OUTLINED = ("cli", "distributed", "callbacks", "training", "workflows")


@pytest.fixture(autouse=True, scope="module")
def outlined_reports(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reports of whole folders of tests are written without drawing."""
    from tests.support.outlined import outline_figures

    with outline_figures() if request.path.parent.name in OUTLINED else nullcontext():
        yield


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names of tests that hold bytes do not hold their bytes.

    Compressed files carry the time at which they were made, and every worker of pytest-xdist has
    to collect the same names.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")
