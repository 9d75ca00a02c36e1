"""Models by name, fetched from a Hub on the loopback address that counts what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.io.remote import ranges
from tests.support.chat_model import write_chat_model
from tests.support.toy_hub import COMMIT, ToyHub, serve

pytestmark = pytest.mark.loopback

NAME = "hf://org/toy"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_model(tmp_path_factory.mktemp("model") / "toy")


@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import close_session

    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with serve(model) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        yield served
        close_session()


def refused(name: str = NAME, **options: object) -> str:
    with pytest.raises(EmbgeoError) as caught:
        embgeo.fetch(name, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.usefixtures("hub")
def test_a_name_gives_what_the_folder_gives(model: Path) -> None:
    near, far = embgeo.load(model), embgeo.load(NAME)
    assert np.array_equal(np.asarray(near.data), np.asarray(far.data))
    assert near.output is not None
    assert far.output is not None
    assert np.array_equal(np.asarray(near.output.data), np.asarray(far.output.data))
    assert near.tokens == far.tokens
    assert near.special == far.special
    assert (near.tied_as_configured, far.tied_as_configured) == (True, True)
    assert far.name == "toy"
    assert far.origin.path == NAME
    assert COMMIT[:12] in " ".join(far.origin.notes)


def test_the_second_time_nothing_is_asked(hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    embgeo.load(NAME)
    hub.requests.clear()
    for name in (NAME, "org/toy", f"{NAME}@main", f"{NAME}@{COMMIT}", Path(NAME)):
        assert embgeo.load(name).name.startswith("toy")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert embgeo.load(NAME).n == 3000
    assert not hub.requests
