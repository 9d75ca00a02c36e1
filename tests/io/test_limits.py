"""Both sides of limits of readers: counts, ids, versions and sizes."""

import json
from pathlib import Path

import pytest

from embgeo.core.errors import UnreadableFile
from embgeo.core.special import classify_token
from embgeo.io.formats import gguf, pickled, safetensors
from embgeo.io.labels.counts_file import LARGEST_COUNT, read_counts, whole_counts
from embgeo.io.labels.tokenizer_files import in_order
from tests.support.refusals import refusal


@pytest.mark.parametrize("form", ["lines", "json"])
def test_counts_up_to_the_largest_whole_number_of_float64(tmp_path: Path, form: str) -> None:
    def read(count: object) -> tuple[int, ...]:
        path = tmp_path / ("counts.json" if form == "json" else "counts.tsv")
        text = json.dumps({"a": count, "b": 1}) if form == "json" else f"a\t{count}\nb\t1\n"
        path.write_text(text)
        return tuple(read_counts(path).counts)

    assert LARGEST_COUNT == 2**53
    assert read(2**53) == (2**53, 1)
    for wrong in (2**53 + 1, -1, True):
        with refusal(UnreadableFile):
            read(wrong)
    assert read(0) == (0, 1)


def test_a_column_of_counts_holds_whole_numbers_up_to_the_limit() -> None:
    assert whole_counts(["0", str(2**53)]) == [0, 2**53]
    assert whole_counts([str(2**53 + 1)]) is None
    assert whole_counts(["-1"]) is None
    assert whole_counts(["1.0"]) is None


def test_what_is_no_id_of_a_token() -> None:
    for number in (True, False, -1, 1.0, "1"):
        with pytest.raises(UnreadableFile):
            in_order([("a", 0), ("b", number)], Path("vocab.json"))
        assert in_order([("a", 0), ("b", 1)], Path("vocab.json"))[0] == ("a", "b")


def test_protocols_of_pickle() -> None:
    known = [version for version in range(256) if pickled.sniff(bytes([0x80, version]) + b"}.")]
    assert known == [2, 3, 4, 5]


def test_heads_that_are_one_byte_off() -> None:
    header = (2).to_bytes(8, "little") + b'{"'
    assert safetensors.sniff(header)
    assert not safetensors.sniff(b"12345678" + b'{"')  # text
    assert not safetensors.sniff(header[1:])
    assert gguf.sniff(b"GGUF")
    assert not gguf.sniff(b"GGUE")
    assert not gguf.sniff(b" GGUF")


def test_control_tokens() -> None:
    for token, kind in (
        ("<control_7>", "unused"),
        ("<control_x>", "special"),
        ("control_7", ""),
        ("<unused12>", "unused"),
        ("<unused12", ""),
        ("<0x0A>", "byte"),
        ("<0x0G>", ""),
        ("[UNUSED1]", "unused"),
        ("[CLS]", "special"),
        ("[cls]", ""),
    ):
        assert classify_token(token) == kind
