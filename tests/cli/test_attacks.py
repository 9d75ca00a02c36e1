"""Fifty attacks by what commands read: settings, caches and saved results of a stranger.

Whatever the command answers: nothing outside of the checkout is shown or written, nothing in it is
executed, nothing is connected to (no test may), and no error is unexpected.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Imported before a test sets HF_HUB_OFFLINE: huggingface_hub reads it once.
import huggingface_hub.constants  # noqa: F401
import numpy as np
import pytest

import embgeo
from tests.support.command import call, content

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="links need rights there"),
]

SECRET = "ALPHA-7731-PRIVATE"
W = np.random.default_rng(0).standard_normal((120, 6)).astype(np.float32)
TOKENS = [f"word{i}" for i in range(len(W))]


@dataclass
class World:
    """A checkout, in which commands run, and what lies beside it."""

    here: Path
    outside: Path

    def write(self, name: str, text: str) -> None:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def link(self, name: str, target: Path) -> None:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def edit(self, name: str, *keys: str | int, value: object) -> None:
        """Set one value of a saved record."""
        content = json.loads((self.here / name).read_text())
        inner = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        self.write(name, json.dumps(content))

    def pack(self, name: str, members: dict[str, bytes]) -> None:
        """Write the arrays of a saved result anew, with these members in place of theirs."""
        with zipfile.ZipFile(self.here / name) as old:
            kept = {one: old.read(one) for one in old.namelist()}
        with zipfile.ZipFile(self.here / name, "w") as new:
            for one, data in (kept | members).items():
                new.writestr(one, data)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("world")
    here, outside = home / "here", home / "outside"
    here.mkdir()
    outside.mkdir()
    np.save(here / "m.npy", W)
    np.save(outside / "secret.npy", W)
    (outside / "secret.txt").write_text(f"{SECRET}\n" * len(W))
    (outside / "secret.json").write_text(json.dumps({"private": SECRET}))
    counts = 1000 // np.arange(1, len(W) + 1)
    one = embgeo.analyze(W, tokens=TOKENS, counts=counts)
    one.save(here / "saved")
    other = embgeo.analyze(W + 0.1 * W[::-1], tokens=TOKENS, counts=counts)
    embgeo.diff(one, other).save(here / "compared")
    return home


@pytest.fixture
def world(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("here", "outside"):
        shutil.copytree(template / name, tmp_path / name)
    cache = tmp_path / "cache"
    for name in ("HF_HOME", "XDG_CACHE_HOME", "EMBGEO_CACHE"):
        monkeypatch.setenv(name, str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return World(tmp_path / "here", tmp_path / "outside")


class Bomb:
    """What runs a command where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch pwned",)


def set_option(table: str, line: str, name: str = "embgeo.toml") -> Callable[[World], None]:
    return lambda world: world.write(name, f"[{table}]\n{line}\n")


def option_with(line: str, prepare: Callable[[World], None]) -> Callable[[World], None]:
    def attack(world: World) -> None:
        prepare(world)
        world.write("embgeo.toml", f"[analyze]\n{line}\n")

    return attack


def provenance(key: str, value: object) -> Callable[[World], None]:
    return lambda world: world.edit("saved/analysis.json", "provenance", key, value=value)


def token(text: str) -> Callable[[World], None]:
    """An analysis one token of which is this text."""

    def attack(world: World) -> None:
        shutil.rmtree(world.here / "saved")
        tokens = [*TOKENS[:3], text, *TOKENS[4:]]
        embgeo.analyze(W, tokens=tokens, sections="tokens").save(world.here / "saved")

    return attack


def member_folder(text: str) -> Callable[[World], None]:
    return lambda world: world.edit("compared/comparison.json", "members", 0, "folder", value=text)


def first_array(make: Callable[[World], bytes]) -> Callable[[World], None]:
    def attack(world: World) -> None:
        with zipfile.ZipFile(world.here / "saved/arrays.npz") as arrays:
            name = arrays.namelist()[0]
        world.pack("saved/arrays.npz", {name: make(world)})

    return attack


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def rename_columns(world: World) -> None:
    tables = json.loads((world.here / "saved/analysis.json").read_text())["tables"]
    for table in tables:
        table["columns"] = [f"=1 </script>{name}" for name in table["columns"]]
    world.edit("saved/analysis.json", "tables", value=tables)


def link_twice(world: World) -> None:
    world.link("b", world.outside)
    world.link("a", world.here / "b")


def hub_cache(target: str) -> Callable[[World], None]:
    """A model in a cache of the Hub whose snapshot is a link."""

    def attack(world: World) -> None:
        home = world.here.parent / "cache/hub/models--org--name"
        (home / "refs").mkdir(parents=True)
        (home / "refs/main").write_text(target)
        (home / "snapshots").mkdir()
        (home / "snapshots/c0ffee").symlink_to(world.outside)

    return attack


ANALYZE = ("analyze", "m.npy", "-o", "out")
GATE = ("gate", "m.npy", "-r", "cosine.mean <= 1")
REPORT = ("report", "saved", "-o", "out")
CSV = ("export", "saved", "--to", "csv", "-o", "out")
PROJECTOR = ("export", "saved", "--to", "projector", "-o", "out")
LATEX = ("export", "saved", "--to", "latex", "-o", "out")
DIFF = ("diff", "saved", "saved", "-o", "out")
COMPARED = ("report", "compared", "-o", "out")
FIGURES = ("figures", "saved", "-o", "out")
BOMB = pickle.dumps(Bomb())
SHAPE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"

#: What a stranger prepares, and the command that a user runs.
ATTACKS: dict[str, tuple[Callable[[World], None], Sequence[str]]] = {
    "tokens through an encoded name": (
        set_option("analyze", 'tokens = "%2e%2e/outside/secret.txt"'), ANALYZE),
    "tokens through a folder and back": (
        set_option("analyze", 'tokens = "saved/../../outside/secret.txt"'), ANALYZE),
    "tokens in the home folder": (set_option("analyze", 'tokens = "~/secret.txt"'), ANALYZE),
    "tokens of the process": (set_option("analyze", 'tokens = "/proc/self/environ"'), ANALYZE),
    "tokens from stdin": (set_option("analyze", 'tokens = "/dev/stdin"'), ANALYZE),
    "tokens with backslashes": (
        set_option("analyze", "tokens = '..\\outside\\secret.txt'"), ANALYZE),
    "tokens through two links": (option_with('tokens = "a/secret.txt"', link_twice), ANALYZE),
    "tokens that are a link": (
        option_with('tokens = "t.txt"', lambda w: w.link("t.txt", w.outside / "secret.txt")),
        ANALYZE),
    "tokens of a member that leads out": (
        set_option("analyze", 'tokens = "m.tar::../../outside/secret.txt"'), ANALYZE),
    "counts with a NUL": (set_option("analyze", 'counts = "a\\u0000/../x"'), ANALYZE),
    "a corpus that is the folder above": (set_option("analyze", 'corpus = ".."'), ANALYZE),
    "hidden states of a device": (set_option("analyze", 'hidden = "/dev/zero"'), ANALYZE),
    "an unknown option that is a command": (
        set_option("analyze", 'device = "cuda; touch pwned"'), ANALYZE),
    "more threads than there are": (set_option("analyze", "threads = 100000000000"), ANALYZE),
    "memory that no number holds": (set_option("analyze", 'memory = "1e999GB"'), ANALYZE),
    "a section that is a path": (set_option("analyze", 'sections = "../../x"'), ANALYZE),
    "an option of another type": (set_option("analyze", "pairs = [[[[1]]]]"), ANALYZE),
    "settings that are a link": (
        lambda w: w.link("embgeo.toml", w.outside / "secret.txt"), ANALYZE),
    "a project file that is a link": (
        lambda w: w.link("pyproject.toml", w.outside / "secret.txt"), ANALYZE),
    "settings that are a pipe": (lambda w: os.mkfifo(w.here / "embgeo.toml"), ANALYZE),
    "settings nested deeply": (set_option("analyze", "pairs = " + "[" * 5000), ANALYZE),
    "a pyproject with a table in place of a name": (
        set_option("tool.embgeo.analyze", "tokens = { a = 1 }", "pyproject.toml"), ANALYZE),
    "a source above": (set_option("gate", 'sources = [".."]\nrules = ["cosine.mean <= 1"]'),
                       ("gate",)),
    "a source by a pattern": (
        set_option("gate", 'sources = ["../*/secret.npy"]\nrules = ["cosine.mean <= 1"]'),
        ("gate",)),
    "a source of the Hub in capitals": (
        set_option("gate", 'sources = ["HF://org/name"]\nrules = ["cosine.mean <= 1"]'),
        ("gate",)),
    "a baseline outside": (
        set_option("gate", 'baseline = "../outside/secret.json"\nrules = ["cosine.mean <= 1"]'),
        GATE),
    "a baseline that is a link": (
        lambda w: (w.link("base.json", w.outside / "secret.json"),
                   w.write("embgeo.toml", '[gate]\nbaseline = "base.json"\n'))[0], GATE),
    "a rule with a command for the terminal": (
        set_option("gate", 'rules = ["\\u001b]0;x\\u0007cosine.mean <= 1"]'), ("gate", "m.npy")),
    "a rule with a command for GitHub": (
        set_option("gate", 'rules = ["cosine.mean <= -1 \\n::add-mask::x"]'),
        ("gate", "m.npy", "--github")),
    "a rule with a number beyond all": (
        set_option("gate", 'rules = ["cosine.mean <= 1e999"]'), ("gate", "m.npy")),
    "a checkpoint elsewhere by a relative name": (
        provenance("file", "../outside/secret.npy"), PROJECTOR),
    "a checkpoint that is a device": (provenance("file", "/dev/zero"), PROJECTOR),
    "a checkpoint that is remote": (provenance("file", "http://127.0.0.1:9/m.npy"), PROJECTOR),
    "a checkpoint for a comparison": (provenance("file", "/etc/passwd"), DIFF),
    "a provenance of another kind": (provenance("file", ["a", {"b": 1}]), CSV),
    "a pickle among the arrays": (
        first_array(lambda _: npy(SHAPE.replace("<f8", "|O") % "1,", BOMB)),
        REPORT),
    "arrays that are a pickle": (
        lambda w: (w.here / "saved/arrays.npz").write_bytes(BOMB) and None, REPORT),
    "arrays that are a link": (
        lambda w: w.link("saved/arrays.npz", w.outside / "secret.npy"), REPORT),
    "an array of a claimed terabyte": (first_array(lambda _: npy(SHAPE % "125000000000,")), CSV),
    "an array of one row": (first_array(lambda _: npy(SHAPE % "1,", b"\0" * 8)), REPORT),
    "a member that leads out of the arrays": (
        lambda w: w.pack("saved/arrays.npz", {"../../outside/secret.npy": b"x"}), CSV),
    "a record that is a link": (
        lambda w: w.link("saved/analysis.json", w.outside / "secret.json"), REPORT),
    "tables with columns of other names": (rename_columns, REPORT),
    "a record nested deeply": (
        lambda w: w.write("saved/analysis.json", '{"a":' * 50_000 + "1" + "}" * 50_000), REPORT),
    "a token that is a script": (token("</script><script>alert(1)</script>"), REPORT),
    "a token that is a formula": (token('=HYPERLINK("http://x","y")'), CSV),
    "a token for TeX": (token("\\input{/etc/passwd}"), LATEX),
    "a token for the terminal": (token("\x1b[2Jx"), ("report", "saved", "-o", "out")),
    "a member of a comparison outside": (member_folder("../../outside"), COMPARED),
    "a member of a comparison at the root": (member_folder("/tmp"), COMPARED),
    "a member of a comparison through a link": (
        lambda w: w.link("compared/" + sorted(
            p.name for p in (w.here / "compared").iterdir() if p.is_dir())[0], w.outside),
        COMPARED),
    "a default result that is a link": (
        lambda w: w.link("m.embgeo", w.outside), ("analyze", "m.npy")),
    "a default export that is a link": (
        lambda w: w.link("saved.csv", w.outside / "secret.txt"),
        ("export", "saved", "--to", "csv")),
    "a default folder of figures that is a link": (
        lambda w: w.link("figures", w.outside), ("figures", "saved")),
    "a default analysis that is a link to another": (
        lambda w: (shutil.copytree(w.here / "saved", w.outside / "saved"),
                   w.link("m.embgeo", w.outside / "saved"))[0], ("analyze", "m.npy", "--force")),
    "a default comparison that is a link": (
        lambda w: (shutil.copytree(w.here / "compared", w.outside / "compared"),
                   w.link("m-vs-saved.embgeo", w.outside / "compared"))[0],
        ("diff", "m.npy", "saved")),
    "a figure that is a link": (
        lambda w: w.link("figures/cone.pdf", w.outside / "secret.txt"), ("figures", "saved")),
    "a repaired copy that is a link": (
        lambda w: w.link("m.repaired.npy", w.outside / "secret.npy"), ("repair", "m.npy")),
    "a page that is a link": (
        lambda w: (w.write("out/x", ""), w.link("out/report.html", w.outside / "secret.txt"))[0],
        REPORT),
    "a page that is a pipe": (lambda w: os.mkfifo(w.here / "out"), REPORT),
    "a revision that leads out of the cache": (
        hub_cache("../../../../outside"), ("analyze", "hf://org/name", "-o", "out")),
    "a snapshot that is a link": (
        hub_cache("c0ffee"), ("analyze", "hf://org/name", "-o", "out")),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_in_an_answer(world: World, name: str) -> None:
    prepare, command = ATTACKS[name]
    prepare(world)
    before = content(world.outside)
    done = call(*command)
    said = done.output + done.stderr
    assert done.exit_code in (0, 1, 2), said
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert SECRET not in said
    assert "root:x:0" not in said
    assert "\x1b" not in said
    assert not any(line.startswith("::add-mask") for line in said.splitlines())
    assert content(world.outside) == before
    assert not (world.here / "pwned").exists()
    for path, data in content(world.here).items():
        is_inside = (world.here / path).resolve().is_relative_to(world.here.resolve())
        if data is None or not is_inside:
            continue  # a folder, or a link of the attack itself
        assert SECRET.encode() not in data, path
        if path.startswith("out"):
            assert b"<script>alert" not in data, path
            assert not any(line.startswith(b"=HYPERLINK") for line in data.splitlines()), path
            if path.endswith(".tex"):
                assert b"\\input" not in data, path
