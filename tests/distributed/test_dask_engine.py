"""Both passes on a dask cluster: the same answer, also where workers are lost on the way."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo import metrics
from embgeo.cli.app import app
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.distributed import cluster as engine
from embgeo.distributed import reader
from embgeo.distributed.cluster import Cluster, Shard, cut_pieces
from embgeo.distributed.passes import fingerprint
from embgeo.distributed.reader import analyze_remotely
from embgeo.measure.analyze import analyze
from embgeo.result.analysis import Analysis
from tests.support.in_parts import check_analyses
from tests.support.matrices import gaussian
from tests.support.refusals import refusal
from tests.support.sampling import sample_cases

distributed = pytest.importorskip("distributed")

#: Each of them starts a cluster of its own or waits for one.
pytestmark = [pytest.mark.slow, pytest.mark.loopback]

N, D = 240, 4
#: Some of everything: a second pass, single rows, and no search that takes many passes.
SECTIONS = ("spectrum", "isotropy", "cosine", "tokens")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers in threads of this process, with an address."""
    with scheduler(n_workers=2) as local, distributed.Client(local) as found:
        yield found


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix, whole and in three files; small parts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "LEAST_ROWS", 16)
    engine.open_source_once.cache_clear()
    W = gaussian(600, N, D) + 0.3
    W[[3, 200]] = 0.0
    np.save("W.npy", W)
    for number, start in enumerate((0, 100, 130)):
        np.save(f"part-{number}.npy", W[start : (100, 130, N)[number]])
    Path("tokens.txt").write_text("".join(f"t{i}\n" for i in range(N)))
    Path("counts.tsv").write_text("".join(f"t{i}\t{N - i // 2}\n" for i in range(N)))
    return tmp_path


def scheduler(n_workers: int) -> Any:
    """A cluster in threads of this process."""
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=50,
    )


def on_cluster(client: Any, progress: Progress | None = None, **wanted: Any) -> Analysis:
    matrix = wanted.pop("matrix", None) or embgeo.load("W.npy")
    pieces = cut_pieces([shard(fingerprint=fingerprint(matrix.data))], 2)
    assert len(pieces) == 8
    cluster = Cluster(client, pieces)
    return analyze_remotely(matrix, cluster.parts, cluster.run, progress=progress, **wanted)


def shard(**known: Any) -> Shard:
    return Shard(Source(Path("W.npy").absolute(), output="none"), N, given="W.npy", **known)


def in_one_run(**wanted: Any) -> Analysis:
    return analyze(embgeo.load("W.npy"), **wanted)


def test_the_same_answer(client: Any) -> None:
    bars: list[list[Any]] = []

    def advance(rows: int) -> None:
        bars[-1][2] += rows

    progress = Progress(lambda what, rows: bars.append([what, rows, 0]), advance)
    found = on_cluster(client, progress, sections=SECTIONS, options=Options())
    check_analyses(found, in_one_run(sections=SECTIONS, options=Options()))
    seen = {what.partition(" ")[2]: rows for what, *rows in bars}
    assert seen["first pass"] == [N, N]
    assert seen["second pass"] == [N - 2, N - 2]
    assert seen["single rows"][0] == seen["single rows"][1] > 0


def test_damaged_rows_are_left_out_of_a_repeated_first_pass(client: Any) -> None:
    W = np.load("W.npy")
    W[60:70] *= 1e-12  # all rows of one piece, and some of another
    np.save("W.npy", W)
    wanted: dict[str, Any] = {"sections": ("spectrum", "cosine", "tokens")}
    found = on_cluster(client, **wanted)
    check_analyses(found, in_one_run(**wanted))
    assert found.provenance["masked"] == {"exactly zero": 2, "damaged": 10}


def test_workers_that_outlive_a_run_read_the_new_file(client: Any) -> None:
    wanted: dict[str, Any] = {"sections": ("cosine",)}
    check_analyses(on_cluster(client, **wanted), in_one_run(**wanted))
    np.save("W.npy", gaussian(601, N, D) - 2.0)
    check_analyses(on_cluster(client, **wanted), in_one_run(**wanted))


def test_a_file_that_changes_while_it_is_measured(client: Any) -> None:
    def change(what: str, _rows: int) -> None:
        if what.endswith("second pass"):
            np.save("W.npy", gaussian(602, N, D))
            os.utime("W.npy", ns=(1, 1))

    with refusal():
        on_cluster(client, Progress(change, lambda _rows: None), sections=("isotropy",))


def test_a_worker_that_sees_another_file(client: Any) -> None:
    pieces = cut_pieces([shard(fingerprint="of the file that this machine sees")], 2)
    with refusal():
        Cluster(client, pieces).describe()


def test_rows_of_the_second_pass_are_those_of_the_first(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where size, time and the rows of the fingerprint are the same."""

    def change(what: str, _rows: int) -> None:
        if what.endswith("second pass"):
            monkeypatch.setattr(engine, "open_source_once", other)

    def other(*arguments: Any) -> Any:
        matrix, known = open_once(*arguments)
        rows = matrix.data.copy()
        rows[101] += 1.0
        return replace(matrix, data=rows), known

    open_once = engine.open_source_once
    with refusal():
        on_cluster(client, Progress(change, lambda _rows: None), sections=("isotropy",))


@pytest.mark.parametrize("section", sample_cases(metrics.SECTIONS, 3))
@pytest.mark.slow
def test_every_section_alone(client: Any, section: str) -> None:
    """Some need no second pass and no row, and are finished from the first."""
    matrix = embgeo.load("W.npy", tokens="tokens.txt", counts="counts.tsv", output="none")
    wanted: dict[str, Any] = {"sections": (section,), "options": Options()}
    found = on_cluster(client, matrix=matrix, **wanted)
    check_analyses(found, analyze(matrix, **wanted))


@pytest.mark.slow
def test_a_worker_that_is_killed_during_a_pass() -> None:
    """Its tasks are done again elsewhere; a new worker takes its place."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local) as client,
    ):
        alive = list(client.run(os.getpid).values())
        passes: list[str] = []

        def kill_one(_rows: int) -> None:
            """At the first sign of life of each pass, while other tasks are under way."""
            if len(alive) == 2 or (alive and passes[-1].endswith("second pass")):
                os.kill(alive.pop(), signal.SIGKILL)

        progress = Progress(lambda what, _rows: passes.append(what), kill_one)
        options = Options()
        found = on_cluster(client, progress, sections=SECTIONS, options=options)
        assert not alive
    check_analyses(found, in_one_run(sections=SECTIONS, options=options))


def test_workers_that_are_lost_again_and_again() -> None:
    with (
        refusal(),
        engine.explain_errors("tcp://10.0.0.1:8786"),
    ):
        raise distributed.KilledWorker("pass_task", None, 3)


# The command line ---------------------------------------------------------------------------------


def call(line: str, *more: str) -> Any:
    return CliRunner().invoke(app, [*line.split(), *more])


QUICK = ("--sections", "spectrum,isotropy,frequency", "-q")


@pytest.mark.slow
def test_one_file(client: Any) -> None:
    labels = ("--tokens", "tokens.txt", "--counts", "counts.tsv")
    address = client.scheduler.address
    result = call(f"analyze W.npy -o out --engine dask --scheduler {address}", *labels, *QUICK)
    assert result.exit_code == 0, result.output
    assert call("analyze W.npy -o one", *labels, *QUICK).exit_code == 0
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "out"))
    check_analyses(found, one)
    assert found.provenance["sha256"] == one.provenance["sha256"]
    assert found.provenance["parts"][0]["file"] == "W.npy"


@pytest.mark.slow
@pytest.mark.usefixtures("workers_here")
def test_one_parquet_file(client: Any) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    W = np.load("W.npy")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(W.ravel()), W.shape[1])
    parquet.write_table(pa.table({"emb": vectors}), "W.parquet", row_group_size=40)
    address = client.scheduler.address
    line = f"analyze W.parquet -o out --engine dask --scheduler {address}"
    result = call(line, "--counts", "counts.tsv", *QUICK)
    assert result.exit_code == 0, result.output
    assert call("analyze W.npy -o one --counts counts.tsv", *QUICK).exit_code == 0
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "out"))
    assert found.provenance["stored_shape"] == list(W.shape)
    assert len(found.provenance["parts"]) > 1
    for value in one.scalars:
        mine = found.find_scalar(value.name)
        assert mine is not None
        known = None if value.value is None else pytest.approx(value.value, rel=1e-12)
        assert mine.value == known, value.name


@pytest.mark.slow
def test_a_cluster_of_its_own_is_reached_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[str] = []

    def bind(own: socket.socket, address: Any) -> None:
        hosts.append(address[0])
        plain(own, address)

    plain = socket.socket.bind
    monkeypatch.setattr(socket.socket, "bind", bind)
    result = call("analyze W.npy -o out --engine dask --threads 2", *QUICK)
    assert result.exit_code == 0, result.output
    assert set(hosts) <= {"127.0.0.1"}


@pytest.mark.slow
def test_files_of_one_matrix(client: Any) -> None:
    labels = ("--tokens", "tokens.txt", "--counts", "counts.tsv")
    address = client.scheduler.address
    result = call(f"analyze part-*.npy -o out --engine dask --scheduler {address}", *labels, *QUICK)
    assert result.exit_code == 0, result.output
    assert call("analyze W.npy -o one", *labels, *QUICK).exit_code == 0
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "out"))
    check_analyses(replace(found, notes=one.notes), one)
    assert found.provenance["file"] == "part-0.npy and 2 more"
    assert not [note for note in found.notes if "beside it" in note.text]
    assert {part["file"] for part in found.provenance["parts"]} == {
        "part-0.npy",
        "part-1.npy",
        "part-2.npy",
    }


def test_what_a_cluster_is_not_asked() -> None:
    for line, says in (
        ("analyze none*.npy --engine dask", "there is no such file"),
        ("analyze W.npy --engine dask --rows 0:9", "cannot be cut"),
        ("analyze W.npy --engine dask --pairs all", "all rows in one place"),
        ("analyze W.npy --engine dask --device cuda", "on the processor"),
        ("analyze missing.npy --engine dask", "no such file"),
    ):
        result = call(line)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert says in result.stderr


def test_a_file_that_the_workers_cannot_read(client: Any) -> None:
    nowhere = Shard(Source(Path("/nowhere/W.npy")), N)
    with refusal():
        Cluster(client, cut_pieces([nowhere], 2)).describe()


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 0.2)
    result = call("analyze W.npy --engine dask --scheduler tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_a_port_of_something_else(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.accept)
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        accepted.add_done_callback(lambda done: done.result()[0].sendall(greeting))
        result = call(f"analyze W.npy --engine dask --scheduler {address}")
        accepted.result()[0].close()
    assert result.exit_code == 2
    assert f"no scheduler answers at {address}" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WORKER_SECONDS", 0.2)
    with scheduler(n_workers=0) as local:
        address = local.scheduler_address
        result = call(f"analyze W.npy --engine dask --scheduler {address}")
    assert result.exit_code == 2
    assert f"--scheduler {address}: the cluster has no workers; start `dask worker" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_scheduler_that_is_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first pass of a client that has connected."""
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 2.0)
    with scheduler(n_workers=1) as local:
        address = local.scheduler_address
        monkeypatch.setattr(reader, "check_width", lambda *_: local.close())
        result = call(f"analyze W.npy --engine dask --scheduler {address}")
    assert result.exit_code == 2
    assert f"the scheduler at {address} was lost; start it and run again" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not [record for record in caplog.records if record.name == "distributed.client"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = call("analyze W.npy --engine dask")
    assert result.exit_code == 2
    assert "pip install 'embgeo[dask]'" in result.stderr


def test_the_last_worker_that_goes_in_the_middle_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may come and go; without any for two minutes, the line is that of the start."""
    workers, clock = iter([1, 0, 0, 1, 0, 0, 0, 0]), iter(range(0, 1000, 50))

    def nothing_ends(*_: Any, **__: Any) -> None:
        raise TimeoutError

    client: Any = SimpleNamespace(
        scheduler_info=lambda: {"workers": [None] * next(workers)},
        scheduler=SimpleNamespace(address="tcp://10.0.0.1:8786"),
    )
    monkeypatch.setattr(engine.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("distributed.wait", nothing_ends)
    with refusal():
        list(Cluster(client, [])._wait([object()]))  # type: ignore[list-item]
    assert not list(workers)
