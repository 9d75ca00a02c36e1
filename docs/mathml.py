"""Formulas of the code, in Unicode, as MathML for the site: ``σ_k²`` has two scripts."""

from __future__ import annotations

import re
from html import escape

FUNCTIONS = {
    "exp",
    "ln",
    "log",
    "max",
    "min",
    "cos",
    "sin",
    "angle",
    "Var",
    "median",
    "mean",
    "std",
}
HIGH = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀʳ", "0123456789−Tr", strict=True))
LOW = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d[\d,]*(?:\.\d+)?(?:e-?\d+)?%?|[½])|(?P<word>[A-Za-z][A-Za-z0-9’'*-]+"
    r"|a(?= [a-z]{2}))"
    r"|(?P<letter>[^\W\d_][\u0300-\u036f]*)|(?P<sign>.)",
    re.DOTALL,
)


class Reader:
    """Reads a formula from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def read_row(self, end: str = "") -> str:
        """Read terms up to a closing sign, or to the end of the formula."""
        terms = []
        while self.peek() and self.peek() != end:
            terms.append(self.read_term())
        self.at += len(end)
        return f"<mrow>{''.join(terms)}</mrow>"

    def read_term(self) -> str:
        """Read an atom with its scripts below and above."""
        atom, low, high = self.read_atom(), "", ""
        while True:
            sign = self.peek()
            if sign in ("_", "^") and self.text[self.at + 1 : self.at + 2].strip():
                self.at += 1
                script = self.read_script()
                low, high = (low + script, high) if sign == "_" else (low, high + script)
            elif sign and sign in LOW:
                low += self.read_run(LOW)
            elif sign and sign in HIGH:
                high += self.read_run(HIGH)
            else:
                break
        if low and high:
            return f"<msubsup>{atom}<mrow>{low}</mrow><mrow>{high}</mrow></msubsup>"
        if low or high:
            name = "msub" if low else "msup"
            return f"<{name}>{atom}<mrow>{low or high}</mrow></{name}>"
        return atom

    def read_run(self, signs: dict[str, str]) -> str:
        start = self.at
        while self.peek() in signs and self.peek():
            self.at += 1
        return f"<mn>{''.join(signs[sign] for sign in self.text[start : self.at])}</mn>"

    def read_script(self) -> str:
        """Read what follows ``_`` or ``^``: a group in parentheses, or a run of letters."""
        if self.peek() == "(":
            self.at += 1
            return self.read_row(")")
        run = re.compile(r"[^\W_]+[\u0300-\u036f]*|.").match(self.text, self.at)
        assert run is not None
        letters = re.match(r"[^²³⁻₁₂]+", run[0])
        taken = letters[0] if letters else run[0]
        self.at += len(taken)
        if taken.isdigit():
            return f"<mn>{taken}</mn>"
        return "".join(f"<mi>{escape(letter)}</mi>" for letter in taken)

    def read_atom(self) -> str:
        found = TOKEN.match(self.text, self.at)
        assert found is not None
        kind, text = found.lastgroup, found[0]
        self.at += len(text)
        if text == "(":
            return f"<mrow>{_sign('(')}{self.read_row(')')}{_sign(')')}</mrow>"
        if text == "√":
            if self.peek() == "(":
                self.at += 1
                return f"<msqrt>{self.read_row(')')}</msqrt>"
            return f"<msqrt>{self.read_term()}</msqrt>"
        if kind == "space":
            return "<mspace width='0.28em'/>"
        if kind == "number":
            return f"<mn>{text}</mn>"
        if (kind == "letter" and text != "Σ") or text in FUNCTIONS:
            return f"<mi>{escape(text)}</mi>"
        if kind == "word":
            return f"<mtext>{escape(text)}</mtext>"
        return _sign(text)


def _sign(text: str) -> str:
    return f"<mo stretchy='false'>{escape(text)}</mo>"


_ENDS = {_sign(","), _sign(";")}


def write_mathml(formula: str) -> str:
    """Write a formula as inline ``<math>`` elements, with the words between them as text.

    A line can end between two elements only: one ends after each comma.
    """
    reader, written, terms = Reader(formula), [], []
    while reader.peek():
        term = reader.read_term()
        is_word, is_space = term.startswith("<mtext>"), term.startswith("<mspace")
        if is_space and not terms:
            written.append(" ")
        elif not is_word:
            terms.append(term)
        if terms and (is_word or term in _ENDS or not reader.peek()):
            blank = " " if terms[-1].startswith("<mspace") else ""
            written.append(f"<math><mrow>{''.join(terms)}</mrow></math>{blank}")
            terms = []
        if is_word:
            written.append(term[7:-8])
    return "".join(written).strip()
