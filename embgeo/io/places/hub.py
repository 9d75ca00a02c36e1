"""A repository of the Hub, read by ranges or whole files through huggingface_hub.

That package handles tokens, proxies, mirrors, time limits and retries. This module checks the
responses: status and range before the first byte, the commit, and the host that gets a token.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from embgeo.core.version import VERSION
from embgeo.files.guard import Damaged, fetching, refuse, short
from embgeo.files.saved import copy_file
from embgeo.files.small_files import is_plain_name
from embgeo.io.places import ranges
from embgeo.io.places.cache import hub_cache, is_commit, is_offline, list_kept_revisions
from embgeo.io.places.names import HubName
from embgeo.io.places.ranges import RemoteFile

#: Seconds for a connection, and for the next bytes of one.
_TIMEOUT = 30.0
_AGENT = {"library_name": "embgeo", "library_version": VERSION}


def list_revisions(name: HubName) -> dict[str, str]:
    """List commits by branch or tag that match the pattern in a name's revision.

    Takes one request; offline, looks into the caches.
    """
    if is_offline() and (kept := _match(name, list_kept_revisions(name))):
        return kept
    with _asking(name):
        api, _ = _open_hub()
        found = api.list_repo_refs(name.repo, repo_type=name.kind)
    named = {one.name: str(one.target_commit) for one in (*found.branches, *found.tags)}
    return _match(name, named)


def _match(name: HubName, commits: dict[str, str]) -> dict[str, str]:
    return {
        revision: commit
        for revision, commit in commits.items()
        if is_commit(commit) and fnmatchcase(revision, name.revision)
    }


def _open_hub() -> tuple[Any, str]:
    """Return a client of the Hub, and its address."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import OfflineModeIsEnabled

    if is_offline():  # the package reads the variable once
        raise OfflineModeIsEnabled
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or constants.ENDPOINT
    return HfApi(endpoint=endpoint, **_AGENT), endpoint


def _asking(
    name: HubName, endpoint: str = "https://huggingface.co"
) -> AbstractContextManager[None]:
    """Turn errors of huggingface_hub and of the network into one line."""
    is_pattern = bool(set("*?[") & set(name.revision))
    return fetching(
        name.text,
        f"{name.kind} on the Hub",
        page=f"{endpoint}/{name.repo}",
        pattern="for all that match a pattern: embgeo diff --track" if is_pattern else "",
        extra="hub",
    )


class HubFolder:
    """Files of a repository, or of a folder in it; a `RemoteFolder`."""

    def __init__(self, name: HubName) -> None:
        self._repository = name
        self.name = name.text
        with _asking(name):
            from huggingface_hub.utils import build_hf_headers

            api, self._endpoint = _open_hub()
        with _asking(name, self._endpoint):
            info = api.repo_info(
                name.repo, revision=name.revision, repo_type=name.kind, files_metadata=True
            )
            self._headers: dict[str, str] = build_hf_headers(**_AGENT)
        self.commit = str(info.sha)
        if not is_commit(self.commit):
            raise refuse(self.name, "the Hub names no commit")
        found = {
            str(one.rfilename): RemoteFile(one.size, one.lfs.sha256 if one.lfs else "")
            for one in info.siblings or ()
            if isinstance(one.size, int) and one.size >= 0
        }
        folder, self.chosen = name.path, ""
        if folder in found:
            folder, _, self.chosen = folder.rpartition("/")
        self._prefix = f"{folder}/" if folder else ""
        self.files: dict[str, RemoteFile] = {
            rest: file
            for path, file in found.items()
            if path.startswith(self._prefix)
            and is_plain_name(rest := path.removeprefix(self._prefix))
        }
        if not self.files:
            raise refuse(self.name, f"there is no file or folder {name.path!r}")
        self._tags: dict[str, str] = {}

    def save(self, file: str, target: Path) -> None:
        """Save through the Hub's cache, which other programs share."""
        from huggingface_hub import hf_hub_download

        with _asking(self._repository, self._endpoint):
            cached = hf_hub_download(
                self._repository.repo,
                self._prefix + file,
                repo_type=self._repository.kind,
                revision=self.commit,
                cache_dir=hub_cache(),
                endpoint=self._endpoint,
                **_AGENT,
            )
        kept, stated = Path(cached).resolve(), self.files[file].sha256
        if stated:
            ranges.check_digest(kept, file, stated)
        copy_file(kept, target, link=True)

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status, http_stream_backoff

        url = hf_hub_url(
            self._repository.repo,
            self._prefix + file,
            repo_type=self._repository.kind,
            revision=self.commit,
            endpoint=self._endpoint,
        )
        headers = {**self._headers, "Range": f"bytes={start}-{stop - 1}"}
        headers["Accept-Encoding"] = "identity"
        asked = http_stream_backoff(
            "GET",
            url,
            headers=headers,
            follow_redirects=True,  # another host gets neither token nor cookies
            timeout=_TIMEOUT,
            max_retries=ranges.ATTEMPTS - 1,
            base_wait_time=ranges.WAIT,
        )
        with _asking(self._repository, self._endpoint), asked as response:
            ranges.require_encryption(url, (str(one.url) for one in (*response.history, response)))
            for one in (*response.history, response):
                self._check_identity(file, one.headers)
            if response.status_code >= 400:
                response.read()
                hf_raise_for_status(response)
            self._check_range(file, response, start, stop)
            try:
                yield from response.iter_raw()
            except Exception:  # the connection broke: the caller requests the rest
                return

    def _check_identity(self, file: str, headers: Any) -> None:
        """Refuse a response with another commit, size or SHA-256 than was listed."""
        known = self.files[file]
        stated = {
            "commit": (headers.get("x-repo-commit"), self.commit),
            "size": (headers.get("x-linked-size"), str(known.size)),
            "SHA-256": (headers.get("x-linked-etag", "").strip('W/"') or None, known.sha256),
        }
        for what, (found, expected) in stated.items():
            if found is not None and expected and found != expected:
                cause = f"{short(file)} has another {what} than a moment ago: the model has changed"
                raise Damaged(cause)

    def _check_range(self, file: str, response: Any, start: int, stop: int) -> None:
        stated, size = response.headers.get("content-range", ""), self.files[file].size
        ranges.check_range(file, response.status_code, stated, start, stop, size)
        tag = response.headers.get("etag")
        if tag is not None and self._tags.setdefault(file, tag) != tag:
            raise Damaged(f"{short(file)} changed between two of its pieces")
