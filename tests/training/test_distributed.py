"""Two processes that train one model, compared with one process on the whole batch."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.loop.distributed import ProcessGroup, join_processes  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from tests.support import sampling  # noqa: E402
from tests.support.processes import in_two_processes  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import (  # noqa: E402
    LLAMA,
    PLAIN,
    XL,
    corpus,
    numbers,
    run_all,
    settings,
    spread,
    stopping,
)

#: A penalty of weights, one of positions, a discriminator, factors: each counted once.
METHODS = ["mle", "cosreg", "sc-exp", "frage", "al"]
#: Ordinary runs take the two with the most to count.
TRAINED = METHODS if sampling.AT_NIGHT else ["cosreg", "frage"]

#: Other models, without dropout.
OTHERS = {
    "llama": LLAMA,
    "transformer-xl": {"model": {**XL["model"], "dropout": 0.0}},
    "mixture": {"model": {**PLAIN, "experts": 3, "latent_dropout": 0.0}},
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without it"),
]


def config(methods: list[str]) -> StudySettings:
    if methods[0] in OTHERS:
        other = settings(**OTHERS[methods[0]])
        return other.updated({"training": {"log_every": 1, "clip": 1.0}})
    return settings(
        compare=methods,
        model=PLAIN,
        training={"epochs": 1, "accumulate": 2, "clip": 1.0, "log_every": 1, "save_steps": 2},
        geometry={"every": 2},
        method={"cosreg": {"gamma": 10.0}},
    )


#: Both processes are stopped in the middle of a method, and go on.
TRAIN = """
import sys
from pathlib import Path
from embgeo.training.loop.distributed import join_processes
from tests.training.test_distributed import compare, interrupt

folder, methods = Path(sys.argv[1]), sys.argv[2:]
# Once for all: a process that joins again can reach the other's old store, which is about to close.
with join_processes("cpu"):
    interrupt(folder, methods)
    assert (folder / "frage" / "seed-0" / "state.pt").is_file()
    compare(folder, methods)
    for name in ("llama", "transformer-xl", "mixture"):
        compare(folder / name, [name])
"""


#: What optimizers import late must not keep the group, whose threads abort a process at its end.
GROUP = """
import weakref

from torch import distributed

from embgeo.training.loop.distributed import join_processes

with join_processes("cpu") as group:
    held = weakref.ref(distributed.group.WORLD)
    import torch.distributed.nn

    assert group.broadcast(group.rank) == 0
assert held() is None
"""


def compare(folder: Path, methods: list[str]) -> None:
    run_all(config(methods), folder, spread)


def interrupt(folder: Path, methods: list[str]) -> None:
    from embgeo.training.loop.checkpoint import run_folder
    from embgeo.training.loop.loop import train_run
    from tests.support.training_runs import Stopped

    with join_processes("cpu"), pytest.raises(Stopped):
        train_run(
            config(methods).one("frage", 0),
            corpus(),
            run_folder(folder, "frage", 0),
            measure=spread,
            progress=stopping(4),
            command="",
        )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What one process wrote, and what two did that were stopped and resumed on the way."""
    alone, together = tmp_path_factory.mktemp("alone"), tmp_path_factory.mktemp("together")
    compare(alone, TRAINED)
    for name in OTHERS:
        compare(alone / name, [name])
    in_two_processes(TRAIN, str(together), *TRAINED)
    return alone, together


@pytest.mark.nightly
def test_nothing_keeps_the_group_of_processes() -> None:
    in_two_processes(GROUP)


@pytest.mark.slow
def test_two_processes_equal_one(folders: tuple[Path, Path]) -> None:
    for method in (*TRAINED, *(f"{name}/mle" for name in OTHERS)):
        alone, together = (folder / method / "seed-0" for folder in folders)
        one, two = numbers(alone), numbers(together)
        assert len(one) == len(two) > 5
        for expected, found in zip(one, two, strict=True):
            assert set(expected) == set(found)
            for name, value in expected.items():
                tolerance = 1e-6 if name.endswith("loss") else 1e-4
                assert found[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name
        expected, found = (load_file(folder / "model.safetensors") for folder in (alone, together))
        assert set(expected) == set(found)
        for name, tensor in expected.items():
            # Adam divides by sizes of gradients, and makes more of a rounding than it is.
            torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=1e-4)


def test_streams_are_split_in_order() -> None:
    columns = torch.arange(12).view(2, 6)
    parts = [ProcessGroup(rank, 3).part(columns) for rank in range(3)]
    assert torch.equal(torch.cat(parts, dim=1), columns)
    with refusal(BadOption):
        ProcessGroup(0, 4).part(columns)


def test_a_process_alone_joins_nothing() -> None:
    with join_processes("cpu") as group:
        assert (group.rank, group.size, group.leads) == (0, 1, True)
        assert group.gather("x") == ["x"]
        assert group.broadcast("x") == "x"
        assert not torch.distributed.is_initialized()
