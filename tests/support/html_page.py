"""A page as its tests look at it: elements, attributes, links, scripts and plain text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser

from embgeo.report import page as pages

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """What the tests want to know about a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        #: Sections that no link leads to.
        self.unlisted: set[str] = set()
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
            if tag == "section" and name == "id" and f"#{value}" not in self.links:
                self.unlisted.add(value or "")
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

    def check_structure(self, links: int) -> None:
        """Closed elements, ids once, contents, links into the page, nothing from anywhere else.

        The policy names the hashes of the scripts that run and of the style, and no more.
        """
        assert self.open == []
        assert [name for name, times in self.ids.items() if times > 1] == []
        assert len(self.links) > links
        assert self.unlisted <= {"browser"}
        for link in self.links:
            assert link.startswith("#"), link
            assert link[1:] in self.ids, link
        loading = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping"}
        assert not [a for a in self.attributes if a[1] in loading]
        assert not {"img", "link", "iframe", "object", "embed", "image", "base"} & set(self.tags)
        assert not [a for a in self.attributes if a[1] == "style" or a[1].startswith("on")]
        assert self.tags["style"] == 1  # none inside the figures
        assert not [a for a in self.attributes if "url(http" in a[2]]
        assert not re.search(r"url\(http|@import", "".join(self.styles))
        calls = r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|eval)\s*\("
        never = rf"{calls}|innerHTML|outerHTML|insertAdjacentHTML|document\.write"
        assert not [text for _, text in self.scripts[-1:] if re.search(never, text)]
        policy = next(value for _, _, value in self.attributes if "default-src" in value)
        assert policy == pages.policy()
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        run = [text for attrs, text in self.scripts if "type" not in attrs]
        assert len(run) == (3 if self.scripts else 0)
        for text in (*run, *self.styles):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert policy.count("sha256-") == 4
