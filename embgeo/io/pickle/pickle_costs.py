"""What the objects that a pickle makes take in memory, in bytes of CPython.

They are counted before they are made. Containers are counted with what a walk over them notes;
the numbers are rather too high than too low.
"""

from __future__ import annotations

#: A place on the stack, in a list or in the memo.
ENTRY_COST = 8
#: An entry of a dict, while the dict grows.
PAIR_COST = 100
#: A text besides its characters.
TEXT_COST = 50
#: What a constructor makes, or the stub that stands for it.
CALL_COST = 300

#: What an instruction takes beyond its place on the stack, by opcode; what depends on a length is
#: counted where it is known.
COSTS = [ENTRY_COST] * 256
for _opcodes, _cost in (
    (b"JMG\x8a\x8b(", 32),
    (b"ILF", 150),
    (b"ae", 40),
    (b"]l\x85\x86\x87t", 170),
    (b"}d", 350),
    (b"\x8f\x91bBCTUPQ\x8e\x96", 250),
    (b"\x82\x83\x84c\x93i", 400),
):
    for _opcode in _opcodes:
        COSTS[_opcode] += _cost
