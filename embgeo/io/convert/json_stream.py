"""JSON texts decoded value by value, which are not held in memory."""

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from embgeo.io.bounded.guard import Damaged, short

CUT = "it may be cut off there; write or download it again"
_BLANK = re.compile(r"[ \t\r\n]*")
_INSIDE = re.compile(r"\[[ \t\r\n]*([^ \t\r\n])")
_CHUNK = 2**20
#: Longest single value, such as a record with its text.
_LONGEST = 64 * 2**20


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)


class ValueStream:
    """Decodes signs and values of a JSON text one after the other."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._text, self._at, self._passed = file, "", 0, 0
        self._decoder = json.JSONDecoder(parse_int=_whole)

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def is_list_next(self) -> bool:
        """Tell whether the next value is a list of lists or objects."""
        if self.peek() != "[":
            return False
        while not (found := _INSIDE.match(self._text, self._at)) and self._more():
            pass
        return found is not None and found[1] in "[{"

    def take(self, sign: str) -> bool:
        """Skip the next character if it is this one."""
        if self.peek() != sign:
            return False
        self._at += 1
        return True

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise self._damaged()

    def decode(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if not self._more():
                    raise self._damaged() from None
                continue
            # A number at the end of the chunk may be cut off.
            if end < len(self._text) or self._text[end - 1] in '"]}' or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        if len(self._text) - self._at > _LONGEST:
            raise Damaged(f"it has a value of more than {_LONGEST // 2**20} MiB")
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._passed += self._at
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def _damaged(self) -> Damaged:
        place = self._passed + self._at + 1
        found = short(self._text[self._at : self._at + 20])
        what = f"character {place:,}: {found}" if found else "its end"
        return Damaged(f"it is not JSON at {what}", CUT)


def keys_of(stream: ValueStream) -> Iterator[str]:
    """Yield the keys of an object; the caller takes the value after each key."""
    stream.expect("{")
    if stream.take("}"):
        return
    while True:
        key = stream.decode()
        if not isinstance(key, str):
            raise Damaged("it is not JSON: a key is not a text", CUT)
        stream.expect(":")
        yield key
        if not stream.take(","):
            break
    stream.expect("}")
