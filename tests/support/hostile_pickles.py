"""Pickles that call, copy, share and nest, by themselves and in every format that holds pickles."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.io.test_hostile_binary import TORCH
from tests.io.test_hostile_torch import LEGACY
from tests.io.test_safe_pickle import BOMBS, hostile_programs, repeat_module
from tests.support.binary_files import archive_of, checkpoint, header_of, npy
from tests.support.hostile_cases import CANARY, Build, Case, from_table, hold_content
from tests.support.torch_files import MAGIC, SYSTEM, legacy, pickle_value, tensor

SIX = np.arange(6, dtype="<f4").tobytes()


def text(value: str) -> bytes:
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def tensor_entry(program: bytes) -> bytes:
    """A state_dict with a sound tensor and, under another key, what `program` makes."""
    body = program.removesuffix(b".")
    if body[:1] == b"\x80":
        body = body[2:]
    sound = (
        text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
        + b"ctorch\nFloatStorage\n" + text("0") + text("cpu")
        + b"K\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89}tR"
    )  # fmt: skip
    return b"\x80\x04}" + sound + b"s" + text("x") + body + b"s."


#: Where a pickle may hide. Those whose program stands next to a sound tensor are analyzed.
PLACES: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "pickle": (lambda program: program, False),
    "torch zip": (lambda program: checkpoint(tensor_entry(program), SIX), True),
    "TorchScript": (
        lambda program: checkpoint(tensor_entry(b"N."), SIX, **{"constants.pkl": program}),
        True,
    ),
    "torch legacy": (
        lambda program: b"".join(map(pickle_value, (MAGIC, 1001, SYSTEM))) + program,
        False,
    ),
    "npy": (lambda program: npy(header_of("'|O'", "(1,)"), program), False),
    "npz": (lambda program: archive_of({"w.npy": npy(header_of("'|O'", "(1,)"), program)}), False),
    "gzip of a pickle": (gzip.compress, False),
    "gensim": (lambda program: b"\x80\x02cgensim.models\nWord2Vec\n0" + program[2:], False),
}


def calling(opcode: str, wrap: Callable[[bytes], bytes]) -> Build:
    def build(folder: Path) -> Path:
        program = hostile_programs(folder / CANARY)[opcode]
        return hold_content(wrap(program))(folder)

    return build


def calls() -> list[Case]:
    return [
        Case(opcode, place, calling(opcode, wrap), opens)
        for place, (wrap, opens) in PLACES.items()
        for opcode in hostile_programs(Path(CANARY))
        # What follows the first instruction of the oldest protocols is not a gensim save.
        if place != "gensim" or hostile_programs(Path(CANARY))[opcode][:1] == b"\x80"
    ]


def pickle_list(items: bytes, before: bytes = b"") -> bytes:
    """A list with these items, pushed by a program."""
    return b"\x80\x04" + before + b"](" + items + b"e."


def repeat_piece(piece: bytes, size: int = 12_000_000, before: bytes = b"") -> Callable[[], bytes]:
    """About `size` bytes of one instruction after the other."""
    return lambda: pickle_list(piece * (size // len(piece)), before)


def growing(entry: Callable[[int], bytes], count: int) -> Callable[[], bytes]:
    return lambda: b"\x80\x02}(" + b"".join(map(entry, range(count))) + b"u."


SYSTEM_CALL = b"cos\nsystem\n"

#: Twelve megabytes and more of whatever takes the most time and memory for each of its bytes.
DENSE: dict[str, Callable[[], bytes]] = {
    "sets": repeat_piece(b"\x8f"),
    "dicts": repeat_piece(b"}NNs"),
    "lists in the memo": repeat_piece(b"]\x94"),
    "tuples": repeat_piece(b"N\x85"),
    "calls": repeat_piece(b"h\x00)R", before=SYSTEM_CALL + b"q\x000"),
    "calls with a state": repeat_piece(b"h\x00)R}b", before=SYSTEM_CALL + b"q\x000"),
    "persistent ids": repeat_piece(b"NQ"),
    "names": repeat_piece(b"ca\nb\n"),
    "long names": repeat_piece(
        b"h\x00h\x00\x93", before=b"X\xf4\x01\x00\x00" + b"a" * 500 + b"q\x000"
    ),
    "floats as text": repeat_piece(b"F1\n"),
    "integers as text": repeat_piece(b"I7\n"),
    "short strings": repeat_piece(b"\x8c\x00", 16_000_000),
    "Python 2 strings": repeat_piece(b"U\x01\xff"),
    "empty bytearrays": repeat_piece(b"\x96" + bytes(8)),
    "pushed and popped": lambda: b"\x80\x02" + b"N0" * 6_000_000 + b"N.",
    "keys": growing(lambda k: b"J" + struct.pack("<i", k) + b"N", 2_000_000),
    "scattered memo": lambda: (
        b"\x80\x02]"
        + b"".join(b"r" + struct.pack("<I", 3 * k + 7) for k in range(2_400_000))
        + b"."
    ),
    "nested lists": lambda: b"\x80\x02" + b"]" * 6_000_000 + b"a" * 5_999_999 + b".",
}


def shared_state(objects: int, entries: int) -> bytes:
    """Objects that all have the same large dict, whose entries lead nowhere."""
    state = b"}(" + b"".join(b"J" + struct.pack("<i", k) + b"](Ne" for k in range(entries)) + b"u"
    return pickle_list(b"h\x01)Rh\x00b" * objects, state + b"q\x000" + SYSTEM_CALL + b"q\x010")


def shared_arguments(objects: int, entries: int) -> bytes:
    arguments = b"(" + b"](Ne" * entries + b"t"
    return pickle_list(b"h\x01h\x00R" * objects, arguments + b"q\x000" + SYSTEM_CALL + b"q\x010")


def many_states(key: str) -> bytes:
    """One gensim model whose state is set to the same large dict half a million times."""
    state = b"}(" + b"".join(b"J" + struct.pack("<i", k) + b"N" for k in range(100_000)) + b"u"
    model = b"cgensim.models.keyedvectors\n" + key.encode() + b"\n)\x81"
    return b"\x80\x02" + model + state + b"q\x00b" + b"h\x00b" * 500_000 + b"."


def same_word(word: bytes, count: int) -> bytes:
    """A vocabulary that is one long word over and over."""
    encoded = b"X" + struct.pack("<I", len(word)) + word
    return b"\x80\x02}" + text("words") + encoded + b"q\x000](" + b"h\x00" * count + b"es."


def same_row(kind: str, count: int) -> bytes:
    """A dict of words that all have the same long vector."""
    row = {"array": np.zeros(100_000), "list": [0.5] * 100_000}[kind]
    return pickle.dumps({f"w{k}": row for k in range(count)}, 4)


def doubling_version() -> bytes:
    """A list of two references to a list of two references … where a version is expected."""
    rounds = b"".join(
        b"0](h" + bytes([k]) + b"h" + bytes([k]) + b"eq" + bytes([k + 1]) for k in range(60)
    )
    return pickle_value(MAGIC) + b"\x80\x02]q\x00" + rounds + b"."


def endless_keys() -> bytes:
    """Storages with one key of a million letters, of which each is a part of its own."""
    key = b"X" + struct.pack("<I", 1_000_000) + b"k" * 1_000_000 + b"q\x000"
    pid = b"(" + text("storage") + b"ctorch\nFloatStorage\nh\x00" + text("cpu") + b"K\x06h\x01tQ"
    part = b"(" + text("1") + b"K\x01K\x02tq\x010"
    value = b"\x80\x02" + key + part + b"](" + pid * 100_000 + b"e."
    return b"".join(map(pickle_value, (MAGIC, 1001, SYSTEM))) + value


#: Found by reading and by mutation; each once took minutes or gigabytes, or ended in a traceback.
FOUND: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a module listed a million times": ("pickle", lambda: repeat_module(1_000_000)),
    "a state shared by many objects": ("pickle", lambda: shared_state(300_000, 3_000)),
    "arguments shared by many calls": ("pickle", lambda: shared_arguments(300_000, 3_000)),
    "the same state set again and again": ("gensim", lambda: many_states("KeyedVectors")),
    "a state set a million times": ("pickle", lambda: b"\x80\x04\x8f" + b"Nb" * 1_000_000 + b"."),
    "one long word a million times": (
        "pickle",
        lambda: same_word("é".encode() * 200_000, 1_000_000),
    ),
    "one array for very many words": ("pickle", lambda: same_row("array", 200_000)),
    "one list for very many words": ("pickle", lambda: same_row("list", 200_000)),
    "a version of 2^60 lists": ("torch legacy", doubling_version),
    "a long key for each part": ("torch legacy", endless_keys),
    "a long system description": (
        "torch legacy",
        lambda: b"".join(map(pickle_value, (MAGIC, 1001))) + repeat_piece(b"\x8f")(),
    ),
    "two billion entries by stride 0": (
        "torch zip",
        lambda: checkpoint(
            tensor_entry(b"N.").replace(
                b"K\x02K\x03\x86K\x03K\x01\x86",
                b"J\xff\xff\xff\x3fK\x03\x86K\x00K\x00\x86",
            ),
            SIX,
        ),
    ),
}  # fmt: skip


def cases() -> list[Case]:
    made = calls()
    made += from_table("pickle", {name: (program,) for name, program in BOMBS.items()}, bytes)
    made += [
        Case(f"{name}, in data.pkl", "torch zip", hold_content(checkpoint(program)))
        for name, program in BOMBS.items()
    ]
    made += from_table("torch zip", TORCH, checkpoint)
    made += from_table("torch legacy", LEGACY, bytes)
    made += [Case(name, "pickle", hold_content(make), dense=True) for name, make in DENSE.items()]
    made += [Case(name, kind, hold_content(make)) for name, (kind, make) in FOUND.items()]
    sound = legacy({"w": tensor(), "evil": pickle.PROTO})
    made += [Case("sound, for comparison", "torch legacy", hold_content(sound), opens=True)]
    return made
