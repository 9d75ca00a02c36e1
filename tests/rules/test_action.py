"""The GitHub Action and the pre-commit hook, as far as they run without GitHub."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
MAIN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import embgeo.cli.app as a; a.main()"
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")

needs_bash = pytest.mark.skipif(
    os.name == "nt" or shutil.which("bash") is None, reason="the steps are run by bash here"
)


def step(name: str) -> dict[str, Any]:
    (found,) = [s for s in ACTION["runs"]["steps"] if s.get("id") == name]
    return dict(found)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A checkout with matrices and settings, embgeo as a program, and a runner's folders."""
    rows = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
    checkout = tmp_path / "check out"
    checkout.mkdir()
    np.save(checkout / "round one.npy", rows)
    np.save(checkout / "cone.npy", rows + 3)
    (checkout / "embgeo.toml").write_text('[gate]\nrules = [\n "cosine.mean <= 0.5",\n]\n')
    (tmp_path / "main.py").write_text(MAIN, encoding="utf-8")
    program(
        tmp_path / "bin" / "embgeo",
        f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "main.py"}" "$@"\n',
    )
    (tmp_path / "output").touch()
    return tmp_path


def run_step(
    name: str,
    work: Path,
    inputs: dict[str, str],
    outputs: dict[str, str],
    event: str = "push",
    head: str = "",
) -> subprocess.CompletedProcess[str]:
    """A step as GitHub's runner runs it: its environment filled in, its script run by bash."""
    given = {key: value["default"] for key, value in ACTION["inputs"].items()} | inputs
    known = {f"inputs.{key}": value for key, value in given.items()} | outputs
    known["github.event.pull_request.head.repo.full_name"] = head * event.startswith("pull")
    known["github.event.workflow_run.head_repository.full_name"] = head * (event == "workflow_run")
    chosen = step(name)
    environment = {
        key: EXPRESSION.sub(lambda found: known[found[1]], value)
        for key, value in chosen.get("env", {}).items()
    }
    script = work / f"{name}.sh"
    script.write_text(chosen["run"], encoding="utf-8")
    runner = {
        "PATH": os.environ["PATH"],
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REPOSITORY": "team/models" * bool(event),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_WORKSPACE": str(work / "check out"),
        "GITHUB_OUTPUT": str(work / "output"),
        "GITHUB_STEP_SUMMARY": str(work / "summary.md"),
        "RUNNER_TEMP": str(work / "temp"),
    }
    folder = EXPRESSION.sub(lambda found: known[found[1]], chosen.get("working-directory", "."))
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=work / "check out" / folder,
        env=runner | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def run_gate(
    work: Path, event: str = "push", head: str = "", **inputs: str
) -> subprocess.CompletedProcess[str]:
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    embgeo = {"steps.install.outputs.command": str(work / "bin" / "embgeo")}
    return run_step("gate", work, named, embgeo, event, head)


def test_scripts_hold_no_expressions() -> None:
    """What an input says would become part of the script."""
    for found in ACTION["runs"]["steps"]:
        assert "${{" not in found.get("run", "")
        assert found.get("shell") == "bash" or "uses" in found


def test_inputs_and_outputs_fit_together() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    ids = {found.get("id") for found in ACTION["runs"]["steps"]}
    assert set(re.findall(r"steps\.(\w+)\.outputs", text)) <= ids
    assert all(value["description"] for value in ACTION["inputs"].values())


@needs_bash
@pytest.mark.slow
def test_the_gate_step(work: Path) -> None:
    """Annotations point into the repository, wherever in it the step runs."""
    (work / "check out" / ".git").mkdir()
    (work / "check out" / "deep").mkdir()
    done = run_gate(work, sources="../cone.npy", working_directory="deep")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (work / "output").read_text() == "result=failed\n"
    assert (work / "summary.md").read_text().startswith("### embgeo gate")
    (annotation,) = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert "file=embgeo.toml,line=3::" in annotation


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "arguments"),
    [
        ({}, ["--"]),
        ({"sources": "a b.npy"}, ["--", "a b.npy"]),
        ({"sources": "  a.npy \r\n\n\tb.npy"}, ["--", "a.npy", "b.npy"]),
        ({"sources": "--version"}, ["--", "--version"]),
        (
            {"rules": "x.y <= 1, warn\n\nx.z > 2\n"},
            ["--rule=x.y <= 1, warn", "--rule=x.z > 2", "--"],
        ),
        (
            {"rules": "$(touch pwned)`touch pwned`'\"*"},
            ["--rule=$(touch pwned)`touch pwned`'\"*", "--"],
        ),
        (
            {"baseline": "b c", "config": "d", "arguments": "--junit=e f\n-q", "sources": "g"},
            ["--config=d", "--baseline=b c", "--junit=e f", "-q", "--", "g"],
        ),
    ],
)
def test_what_the_gate_step_asks_for(
    work: Path, inputs: dict[str, str], arguments: list[str]
) -> None:
    """With an embgeo that only writes down what it is asked for."""
    asked = work / "asked"
    program(
        work / "bin" / "embgeo",
        f'#!/bin/sh\n[ "$1" = --version ] || printf "%s\\n" "$@" > "{asked}"\n',
    )
    assert run_gate(work, **inputs).returncode == 0
    assert asked.read_text().splitlines() == ["gate", *arguments]
    assert not list(work.rglob("pwned"))


@needs_bash
@pytest.mark.parametrize(
    ("event", "head", "trusts"),
    [
        ("push", "", True),
        ("schedule", "", True),
        ("issue_comment", "", False),  # its workflow may check out the pull request
        ("repository_dispatch", "", False),
        ("pull_request", "team/models", True),
        ("pull_request", "stranger/models", False),
        ("pull_request", "", False),  # the fork was deleted
        ("pull_request_target", "team/models", False),
        ("pull_request_target", "stranger/models", False),
        ("pull_request_review", "stranger/models", False),
        ("workflow_run", "team/models", True),
        ("workflow_run", "stranger/models", False),
        ("", "", False),  # nor a repository: two unknown names are not one
    ],
)
def test_settings_are_ignored_on_events_of_strangers(
    work: Path, event: str, head: str, trusts: bool
) -> None:
    asked = work / "asked"
    program(
        work / "bin" / "embgeo",
        f'#!/bin/sh\n[ "$1" = --version ] || printf "%s\\n" "$@" > "{asked}"\n',
    )
    done = run_gate(work, event, head, config="settings.toml", sources="a.npy")
    assert done.returncode == 0
    settings = "--config=settings.toml" if trusts else "--no-config"
    assert asked.read_text().splitlines() == ["gate", settings, "--", "a.npy"]
    assert ("::notice::embgeo: settings files are ignored" in done.stdout) is not trusts


@needs_bash
@pytest.mark.parametrize(
    ("code", "result"), [(0, "passed"), (1, "failed"), (2, "error"), (139, "error")]
)
def test_exit_codes_of_the_gate_step(work: Path, code: int, result: str) -> None:
    program(work / "bin" / "embgeo", f'#!/bin/sh\n[ "$1" = --version ] || exit {code}\n')
    assert run_gate(work).returncode == code
    assert (work / "output").read_text() == f"result={result}\n"


@needs_bash
def test_an_embgeo_that_does_not_start_is_an_error_and_no_failed_gate(work: Path) -> None:
    """Python itself ends with 1 where a package is broken."""
    (work / "main.py").write_text("import no_such_package")
    done = run_gate(work, sources="round one.npy")
    assert done.returncode == 2
    assert (work / "output").read_text() == "result=error\n"


def run_install(work: Path, python: Path, extras: str = "") -> Path:
    """The steps before the gate; returns the folder of the environment."""
    outputs = {"steps.python.outputs.python-path": str(python)}
    done = run_step("key", work, {"extras": extras}, outputs)
    assert done.returncode == 0, done.stderr
    key, home = (line.partition("=")[2] for line in (work / "output").read_text().splitlines())
    (work / "output").write_text("")
    outputs |= {"steps.key.outputs.key": key, "steps.key.outputs.home": home}
    done = run_step("install", work, {"extras": extras}, outputs)
    assert done.returncode == 0, done.stderr
    assert (work / "output").read_text() == f"command={home}/bin/embgeo\n"
    (work / "output").write_text("")
    return Path(home)


@needs_bash
def test_the_install_step(work: Path) -> None:
    """With a Python that only writes down what it is asked for, but for the key."""
    asked = work / "asked"
    python = program(
        work / "python",
        f'#!/bin/sh\nif [ "$2" = -c ]; then exec "{sys.executable}" "$@"; fi\n'
        f'printf "%s|" "$@" >> "{asked}"\necho >> "{asked}"\n'
        'if [ "$3" = venv ]; then mkdir -p "$5/bin"; cp "$0" "$5/bin/python"; fi\n',
    )
    homes = set()
    for extras in ("", "gguf,hdf5"):
        home = run_install(work, python, extras)
        homes.add(home)
        venv, *pips = asked.read_text().splitlines()
        asked.unlink()
        assert venv == f"-I|-m|venv|--clear|{home}|"
        for pip in pips:
            assert pip.startswith("-I|-m|pip|install|")
            assert f"|--constraint|{ROOT / 'constraints.txt'}|" in pip
        if extras:
            assert [pip.endswith(f"|{ROOT}[{extras}]|") for pip in pips] == [True]
        else:
            assert pips[0].endswith(f"|--requirement|{ROOT}/packaging/gate.txt|")
            assert pips[1].endswith(f"|--no-deps|{ROOT}|")
    assert len(homes) == 2
    # What the cache has brought back and starts is not installed again.
    program(home / "bin" / "embgeo", "#!/bin/sh\n")
    assert run_install(work, python, "gguf,hdf5") == home
    assert not asked.exists()


@needs_bash
@pytest.mark.slow
def test_a_gate_needs_nothing_but_what_the_action_installs(
    work: Path,
) -> None:
    listed = (ROOT / "packaging" / "gate.txt").read_text("utf-8").splitlines()
    needed = {line for line in listed if not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {re.match(r"[\w-]+", text)[0] for text in project["dependencies"]}
    assert needed < known
    modules = {"scikit-learn": "sklearn"}
    absent = [modules.get(name, name) for name in known - needed]
    program(
        work / "main.py",
        f"import sys\nfor name in {absent}: sys.modules[name] = None\n{MAIN}",
    )
    rules = "verdict <= degenerate\ntokens.hubness <= 100\ncosine.mean rise <= 2 se"
    done = run_gate(
        work,
        sources="cone.npy",
        rules=rules,
        baseline="cone.npy",
        config="",
        event="pull_request_target",
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_bash
@pytest.mark.slow
def test_modules_of_the_checkout_are_not_run(work: Path) -> None:
    """A ``venv.py`` and a folder ``pip`` that whoever opened the pull request wrote."""
    attack = f"open({str(work / 'pwned')!r}, 'w').close()"
    for name in ("venv.py", "pip/__main__.py", "pip/__init__.py"):
        program(work / "check out" / name, attack)
    # Without pip in the new environment nothing is downloaded: only what is imported counts.
    python = program(
        work / "python",
        f'#!/bin/sh\n[ "$2" = -c ] || more=--without-pip\nexec "{sys.executable}" "$@" $more\n',
    )
    outputs = {
        "steps.python.outputs.python-path": str(python),
        "steps.key.outputs.home": str(work / "home"),
    }
    run_step("key", work, {}, outputs)
    run_step("install", work, {}, outputs)
    assert (work / "home" / "bin").is_dir()
    assert not (work / "pwned").exists()


# --- pre-commit -------------------------------------------------------------------------------


def test_the_hook_takes_checkpoints() -> None:
    (hook,) = HOOKS
    assert hook["language"] == "python"
    assert hook["require_serial"] is True
    chosen = re.compile(hook["files"])
    assert all(chosen.search(f"a/model.{end}") for end in ("pt", "safetensors", "npy", "gguf"))
    assert not any(chosen.search(name) for name in ("npy.py", "pt", "model.pt.txt", "a.json"))


@needs_bash
@pytest.mark.slow
def test_the_hook_runs(work: Path) -> None:
    """As pre-commit runs it: the entry with the names of the staged files behind it."""
    (hook,) = HOOKS
    path = f"{work / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # The name of a file, not an option.
    (work / "check out" / "--no-config=x.npy").write_bytes(
        (work / "check out" / "cone.npy").read_bytes()
    )
    done = subprocess.run(
        [*hook["entry"].split(), "round one.npy", "--no-config=x.npy"],
        cwd=work / "check out",
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "gate failed: 1 of 2 checks" in done.stdout
