"""Groups of matrices: what differs by more than seeds do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.core.errors import BadOption
from embgeo.workflows.diff import compare_groups, render_groups
from tests.support.command import call

FAST: dict[str, Any] = {"sections": "cosine"}


def write_group(folder: Path, name: str, seeds: list[int], shift: float) -> list[Path]:
    """Matrices of which rows share a direction, the more the larger the shift."""
    paths = []
    for seed in seeds:
        W = np.random.default_rng(seed).standard_normal((60, 6))
        W[:, 0] += shift + 0.02 * seed
        paths.append(folder / f"{name}-seed-{seed}.npy")
        np.save(paths[-1], W)
    return paths


def test_seeds_are_paired_and_every_number_is_corrected_for(tmp_path: Path) -> None:
    before = write_group(tmp_path, "mle", [0, 1, 2, 3], 2.0)
    after = write_group(tmp_path, "cosreg", [3, 2, 1, 0], 0.0)
    found = compare_groups(before, [tmp_path / "cosreg-seed-*.npy"], **FAST)
    assert found.paired
    assert found.others == tuple(sorted(map(str, after)))
    (cosine,) = (one for one in found.differences if one.name == "cosine.mean")
    assert cosine.word == "lower"
    assert cosine.difference < -0.3
    tested = [one for one in found.differences if one.p_value is not None]
    assert cosine.p_value is not None
    assert cosine.p_adjusted is not None
    assert cosine.p_value < cosine.p_adjusted <= len(tested) * cosine.p_value + 1e-12
    same = compare_groups(before, before, **FAST)
    assert {one.word for one in same.differences} == {"within seeds"}
    assert any("paired by seed" in line for line in render_groups(found))


def test_other_seeds_are_compared_without_pairs_and_two_are_too_few(tmp_path: Path) -> None:
    before = write_group(tmp_path, "mle", [0, 1, 2], 2.0)
    found = compare_groups(before, write_group(tmp_path, "other", [7, 8, 9], 0.0), **FAST)
    assert not found.paired
    (cosine,) = (one for one in found.differences if one.name == "cosine.mean")
    assert cosine.word in ("lower", "nominally lower")
    few = compare_groups(before[:2], before[1:], **FAST)
    assert {one.word for one in few.differences} == {"too few seeds"}
    assert list(render_groups(few))[-1].startswith("Too few seeds to test")
    with pytest.raises(BadOption):
        compare_groups([], before)


def test_the_command_prints_groups_and_writes_nothing(tmp_path: Path) -> None:
    before = write_group(tmp_path, "mle", [0, 1], 2.0)
    after = write_group(tmp_path, "cosreg", [0, 1], 0.0)
    again = [word for path in after for word in ("--against", str(path))]
    held = sorted(tmp_path.iterdir())
    said = call("diff", *map(str, before), *again, "--json", "--quiet")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["paired"] is True
    assert sorted(tmp_path.iterdir()) == held
    refused = call("diff", str(before[0]), *again, "--track")
    assert refused.exit_code == 2
