"""A page as its tests look at it: elements, attributes, links, scripts and plain text."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """What the tests want to know about a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text = ""
        self.headings: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids[value or ""] += 1
            if name == "href":
                self.links.append(value or "")
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "style":
            self.styles.append("")
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            attrs, text = self.scripts.pop()
            self.scripts.append((attrs, text + data))
        elif inside == "style":
            self.styles[-1] += data
        else:
            self.text += data
            if {"h1", "h2"} & set(self.open):
                self.headings[-1] += data
