"""A settings file of a stranger names nothing outside of its repository or folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from embgeo.cli.app import app
from embgeo.core.errors import BadOption
from embgeo.rules.settings import find_gate, find_options, find_root, read_gate
from embgeo.workflows.gate import gate_settings
from tests.support.refusals import refusal
from tests.support.sampling import each_value

pytestmark = [
    pytest.mark.usefixtures("checkout"),
    pytest.mark.skipif(os.name == "nt", reason="links need rights there"),
]

REMOTE = (
    "http://127.0.0.1:9/a.npy",
    "https://example.org/a.npy",
    "hf://org/name",
    "s3://bucket/a.npy",
    "gs://bucket/a.npy",
    "memory://a.npy",
    "file:///etc/passwd",
    "./http://127.0.0.1:9/a.npy",
    "a.tar::http://127.0.0.1:9/a.npy",
    "simplecache::http://127.0.0.1:9/a.npy",
)
OUTSIDE = (
    "/etc/passwd",
    "../secret.txt",
    "deep/../../secret.txt",
    "link.txt",
    "folder/secret.txt",
    "link.txt::member",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with links out, a secret next to it, and no way to open a socket."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    folder = tmp_path / "checkout"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep").mkdir()
    rows = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    rows[0] = 0
    np.save(folder / "a.npy", rows)
    (folder / "tokens.txt").write_text("".join(f"t{i}\n" for i in range(40)))
    (tmp_path / "secret.txt").write_text("".join(f"root{i}:x:0:0\n" for i in range(40)))
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    (folder / "inside.txt").symlink_to("tokens.txt")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return folder


def write_settings(text: str, path: str = "embgeo.toml") -> None:
    Path(path).write_text(text, encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def check_refused(done: Result) -> None:
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    assert "--trust-settings" in line
    assert "root0" not in done.output


#: Every command and option with some names, and every name.
READS = (
    *(("analyze", option) for option in ("tokens", "counts", "corpus", "hidden")),
    *(("diff", "tokens"), ("gate", "counts"), ("gate.analyze", "tokens")),
)


def test_options() -> None:
    for name, command, option in [
        (name, *READS[k % len(READS)]) for k, name in enumerate([*OUTSIDE, *REMOTE])
    ]:
        table = "gate.analyze" if command == "gate.analyze" else "analyze"
        write_settings(f"[{table}]\n{option} = '{name}'\n")
        arguments = {"analyze": ["analyze", "a.npy", "--json"], "diff": ["diff", "a.npy", "a.npy"]}
        rule = ["gate", "a.npy", "--rule", "suspects.zero == 0"]
        check_refused(run(*arguments.get(command, rule)))


MORE = ((), ("--update-baseline",), ("--config", "embgeo.toml"))


@each_value
@pytest.mark.parametrize("setting", ["sources = ['{}']", "baseline = '{}'"])
@pytest.mark.parametrize(
    ("name", "more"),
    [(name, MORE[k % len(MORE)]) for k, name in enumerate([*OUTSIDE, *REMOTE, "circle"])],
)
def test_sources_and_baselines(name: str, setting: str, more: tuple[str, ...]) -> None:
    write_settings(f"[gate]\nrules = ['cosine.mean rise <= 1']\n{setting.format(name)}\n")
    check_refused(run("gate", "a.npy", *more))


def test_pyproject() -> None:
    write_settings("[tool.embgeo.gate]\nsources = ['../secret.txt']\n", "pyproject.toml")
    check_refused(run("gate"))


def test_names_inside() -> None:
    for name in ("tokens.txt", "./tokens.txt", "deep/../tokens.txt", "inside.txt"):
        write_settings(
            f"[gate]\nsources = ['a.npy']\nrules = ['cosine.mean <= 1']\n"
            f"[gate.analyze]\ntokens = '{name}'\n"
        )
        done = run("gate")
        assert done.exit_code == 0, done.output


def test_the_root_of_the_repository_counts(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings("[analyze]\ntokens = '../tokens.txt'\n", "deep/embgeo.toml")
    monkeypatch.chdir("deep")
    assert find_options()["tokens"].resolve() == checkout / "tokens.txt"
    (checkout / ".git").rmdir()
    with refusal(BadOption):
        find_options(Path("embgeo.toml"))


def test_a_repository_of_the_home_folder_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / ".git").mkdir()
    assert find_root(tmp_path / "downloads") == tmp_path / "downloads"


def test_trusted_settings_name_anything() -> None:
    text = "[gate]\nsources = ['a.npy']\nrules = ['cosine.mean <= 1']\nbaseline = '../b.json'\n"
    write_settings(f"{text}[gate.analyze]\ntokens = '../secret.txt'\n")
    assert run("gate", "--trust-settings").exit_code == 0
    path = Path("embgeo.toml")
    assert read_gate(path, trust_settings=True).baseline == "../b.json"
    with refusal(BadOption):
        read_gate(path)
    with refusal(BadOption):
        find_gate(Path())
    assert gate_settings(trust_settings=True).analyze["tokens"].name == "secret.txt"
    with refusal(BadOption):
        gate_settings()


def test_the_command_line_names_anything() -> None:
    done = run("analyze", "a.npy", "--tokens", "../secret.txt", "--json", "--sections", "cosine")
    assert done.exit_code == 0


def test_a_missing_source_is_no_model_in_a_cache(checkout: Path) -> None:
    write_settings("[gate]\nsources = ['org/name']\nrules = ['cosine.mean <= 1']\n")
    done = run("gate")
    assert done.exit_code == 2
    assert f"{checkout / 'org/name'}: there is no such file" in done.stderr
