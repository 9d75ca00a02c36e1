"""Every stored form that is decoded is in one list, with what its test compares with."""

from pathlib import Path

from embgeo.io.model import changed, quantized
from embgeo.io.model.decoders import DECODERS

HERE = Path(__file__).parent


def test_every_reader_is_listed() -> None:
    listed = {one.read for one in DECODERS if one.read is not None}
    readers = {
        getattr(module, name)
        for module in (quantized, changed)
        for name in vars(module)
        if name.startswith("read_") and vars(module)[name].__module__ == module.__name__
    }
    # Asked apart: by an ending, after a decoding, and below the name of an adapter.
    apart = {quantized.read_blocks, changed.read_lora, changed.read_trainable_tokens}
    assert readers - apart == listed


def test_a_form_that_is_decoded_has_an_oracle_in_the_tests() -> None:
    tests = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    tests += (HERE.parent / "test_gguf.py").read_text("utf-8")
    for form in DECODERS:
        assert bool(form.matrix) is bool(form.oracle), form.name
        for oracle in form.oracle.split(", ") if form.oracle else ():
            assert oracle.removeprefix("its ").replace("known numbers", "expected") in tests, oracle
