"""Runs that are stopped anywhere and go on to the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption, UnreadableFile  # noqa: E402
from embgeo.core.progress import Progress  # noqa: E402
from embgeo.files.saved import name_temporary  # noqa: E402
from embgeo.training.loop.checkpoint import begin_folder, hold_folder, save_state, write  # noqa: E402
from embgeo.training.loop.distributed import get_random_state, set_random_state  # noqa: E402
from embgeo.training.loop.loop import RunLog, RunLoop, train_run  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.training.study.run_result import load_result  # noqa: E402
from tests.support.moments import drop_temporary, moments, put, state_of  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_folder  # noqa: E402
from tests.support.training_runs import (  # noqa: E402
    LLAMA,
    LSTM,
    RHN,
    XL,
    Stopped,
    corpus,
    load_text,
    numbers,
    settings,
    silent,
    spread,
    stopping,
)

ROOT = Path(__file__).parents[2]
SGD: dict[str, Any] = {"kind": "sgd", "lr": 2.0, "weight_decay": 1e-6}
ASGD = {"optimizer": {**SGD, "asgd": True, "window": 1}, "evaluation": {"every": 2}}
RANDOM = {"training": {"epochs": 4, "random_lengths": True, "accumulate": 2, "clip": 0.25}}
ONE_CYCLE = {"optimizer": {"schedule": "one-cycle", "average": 0.4}}

CASES: dict[str, StudySettings] = {
    "mle": settings(geometry={"every": 3}),
    "frage": settings("frage", method={"frage": {"sample": 20}}),
    "sc-exp": settings("sc-exp", **ONE_CYCLE),
    "sc-poly-sgd": settings("sc-poly", optimizer=SGD),
    "d-optimal": settings("d-optimal"),
    "nt-asgd": settings("cosreg", **ASGD),
    "random-lengths": settings("al", **RANDOM),
    "coupled-adam": settings("coupled-adam", training={"keep": "best"}),
    "real": settings("real", **ONE_CYCLE),
    "transformer-xl": settings(**XL),
    "vd-rhn": settings("real", model=RHN),
    "mixture": settings("frage", model={**LSTM, "experts": 2, "latent_dropout": 0.2}),
    "llama": settings(**LLAMA).updated(
        {"model": {"dropout": 0.1}, "training": {"steps": 18, "epochs": 3}}
    ),
    "adversarial": settings("adversarial", evaluation={"every": 5}, training={"keep": "best"}),
}


def run(config: StudySettings, folder: Path, progress: Progress | None = None) -> Any:
    return train_run(
        config,
        corpus(),
        folder,
        measure=spread,
        progress=progress or silent(),
        command="embgeo train",
    )


def saving(config: StudySettings, steps: int) -> StudySettings:
    return config.updated({"training": {"save_steps": steps}})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each case without an interruption."""
    found = {}
    for name, config in CASES.items():
        found[name] = tmp_path_factory.mktemp("whole") / name
        run(config, found[name])
    return found


def assert_same(folder: Path, other: Path) -> None:
    assert numbers(folder) == numbers(other)
    assert (folder / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_run_that_is_stopped_twice_is_the_same_run(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    for folder, name in each_folder(tmp_path, CASES):
        config = saving(CASES[name], 2)
        for steps in (5, 15):  # progress begins at the steps that are there already
            with pytest.raises(Stopped):
                run(config, folder, stopping(steps))
            assert (folder / "state.pt").is_file()
        result = run(config, folder)
        assert_same(folder, whole[name])
        assert not (folder / "state.pt").exists()
        assert result.steps == 18 or name == "random-lengths"


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(step, marks=() if step in (1, 4, 9, 18) else pytest.mark.nightly)
        for step in range(1, 19)
    ],
)
def test_any_step_will_do(after: int, whole: dict[str, Path], tmp_path: Path) -> None:
    config = saving(CASES["mle"], 4)
    with pytest.raises(Stopped):
        run(config, tmp_path, stopping(after))
    run(config, tmp_path)
    assert_same(tmp_path, whole["mle"])


def test_averaging_began_in_the_run_with_nt_asgd(whole: dict[str, Path]) -> None:
    from embgeo.training.study.run_result import load_result

    notes = load_result(whole["nt-asgd"]).notes
    assert any("averaging begins" in note for note in notes)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state_and_ends_the_run(
    number: signal.Signals, whole: dict[str, Path], tmp_path: Path
) -> None:
    # A shell that starts the tests in the background has them ignore interrupts.
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    steps = []

    def advance(done: int) -> None:
        steps.append(done)
        if len(steps) == 7:
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        run(CASES["frage"], tmp_path, Progress(advance=advance))
    assert (tmp_path / "state.pt").is_file()
    assert {name: signal.getsignal(name) for name in before} == before
    run(CASES["frage"], tmp_path)
    assert_same(tmp_path, whole["frage"])


KILLED = """
import os, signal, sys
from pathlib import Path
from embgeo.core.progress import Progress
from tests.training.test_resume import CASES, run, saving

left = [11]
def advance(done):
    left[0] -= done
    if left[0] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

run(saving(CASES["sc-exp"], 3), Path(sys.argv[1]), Progress(advance=advance))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_is_taken_up_by_another(whole: dict[str, Path], tmp_path: Path) -> None:
    threads = str(torch.get_num_threads())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": threads}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "result.json").exists()
    run(saving(CASES["sc-exp"], 3), tmp_path)
    assert_same(tmp_path, whole["sc-exp"])


@pytest.mark.slow
def test_killed_at_any_write_it_is_the_same_run(whole: dict[str, Path], tmp_path: Path) -> None:
    config = saving(CASES["mle"], 6)
    (home := tmp_path / "home").mkdir()
    with moments(home) as states:
        run(config, home)
    assert len(states) > 6
    for at, left in enumerate(states[:-1]):
        killed = put(left, tmp_path / str(at))
        run(config, killed)
        assert_same(killed, whole["mle"])
        assert drop_temporary(state_of(killed)).keys() == states[-1].keys()


def test_killed_before_the_first_state_it_begins_anew(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        run(CASES["mle"], tmp_path, stopping(4))
    assert not (tmp_path / "state.pt").exists()
    assert numbers(tmp_path)
    run(CASES["mle"], tmp_path)
    assert_same(tmp_path, whole["mle"])


def interrupted(folder: Path, config: StudySettings = CASES["mle"]) -> StudySettings:
    config = saving(config, 2)
    with pytest.raises(Stopped):
        run(config, folder, stopping(5))
    return config


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_a_run_waits_for_the_process_that_has_it(tmp_path: Path) -> None:
    waited: list[str] = []
    with ExitStack() as other:
        other.enter_context(hold_folder(tmp_path / "home", lambda: waited.append("the first")))

        def start(what: str, _number: int) -> None:
            waited.append(what)
            other.close()

        run(saving(CASES["mle"], 6), tmp_path / "home", Progress(start=start))
    assert waited[:2] == ["mle, seed 0: waiting for another process", "mle, seed 0"]
    assert load_result(tmp_path / "home").method == "mle"


def test_other_settings_are_refused_in_one_line(tmp_path: Path) -> None:
    config = interrupted(tmp_path)
    with refusal(BadOption):
        run(config.updated({"optimizer": {"lr": 0.02}}), tmp_path)
    with refusal(BadOption):
        run(config.one("cosreg", 0), tmp_path)


def test_a_finished_run_of_other_settings_is_refused(tmp_path: Path) -> None:
    config = settings(training={"steps": 1})
    first = run(config, tmp_path)
    assert run(config, tmp_path) == first
    with refusal(BadOption):
        run(config.updated({"training": {"steps": 2}}), tmp_path)


def test_how_often_states_are_saved_may_change(whole: dict[str, Path], tmp_path: Path) -> None:
    config = interrupted(tmp_path)
    free = {"save_steps": 7, "save_seconds": 1.0, "device": "auto"}
    if torch.cuda.is_available():
        free["device"] = "cpu"
    run(config.updated({"training": free}), tmp_path)
    assert_same(tmp_path, whole["mle"])


def test_another_text_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    config = interrupted(tmp_path)
    other = replace(corpus(), files={"drawn.txt": "1" * 64})
    with refusal(BadOption):
        train_run(config, other, tmp_path, measure=None, progress=silent(), command="")


def test_splits_that_changed_places_are_refused(tmp_path: Path) -> None:
    """Their hashes are the same. The same splits in another folder are not refused."""
    text = {name: tmp_path / name for name in ("here", "moved", "swapped")}
    for name, folder in text.items():
        folder.mkdir()
        splits = ("valid", "test") if name == "swapped" else ("test", "valid")
        for split, word in zip(("train", *splits), "abc", strict=True):
            (folder / f"{split}.txt").write_text(f"{word} a b c d e\n" * 40, "utf-8")
    tables = {"steps": 4, "epochs": 4, "save_steps": 1}

    def train(where: str, home: Path, progress: Any = None) -> Any:
        config = settings(training=tables, data={"path": str(text[where])})
        found = load_text(text[where])
        return train_run(
            config, found, home, measure=None, progress=progress or silent(), command=""
        )

    begun, finished = tmp_path / "begun", tmp_path / "finished"
    with pytest.raises(Stopped):
        train("here", begun, stopping(3))
    train("here", finished)
    for home in (begun, finished):
        with refusal(BadOption):
            train("swapped", home)
        train("moved", home)


def test_a_damaged_state_is_refused_in_one_line(tmp_path: Path) -> None:
    config = interrupted(tmp_path)
    path = tmp_path / "state.pt"
    path.write_bytes(path.read_bytes()[:-100])
    with refusal(UnreadableFile):
        run(config, tmp_path)
    torch.save({"format": 99}, path)
    with refusal(UnreadableFile):
        run(config, tmp_path)


class _MakesAFolder:
    """Unpickled, it makes the folder `marker`."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_a_hostile_state_runs_nothing(tmp_path: Path) -> None:
    home, marker = tmp_path / "run", tmp_path / "marker"
    config = interrupted(home)
    torch.save({"format": 2, "identity": _MakesAFolder(marker)}, home / "state.pt")
    with refusal(UnreadableFile):
        run(config, home)
    assert not marker.exists()


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_generator_is_restored_on_its_own_device(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, device, cpu = {"now": "first"}, torch.device(kind), torch.device("cpu")
    library = getattr(torch, kind)
    monkeypatch.setattr(library, "get_rng_state", lambda *_: held["now"])
    monkeypatch.setattr(library, "set_rng_state", lambda state, *_: held.update(now=state))
    taken, of_cpu = get_random_state(device), get_random_state(cpu)
    held["now"] = "later"
    set_random_state(taken, cpu)
    set_random_state(of_cpu, device)
    assert held["now"] == "later"
    set_random_state(taken, device)
    assert held["now"] == "first"


def test_a_log_that_lost_lines_is_refused(tmp_path: Path) -> None:
    config = interrupted(tmp_path)
    (tmp_path / "metrics.jsonl").write_bytes(b"")
    with pytest.raises(UnreadableFile):  # its number of bytes differs from run to run
        run(config, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
def test_nothing_is_written_through_a_planted_link(tmp_path: Path) -> None:
    """Every file of a run that begins is a link to a file of the user."""
    home, precious = tmp_path / "home", tmp_path / "precious"
    home.mkdir()
    precious.write_bytes(b"kept")
    for name in ("run.toml", ".run.toml.new", "vocabulary.tsv"):
        (home / name).symlink_to(precious)
    begin_folder(CASES["mle"], corpus(), home)
    assert [(home / name).is_symlink() for name in ("run.toml", "vocabulary.tsv")] == [False] * 2
    (home / "metrics.jsonl").symlink_to(precious)
    with refusal():
        RunLog(home / "metrics.jsonl")
    assert precious.read_bytes() == b"kept"


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left, mine = name_temporary(tmp_path), name_temporary(tmp_path)
    left = left.with_name(left.name.replace(f".{os.getpid()}.", ".4194305."))  # above any process
    left.mkdir()
    (left / "state.pt").write_bytes(b"half")
    other = tmp_path / ".embgeo.theirs"
    for path in (mine, other):
        path.write_bytes(b"")
    begin_folder(CASES["mle"], corpus(), tmp_path)
    assert not left.exists()
    assert mine.exists()
    assert other.exists()


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    config = settings(optimizer={"kind": "sgd", "lr": 1e38, "weight_decay": 0.0})
    with refusal():
        run(config, tmp_path)


@pytest.mark.parametrize(
    ("lr", "more"),
    [
        (1e38, {"training": {"steps": 1}}),
        (1e39, {"geometry": {"every": 3}, "training": {"log_every": 1000}}),
    ],
)
def test_a_training_that_diverges_says_so_and_leaves_no_result(
    lr: float, more: dict[str, Any], tmp_path: Path
) -> None:
    """The loss before the only step is finite; a matrix is measured before a loss is logged."""
    config = settings(optimizer={"kind": "sgd", "lr": lr, "weight_decay": 0.0}, **more)
    with refusal():
        run(config, tmp_path)
    assert not (tmp_path / "result.json").exists()


def test_a_request_to_stop_is_heard_to_the_very_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last evaluation goes on, and nothing is begun after it."""
    final = RunLoop.final_scores

    def asked(self: RunLoop, *given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return final(self, *given)

    monkeypatch.setattr(RunLoop, "final_scores", asked)
    with pytest.raises(KeyboardInterrupt):
        run(CASES["mle"], tmp_path)
    assert (tmp_path / "result.json").is_file()


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "model.safetensors"
    target.mkdir()  # in the place of a full disk: the rename fails
    with refusal():
        write(target, b"content")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not Linux")
def test_a_full_disk_says_how_to_go_on(tmp_path: Path) -> None:
    """Whatever was written then: the log, the state or the model."""
    log = RunLog(tmp_path / "metrics.jsonl")
    assert log.file is not None
    log.file.close()
    log.file = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115
    with refusal():
        log.write(1, {"train.loss": 1.0})
    log.close()
    (tmp_path / "state.pt").mkdir()
    with refusal():
        save_state({}, tmp_path)


def list_tensors(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all tensors of several entries in a state."""
    if isinstance(value, torch.Tensor):
        return [path] if value.numel() > 1 else []
    if not isinstance(value, dict | list | tuple):
        return []
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for key, entry in entries for found in list_tensors(entry, (*path, key))]


def cut_tensor(value: Any, path: tuple[Any, ...]) -> Any:
    """The state with the first entry of a tensor in its place."""
    if not path:
        return value.flatten()[:1].clone()
    if isinstance(value, dict):
        return {k: cut_tensor(v, path[1:]) if k == path[0] else v for k, v in value.items()}
    return type(value)(cut_tensor(v, path[1:]) if i == path[0] else v for i, v in enumerate(value))


@pytest.mark.slow
def test_a_state_whose_tensors_were_cut_is_refused(tmp_path: Path) -> None:
    """A tensor of one entry would be broadcast."""
    for folder, name in each_folder(
        tmp_path, ("mle", "nt-asgd", "coupled-adam", "frage", "real", "mixture")
    ):
        config = saving(CASES[name], 2)
        with pytest.raises(Stopped):
            run(config, folder, stopping(9))
        state = torch.load(folder / "state.pt", weights_only=True)
        places: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for path in list_tensors(state["trainer"]):  # one of each kind
            if "hidden" in path:  # the kernels refuse other shapes
                continue
            places.setdefault((path[0], *(key for key in path if isinstance(key, str))), path)
        assert places
        for path in places.values():
            torch.save(state | {"trainer": cut_tensor(state["trainer"], path)}, folder / "state.pt")
            with pytest.raises(UnreadableFile) as caught:  # some messages are of torch
                run(config, folder)
            assert caught.value.where == str(folder / "state.pt")
