"""What releases are made of says the same everywhere."""

from __future__ import annotations

import re
import tomllib

import pytest

import embgeo
from tests.support.documents import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda.yaml").read_text("utf-8"))
#: Packages that conda calls by another name.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def requirement(text: str) -> tuple[str, str]:
    """Name and version, spelled alike."""
    match = re.fullmatch(r"([\w.-]+)\s*(.*)", text)
    assert match is not None
    return match[1], match[2]


def test_the_version_stands_in_one_place_and_its_copies_follow() -> None:
    assert "version" in PROJECT["dynamic"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert embgeo.__version__ == RECIPE["package"]["version"] == cited["version"]


def test_the_conda_recipe_asks_for_the_same_packages() -> None:
    own = dict(map(requirement, PROJECT["dependencies"]))
    expected = {CONDA_NAMES.get(name, name): version for name, version in own.items()}
    expected["python"] = PROJECT["requires-python"]
    assert dict(map(requirement, RECIPE["requirements"]["run"])) == expected
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    (entry,) = RECIPE["build"]["python"]["entry_points"]
    assert entry == f"embgeo = {PROJECT['scripts']['embgeo']}"


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    lines = (ROOT / "packaging" / "lowest.txt").read_text("utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    allowed = {name: version[2:] for name, version in map(requirement, PROJECT["dependencies"])}
    assert tested.keys() == {name.lower() for name in allowed}
    for name, version in allowed.items():
        lowest = tested[name.lower()]
        assert lowest == version or re.fullmatch(rf"{re.escape(version)}(\.0)+", lowest), name


def test_actions_are_pinned_by_hash_and_named_by_version() -> None:
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        used = re.findall(r"uses: *(.*)", path.read_text("utf-8"))
        assert used
        for line in used:
            assert line == "./" or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", line), line


def test_the_image_copies_what_the_package_is_built_of_and_is_not_root() -> None:
    lines = (ROOT / "packaging" / "Dockerfile").read_text("utf-8").splitlines()
    for line in lines:
        if line.startswith("COPY "):
            assert all((ROOT / name).exists() for name in line.split()[1:-1])
    assert lines.index("USER embgeo") < lines.index('ENTRYPOINT ["embgeo"]')
