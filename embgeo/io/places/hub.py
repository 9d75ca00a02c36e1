"""A repository of the Hub, read by ranges or whole files through huggingface_hub.

That package handles tokens, proxies, mirrors, time limits and retries. This module checks the
responses: status and range before the first byte, the commit, and the host that gets a token.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.version import VERSION
from embgeo.files.guard import Damaged, refuse, short
from embgeo.files.records import digest_of
from embgeo.files.small_files import is_plain_name
from embgeo.io.places import ranges
from embgeo.io.places.cache import hub_cache, is_commit, is_offline, list_kept_revisions
from embgeo.io.places.names import HubName
from embgeo.io.places.ranges import RemoteFile, link_or_copy

#: Seconds for a connection, and for the next bytes of one.
_TIMEOUT = 30.0
_AGENT = {"library_name": "embgeo", "library_version": VERSION}
_NOT_AS_STATED = "try again later; if it stays, report it where the model is published"


def list_revisions(name: HubName) -> dict[str, str]:
    """List commits by branch or tag that match the pattern in a name's revision.

    Takes one request; offline, looks into the caches.
    """
    if is_offline() and (kept := _match(name, list_kept_revisions(name))):
        return kept
    api, endpoint = _open_hub(name)
    with _translate_errors(name, endpoint):
        found = api.list_repo_refs(name.repo, repo_type=name.kind)
    named = {one.name: str(one.target_commit) for one in (*found.branches, *found.tags)}
    return _match(name, named)


def _match(name: HubName, commits: dict[str, str]) -> dict[str, str]:
    return {
        revision: commit
        for revision, commit in commits.items()
        if is_commit(commit) and fnmatchcase(revision, name.revision)
    }


def _open_hub(name: HubName) -> tuple[Any, str]:
    """Open client of the Hub, and its address."""
    if is_offline():
        raise refuse_offline(name)
    try:
        from huggingface_hub import HfApi, constants
    except ImportError as error:
        raise refuse(
            name.text, "the Hub needs an extra package", "pip install 'embgeo[hub]'"
        ) from error
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or constants.ENDPOINT
    return HfApi(endpoint=endpoint, **_AGENT), endpoint


class HubFolder:
    """Files of a repository, or of a folder in it; a `RemoteFolder`."""

    def __init__(self, name: HubName) -> None:
        self._repository = name
        self.name = name.text
        api, self._endpoint = _open_hub(name)
        from huggingface_hub.utils import build_hf_headers

        with _translate_errors(name, self._endpoint):
            info = api.repo_info(
                name.repo, revision=name.revision, repo_type=name.kind, files_metadata=True
            )
            self._headers: dict[str, str] = build_hf_headers(**_AGENT)
        self.commit = str(info.sha)
        if not is_commit(self.commit):
            raise refuse(self.name, "the Hub names no commit", _NOT_AS_STATED)
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
            raise refuse(self.name, f"there is no file or folder {name.path!r}", "check the name")
        self._tags: dict[str, str] = {}

    def save(self, file: str, target: Path) -> None:
        """Save through the Hub's cache, which other programs share."""
        from huggingface_hub import hf_hub_download

        with _translate_errors(self._repository, self._endpoint):
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
        if stated and digest_of(kept) != stated:
            kept.unlink()
            raise Damaged(f"{short(file)} has another SHA-256 than the Hub states", "try again")
        link_or_copy(kept, target)

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
        with _translate_errors(self._repository, self._endpoint), asked as response:
            _require_encryption(url, (str(one.url) for one in (*response.history, response)))
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
                raise Damaged(cause, "try again")

    def _check_range(self, file: str, response: Any, start: int, stop: int) -> None:
        """Refuse a response that is not the requested range, before its first byte is read."""
        if response.status_code != 206:
            raise Damaged(
                f"the server ignores ranges (status {response.status_code}): all "
                f"{self.files[file].size:,} bytes of {short(file)} would come",
                "download the model with its own tools and name its folder",
            )
        expected = f"bytes {start}-{stop - 1}/{self.files[file].size}"
        stated = response.headers.get("content-range", "")
        if stated != expected:
            cause = f"the server sends {short(stated) or 'no range'} in place of {expected}"
            raise Damaged(f"{short(file)}: {cause}", _NOT_AS_STATED)
        tag = response.headers.get("etag")
        if tag is not None and self._tags.setdefault(file, tag) != tag:
            raise Damaged(f"{short(file)} changed between two of its pieces", "try again")


def _require_encryption(url: str, visited: Iterable[str]) -> None:
    if url.startswith("https:") and not all(one.startswith("https:") for one in visited):
        raise Damaged("the server redirects to an address without encryption", _NOT_AS_STATED)


@contextmanager
def _translate_errors(name: HubName, endpoint: str) -> Iterator[None]:
    """Turn errors of huggingface_hub and of the network into one line."""
    from huggingface_hub import errors

    try:
        yield
    except (EmbgeoError, Damaged):
        raise
    except errors.OfflineModeIsEnabled as error:
        raise refuse_offline(name) from error
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # about a file on this machine
        raise refuse(name.text, *_explain(name, endpoint, error)) from error


def _explain(name: HubName, endpoint: str, error: Exception) -> tuple[str, str]:
    """Explain an error of huggingface_hub, by the first class that fits: cause and way out."""
    from huggingface_hub import errors

    code = getattr(getattr(error, "response", None), "status_code", None)
    is_pattern = bool(set("*?[") & set(name.revision))
    known = {
        errors.GatedRepoError: (
            "the model is gated",
            f"accept the license at {endpoint}/{name.repo}, then run: hf auth login",
        ),
        errors.RepositoryNotFoundError: (
            f"there is no such {name.kind} on the Hub",
            "check the name; to see a private one, run: hf auth login",
        ),
        errors.RevisionNotFoundError: (
            f"the {name.kind} has no revision {name.revision!r}",
            "for all that match a pattern: embgeo diff --track"
            if is_pattern
            else "check the branch, tag or commit",
        ),
        errors.RemoteEntryNotFoundError: ("a file of the model was not found", "check the name"),
    }
    for kind, (cause, way_out) in known.items():
        if isinstance(error, kind):
            return (cause if code is None else f"{cause} (status {code})"), way_out
    why = f"status {code}" if code is not None else type(error).__name__
    return f"the Hub could not be read ({why})", "check the connection, or try again later"


def refuse_offline(name: HubName) -> UnreadableFile:
    """Return the error for a model that is in no cache while ``HF_HUB_OFFLINE`` is set."""
    cause = "is not in the cache, and HF_HUB_OFFLINE forbids the network"
    return refuse(name.text, cause, "unset HF_HUB_OFFLINE, or fetch the model elsewhere")
