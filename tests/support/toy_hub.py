"""A Hub of one model on the loopback address: what is asked of it is counted, and it can misbehave.

It speaks the endpoints that a download needs: ``/api/models/ORG/NAME/revision/REV``,
``/ORG/NAME/resolve/COMMIT/FILE`` with HEAD and ranges, redirects to a second host, and the list of
branches.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

REPO = "org/toy"
COMMIT = "1" * 40


@dataclass
class ToyHub:
    """The server's model, its faults, and what it was asked.

    Attributes
    ----------
    files : dict of str to bytes
    faults : set of str
        ``"ignore ranges"``, ``"wrong range"``, ``"cut"``, ``"cut once"``, ``"busy once"``,
        ``"moved"``, ``"gated"``, ``"missing"``, ``"no repository"``, ``"no revision"``,
        ``"no commit"``, ``"no files"``, ``"broken"``, ``"redirect"``, ``"redirect here"``,
        ``"loop"``, ``"nowhere"``, ``"other tags"``, ``"other bytes"``.
    requests : list of (method, path, headers)
    sent : int
        Bytes of bodies.
    cut_at : int
        Bytes of a body that is cut.
    branches : dict of str to (str, dict of str to bytes)
        Commit and files of branches other than main.
    dead_from : int or None
        Of ranges that begin there or later, no byte is sent.
    """

    files: dict[str, bytes]
    faults: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    sent: int = 0
    endpoint: str = ""
    other: str = ""
    branches: dict[str, tuple[str, dict[str, bytes]]] = field(default_factory=dict)
    cut_at: int = 100
    dead_from: int | None = None

    def asked(self, pattern: str) -> list[tuple[str, str, dict[str, str]]]:
        """The requests whose method and path match."""
        return [one for one in self.requests if re.search(pattern, f"{one[0]} {one[1]}")]

    def find(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Commit and files of a branch or commit."""
        if revision in ("main", COMMIT, "v1"):
            return COMMIT, self.files
        return next((b for name, b in self.branches.items() if revision in (name, b[0])), None)

    def refs(self) -> bytes:
        """What the Hub says of its branches."""
        heads = {"main": COMMIT, **{name: commit for name, (commit, _) in self.branches.items()}}
        listed = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit}
            for name, commit in heads.items()
        ]
        return json.dumps({"branches": listed, "tags": [], "converts": []}).encode()

    def info(self, commit: str, files: dict[str, bytes], query: str) -> bytes:
        """What the Hub says of the model at a commit, and of its files if it is asked to."""
        siblings: list[dict[str, Any]] = [{"rfilename": name} for name in files]
        for one, data in zip(siblings, files.values(), strict=True) if "blobs" in query else ():
            stored = {"size": len(data), "sha256": digest(data), "pointerSize": 130}
            one.update({"size": len(data), "blobId": "0" * 40, "lfs": stored})
        return json.dumps({"id": REPO, "sha": commit, "siblings": siblings}).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def serve(folder: Path) -> Iterator[ToyHub]:
    """A server of the files in a folder, and a second one that it redirects to."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    hub = ToyHub(files)
    with (
        answer_with(_handler(hub, is_store=False)) as one,
        answer_with(_handler(hub, is_store=True)) as two,
    ):
        hub.endpoint, hub.other = one, two
        yield hub


@contextmanager
def answer_with(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Address of a server on the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: ToyHub, *, is_store: bool) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    def take(fault: str) -> bool:
        with lock:
            if fault in hub.faults:
                hub.faults.discard(fault)
                return True
            return False

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            with lock:
                hub.requests.append((self.command, self.path, dict(self.headers)))
            path, _, query = unquote(self.path).partition("?")
            if is_store:
                return self.give(hub.files[path.lstrip("/")], {})
            if "gated" in hub.faults:
                return self.refuse(403, "GatedRepo")
            if "broken" in hub.faults:
                return self.refuse(500, "")
            if "no repository" in hub.faults:
                return self.refuse(404, "RepoNotFound")
            if found := re.fullmatch(rf"/api/models/{REPO}/revision/(.+)", path):
                at = hub.find(found[1])
                if "no revision" in hub.faults or at is None:
                    return self.refuse(404, "RevisionNotFound")
                commit = "main" if "no commit" in hub.faults else at[0]
                listed = {} if "no files" in hub.faults else at[1]
                stated = hub.info(commit, listed, query)
                return self.reply(200, stated, {"Content-Type": "application/json"})
            if path == f"/api/models/{REPO}/refs":
                return self.reply(200, hub.refs(), {"Content-Type": "application/json"})
            found = re.fullmatch(rf"/{REPO}/resolve/([^/]+)/(.+)", path)
            if found is None:
                return self.refuse(404, "RepoNotFound")
            name = found[2]
            commit, files = hub.find(found[1]) or (COMMIT, hub.files)
            if name not in files or "missing" in hub.faults:
                return self.refuse(404, "EntryNotFound")
            stated = {
                "X-Repo-Commit": "2" * 40 if "moved" in hub.faults else commit,
                "X-Linked-Size": str(len(files[name])),
                "X-Linked-Etag": f'"{digest(files[name])}"',
            }
            if take("busy once"):
                return self.refuse(429, "")
            if "redirect" in hub.faults and "Range" in self.headers:
                return self.reply(302, b"", {**stated, "Location": f"{hub.other}/{name}"})
            if "Range" in self.headers and ("loop" in hub.faults or take("redirect here")):
                return self.reply(302, b"", {**stated, "Location": f"{path}?{query}again"})
            if "Range" in self.headers and "nowhere" in hub.faults:
                return self.reply(302, b"", {**stated, "Location": "file:///etc/passwd"})
            if "other bytes" in hub.faults and "Range" not in self.headers:
                return self.give(files[name][::-1], stated)
            return self.give(files[name], stated)

        def refuse(self, status: int, code: str) -> None:
            self.reply(status, b"{}", {"X-Error-Code": code} if code else {})

        def give(self, data: bytes, stated: dict[str, str]) -> None:
            of_range = self.headers.get("Range", "") if "other tags" in hub.faults else ""
            headers = {
                **stated, "ETag": f'"{digest(data)}{of_range}"', "Accept-Ranges": "bytes"
            }  # fmt: skip
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if found is None or "ignore ranges" in hub.faults:
                return self.reply(200, data, headers)
            start, stop = int(found[1]), int(found[2]) + 1
            shift = 1 if "wrong range" in hub.faults else 0
            stated_range = f"bytes {start + shift}-{stop - 1 + shift}/{len(data)}"
            if hub.dead_from is not None and start >= hub.dead_from:
                return self.reply(206, b"", {**headers, "Content-Range": stated_range})
            cut = stop - start > hub.cut_at and ("cut" in hub.faults or take("cut once"))
            return self.reply(
                206, data[start:stop], {**headers, "Content-Range": stated_range}, cut=cut
            )

        def reply(
            self, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False
        ) -> None:
            self.send_response(status)
            warning = {"X-HF-Warning": "to all; \x1b[2J"}
            for name, value in {"Content-Length": str(len(body)), **warning, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            body = body[: hub.cut_at] if cut else body
            with lock:
                hub.sent += len(body)
            try:
                self.wfile.write(body)
            except OSError:  # whoever asked does not want the rest
                self.close_connection = True

    return Handler
