"""Quantized weights of the layouts that are published, against the library that defines each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.io.model import forms
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

torch: Any = pytest.importorskip("torch")
N, D = 96, 64
NAME = "model.embed_tokens"
Tensors = dict[str, Any]


def write(folder: Path, tensors: Tensors, config: dict[str, Any] | None = None) -> Path:
    """A model folder whose embedding is `tensors`, with an output of other numbers."""
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    named = {f"{NAME}.{end}": tensor.contiguous() for end, tensor in tensors.items()}
    save_file(named | {"lm_head.weight": torch.ones(N, D)}, folder / "model.safetensors")
    facts = {"architectures": ["LlamaForCausalLM"], "vocab_size": N, "hidden_size": D}
    facts |= {"tie_word_embeddings": False, **(config or {})}
    (folder / "config.json").write_text(json.dumps(facts))
    return folder


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7


def check(folder: Path, expected: Any, form: str) -> None:
    """The embedding is `expected`, and its provenance says how it was decoded."""
    matrix = embgeo.load(folder)
    assert matrix.origin.tensor == f"{NAME}.weight"
    np.testing.assert_allclose(matrix.data, np.asarray(expected), rtol=2e-6, atol=1e-12)
    assert form in matrix.origin.form
    assert any(f"is decoded: {matrix.origin.form}" in note for note in matrix.origin.notes)
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "lm_head.weight"


FP8 = torch.float8_e4m3fn


@each_value
@pytest.mark.parametrize("name", ["weight_scale", "qscale_weight", "weights_scaling_factor"])
@pytest.mark.parametrize("shape", [(), (1,), (N,), (N, 1)])
def test_fp8_of_the_tensor_and_of_rows(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    scale = numbers(*shape).abs() / 40
    codes = (numbers(N, D) * 30).to(FP8)
    by_rows = scale.reshape(-1, 1) if shape else scale
    of = "row" if shape and shape[0] == N else "tensor"
    expected = codes.float() * by_rows
    check(
        write(tmp_path, {"weight": codes, name: scale}), expected, f"FP8, code · {name} of the {of}"
    )


@pytest.mark.parametrize(
    ("block", "stated"), [((32, 16), None), ((40, 24), [40, 24]), ((32, 16), [0, 0])]
)
def test_fp8_of_blocks(block: tuple[int, int], stated: list[int] | None, tmp_path: Path) -> None:
    """Blocks at the edges are smaller; the size is stated, or divides the matrix."""
    codes = (numbers(N, D) * 30).to(FP8)
    scale = numbers(-(-N // block[0]), -(-D // block[1])).abs()
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": stated}}
    expected = np.empty((N, D), np.float32)
    for i in range(N):
        for j in range(D):
            expected[i, j] = float(codes[i, j]) * scale[i // block[0], j // block[1]]
    folder = write(tmp_path, {"weight": codes, "weight_scale_inv": scale}, config if stated else {})
    check(folder, expected, f"weight_scale_inv of the block of {block[0]}×{block[1]}")


def test_scales_that_are_powers_of_two(tmp_path: Path) -> None:
    """MXFP8: bytes of E8M0 for 32 entries."""
    codes = (numbers(N, D) * 30).to(FP8)
    scale = torch.randint(120, 130, (N, D // 32), dtype=torch.uint8)
    powers = scale.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    folder = write(tmp_path, {"weight": codes, "weight_scale": scale})
    check(folder, codes.float().numpy() * powers.repeat(32, 1), "FP8, code · weight_scale")


def test_scales_that_fit_no_blocks_stop_the_choice(tmp_path: Path) -> None:
    codes = (numbers(N, D) * 30).to(FP8)
    folder = write(tmp_path, {"weight": codes, "weight_scale_inv": numbers(7, 5)})
    with refusal():
        embgeo.load(folder)
    assert embgeo.load(folder, tensor="lm_head.weight").n == N
    # They fit blocks, but other ones than the configuration says.
    stated = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [16, 32]}}
    write(tmp_path, {"weight": codes, "weight_scale_inv": numbers(N // 32, D // 16)}, stated)
    with refusal():
        embgeo.load(folder)
    # Two codes a byte have scales that are bytes, too.
    write(tmp_path, {"weight": e2m1(N, D)[0], "weight_scale": numbers(N, 1)})
    with refusal():
        embgeo.load(folder)


@pytest.mark.parametrize("name", ["weight.scale", "weight_quantizer._scale", "scale_inv", "amax"])
def test_factors_of_fp8_that_are_not_known_stop_the_choice(name: str, tmp_path: Path) -> None:
    codes = numbers(N, D).to(FP8)
    folder = write(tmp_path / "a", {"weight": codes, name: numbers(N, 1)})
    with refusal():
        embgeo.load(folder)
    # Scales of activations are none of the weight.
    folder = write(tmp_path / "b", {"weight": codes, "input_scale": numbers(1)})
    np.testing.assert_array_equal(np.float32(embgeo.load(folder).data), codes.float().numpy())


def test_fp8_without_scales_is_the_matrix_only_where_quantization_leaves_it_out(
    tmp_path: Path,
) -> None:
    codes = numbers(N, D).to(FP8)
    for folder, (key, listed, is_read) in each_folder(
        tmp_path,
        (
            ("ignore", [NAME], True),
            ("modules_to_not_convert", ["lm_head", f"{NAME}."], True),
            ("exclude_modules", ["embed_tokens"], True),
            ("ignored_layers", [3, NAME], True),
            ("ignore", ["lm_head", "embed_tokens_2"], False),
            ("ignore", NAME, False),  # not a list
            ("ignored_layers", [], False),
            ("kept", [NAME], False),
            ("ignore", ["", ".", "embed"], False),  # no whole part of the name
        ),
    ):
        config = {"quantization_config": {"quant_method": "fp8", key: listed}}
        model = write(folder / "model", {"weight": codes}, config)
        if is_read:
            np.testing.assert_array_equal(
                np.float32(embgeo.load(model).data), codes.float().numpy()
            )
            continue
        with refusal():
            embgeo.load(model)


def test_rows_that_are_dead_by_their_scale_are_dead(tmp_path: Path) -> None:
    scale = torch.full((N, 1), 0.02)
    scale[10:14] = 1e-20
    folder = write(tmp_path, {"weight": (numbers(N, D) * 30).to(FP8), "weight_scale": scale})
    outcome = embgeo.gate(folder, rules=["suspects.damaged == 0"])
    assert not outcome.passed


def test_int8_of_bitsandbytes(tmp_path: Path) -> None:
    codes = torch.randint(-127, 128, (N, D), dtype=torch.int8)
    scb = numbers(N).abs()
    extra = {"SCB": scb, "weight_format": torch.tensor(0, dtype=torch.uint8)}
    expected = codes.float() * scb[:, None] / 127
    check(write(tmp_path, {"weight": codes, **extra}), expected, "INT8, code · SCB / 127")


@pytest.mark.parametrize("name", ["weight_offset", "zeros", "weight_g_idx"])
def test_what_else_may_change_codes_of_eight_bits_stops_the_choice(
    name: str, tmp_path: Path
) -> None:
    codes = torch.randint(-127, 128, (N, D), dtype=torch.int8)
    tensors = {"weight": codes, "weight_scale": torch.ones(N, 1), "input_zero_point": numbers(1)}
    folder = write(tmp_path, tensors)
    np.testing.assert_array_equal(embgeo.load(folder).data, codes.float().numpy())
    write(tmp_path, tensors | {name: torch.ones(N, 1)})
    with refusal():
        embgeo.load(folder)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_int8_of_compressed_tensors(groups: int, asymmetric: bool, tmp_path: Path) -> None:
    codes = torch.randint(-128, 128, (N, D), dtype=torch.int8)
    scale = numbers(N, groups).abs().bfloat16()
    zero = torch.randint(-9, 9, (N, groups), dtype=torch.int8)
    tensors = {"weight": codes, "weight_scale": scale}
    minus = zero.float().repeat_interleave(D // groups, 1) if asymmetric else 0
    if asymmetric:
        tensors["weight_zero_point"] = zero
    expected = (codes.float() - minus) * scale.float().repeat_interleave(D // groups, 1)
    check(write(tmp_path, tensors), expected, "INT8, ")


def pack(codes: Any, bits: int) -> Any:
    """Codes with an offset into words of 32 bits, as ``pack_to_int32`` of compressed-tensors."""
    per_word = 32 // bits
    unsigned = (codes.astype(np.int64) + 2 ** (bits - 1)).astype(np.uint64)
    padded = np.pad(unsigned, ((0, 0), (0, -codes.shape[1] % per_word)))
    words = np.zeros((len(codes), padded.shape[1] // per_word), np.uint64)
    for place in range(per_word):
        words |= padded[:, place::per_word] << np.uint64(bits * place)
    return torch.from_numpy(words.astype(np.uint32).view(np.int32))


@each_value
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("kind", ["symmetric", "zero points", "order of columns"])
def test_packed_integers_of_compressed_tensors(bits: int, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(bits)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    codes, groups = rng.integers(low, high, (N, D)), 4
    scale = rng.uniform(0.1, 1, (N, groups)).astype(np.float32)
    zero = rng.integers(low, high, (N, groups)) if kind == "zero points" else np.zeros((N, groups))
    order = rng.permutation(np.arange(D) // (D // groups)) if kind == "order of columns" else None
    of = np.arange(D) // (D // groups) if order is None else order
    tensors = {"weight_packed": pack(codes, bits), "weight_scale": torch.from_numpy(scale)}
    tensors["weight_shape"] = torch.tensor([N, D])
    if kind == "zero points":
        tensors["weight_zero_point"] = pack(zero.T, bits).T
    if order is not None:
        tensors["weight_g_idx"] = torch.from_numpy(order.astype(np.int32))
    group = {"weights": {"num_bits": bits, "group_size": D // groups, "type": "int"}}
    config = {"quantization_config": {"config_groups": {"group_0": group}}}
    expected = (codes - zero[:, of]) * scale[:, of]
    check(write(tmp_path / "stated", tensors, config), expected, f"INT{bits}, packed")
    check(write(tmp_path / "by_shape", tensors), expected, f"INT{bits}, packed")


@pytest.mark.parametrize("rows", [slice(5, 9), slice(17, N)])
def test_a_part_of_the_rows_has_its_own_zero_points(rows: slice) -> None:
    rng = np.random.default_rng(6)
    codes, zero = rng.integers(-8, 8, (N, D)), rng.integers(-8, 8, (N, 4))
    scale, of = rng.uniform(0.1, 1, (N, 4)).astype(np.float32), np.arange(D) // (D // 4)
    stored = pack(codes, 4).numpy(), scale, 4, D, of
    read = forms.packed_int(*stored, rows, pack(zero.T, 4).T.numpy())
    np.testing.assert_allclose(read, ((codes - zero[:, of]) * scale[:, of])[rows], rtol=1e-6)


def test_packing_is_that_of_the_library() -> None:
    helpers = pytest.importorskip("compressed_tensors.compressors.pack_quantized.helpers")
    codes = torch.randint(-8, 8, (N, D), dtype=torch.int8)
    assert torch.equal(helpers.pack_to_int32(codes, 4), pack(codes.numpy(), 4))


def e2m1(rows: int, columns: int) -> tuple[Any, np.ndarray]:
    """Nibbles of E2M1, two a byte with the low one first, and their values by ml_dtypes."""
    nibbles = np.random.default_rng(5).integers(0, 16, (rows, columns)).astype(np.uint8)
    values = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return torch.from_numpy(nibbles[:, ::2] | nibbles[:, 1::2] << 4), values


def test_nvfp4_of_modelopt_and_compressed_tensors(tmp_path: Path) -> None:
    codes, values = e2m1(N, D)
    scale, factor = numbers(N, D // 16).abs().to(FP8), torch.tensor(0.013)
    laid = values * scale.float().repeat_interleave(16, 1).numpy()
    tensors = {"weight": codes, "weight_scale": scale, "weight_scale_2": factor}
    tensors["input_scale"] = torch.tensor(3.0)
    check(write(tmp_path / "a", tensors), laid * float(factor), "NVFP4, E2M1 · scale of 16")
    packed = {"weight_packed": codes, "weight_scale": scale, "weight_global_scale": 1 / factor}
    check(write(tmp_path / "b", packed), laid * float(factor), "/ global scale")


@pytest.mark.parametrize(
    "names",
    [
        ("model.embed_tokens.weight_blocks", "model.embed_tokens.weight_scales"),
        ("model.embed_tokens_blocks", "model.embed_tokens_scales"),
        ("embedding.weight.blocks", "embedding.weight.scales"),
    ],
)
def test_mxfp4_of_gpt_oss(names: tuple[str, str], tmp_path: Path) -> None:
    from safetensors.torch import save_file

    codes, values = e2m1(N, D)
    scale = torch.randint(120, 130, (N, D // 32), dtype=torch.uint8)
    powers = scale.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    stored = dict(zip(names, (codes.reshape(N, D // 32, 16), scale), strict=True))
    save_file(stored | {"lm_head.weight": torch.ones(N, D)}, tmp_path / "model.safetensors")
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, values * powers.repeat(32, 1))
    assert "MXFP4" in matrix.origin.form
    save_file({names[0]: stored[names[0]]}, tmp_path / "model.safetensors")
    with refusal():
        embgeo.load(tmp_path)


def test_groups_of_compressed_tensors_that_are_of_other_layers(tmp_path: Path) -> None:
    """The sizes of the tensors say which group the embedding is in."""
    codes = np.random.default_rng(1).integers(-8, 8, (N, D))
    scale = torch.rand(N, 4) + 0.1
    groups = {
        "group_0": {"weights": {"num_bits": 8, "group_size": 128}},
        "group_1": {"weights": {"num_bits": 4, "group_size": 16}},
    }
    tensors = {"weight_packed": pack(codes, 4), "weight_scale": scale}
    config = {"quantization_config": {"config_groups": groups}}
    check(write(tmp_path, tensors, config), codes * scale.numpy().repeat(16, 1), "scale of 16")


def test_a_stated_group_size_that_does_not_divide_the_columns(tmp_path: Path) -> None:
    """Three groups of 24, 24 and 16 columns, not of 22, 22 and 20."""
    codes = np.random.default_rng(1).integers(-8, 8, (N, D))
    scale = torch.rand(N, 3) + 0.1
    config = {"quantization_config": {"config_groups": {"group_0": {
        "weights": {"num_bits": 4, "group_size": 24}}}}}  # fmt: skip
    tensors = {"weight_packed": pack(codes, 4), "weight_scale": scale}
    tensors["weight_shape"] = torch.tensor([N, D])
    expected = codes * scale.numpy().repeat(24, 1)[:, :D]
    check(write(tmp_path, tensors, config), expected, "scale of 24")


@pytest.mark.parametrize(("columns", "is_read"), [(None, True), (4 * D, False)])
def test_packed_integers_of_unknown_columns_fill_their_words(
    columns: int | None, is_read: bool, tmp_path: Path
) -> None:
    codes = np.random.default_rng(1).integers(-8, 8, (N, D))
    scale = torch.rand(N, 4) + 0.1
    config = {"hidden_size": columns, "quantization_config": {"config_groups": {"group_0": {
        "weights": {"num_bits": 4, "group_size": 16}}}}}  # fmt: skip
    folder = write(tmp_path, {"weight_packed": pack(codes, 4), "weight_scale": scale}, config)
    if is_read:
        check(folder, codes * scale.numpy().repeat(16, 1), "scale of 16")
        return
    with refusal():
        embgeo.load(folder)


@pytest.mark.parametrize("kind", ["rows", "columns", "no factor"])
def test_scales_of_four_bits_that_do_not_fit(kind: str, tmp_path: Path) -> None:
    scale = numbers(N - (kind == "rows"), 3 if kind == "columns" else D // 16).abs().to(FP8)
    tensors = {"weight": e2m1(N, D)[0], "weight_scale": scale}
    if kind != "no factor":
        tensors["weight_scale_2"] = torch.tensor(0.013)
    with refusal():
        embgeo.load(write(tmp_path, tensors))


def test_blocks_that_compressed_tensors_states(tmp_path: Path) -> None:
    codes, scale = numbers(N, D).to(FP8), torch.rand(3, 2) + 0.1
    weights = {"type": "float", "num_bits": 8, "block_structure": [40, 40]}
    config = {"quantization_config": {"config_groups": {"group_0": {"weights": weights}}}}
    laid = scale.repeat_interleave(40, 0).repeat_interleave(40, 1)[:N, :D]
    tensors = {"weight": codes, "weight_scale": scale}
    check(write(tmp_path, tensors, config), codes.float() * laid, "block of 40×40")


@each_value
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("how", ["quantization", "own path", "hidden_size"])
def test_affine_of_mlx(bits: int, how: str, tmp_path: Path) -> None:
    """Codes are a stream of bits from the lowest; a loop places each."""
    rng, group = np.random.default_rng(bits), 32
    codes = rng.integers(0, 2**bits, (N, D))
    scales, biases = rng.uniform(-1, 1, (2, N, D // group)).astype(np.float16)
    words = np.zeros((N, D * bits // 32), np.uint32)
    for j in range(D):
        for bit in range(bits):
            place = j * bits + bit
            words[:, place // 32] |= ((codes[:, j] >> bit & 1) << place % 32).astype(np.uint32)
    tensors = dict(
        zip(
            ("weight", "scales", "biases"),
            map(torch.from_numpy, (words, scales, biases)),
            strict=True,
        )
    )
    own = {"bits": bits, "group_size": group}
    config = {
        "quantization": {"quantization": own},
        "own path": {"quantization": {"bits": 8 if bits == 4 else 4, "group_size": 64, NAME: own}},
        "hidden_size": {},
    }[how]
    expected = codes * scales.astype(np.float32).repeat(group, 1) + biases.astype(
        np.float32
    ).repeat(group, 1)
    check(write(tmp_path, tensors, config), expected, f"MLX affine, {bits} bits")


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "nvfp4", "mxfp8"])
def test_forms_of_mlx_are_those_of_the_library(mode: str, tmp_path: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    groups = {"affine": 64, "mxfp4": 32, "nvfp4": 16, "mxfp8": 32}
    bits = 8 if mode == "mxfp8" else 4
    try:
        made = mx.quantize(mx.array(numbers(N, D).numpy()), groups[mode], bits, mode=mode)
        expected = mx.dequantize(*made, group_size=groups[mode], bits=bits, mode=mode)
    except (TypeError, ValueError) as error:
        pytest.skip(f"this mlx lacks the mode: {error}")
    tensors = dict(
        zip(
            ("weight", "scales", "biases"),
            (torch.from_numpy(np.array(t)) for t in made),
            strict=False,
        )
    )
    config = {"quantization": {"bits": bits, "group_size": groups[mode], "mode": mode}}
    check(write(tmp_path, tensors, config), np.array(expected.astype(mx.float32)), f"MLX {mode}")


def test_what_is_not_read_of_mlx_is_said(tmp_path: Path) -> None:
    for folder, settings in each_folder(
        tmp_path,
        (
            {"bits": 7, "group_size": 32},
            {"bits": 4, "group_size": 128},
            {"bits": 4, "group_size": "x"},
            {"bits": 4, "group_size": {}},
        ),
    ):
        words = torch.zeros(N, D // 8, dtype=torch.int32).view(torch.uint32)
        tensors = {"weight": words, "scales": torch.ones(N, 2), "biases": torch.ones(N, 2)}
        with refusal():
            embgeo.load(write(folder, tensors, {"quantization": settings}))


U8, I32 = torch.uint8, torch.int32
NAMED = {
    "GPTQ, 4 bit": (
        {"qweight": torch.zeros(D // 8, N, dtype=I32), "qzeros": torch.zeros(2, N // 8, dtype=I32),
         "scales": torch.ones(2, N).half(), "g_idx": torch.zeros(D, dtype=I32)},
        {"quant_method": "gptq", "bits": 4},
    ),
    "AWQ, 4 bit": (
        {"qweight": torch.zeros(N, D // 8, dtype=I32), "scales": torch.ones(N, 2).half()},
        {"quant_method": "awq", "bits": 4},
    ),
    "bitsandbytes, 4 bit": (
        {"weight": torch.zeros(N * D // 2, 1, dtype=U8), "weight.absmax": torch.ones(N),
         "weight.quant_map": torch.ones(16)},
        {"quant_method": "bitsandbytes"},
    ),
    "HQQ": ({"W_q": torch.zeros(N, D // 2, dtype=U8), "scale": torch.ones(N)}, {}),
    "EXL2": ({"q_weight": torch.zeros(8, N, dtype=I32), "q_scale": torch.ones(8)}, {}),
    "EXL3": ({"trellis": torch.zeros(4, 6, 64, dtype=torch.int16), "suh": torch.ones(D)}, {}),
    "torchao": ({"_weight_qdata": torch.zeros(N, D, dtype=torch.int8)}, {}),
    "AQLM": (
        {"codes": torch.zeros(N, 8, dtype=torch.int8), "codebooks": torch.ones(1, 256, 8)}, {},
    ),
    "QuIP#": ({"Qidxs": torch.zeros(N, D // 8, dtype=torch.int16)}, {}),
    "VPTQ": (
        {"indices": torch.zeros(1, 8, N, dtype=I32), "centroids.weight": torch.ones(1, 2048)}, {},
    ),
    "is quantized by torchao": (
        {"weight:qdata": torch.zeros(N, D, dtype=torch.int8), "weight:scale": torch.ones(N, 1)},
        {"quant_method": "torchao"},
    ),
    "quantized in a form that is not known (weight._data._data, weight._scale, weight._shift)": (
        {"weight._data._data": torch.zeros(N, D // 2, dtype=U8),
         "weight._scale": torch.ones(N, 1), "weight._shift": torch.ones(N, 1)}, {},
    ),
    "not known (codes_of_mine, levels)": (
        {"codes_of_mine": torch.zeros(N, D).to(FP8), "levels": torch.ones(N, 2)}, {},
    ),
    "whole numbers": ({"weight": torch.zeros(N, D, dtype=torch.int8)}, {}),
    "its scales are not in the file": (
        {"weight": torch.ones(N, D).to(FP8)}, {"quant_method": "fp8"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED)
def test_forms_that_are_not_decoded_are_named_and_nothing_takes_their_place(
    kind: str, tmp_path: Path
) -> None:
    tensors, quantization = NAMED[kind]
    config = {"quantization_config": quantization} if quantization else {}
    folder = write(tmp_path, tensors, config)
    with refusal():
        embgeo.load(folder)
    found = embgeo.inspect(folder)
    assert kind in found.problem
    assert embgeo.load(folder, tensor="lm_head.weight").n == N


def test_packed_types_of_safetensors_stop_the_choice(tmp_path: Path) -> None:
    """A type that the file names and that is not read, such as F4."""
    middle, end = N * D // 2, N * D // 2 + 4 * N
    header: dict[str, Any] = {
        f"{NAME}.weight": {"dtype": "F4", "shape": [N, D], "data_offsets": [0, middle]},
        "lm_head.weight": {"dtype": "F32", "shape": [N, 1], "data_offsets": [middle, end]},
    }
    text = json.dumps(header).encode()
    data = len(text).to_bytes(8, "little") + text + bytes(end)
    (tmp_path / "model.safetensors").write_bytes(data)
    with refusal():
        embgeo.load(tmp_path)


def test_a_quantized_output_is_left_out_and_not_known_to_be_tied(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    tensors, quantization = NAMED["GPTQ, 4 bit"]
    held = {f"lm_head.{end}": tensor for end, tensor in tensors.items()}
    save_file(held | {f"{NAME}.weight": numbers(N, D)}, tmp_path / "model.safetensors")
    for tied in (False, True):
        facts = {"tie_word_embeddings": tied, "quantization_config": quantization}
        (tmp_path / "config.json").write_text(json.dumps(facts))
        matrix = embgeo.load(tmp_path)
        assert matrix.output is None
        assert matrix.tied_as_configured is None
        said = "the output matrix lm_head is quantized by GPTQ, 4 bit, and is left out"
        assert said in matrix.origin.notes
