"""Groups of matrices: what differs by more than seeds do."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption
from embgeo.training.study.deciding import compare_with_control
from embgeo.workflows.figures import load_groups
from embgeo.workflows.groups import compare_groups, render_groups
from tests.support.command import call
from tests.support.sample_runs import made_runs, sample_training, write_run

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
    few = compare_groups(before[:2], before, **FAST)
    assert {one.word for one in few.differences} == {"too few seeds"}
    *_, row, _, last = render_groups(few)
    assert last.startswith("Too few seeds to test")
    assert "too few" not in row
    assert "Cone half angle, median (°)" in {one.title for one in few.differences}
    with pytest.raises(BadOption):
        compare_groups([], before)
    with pytest.raises(BadOption, match="twice"):
        compare_groups([*before, before[0]], before)


def test_unlike_numbers_are_not_compared(tmp_path: Path) -> None:
    paths = write_group(tmp_path, "mle", [0, 1, 2], 2.0)
    counts, folders = np.arange(60, 0, -1), []
    for share in (0.2, 0.5):
        for path in paths:
            W = np.load(path)[: 60 if share == 0.2 else 55]
            found = embgeo.analyze(
                W, counts=counts[: len(W)], popular_share=share, sections="frequency,tokens",
                reference=False,
            )  # fmt: skip
            folders.append(tmp_path / f"{share}" / f"{path.stem}.embgeo")
            found.save(folders[-1])
    groups = compare_groups(folders[:3], folders[3:])
    compared = {one.name for one in groups.differences}
    assert "tokens.norm_median" in compared
    assert not compared & groups.unlike.keys()
    assert "popular_share = 0.2, not 0.5" in groups.unlike["frequency.norm_ratio"]
    assert "number of rows" in groups.unlike["tokens.hubness"]
    assert any("Not compared: frequency." in line for line in render_groups(groups))
    _, notes = load_groups(folders[:3], folders[3:], ())
    assert any("Not compared: frequency.probe_auc" in note for note in notes)


def test_the_command_prints_groups_and_writes_nothing(tmp_path: Path) -> None:
    before = write_group(tmp_path, "mle", [0, 1], 2.0)
    after = write_group(tmp_path, "cosreg", [0, 1], 0.0)
    again = ["--against", *map(str, after)]
    held = sorted(tmp_path.iterdir())
    said = call("diff", *map(str, before), *again, "--json", "--quiet")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["paired"] is True
    assert sorted(tmp_path.iterdir()) == held
    refused = call("diff", str(before[0]), *again, "--track")
    assert refused.exit_code == 2


def test_groups_of_runs_differ_as_their_study_says(tmp_path: Path) -> None:
    """The comparison over seeds is one function, and so are its words."""
    study = sample_training(methods=("mle", "cosreg"))
    homes = [write_run(tmp_path, one) for one in made_runs(("mle", "cosreg"), 3)]
    found = compare_groups(homes[:3], homes[3:])
    assert found.paired
    for one in found.differences:
        own = compare_with_control(study, study.methods[1], one.name)
        assert own is not None
        assert (one.difference, one.interval, one.p_value) == (
            own.difference,
            own.interval,
            own.p_value(),
        )


def read_table(made: Any, name: str) -> list[dict[str, str]]:
    text = made.files[f"{name}.csv"].decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_figures_show_the_mean_and_the_spread_of_groups(tmp_path: Path) -> None:
    homes = [write_run(tmp_path, one) for one in made_runs(("mle", "cosreg"), 3)]
    made = embgeo.figures(
        *homes[:3],
        against=[tmp_path / "cosreg" / "seed-*"],
        label=["MLE", "CosReg"],
        figure=["seeds", "spectrum", "training", "balance"],
        table="numbers",
        format="svg",
    )
    values = [float(row["value"]) for row in read_table(made, "seeds") if row["group"] == "MLE"]
    cosines = [embgeo.load_analysis(home)["cosine.mean"].value for home in homes[:3]]
    assert values[:3] == pytest.approx(cosines)
    (of_numbers,) = (
        row
        for row in read_table(made, "numbers")
        if (row["analysis"], row["name"]) == ("MLE", "cosine.mean")
    )
    assert float(of_numbers["value"]) == pytest.approx(np.mean(cosines))
    assert float(of_numbers["spread"]) == pytest.approx(np.std(cosines, ddof=1))
    notes = {one.name: one.record["notes"] for one in made.figures}
    compared = compare_groups(homes[:3], homes[3:])
    (cosine,) = (one for one in compared.differences if one.name == "cosine.mean")
    assert any(
        note.startswith(f"{cosine.title}: {cosine.before} and {cosine.after}, {cosine.word}")
        for note in notes["seeds"]
    )
    assert {row["run"] for row in read_table(made, "training")} == {"MLE", "CosReg"}
    # A score of the runs, which their results hold and no analysis does.
    assert {row["method"] for row in read_table(made, "balance")} == {"MLE", "CosReg"}


def test_checkpoints_are_measured_for_figures_and_the_hue_is_the_group(tmp_path: Path) -> None:
    before = write_group(tmp_path, "mle", [0, 1, 2], 2.0)
    after = write_group(tmp_path, "cosreg", [0, 1, 2], 0.0)
    again = ["--against", *map(str, after)]
    folder = tmp_path / "out"
    said = call(
        "figures", *map(str, before), *again, "--figure", "spectrum", "--figure", "seeds",
        "--format", "svg", "-o", str(folder),
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    assert "baseline" in (folder / "seeds.csv").read_text("utf-8")
    refused = call("figures", str(before[0]), *again, "--label", "one", "-o", str(folder))
    assert refused.exit_code == 2
    with pytest.raises(BadOption):
        embgeo.figures(before[0], against=after, parameter="beta")
    with pytest.raises(BadOption):
        embgeo.figures(embgeo.analyze(before[0], reference=False), against=after)
