"""A saved analysis comes back as it was, or is refused in one line."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import cosine, frequency, isotropy, tokens
from embgeo.core.values import Quantity, Scalar
from embgeo.files.records import ARRAYS_NAME, DIGEST, digest_of
from embgeo.result.analysis import Analysis, _check_rows, load_analysis
from embgeo.result.saved import FORMAT, JSON_NAME, check_nearest, unpack_nearest
from tests.support.matrices import ASKED, analysis, analyze_matrix, case, gaussian
from tests.support.refusals import refusal
from tests.support.sample_analysis import CHARACTERS
from tests.support.sampling import each_folder

QUANTITY = Quantity("family.name", "Title", "Meaning.", "formula", "source")

HOSTILE = (
    "line\nbreak", "nul\0", "\ud800 alone", "tab\t", "</script><b>", "‮right to left", "",
    " ", "é", "é", '"quoted"', "\\", "😀", "＜", "t3", "t5", "t9", "t8", "t11",
)  # fmt: skip


def hostile_analysis(**options):
    n = 60
    tokens = tuple(HOSTILE[i] if i < len(HOSTILE) else f"token {i}" for i in range(n))
    counts = np.linspace(1000, 1, n)
    return analyze_matrix(
        Matrix(
            gaussian() + 0.2,
            tokens=tokens,
            frequency=Frequency("counts", counts, "a file called\n“counts”"),
            output=case("gaussian").matrix.output,
        ),
        isotropy_rows=30,
        show_neighbors=(("line\nbreak", ("\ud800 alone", "nul\0")), ("\ud800 alone", ())),
        **options,
    )


def assert_equal(a, b):
    """Two analyses with every array and every field."""
    assert json.dumps(a.to_dict()) == json.dumps(b.to_dict())
    assert a.scalars == b.scalars
    assert a.tables == b.tables
    assert (a.tokens, a.notes, a.absent) == (b.tokens, b.notes, b.absent)
    for x, y in ((a.rows, b.rows), (a.counts, b.counts), (a.popular, b.popular)):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
    for p, q in zip(a.points, b.points, strict=True):
        assert (p.quantity, p.share, p.x_label) == (q.quantity, q.share, q.x_label)
        np.testing.assert_array_equal(p.xy, q.xy)
    for c, d in zip(a.columns, b.columns, strict=True):
        assert (c.quantity, c.label) == (d.quantity, d.label)
        np.testing.assert_array_equal(c.values, d.values)
    for s, t in zip(a.series, b.series, strict=True):
        assert (s.quantity, s.log_y, list(s.y)) == (t.quantity, t.log_y, list(t.y))
        for line in s.y:
            np.testing.assert_array_equal(s.y[line], t.y[line])
    for h, i in zip(a.histograms, b.histograms, strict=True):
        np.testing.assert_array_equal(h.edges, i.edges)
        np.testing.assert_array_equal(h.counts, i.counts)


@pytest.mark.slow
def test_saved_and_loaded(tmp_path):
    for folder, name in each_folder(
        tmp_path, ("gaussian", "narrow cone, long", "dirty", "wide", "d = 2")
    ):
        found = analysis(name)
        found.save(folder / "out")
        assert_equal(found, load_analysis(folder / "out"))
        assert_equal(found, load_analysis(folder / "out" / JSON_NAME))


def test_hostile_tokens_survive(tmp_path):
    found = hostile_analysis()
    found.save(tmp_path)
    loaded = load_analysis(tmp_path)
    assert_equal(found, loaded)
    assert loaded.tokens[: len(HOSTILE)] == HOSTILE
    assert [row[0] for row in loaded["frequency.neighbors"].rows] == ["line\nbreak", "\ud800 alone"]
    text = (tmp_path / JSON_NAME).read_bytes()
    assert text.isascii()
    assert text.endswith(b"}\n")
    assert b"\r" not in text


@settings(max_examples=30)
@given(st.lists(st.text(CHARACTERS), min_size=1, max_size=8))
@pytest.mark.slow
def test_any_tokens_survive(tmp_path_factory, tokens):
    folder = tmp_path_factory.mktemp("tokens")
    n = len(tokens)
    facts = {"n": n, "d": 1, "kept": n, "options": {}}
    Analysis(facts, rows=np.arange(n), tokens=tuple(tokens)).save(folder)
    assert load_analysis(folder).tokens == tuple(tokens)


def test_without_tokens_or_counts(tmp_path):
    found = analyze_matrix(Matrix(gaussian()), sections=("spectrum", "cosine"))
    found.save(tmp_path)
    loaded = load_analysis(tmp_path)
    assert (loaded.tokens, loaded.counts, loaded.popular) == (None, None, None)
    assert_equal(found, loaded)


def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path):
    analysis("wide").save(tmp_path)
    analysis("gaussian").save(tmp_path)
    assert_equal(analysis("gaussian"), load_analysis(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == [JSON_NAME, ARRAYS_NAME]


def test_looking_values_up():
    found = analysis("gaussian")
    assert found["isotropy.i1"] is found.find_scalar("isotropy.i1")
    assert "isotropy.i1" in found
    assert "isotropy.i3" not in found
    assert found.find_scalar("isotropy.z") is None
    with pytest.raises(KeyError):
        found["isotropy.i3"]
    assert len({value.name for value in found.values()}) == len(found.values())


def test_a_number_that_is_none_is_never_written(tmp_path):
    broken = Analysis(provenance={}, scalars=(Scalar(QUANTITY, math.nan),))
    with refusal(ValueError):
        broken.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with refusal():
        analysis("gaussian").save(tmp_path / "file" / "out")


# Damage -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    hostile_analysis(sections=("spectrum", "projection", "tokens")).save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path, dirs_exist_ok=True)


def refused(folder):
    with refusal(UnreadableFile) as caught:
        load_analysis(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def readable(folder):
    """Whether it can be read; anything but UnreadableFile is an error of the test."""
    try:
        load_analysis(folder)
    except UnreadableFile:
        return False
    return True


def test_no_analysis(tmp_path):
    refused(tmp_path)
    refused(tmp_path / "nowhere")


def test_json_that_is_no_analysis(folder):
    whole = json.loads((folder / JSON_NAME).read_text())
    texts = ["", "{", "null", "[]", "7", '"text"', "{}", '{"format": "other"}', "[" * 100_000]
    for version in (0, FORMAT.version + 1, "1", None):
        texts.append(json.dumps({**whole, "format_version": version}))
    for text in (b"\xff\xfe\x00", *map(str.encode, texts)):
        (folder / JSON_NAME).write_bytes(text)
        refused(folder)


PARTS = ["provenance", "notes", "absent", "scalars", "series", "histograms", "points", "columns"]
PARTS += ["tables", "timing"]


@pytest.mark.parametrize(
    ("part", "other"),
    [*product(PARTS, [..., None, 7, "text", [7], [[]], [{}], {"x": 7}])][::7],
)
@pytest.mark.slow
def test_json_with_a_part_of_another_shape(folder, part, other):
    """Refused, or read without a fault where the other shape happens to be one too."""
    content = json.loads((folder / JSON_NAME).read_text())
    if other is ...:
        del content[part]
    else:
        content[part] = other
    (folder / JSON_NAME).write_text(json.dumps(content))
    if readable(folder):
        assert isinstance(other, dict | list | str)


@pytest.mark.parametrize(
    ("key", "other"),
    [
        *product(
            ["x", "y", "share", "columns", "rows", "edges", "array"],
            [None, 7, "text", [], {}, [None], [["text"]]],
        )
    ][::5],
)
@pytest.mark.slow
def test_json_with_a_field_of_another_shape(folder, key, other):
    content = json.loads((folder / JSON_NAME).read_text())
    for part in ("series", "histograms", "points", "columns", "tables"):
        for value in content[part]:
            if key in value:
                value[key] = other
    (folder / JSON_NAME).write_text(json.dumps(content))
    readable(folder)


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("versions", 7),
        ("masked", {"zero": "x"}),
        ("sections", 7),
        ("frequency", "x"),
        ("frequency", {"popular_share": []}),
        ("frequency", {"kind": "counts", "source": "a"}),
        ("row_range", [3]),
        ("options", {"pairs": "x"}),
        ("d", "x"),
        ("d", ...),
        ("parts", [7]),
        ("seed", []),
    ],
)
def test_facts_of_another_type_are_refused(folder, fact, other):
    content = json.loads((folder / JSON_NAME).read_text())
    content["provenance"][fact] = other
    if other is ...:
        del content["provenance"][fact]
    (folder / JSON_NAME).write_text(json.dumps(content))
    refused(folder)


def test_truncated_arrays(folder):
    whole = (folder / ARRAYS_NAME).read_bytes()
    for share in (0.0, 0.01, 0.3, 0.7, 0.99):
        (folder / ARRAYS_NAME).write_bytes(whole[: int(share * len(whole))])
        refused(folder)
    (folder / ARRAYS_NAME).unlink()
    refused(folder)


@pytest.mark.slow
def test_damaged_arrays(folder):
    """One byte changed at many places: refused, or not part of what is read."""
    whole = (folder / ARRAYS_NAME).read_bytes()
    damaged = 0
    for at in range(0, len(whole), max(1, len(whole) // 150)):
        (folder / ARRAYS_NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        damaged += not readable(folder)
    assert damaged > 100


def test_arrays_of_another_kind(folder):
    np.save(folder / "one.npy", np.arange(3))
    (folder / "one.npy").rename(folder / ARRAYS_NAME)
    refused(folder)


def test_arrays_that_hold_objects_are_not_unpickled(folder):
    with np.load(folder / ARRAYS_NAME) as stored:
        arrays = dict(stored)
    arrays["rows"] = np.array([{"any": "object"}], dtype=object)
    np.savez(folder / ARRAYS_NAME, allow_pickle=True, **arrays)
    refused(folder)


def test_arrays_without_one_of_their_members(folder):
    with zipfile.ZipFile(folder / ARRAYS_NAME) as stored:
        members = {name: stored.read(name) for name in stored.namelist()}
    for left_out in members:
        if "popular" in left_out:
            continue
        with zipfile.ZipFile(folder / ARRAYS_NAME, "w") as written:
            for name, content in members.items():
                if name != left_out:
                    written.writestr(name, content)
        try:
            loaded = load_analysis(folder)
        except UnreadableFile:
            continue
        assert left_out in ("counts.npy", "tokens_utf8.npy", "nearest/rows.npy")
        assert None in (loaded.counts, loaded.tokens, loaded.nearest)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("neighbors", lambda found: found[:, :-1]),
        ("neighbors", lambda found: found + 10**6),
        ("neighbors", lambda found: found - 10**6),
        ("rows", lambda found: found[:-1]),
        ("rows", lambda found: found + 10**6),
        ("cosines", lambda found: found.ravel()),
    ],
)
def test_nearest_rows_that_are_not_there(folder, part, change):
    with np.load(folder / ARRAYS_NAME) as stored:
        arrays = dict(stored)
    name = f"nearest/{part}"
    arrays[name] = change(arrays[name])
    with refusal(ValueError):
        check_nearest(unpack_nearest(arrays), len(arrays["rows"]))


def test_arrays_of_another_analysis(folder, tmp_path_factory):
    """Equal names, another number of rows: the two files do not belong together."""
    other = tmp_path_factory.mktemp("other")
    analyze_matrix(case("dirty").matrix, sections=("spectrum", "projection", "tokens")).save(other)
    (other / ARRAYS_NAME).replace(folder / ARRAYS_NAME)
    refused(folder)


CUTS = {
    "one entry": lambda found: found.ravel()[:1],
    "no dimension": lambda found: found.ravel()[0],
    "a column": lambda found: found[:, None],
    "a row": lambda found: found[None],
}


@pytest.mark.parametrize("cut", CUTS)
def test_arrays_of_a_shape_that_would_be_broadcast(folder, cut):
    """With the digest of the edited archive, so that the shapes are all that is wrong."""
    with np.load(folder / ARRAYS_NAME) as stored:
        arrays = dict(stored)
    for name, array in arrays.items():
        changed = CUTS[cut](array)
        if changed.shape == array.shape:  # one number is one entry
            continue
        np.savez(folder / ARRAYS_NAME, **arrays | {name: changed})
        content = json.loads((folder / JSON_NAME).read_text())
        content[DIGEST] = digest_of(folder / ARRAYS_NAME)
        (folder / JSON_NAME).write_text(json.dumps(content))
        assert not readable(folder), name


@pytest.mark.parametrize(
    ("ending", "number"),
    [
        ("counts", np.nan),
        ("counts", -1.0),
        ("counts", 1e300),
        ("pca2", np.nan),
        ("pca2", 1e300),
    ],
)
def test_numbers_that_are_none_are_refused(folder, ending, number):
    """Of the JSON file none is; axes and pages cannot show them."""
    with np.load(folder / ARRAYS_NAME) as stored:
        arrays = dict(stored)
    name = next(name for name in arrays if name.endswith(ending))
    changed = arrays[name].copy()
    changed.flat[0] = number
    np.savez(folder / ARRAYS_NAME, **arrays | {name: changed})
    content = json.loads((folder / JSON_NAME).read_text())
    content[DIGEST] = digest_of(folder / ARRAYS_NAME)
    (folder / JSON_NAME).write_text(json.dumps(content))
    refused(folder)


@pytest.mark.parametrize("cut", [[1.0], [[1.0]]])
def test_lists_of_a_shape_that_would_be_broadcast(folder, cut):
    text = (folder / JSON_NAME).read_text()
    for kind, parts in (("series", ("x", "y")), ("histograms", ("edges", "counts"))):
        for part in parts:
            content = json.loads(text)
            one = content[kind][0]
            one[part] = dict.fromkeys(one[part], cut) if part == "y" else cut
            (folder / JSON_NAME).write_text(json.dumps(content))
            refused(folder)


@pytest.mark.parametrize("rows", [-1, 10**9])
def test_rows_that_the_matrix_does_not_have(rows):
    found = analysis("dirty")
    changed = found.rows.copy()
    changed[0] = rows
    with refusal(ValueError):
        _check_rows(replace(found, rows=changed))


def test_notes_are_for_people():
    found = analysis("dirty")
    assert tuple(note.code for note in found.notes) == ("masked", "zero", "nonfinite")
    assert tuple(note.text for note in found.notes) == (
        "2 rows are left out: padding beyond the vocabulary",
        "2 rows are left out: exactly zero",
        "2 rows are left out: non-finite",
    )
    assert found.provenance["masked"] == {
        "padding beyond the vocabulary": 2,
        "exactly zero": 2,
        "non-finite": 2,
    }
    assert (found.provenance["n"], found.provenance["kept"]) == (69, 63)
    assert found.provenance["options"]["show_neighbors"] == [[a, list(b)] for a, b in ASKED]
    assert {2, 7, 30, 40, 67, 68}.isdisjoint(found.rows.tolist())
    assert found.tokens == tuple(case("dirty").matrix.tokens[row] for row in found.rows)


# --- what Python programs see ---------------------------------------------------------------


def test_an_analysis_is_shown_in_a_few_lines():
    found = hostile_analysis()
    shown = repr(found)
    assert len(shown.splitlines()) <= 12
    assert found.verdict.headline in shown
    assert f"{len(found.keys())} values" in shown
    for value in found.values():
        assert len(repr(value)) < 300, value.name
        assert value.name in repr(value)


def test_missing_names_say_what_is_meant_or_why_they_are_missing():
    found = analyze_matrix(Matrix(gaussian()), sections=("spectrum", "cosine", "frequency"))
    with refusal(KeyError):
        found["cosine.men"]
    with refusal(KeyError):
        found.find_scalar("cosine.men")
    with refusal(KeyError):
        found[frequency.PROBE_AUC]
    with refusal(KeyError):
        found["isotropy.i1"]
    assert found.find_scalar(isotropy.I1) is None
    assert found[cosine.MEAN] is found["cosine.mean"]
    assert cosine.MEAN in found
    assert list(found.keys()) == [value.name for value in found.values()]
    assert found.to_dict()["verdict"]["state"] == found.verdict.state


# --- files of other names ------------------------------------------


@pytest.fixture
def with_errors(tmp_path):
    rows = np.random.default_rng(0).standard_normal((400, 8))
    embgeo.analyze(rows, sections=["cosine", "spectrum", "tokens"], reference=False).save(tmp_path)
    return tmp_path


def test_halves_are_saved_with_the_numbers_that_have_an_error(with_errors):
    folder = with_errors
    saved = load_analysis(folder)
    known = {one.name for one in saved.scalars if one.population_error is not None}
    assert {one.name for one in saved.halves} == known
    found = saved.by_half(cosine.MEAN.name)
    error = np.sqrt(np.square(found - found.mean()).sum() / 28)
    assert saved[cosine.MEAN].population_error == pytest.approx(error)
    assert saved.by_half(tokens.HUBNESS.name) is None


def test_other_than_thirty_halves_are_refused(with_errors):
    folder = with_errors
    content = json.loads((folder / JSON_NAME).read_text())
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive)
    arrays[content["halves"][0]["array"]] = np.ones(29)
    np.savez(folder / "arrays.npz", **arrays)
    del content["arrays_sha256"]
    (folder / JSON_NAME).write_text(json.dumps(content))
    refused(folder)


def test_an_unknown_name_is_refused(folder):
    content = json.loads((folder / JSON_NAME).read_text())
    scalar = content["scalars"].pop("spectrum.effective_rank")
    content["scalars"]["spectrum.efective_rank"] = scalar | {"name": "spectrum.efective_rank"}
    (folder / JSON_NAME).write_text(json.dumps(content))
    refused(folder)
    content["scalars"]["spectrum.rank"] = content["scalars"].pop("spectrum.efective_rank")
    (folder / JSON_NAME).write_text(json.dumps(content))
    refused(folder)
    for name in ("mine", "\ud800.x", "../x.y"):  # names of columns and of members of an archive
        content["scalars"] = {name: scalar | {"name": name}}
        (folder / JSON_NAME).write_text(json.dumps(content))
        refused(folder)
