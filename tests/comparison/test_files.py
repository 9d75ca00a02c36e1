"""A comparison saved and read back, and damaged ones refused in a line."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from embgeo.comparison.comparison import COMPARISON_NAME, Member, load_comparison
from embgeo.core.errors import UnreadableFile
from embgeo.core.values import UNSAVED
from embgeo.files.records import ARRAYS_NAME, DIGEST, digest_of
from tests.support.refusals import refusal
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import each_folder

SAMPLES = {
    "two": {},
    "three": {"members": 3},
    "hostile": {"members": 3, "hostile": True},
    "track": {"members": 4, "track": True},
    "without matrices": {"matrices": False},
}


def same(a, b, path="comparison"):
    """Field by field, arrays included."""
    assert type(a) is type(b), path
    if dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            if field.metadata == UNSAVED:
                continue
            same(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}")
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}[{i}]")
    elif isinstance(a, dict):
        same(list(a.items()), list(b.items()), path)
    else:
        assert a == b, path


@pytest.mark.slow
def test_what_is_saved_is_read_back(tmp_path):
    for folder, name in each_folder(tmp_path, SAMPLES):
        comparison = sample_comparison(**SAMPLES[name])
        comparison.save(folder)
        same(load_comparison(folder), comparison)
        same(load_comparison(folder / COMPARISON_NAME), comparison)


def test_equal_comparisons_have_equal_bytes(tmp_path):
    comparison = dataclasses.replace(sample_comparison(hostile=True), notes=("\ud800lone",))
    for folder in ("one", "two"):
        comparison.save(tmp_path / folder)
    one, two = ((tmp_path / f / COMPARISON_NAME).read_bytes() for f in ("one", "two"))
    assert one == two
    assert b"\\ud800" in one
    json.loads(one, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.slow
def test_no_name_is_foreign_link_of_the_folder(tmp_path):
    for folder, name in each_folder(
        tmp_path, ("../../evil", "a/b\\c", "", ".", "\x00", "x" * 500, "שלום", "</script>")
    ):
        comparison = sample_comparison()
        member = dataclasses.replace(comparison.members[1], name=name)
        comparison = dataclasses.replace(comparison, members=(comparison.members[0], member))
        comparison.save(folder / "inner")
        assert [p.name for p in folder.iterdir()] == ["inner"]
        assert load_comparison(folder / "inner").members[1].name == name


def edited(folder, change):
    path = folder / COMPARISON_NAME
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


DAMAGE = {
    "another format": lambda d: d.update(format="embgeo.analysis"),
    "a later version": lambda d: d.update(format_version=99),
    "no members": lambda d: d.update(members=[]),
    "members of another kind": lambda d: d.update(members=3),
    "a folder outside": lambda d: d["members"][1].update(folder="../1-other-1"),
    "an absolute folder": lambda d: d["members"][1].update(folder="/etc"),
    "a missing folder": lambda d: d["members"][1].update(folder="1-nothing"),
    "no pairs": lambda d: d.pop("pairs"),
    "pairs of no members": lambda d: d["pairs"][0].update(second=7),
    "a pair in a circle": lambda d: d["pairs"][0].update(first=1, second=1),
    "a missing array": lambda d: d["pairs"][0]["matching"].update(first="a", second="b"),
    "a difference of no member": lambda d: d["differences"][0].update(member=5),
    "half a difference": lambda d: d["differences"][0].pop("change"),
    "a list": lambda d: d.update(differences=[[]]),
}


@pytest.mark.slow
def test_damaged_json_is_refused_in_one_line(tmp_path):
    for folder, name in each_folder(tmp_path, DAMAGE):
        sample_comparison().save(folder)
        edited(folder, DAMAGE[name])
        with refusal(UnreadableFile):
            load_comparison(folder)


def test_curves_of_another_length_are_refused(tmp_path):
    sample_comparison(members=3, track=True).save(tmp_path)
    edited(tmp_path, lambda d: d["track"]["curves"][0]["values"].pop())
    with refusal(UnreadableFile):
        load_comparison(tmp_path)


@pytest.mark.parametrize("same_as", [[None, 0], [None, None, 2], [None, None, -1]])
def test_a_duplicate_of_no_member_before_it_is_refused(tmp_path, same_as):
    sample_comparison(members=3, track=True).save(tmp_path)
    edited(tmp_path, lambda d: d["track"].update(same_as=same_as))
    with refusal(UnreadableFile):
        load_comparison(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"{}"])
def test_damaged_arrays_are_refused(tmp_path, content):
    sample_comparison().save(tmp_path)
    (tmp_path / ARRAYS_NAME).write_bytes(content)
    with refusal(UnreadableFile):
        load_comparison(tmp_path)


def test_rows_beyond_the_matrices_are_refused(tmp_path):
    for folder, first in each_folder(tmp_path, ([0, 9999], [-1, 2], [0.5, 1.5], [[0], [1]])):
        sample_comparison().save(folder)
        arrays = dict(np.load(folder / ARRAYS_NAME))
        arrays["pairs/0-1/matching/first"] = np.array(first)
        arrays["pairs/0-1/matching/second"] = np.array([0, 1])
        np.savez(folder / ARRAYS_NAME, **arrays)
        with refusal(UnreadableFile):
            load_comparison(folder)


def test_arrays_of_a_shape_that_would_be_broadcast_are_refused(tmp_path):
    sample_comparison().save(tmp_path)
    arrays = dict(np.load(tmp_path / ARRAYS_NAME))
    for name, array in arrays.items():
        for cut in (array[:1], array[:, None], array[None]):
            np.savez(tmp_path / ARRAYS_NAME, **arrays | {name: cut})
            edited(tmp_path, lambda d: d.update({DIGEST: digest_of(tmp_path / ARRAYS_NAME)}))
            with refusal(UnreadableFile):
                load_comparison(tmp_path)


def test_what_is_no_json_is_refused(tmp_path):
    for folder, content in each_folder(tmp_path, ("", "[", "null", "[1]", "[" * 100_000)):
        (folder / COMPARISON_NAME).write_text(content)
        with pytest.raises(UnreadableFile):
            load_comparison(folder)


def test_a_folder_without_a_comparison_says_what_to_do(tmp_path):
    with refusal(UnreadableFile):
        load_comparison(tmp_path)


def test_values_of_a_pair_are_found_by_name():
    pair = sample_comparison().pairs[0]
    assert pair["compare.cka"].name == "compare.cka"
    assert "compare.moved" in pair
    assert "compare.nothing" not in pair
    with pytest.raises(KeyError):
        pair["compare.nothing"]


def test_members_pairs_and_differences_are_found_by_place():
    comparison = sample_comparison(members=3, track=True)
    assert comparison.baseline is comparison.members[0]
    assert comparison.others == comparison.members[1:]
    assert comparison.pair(1, 2) is comparison.pairs[2]
    assert comparison.pair(2, 1) is None
    assert {d.member for d in comparison.differences_of(2)} == {2}
    assert isinstance(comparison.others[0], Member)


def test_the_json_names_the_folders_that_are_written(tmp_path):
    comparison = sample_comparison(members=3, hostile=True)
    comparison.save(tmp_path)
    folders = [m["folder"] for m in comparison.to_dict()["members"]]
    assert sorted(folders) == sorted(p.name for p in tmp_path.iterdir() if p.is_dir())
    assert folders[0] == "0-baseline"


def test_a_comparison_is_looked_up_by_name_and_member() -> None:
    comparison = sample_comparison(members=3)
    name = comparison.differences[0].name
    first, second = (comparison.differences_of(place)[0] for place in (1, 2))
    assert comparison[name] == first
    assert comparison[name, 1] == first
    assert comparison[name, 2] == comparison[name, comparison.members[2].name] == second
    assert comparison["compare.cka", 2] is comparison.pairs[1]["compare.cka"]
    assert name in comparison
    assert {name, "compare.cka"} <= set(comparison.keys())
    with refusal(KeyError):
        comparison["compare.ckaa"]
    for nobody in (0, 3, "nobody"):
        with refusal(KeyError):
            comparison[name, nobody]
    with refusal(KeyError):
        comparison[name, comparison.members[0].name]


@pytest.mark.parametrize("track", [False, True])
def test_a_comparison_is_shown_in_a_few_lines(track: bool) -> None:
    shown = repr(sample_comparison(members=3, hostile=True, track=track))
    assert len(shown.splitlines()) <= 12
    assert shown.startswith("<Track of 3" if track else "<Comparison of 3")
    assert "\x1b" not in shown
    assert sample_comparison().to_dict()["format"] == "embgeo.comparison"
