"""``--device``: the same analysis from the passes on a device; what it says when there is none."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.measure.analyze import analyze
from embgeo.stats import TopNeighbors
from embgeo.stats.backend import torch as backend
from embgeo.stats.backend.torch import open_device, resolve_device
from embgeo.stats.resources import Resources
from tests.metrics.test_twins import STORED
from tests.support import naive
from tests.support.command import call
from tests.support.devices import MEMORY, SINGLE, WIDE, make_executor, shortages, torch
from tests.support.matrices import ASKED, NAMES, analysis, case, gaussian
from tests.support.refusals import refusal
from tests.support.sampling import each_value, sample_cases

#: Eigenvalues of a narrow cone, both ends of a search, the smallest singular value, and singular
#: values from a Gram matrix, which loses the small ones.
LOOSER = {
    # The tail of a distribution whose argument is the largest eigenvalue of unit rows.
    "spectrum.largest_p": 1e-5,
    "isotropy.eigengap": 1e-7,
    "spectrum.condition_number": 1e-6,
}
#: What products in float32 leave of numbers that are differences of others of size one.
SPREAD = {"cosine.std": 2e-8, **{name: 2e-7 for name in STORED if ".i2" in name or "std" in name}}


def measured(matrix, device, **options):
    sections = options.pop("sections", None)
    return analyze(
        matrix,
        sections=sections,
        options=Options(**options),
        reference=False,
        resources=Resources(device=device),
    )


def allowed(scalar, matrix):
    in_float32 = scalar.name in STORED and matrix.working is np.float32
    if in_float32 or scalar.name in LOOSER:
        relative = max(1e-6 if in_float32 else 0.0, LOOSER.get(scalar.name, 0.0))
        return max(relative * abs(scalar.value), SPREAD.get(scalar.name, 0.0))
    return max(1e-9 * abs(scalar.value), 1e-13)


def differing(found, expected, matrix):
    assert [s.name for s in found.scalars] == [s.name for s in expected.scalars]
    for a, b in zip(found.scalars, expected.scalars, strict=True):
        texts = [(s.sample, s.undefined, s.reference_note) for s in (a, b)]
        if texts[0] != texts[1] or (a.value is None) != (b.value is None):
            yield a.name, a, b
        elif b.value is not None and abs(a.value - b.value) > allowed(b, matrix):
            yield a.name, a.value, b.value


@pytest.mark.parametrize("name", sample_cases(NAMES, 3))
@pytest.mark.slow
def test_an_analysis_on_a_device_is_that_of_numpy(name, monkeypatch):
    monkeypatch.setattr("embgeo.stats.backend.executor.MOST_ROWS", 23)
    monkeypatch.setattr("embgeo.stats.backend.executor.LEAST_ROWS", 1)
    m = len(case(name).kept)
    found = measured(
        case(name).matrix,
        WIDE,
        isotropy_rows=m,
        isotropy_runs=2,
        show_neighbors=ASKED,
    )
    assert not list(differing(found, analysis(name), case(name).matrix))
    assert found.provenance["device"] == WIDE
    assert found.provenance["versions"]["torch"] == version("torch")


@pytest.mark.parametrize(
    ("name", "device"),
    sample_cases(
        product(["gaussian", "negative", "two-sided", "dirty", "wide", "bf16"], [WIDE, SINGLE]), 3
    ),
)
@pytest.mark.slow
def test_also_of_entries_in_float32(name, device):
    c = case(name)
    with np.errstate(invalid="ignore"):
        matrix = replace(c.matrix, data=c.matrix.data.astype(np.float32))
    expected, found = (measured(matrix, d, show_neighbors=ASKED) for d in ("cpu", device))
    assert not list(differing(found, expected, matrix))


@pytest.mark.slow
def test_curves_columns_and_tables_agree_too():
    found, expected = measured(case("dirty").matrix, WIDE), measured(case("dirty").matrix, "cpu")
    for a, b in zip(found.series, expected.series, strict=True):
        for label, y in b.y.items():
            # Curves that are fitted end where a search no longer gains.
            np.testing.assert_allclose(a.y[label], y, rtol=1e-8, atol=1e-13)
    for a, b in zip(found.columns, expected.columns, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=1e-9, atol=1e-12)
    for a, b in zip(found.points, expected.points, strict=True):
        np.testing.assert_allclose(a.xy, b.xy, rtol=1e-9, atol=1e-12)
    for name in ("frequency.neighbors", "tokens.hubs"):
        assert found[name] == expected[name]


@pytest.mark.slow
def test_the_reference_column_is_measured_on_the_device_too():
    matrix = Matrix(gaussian(101, n=200) + 0.5)
    options = Options()
    found, expected = (
        analyze(matrix, sections=("isotropy",), options=options, resources=Resources(device=d))
        for d in (WIDE, "cpu")
    )
    for a, b in zip(found.scalars, expected.scalars, strict=True):
        assert a.reference == (b.reference and pytest.approx(b.reference, rel=1e-6, abs=2e-7))


def test_norms_that_float32_does_not_hold_keep_the_reference_off_the_device():
    matrix = Matrix((gaussian(102, n=100) * 1e-35).astype(np.float32))
    found = analyze(matrix, sections=("spectrum",), resources=Resources(device=SINGLE))
    assert found["spectrum.effective_rank"].reference > 1


def test_equal_runs_give_equal_bytes():
    first, second = (measured(case("bf16").matrix, WIDE, pairs=None) for _ in range(2))
    texts = [json.dumps({**a.to_dict(), "timing": None}) for a in (first, second)]
    assert texts[0] == texts[1]


def test_progress_hears_of_every_row():
    heard = {"all": 0}

    def start(what, rows):
        name = what.partition(" ")[2]  # without the count of stages
        heard[name] = -rows
        heard["now"] = name

    def advance(rows):
        heard[heard["now"]] += rows

    analyze(
        Matrix(gaussian(103, n=300)),
        sections=("cosine", "tokens"),
        options=Options(pairs=None, neighbors_of="all"),
        reference=False,
        progress=Progress(start, advance),
        resources=Resources(device=WIDE),
    )
    assert heard["first pass"] == heard["second pass"] == heard["neighbors of all rows"] == 0
    assert heard["nearest rows"] == 0


# Every pair --------------------------------------------------------------------------------------


@each_value
@pytest.mark.parametrize("device", [WIDE, SINGLE])
@pytest.mark.parametrize("stay", [True, False])
@pytest.mark.parametrize("step", [30, 64, 500])
@pytest.mark.slow
def test_every_pair_is_counted_once(monkeypatch, step, stay, device):
    monkeypatch.setattr("embgeo.stats.backend.executor.TILE", 16)
    W = (gaussian(81, n=150, d=5) + 0.4).astype(np.float32)
    e = make_executor(Matrix(W), step, device, stay=stay)
    out = [3, 4, 60, 149]
    e.takes_part[out] = False
    found = e.count_pairs()
    expected = np.sort(naive.pair_cosines(np.delete(W, out, axis=0).astype(np.float64)))
    assert found.n == found.counts.sum() == len(expected)
    assert abs(found.positive - np.count_nonzero(expected > 0)) <= 1
    assert found.lowest == pytest.approx(expected[0], abs=1e-15)
    assert found.highest == pytest.approx(expected[-1], rel=1e-6)


def test_pairs_of_float64_are_counted_in_float64():
    W = gaussian(82, n=70) + 0.2
    found = make_executor(Matrix(W), 40).count_pairs()
    expected = naive.pair_cosines(W)
    assert found.highest == pytest.approx(expected.max(), rel=1e-14)


def test_opposite_rows_are_180_degrees_apart():
    row = gaussian(83, n=1, d=7).astype(np.float32)
    found = make_executor(Matrix(np.vstack([row, -2 * row, 3 * row]))).count_pairs()
    assert np.degrees(np.arccos(found.lowest)) == pytest.approx(180.0, abs=1e-5)


def test_one_row_has_no_pairs():
    assert make_executor(Matrix(gaussian(84, n=1))).count_pairs().n == 0


@pytest.mark.slow
def test_pairs_survive_a_shortage_at_any_place(monkeypatch):
    monkeypatch.setattr("embgeo.stats.pair_cosines.FINE_BINS", 2**12)
    W = gaussian(85, n=40).astype(np.float32)
    expected = make_executor(Matrix(W), 25).count_pairs()
    for found in shortages(lambda: make_executor(Matrix(W), 25).count_pairs()):
        assert found.n == expected.n
        # Tiles of other shapes round otherwise: a cosine may fall beyond the edge of a bin.
        assert np.abs(np.cumsum(found.counts - expected.counts)).max() <= 1
        assert found.lowest == expected.lowest


@pytest.mark.parametrize("device", [WIDE, SINGLE])
def test_all_pairs_of_an_analysis(monkeypatch, device):
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", 0)
    c = case("bf16")
    expected, found = (
        measured(c.matrix, d, sections=("cosine",), pairs=None) for d in ("cpu", device)
    )
    assert found["cosine.histogram"].counts.sum() == 60 * 59 // 2
    for name in ("positive_share", "cone_aperture"):
        assert found[f"cosine.{name}"].value == pytest.approx(
            expected[f"cosine.{name}"].value, rel=1e-6
        )


# Neighbors of all rows --------------------------------------------------------------------------


@each_value
@pytest.mark.parametrize("device", ["cpu", WIDE])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_neighbors_of_all_rows_are_those_of_a_small_matrix(name, device):
    """Of few rows all are asked anyway: both ways are to agree, ties and duplicates included."""
    sections = ("frequency", "tokens")
    expected = measured(case(name).matrix, "cpu", sections=sections)
    found = measured(case(name).matrix, device, sections=sections, neighbors_of="all")
    assert not list(differing(found, expected, case(name).matrix))
    assert found["tokens.hubs"] == expected["tokens.hubs"]
    assert found["frequency.neighbors"] == expected["frequency.neighbors"]


@pytest.mark.parametrize("device", ["cpu", WIDE, SINGLE])
@pytest.mark.slow
def test_neighbors_of_all_rows_of_a_larger_matrix(monkeypatch, device):
    """Beyond the sample: hubs and dimension of all rows, against the plain computation."""
    W = (gaussian(86, n=300) + 0.3).astype(np.float32)
    W[200:230] = W[100:130]
    W[5:20] = W[5]
    monkeypatch.setattr("embgeo.metrics.neighbors.ALL_ROWS", 200)
    monkeypatch.setattr("embgeo.metrics.neighbors.HUB_QUERIES", 40)
    monkeypatch.setattr("embgeo.metrics.dimension.QUERIES", (50, 50))
    monkeypatch.setattr("embgeo.stats.backend.executor.MOST_ROWS", 70)
    monkeypatch.setattr("embgeo.stats.resources.MOST_ROWS", 110)
    found = measured(Matrix(W), device, sections=("tokens",), neighbors_of="all", neighbors=4)
    hubs, dimension = found["tokens.hubness"], found["tokens.intrinsic_dimension"]
    wide = W.astype(np.float64)
    assert hubs.value == pytest.approx(naive.skewness(naive.occurrences(wide, 4)), rel=1e-9)
    assert not hubs.sample
    assert hubs.standard_error is None
    assert dimension.value == pytest.approx(naive.two_nn(wide), rel=1e-9)
    assert dimension.sample == "all 256 queries against 256 rows"
    sampled = measured(Matrix(W), device, sections=("tokens",), neighbors=4)
    assert sampled["tokens.hubness"].sample == "40 queries against all 300 rows"


@each_value
@pytest.mark.parametrize("device", [WIDE, SINGLE])
@pytest.mark.parametrize("exponent", [-100, -70, 0, 90])
def test_distances_whose_squares_float32_does_not_hold(exponent, device):
    matrix = Matrix(np.ldexp(gaussian(109, n=200).astype(np.float32), exponent))
    options = {"sections": ("tokens",), "neighbors_of": "all"}
    expected, found = (measured(matrix, d, **options) for d in ("cpu", device))
    assert not list(differing(found, expected, matrix))


def test_queries_of_a_search_are_halved_too(monkeypatch):
    """Where a block of queries does not fit beside any rows, half of them are asked."""
    W = gaussian(87, n=300).astype(np.float32)
    expected = measured(Matrix(W), WIDE, sections=("tokens",), neighbors_of="all")
    init = TopNeighbors.__init__

    def scarce(self, name, index, *rest):
        if len(rest[0]) > 150:
            raise torch.OutOfMemoryError("out of memory")
        init(self, name, index, *rest)

    monkeypatch.setattr(TopNeighbors, "__init__", scarce)
    found = measured(Matrix(W), WIDE, sections=("tokens",), neighbors_of="all")
    assert found["tokens.hubs"] == expected["tokens.hubs"]


# Rows on their way -------------------------------------------------------------------------------


@each_value
@pytest.mark.parametrize("device", [WIDE, SINGLE])
@pytest.mark.parametrize(
    "dtype",
    [
        np.float32,
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e4m3b11fnuz,
        ">f4",
        ">f2",
    ],
    ids=str,
)
def test_rows_arrive_as_they_are_stored(dtype, device):
    W = gaussian(104, n=30).astype(dtype)
    W.flags.writeable = False  # as a mapped file is
    matrix = Matrix(W)
    opened = open_device(device, MEMORY)
    for which in (slice(3, 11), np.array([5, 1, 29])):
        sent = opened.upload(W[which], matrix.working)
        assert sent.element_size() == (4 if sent.dtype == torch.float32 else W.dtype.itemsize)
        expected = np.asarray(W[which], dtype=np.float32)
        np.testing.assert_array_equal(opened.to_host(sent.to(torch.float32)), expected)


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_rows_of_float64_arrive_whole(dtype):
    W = gaussian(105, n=30).astype(dtype)
    sent = open_device(WIDE, MEMORY).upload(W, np.float64)
    np.testing.assert_array_equal(sent.numpy(), W.astype("<f8"))


def test_transposed_tables_arrive():
    W = gaussian(106, n=6, d=40).T
    sent = open_device(WIDE, MEMORY).upload(W[5:9], np.float64)
    np.testing.assert_array_equal(sent.numpy(), W[5:9])


def test_products_are_exact_whatever_the_caller_allows():
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has the older switch alone")
    device = open_device(WIDE, MEMORY)
    torch.set_float32_matmul_precision("high")
    try:
        with device.exact_products():
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_what_a_training_has_chosen_changes_nothing():
    """Reduced precision, deterministic kernels only and another default device and dtype."""
    matrix = Matrix(gaussian(108, n=80).astype(np.float32))
    options = {"sections": ("cosine", "isotropy")}
    expected = measured(matrix, WIDE, **options)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_default_dtype(torch.float16)
    torch.set_default_device("meta")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = measured(matrix, WIDE, **options)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert [s.value for s in found.scalars] == [s.value for s in expected.scalars]


def test_a_device_that_fails_at_eigenvectors_leaves_them_to_numpy(monkeypatch):
    def fails(*_):
        raise torch.linalg.LinAlgError("the algorithm failed to converge")

    expected = measured(case("gaussian").matrix, "cpu", sections=("spectrum",))
    e = make_executor(Matrix(gaussian()))
    monkeypatch.setattr(e.backend.xp.linalg, "eigh", fails)
    assert e.eigh(np.eye(3)) is None
    found = measured(case("gaussian").matrix, WIDE, sections=("spectrum",))
    assert found["spectrum.effective_rank"].value == pytest.approx(
        expected["spectrum.effective_rank"].value, rel=1e-12
    )


# Which device ------------------------------------------------------------------------------------


def test_the_numpy_path_needs_no_device():
    assert open_device("cpu", MEMORY) is None


def test_unknown_devices_are_refused():
    for name in ("gpu", "CUDA", "cuda:", "cuda:x", "", "torch"):
        with refusal(BadOption):
            resolve_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:3", "mps"])
def test_devices_that_are_not_there_are_refused(name, monkeypatch):
    monkeypatch.setattr(backend, "is_present", lambda _name: False)
    with refusal(BadOption):
        resolve_device(name)


@pytest.mark.parametrize("package", ["torch", "array_api_compat"])
def test_missing_packages_are_named_by_their_extra(package, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        backend.importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    with refusal():
        resolve_device("cuda")
    assert open_device("auto", MEMORY) is None


@pytest.mark.parametrize(("there", "taken"), [("cuda", "cuda"), ("mps", "mps"), ("", "cpu")])
def test_auto_takes_what_is_there(there, taken, monkeypatch):
    monkeypatch.setattr(backend, "is_present", lambda name: name == there)
    assert backend.resolve_device("auto") == taken


def test_float64_needs_a_device_that_has_it():
    matrix = Matrix(gaussian(), name="W")
    with refusal(BadOption):
        measured(matrix, SINGLE)
    rounded = measured(matrix, SINGLE, precision="float32", sections=("spectrum",))
    assert rounded["spectrum.effective_rank"].value > 1


def test_auto_leaves_float64_to_numpy_where_the_device_has_none(monkeypatch):
    from embgeo.stats.backend.torch import TorchBackend

    narrow = TorchBackend(SINGLE, "cpu", has_float64=False, memory=MEMORY)
    monkeypatch.setattr("embgeo.stats.backend.executor.open_device", lambda *_: narrow)
    assert measured(Matrix(gaussian()), "auto").provenance["device"] == "cpu"


@pytest.mark.slow
def test_the_command_line(tmp_path):
    np.save(tmp_path / "W.npy", gaussian(107, n=40))
    arguments = ["analyze", str(tmp_path / "W.npy"), "-o", str(tmp_path / "out"), "--quiet"]
    done = call(*arguments, "--device", WIDE, "--neighbors-of", "all")
    assert done.exit_code == 0, done.output
    provenance = json.loads((tmp_path / "out/analysis.json").read_text())["provenance"]
    assert provenance["device"] == WIDE
    assert provenance["options"]["neighbors_of"] == "all"
    refused = call(*arguments, "--device", "gpu")
    assert refused.exit_code == 2
    assert refused.output == (
        "embgeo: --device: no device is called 'gpu'; give cpu, cuda, mps or auto\n"
    )
    idle = ["--neighbors-of", "all", "--sections", "spectrum"]
    assert call(*arguments, *idle).exit_code == 2


@pytest.mark.slow
def test_without_a_device_nothing_of_it_is_imported(tmp_path):
    np.save(tmp_path / "W.npy", gaussian(107, n=40))
    code = (
        "import sys\n"
        "from embgeo.cli.app import app\n"
        "app(['analyze', 'W.npy', '--quiet'], standalone_mode=False)\n"
        "heavy = {'torch', 'array_api_compat', 'embgeo.stats.backend.executor'}\n"
        "assert not heavy & set(sys.modules)\n"
    )
    here = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {here!r})\n" + code
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
