"""The pickle machine: same values as Python's, and nothing in a pickle ever runs."""

from __future__ import annotations

import argparse
import collections
import io
import pickle
import struct
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.files.guard import Damaged
from embgeo.io.formats.pickle import machine, objects, tree
from embgeo.io.formats.pickle.loading import load
from embgeo.io.formats.pickle.numpy_arrays import PickledArray
from embgeo.io.formats.pickle.objects import Stub
from embgeo.io.formats.pickle.tree import walk
from embgeo.io.formats.word_lists import word_list
from tests.support.refusals import refusal
from tests.support.sampling import each_value
from tests.support.torch_files import Built, module_of, pickle_value

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def read(program: bytes) -> Any:
    return load(memoryview(program))


def arrays(value: object) -> dict[str, np.ndarray]:
    return {name: leaf.open() for name, leaf in walk(value).leaves if not leaf.problem}


PLAIN = [
    None,
    True,
    False,
    0,
    -1,
    255,
    65535,
    -(2**31),
    2**62,
    -(2**200),
    3.5,
    float("inf"),
    "",
    "naïve\n\t\\ 🦊",
    b"",
    b"\x00\xff'\"",
    bytearray(b"\x00\xff"),
    bytearray(),
    [],
    [1, [2, [3]]],
    (),
    (1,),
    (1, 2),
    (1, 2, 3),
    (1, 2, 3, 4),
    {},
    {"a": 1, 7: [None], b"k": ()},
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.Counter("abca"),
    list(range(3000)),
    {str(i): i for i in range(3000)},
]


def test_plain_values_are_those_of_python() -> None:
    for value in PLAIN:
        for protocol in PROTOCOLS:
            assert read(pickle.dumps(value, protocol=protocol)) == value


def test_lengths_of_eight_bytes() -> None:
    """Python writes them beyond 4 GiB alone."""
    for opcode in (b"\x8d", b"\x8e", b"\x96"):
        program = b"\x80\x04" + opcode + (3).to_bytes(8, "little") + b"abcK\x07\x86."
        text, number = pickle.loads(program)
        found, other = read(program)  # type: ignore[misc]
        assert (found if isinstance(text, str) else bytes(found), other) == (text, number)


def test_shared_and_cyclic_objects_stay_so() -> None:
    for protocol in PROTOCOLS:
        inner: list[Any] = [1]
        outer: list[Any] = [inner, inner]
        outer.append(outer)
        made = read(pickle.dumps(outer, protocol=protocol))
        assert made[0] is made[1]
        assert made[2] is made


def test_defaultdict_and_deque() -> None:
    for protocol in PROTOCOLS:
        value = collections.defaultdict(list, {"a": [1]})
        assert read(pickle.dumps(value, protocol=protocol)) == {"a": [1]}
        queue = collections.deque([1, 2])
        made = read(pickle.dumps(queue, protocol=protocol))
        assert made == [1, 2]


def test_namespace_becomes_a_stub_with_its_attributes() -> None:
    for protocol in PROTOCOLS:
        value = argparse.Namespace(lr=0.1, weight=np.ones((2, 3)))
        made = read(pickle.dumps(value, protocol=protocol))
        assert isinstance(made, Stub)
        assert made.name == "argparse.Namespace"
        assert made.states[0]["lr"] == 0.1
        assert arrays(made)["weight"].tolist() == np.ones((2, 3)).tolist()


def test_sets_are_inert() -> None:
    for protocol in PROTOCOLS:
        made = read(pickle.dumps({"s": {1}, "f": frozenset({2})}, protocol=protocol))
        assert isinstance(made["s"], Stub)
        assert isinstance(made["f"], Stub)


LIST_OF_PAIRS = b"](](" + b"X\x01\x00\x00\x00aK\x01e](X\x01\x00\x00\x00bK\x02ee"


def test_containers_that_a_program_calls_are_those_of_python() -> None:
    """Python 2 wrote an OrderedDict as the list of its pairs."""
    for program in (
        b"ccollections\nOrderedDict\n" + LIST_OF_PAIRS + b"\x85R.",
        b"cbuiltins\ndict\n" + LIST_OF_PAIRS + b"\x85R.",
        b"cbuiltins\ntuple\n](K\x01K\x02e\x85R.",
        b"cbuiltins\ntuple\nK\x01K\x02\x86\x85R.",
        b"cbuiltins\ntuple\n)R.",
        b"cbuiltins\nlist\nK\x01K\x02\x86\x85R.",
        b"cbuiltins\nbytes\nX\x02\x00\x00\x00\xc3\xbfX\x06\x00\x00\x00latin1\x86R.",
        b"cbuiltins\nbytes\n)R.",
        b"}cbuiltins\nlist\n)}\x92.",
    ):
        assert read(program) == pickle.loads(program)


def test_a_known_name_with_other_arguments_is_inert() -> None:
    for program, name in (
        (b"cbuiltins\nbytes\nK\x05\x85R.", "builtins.bytes"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.", "_codecs.encode"),
        (b"c_codecs\nencode\nK\x05X\x06\x00\x00\x00latin1\x86R.", "_codecs.encode"),
        (b"cnumpy._core.multiarray\nscalar\n)R.", "numpy.scalar"),
        (b"cnumpy\ndtype\n)R.", "numpy.dtype"),
    ):
        assert read(b"\x80\x02" + program).name == name


RECONSTRUCT = b"cnumpy._core.multiarray\n_reconstruct\n)R"
FLOAT = b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R"
DAMAGED = {
    "a dict of a number": b"cbuiltins\ndict\nK\x05\x85R.",
    "a dict of triples": b"cbuiltins\ndict\n](K\x01K\x02K\x03\x87e\x85R.",
    "an overlong name on the stack": b"\x8c\xc8"
    + b"a" * 200
    + b"X\x84\x03\x00\x00"
    + b"b" * 900
    + b"\x93.",
    "an object of no class": b"(o.",
    "a negative memo number": b"Np-1\n.",
    "an array without parts": RECONSTRUCT + b"Nb.",
    "a buffer without a type": b"cnumpy._core.numeric\n_frombuffer\nN\x85R.",
    "a shape without a type": RECONSTRUCT + b"(K\x01K\x01\x85N\x89U\x04abcdtb.",
    "a type in no byte order": FLOAT + b"(K\x03U\x01?NNNtb.",
}


def test_programs_that_mean_nothing_are_refused() -> None:
    for case in DAMAGED:
        with refusal(Damaged):
            read(b"\x80\x04" + DAMAGED[case])


def test_programs_longer_than_allowed_are_refused() -> None:
    program = memoryview(pickle.dumps([1, 2, 3]))
    assert load(program, most=20) == [1, 2, 3]
    with refusal(Damaged):
        load(program, most=3)


@pytest.mark.parametrize("numbers", [2, 4])
def test_numbers_in_text_are_charged_by_their_length(
    monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    monkeypatch.setattr(machine, "MOST_MEMORY", 1400)
    with nullcontext() if numbers == 2 else refusal(Damaged):
        load(memoryview(b"(" + numbers * (b"I" + b"1" * 400 + b"\n") + b"t."))


def test_strings_of_python_2() -> None:
    assert read(b"S'plain'\n.") == "plain"
    assert read(rb"S'caf\xc3\xa9 \'x\' \\ \101\n'" + b"\n.") == "café 'x' \\ A\n".encode()
    assert read(b'S"double"\n.') == "double"
    assert read(b"U\x02\xc3\xa9.") == "é".encode()
    assert read(b"T\x02\x00\x00\x00ab.") == "ab"


DTYPES = ["f2", "f4", "f8", ">f4", "i1", "i8", ">i2", "u4", "?", "c8", "c16", ml_dtypes.bfloat16]


@each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_those_of_numpy(dtype: Any, order: Any) -> None:
    array = np.arange(-6, 6).reshape(3, 4).astype(dtype, order=order)
    for protocol in PROTOCOLS:
        made = arrays(read(pickle.dumps({"w": array}, protocol=protocol)))["w"]
        assert made.dtype.name == array.dtype.name
        assert not made.flags.writeable
        np.testing.assert_array_equal(made, array)


@pytest.mark.parametrize("spelling", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_both_spellings_of_numpys_module(spelling: bytes) -> None:
    program = pickle.dumps(np.ones(3), protocol=2)
    program = program.replace(b"numpy._core.multiarray", spelling)
    program = program.replace(b"numpy.core.multiarray", spelling)
    assert arrays(read(program))[""].tolist() == [1, 1, 1]


def test_object_arrays_are_named_and_not_read() -> None:
    for protocol in PROTOCOLS:
        value = {"o": np.array([[1], "a"], dtype=object), "s": np.zeros(2, dtype=[("a", "f4")])}
        leaves = dict(walk(read(pickle.dumps(value, protocol=protocol))).leaves)
        assert "Python objects" in leaves["o"].problem
        assert leaves["s"].problem


def array_of(program: bytes) -> PickledArray:
    made = read(program)
    assert isinstance(made, PickledArray)
    return made


def test_arrays_that_hold_no_numbers_say_why() -> None:
    assert array_of(b"\x80\x02" + RECONSTRUCT + b".").problem == "has no data"
    odd = RECONSTRUCT + b"(K\x01K\x01\x85" + FLOAT.replace(b"f4", b"f3") + b"\x89U\x04abcdtb."
    assert array_of(b"\x80\x02" + odd).problem == "is of type f3, which is not a plain number"
    text = array_of(pickle.dumps(np.array(["a"])))
    assert text.problem == "holds text"
    with refusal(Damaged):
        text.open()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_texts_of_arrays_are_those_of_numpy(protocol: int) -> None:
    def dumped(*args: Any, **kwargs: Any) -> PickledArray:
        return array_of(pickle.dumps(np.array(*args, **kwargs), protocol=protocol))

    assert dumped(["né", "b"]).texts() == ["né", "b"]
    assert dumped(["né".encode(), b"b"]).texts() == ["né", "b"]
    assert dumped([b"\xff"]).texts() is None
    assert dumped([1.0]).texts() is None


def test_text_scalars_of_numpy_become_text() -> None:
    assert read(pickle.dumps([np.str_("né"), np.float32(1)], protocol=4))[0] == "né"


def test_names_are_printable_unique_and_as_a_state_dict_has_them() -> None:
    value = {
        "a\x1b[2J\n": np.ones(1),
        ("x",): np.ones(1),
        ("y",): np.ones(1),
        3: {"k": [np.ones(1), np.ones(1)]},
    }
    names = [name for name, _ in walk(read(pickle.dumps(value))).leaves]
    assert names == ["a\\x1b[2J\\n", "?", "?#2", "3.k.0", "3.k.1"]


def test_names_under_bytes_and_of_slots_are_those_of_the_attributes() -> None:
    assert list(arrays(read(pickle.dumps({b"caf\xc3\xa9": np.ones(1)})))) == ["café"]
    slots = Stub("a.Slotted")
    slots.build((None, {"weight": read(pickle.dumps(np.ones(1)))}))
    assert list(arrays(slots)) == ["weight"]
    assert list(arrays({"empty": [[]], "w": read(pickle.dumps(np.ones(1)))})) == ["w"]


class Stateful:
    """An object whose state is that of others, too."""

    def __init__(self, state: dict[str, int]) -> None:
        self.state = state

    def __getstate__(self) -> dict[str, int]:
        return self.state


def test_walks_end_at_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    nested: object = np.ones(1)
    for _ in range(6):
        nested = {"k" * 200: nested}
    with refusal(Damaged):
        walk(read(pickle.dumps(nested)))
    held = read(pickle.dumps({f"w{i}": np.ones(1) for i in range(4)}))
    monkeypatch.setattr(tree, "MOST_LEAVES", 3)
    with refusal(Damaged):
        walk(held)
    monkeypatch.setattr(tree, "_MOST_NAME_BYTES", 5)
    with refusal(Damaged):
        walk(held)
    monkeypatch.setattr(tree, "MOST_REPEATS", 8)
    state = {f"k{i}": i for i in range(4)}
    with refusal(Damaged):
        walk(read(pickle.dumps([Stateful(state) for _ in range(4)])))


def test_a_vocabulary_under_two_names_is_noted_once() -> None:
    words = {"a": 0, "b": 1}
    shared = read(pickle.dumps({"x": {"vocab": words}, "y": {"vocab": words}}))
    assert [name for name, _ in walk(shared).vocabularies] == ["x.vocab"]


def _text(value: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value


def hostile_programs(path: Path) -> dict[str, bytes]:
    """One pickle for each opcode by which Python's machine would leave a file behind."""
    command = b"touch " + str(path).encode()
    system = b"cos\nsystem\n"
    quoted = b"S'" + command + b"'\n"
    setter = b"cbuiltins\nexec\n"
    code = _text(f"open({str(path)!r}, 'w').close()".encode())
    return {
        "REDUCE": b"\x80\x02" + system + _text(command) + b"\x85R.",
        "REDUCE protocol 0": b"cos\nsystem\n(" + quoted + b"tR.",
        "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + _text(command) + b"\x85R.",
        "NEWOBJ": b"\x80\x02" + system + _text(command) + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04" + system + _text(command) + b"\x85}\x92.",
        "INST": b"(" + quoted + b"ios\nsystem\n.",
        "OBJ": b"(" + system + quoted + b"o.",
        "BUILD": b"\x80\x02"
        + system
        + b"}"
        + _text(b"__setstate__")
        + system
        + b"sb"
        + _text(command)
        + b"b.",
        "exec": b"\x80\x02" + setter + code + b"\x85R.",
        "getattr": b"\x80\x02cbuiltins\ngetattr\ncos\n__dict__\n"
        + _text(b"system")
        + b"\x86R"
        + _text(command)
        + b"\x85R.",
        "allow-listed name with an attribute": b"\x80\x04\x8c\x0bcollections\x8c"
        + b"\x1aOrderedDict.__reduce__.x.y\x93"
        + _text(command)
        + b"\x85R.",
        "EXT1": b"\x80\x02\x82\x01" + _text(command) + b"\x85R.",
        "EXT2": b"\x80\x02\x83\x01\x00" + _text(command) + b"\x85R.",
        "EXT4": b"\x80\x02\x84\x01\x00\x00\x00" + _text(command) + b"\x85R.",
        "PERSID": b"P" + command + b"\n.",
        "BINPERSID": b"\x80\x02" + system + _text(command) + b"\x85RQ.",
        "defaultdict factory": b"\x80\x02ccollections\ndefaultdict\n"
        + system
        + b"\x85R"
        + _text(command)
        + b"Ns.",
        "reconstructor": b"ccopy_reg\n_reconstructor\n(" + system + system + quoted + b"tR.",
    }


def test_the_hostile_programs_are_what_they_say(tmp_path: Path) -> None:
    # Were they harmless to Python's own machine, test_mutants.py could not see them run.
    canary = tmp_path / "canary"
    programs = hostile_programs(canary)
    for opcode in ["REDUCE", "REDUCE protocol 0", "STACK_GLOBAL", "INST", "OBJ", "exec"]:
        pickle.loads(programs[opcode])
        assert canary.exists(), opcode
        canary.unlink()


def test_reading_imports_nothing_that_a_pickle_names() -> None:
    with module_of(type("Thing", (), {})) as module:
        thing = module.Thing()
        thing.weight = np.ones((2, 2))
        program = pickle.dumps(thing)
    made = read(program)
    assert made.name == f"{module.__name__}.Thing"
    assert list(arrays(made)) == ["weight"]
    assert module.__name__ not in sys.modules


def doubling(rounds: int) -> bytes:
    """Lists of two references to the list before: 2**rounds leaves in a few bytes each."""
    program = io.BytesIO()
    program.write(b"\x80\x02]q\x00")
    for i in range(rounds):
        program.write(b"]q" + bytes([i + 1]) + b"(h" + bytes([i]) + b"h" + bytes([i]) + b"e")
    program.write(b".")
    return program.getvalue()


def copying() -> bytes:
    """A long list, copied by a constructor again and again."""
    elements = b"(" + b"N" * 100_000 + b"lq\x00"
    return (
        b"\x80\x02" + elements + b"0cbuiltins\nlist\nq\x01(" + b"h\x01h\x00\x85R" * 100_000 + b"l."
    )


BOMBS = {
    "nested lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "nested tuples": b"\x80\x02)" + b"\x85" * 100_000 + b".",
    "nested calls": b"\x80\x02" + b"cos\nsystem\n" * 50_000 + b")" + b"\x85R" * 50_000 + b".",
    "nested states": b"\x80\x02" + b"cos\nsystem\n)R" * 50_000 + b"b" * 49_999 + b".",
    "nested dicts": b"\x80\x02" + b"}K\x01" * 50_000 + b"}" + b"s" * 50_000 + b".",
    "copies": copying(),
    "marks": b"\x80\x02" + b"(" * 1_000_000 + b".",
    "long integer": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "long integer that is there": b"\x80\x02\x8b\x00\x00\x10\x00" + b"\x01" * 2**20 + b".",
    "long integer in text": b"L" + b"9" * 100_000 + b"L\n.",
    "bytes beyond the file": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.",
    "text beyond the file": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"abc.",
    "frame beyond the file": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.",
    "bytearray beyond the file": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"N.",
    "buffers elsewhere": b"\x80\x05\x97.",
    "protocol 9": b"\x80\x09N.",
    "no end": b"\x80\x02N",
    "no opcode": b"\x80\x02\xff.",
    "empty stack": b"\x80\x02.",
    "below the mark": b"\x80\x02N(0000.",
    "no mark": b"\x80\x02Nt.",
    "memo": b"\x80\x02h\x05.",
    "half a pair": b"\x80\x02}(Nu.",
    "append to a number": b"\x80\x02K\x01Na.",
    "name without end": b"c" + b"a" * 100_000,
    "name by a number": b"\x80\x04K\x01K\x02\x93.",
    "negative shape": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R(K\x01J\xff\xff\xff\xff\x85"
    b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R\x89U\x04abcdtb.",
}


@pytest.mark.slow
def test_bombs_are_refused_at_once() -> None:
    for bomb in BOMBS:
        started = time.process_time()
        with pytest.raises(Damaged):
            walk(read(BOMBS[bomb]))
        assert time.process_time() - started < 5


def test_self_similar_structures_cost_no_more_than_their_bytes() -> None:
    started = time.process_time()
    assert walk(read(doubling(150))).leaves == []
    assert time.process_time() - started < 1


def test_tuples_are_never_hashed() -> None:
    # The hash of (t, t) over (t, t) … takes 2**60 steps, as Python keeps no hash of a tuple.
    doubled = b")q\x00" + b"".join(
        b"0h" + bytes([i]) + b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(60)
    )
    made = read(b"\x80\x02}" + doubled + b"Ns.")
    assert list(made.values()) == [None]


def test_integers_that_hash_alike_do_not_slow_a_dict() -> None:
    clash = sys.hash_info.modulus
    pairs = b"".join(pickle.dumps(clash * i, protocol=2)[2:-1] + b"N" for i in range(1, 30_000))
    started = time.process_time()
    assert len(read(b"\x80\x02}(" + pairs + b"u.")) == 29_999
    assert time.process_time() - started < 2


def test_keys_that_could_be_chosen_to_clash_are_not_hashed() -> None:
    for key in (2**22, 2**48 - 1, 3.0):
        (boxed,) = read(pickle.dumps({key: "x"}, protocol=2))
        assert isinstance(boxed, objects.KeyBox)
        assert boxed.value == key


def test_words_are_found_under_keys_that_are_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_LARGEST_KEY", 2)
    assert word_list(read(pickle.dumps({3: "d", 0: "a", 2: "c", 1: "b"}))) == ("a", "b", "c", "d")
    assert word_list(read(pickle.dumps({3: "d", 0: "a", 2: "c"}))) is None


def test_ids_that_hash_alike_do_not_slow_a_word_list() -> None:
    clash = [sys.hash_info.modulus * i for i in range(1, 30_000)]
    started = time.process_time()
    assert word_list({str(i): i for i in clash}) is None
    assert time.process_time() - started < 2


def repeat_module(times: int) -> bytes:
    """A list of one module, which holds nothing but many attributes, again and again."""
    attributes = {f"a{k}": k for k in range(20_000)}
    state = pickle.dumps({"_parameters": {}, "_modules": {}, **attributes}, 2)[2:-1]
    place = struct.pack("<I", 10**7)
    module = b"ctorch.nn\nModule\n)\x81" + state + b"br" + place + b"0"
    return b"\x80\x02" + module + b"](" + (b"j" + place) * times + b"e."


@pytest.mark.slow
def test_a_module_that_is_listed_again_and_again_is_refused() -> None:
    """Its other attributes were gathered each time: minutes for a few hundred kilobytes."""
    root = load(memoryview(repeat_module(200_000)))
    with refusal(Damaged):
        walk(root)


@pytest.mark.slow
def test_submodules_that_multiply_are_refused() -> None:
    # A module whose two submodules are one module, and so on: 2**60 names for one tensor.
    value: object = np.ones(1)
    module = _module(parameters={"w": value})
    for _ in range(60):
        module = _module(modules={"a": module, "b": module})
    started = time.process_time()
    with refusal(Damaged):
        walk(read(pickle.dumps(module)))
    assert time.process_time() - started < 5


def _module(
    parameters: dict[str, object] | None = None, modules: dict[str, object] | None = None
) -> argparse.Namespace:
    return argparse.Namespace(_parameters=parameters or {}, _buffers={}, _modules=modules or {})


def test_a_module_under_two_names_has_its_tensors_under_both() -> None:
    shared = _module(parameters={"weight": np.ones((2, 2)), "bias": None})
    model = _module(modules={"encoder": shared, "decoder": shared})
    shared.parent = model
    model.extra = [np.zeros(1)]
    names = [name for name, _ in walk(read(pickle.dumps(model))).leaves]
    assert names == ["encoder.weight", "decoder.weight", "extra.0"]


def test_arrays_too_long_to_be_text_stay_in_the_file() -> None:
    for protocol in PROTOCOLS:
        array = np.random.default_rng(0).integers(0, 256, 3_000_000).astype(np.uint8)
        machine_made = read(pickle.dumps({"w": array}, protocol=protocol))
        np.testing.assert_array_equal(arrays(machine_made)["w"], array)


def test_a_long_text_that_is_no_bytes() -> None:
    text = "€" * 400_000
    program = pickle.dumps(np.zeros(400_000, "u1"), protocol=2)
    at = program.index(b"X" + struct.pack("<I", 400_000))
    encoded = b"X" + struct.pack("<I", len(text.encode())) + text.encode()
    leaf = walk(read(program[:at] + encoded + program[at + 5 + 400_000 :])).leaves[0][1]
    leaf.check()
    with refusal(Damaged):
        leaf.open()


def test_an_allowed_name_under_another_module_is_a_stub() -> None:
    for name in ("dict", "list", "tuple", "bytes", "OrderedDict", "scalar"):
        made = read(b"\x80\x02cevil\n" + name.encode() + b"\n)R.")
        assert isinstance(made, Stub)
        assert made.name == f"evil.{name}"


def test_states_set_over_and_over_are_refused_at_once() -> None:
    builds = b"cevil\nThing\n)R" + b"}b"
    assert isinstance(read(b"\x80\x02" + builds + 7 * b"}b" + b"."), Stub)
    started = time.process_time()
    for more in (8, 100_000):
        with refusal(Damaged):
            read(b"\x80\x02" + builds + more * b"}b" + b".")
    assert time.process_time() - started < 2


def test_nothing_reaches_below_a_mark() -> None:
    """Only POP may take the mark itself, when nothing lies on it."""
    for program in (
        b"(0.",
        b"K\x01(00.",
        b"K\x01(aN.",
        b"]K\x01(a.",
        b"](K\x01(s.",
        b"K\x01(\x85.",
        b"K\x01(R.",
    ):
        with refusal(Damaged):
            read(b"\x80\x02" + program)
        assert read(b"\x80\x02K\x01(0.") == 1


def test_objects_of_other_packages_are_no_arrays(tmp_path: Path) -> None:
    """A frame keeps its columns as rows of a block, a sparse matrix its numbers in vectors."""
    for name in ("pandas.core.frame.DataFrame", "scipy.sparse._csr.csr_matrix"):
        held = {"embeddings": Built(name, {"data": np.ones((2, 40))}), "w": np.ones((9, 4))}
        (tmp_path / "a.pkl").write_bytes(pickle_value(held))
        with refusal():
            embgeo.load(tmp_path / "a.pkl")
        (tmp_path / "a.pkl").write_bytes(pickle_value(held["embeddings"]))
        with refusal():
            embgeo.load(tmp_path / "a.pkl")
