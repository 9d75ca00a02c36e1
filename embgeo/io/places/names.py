"""Remote names: models and folders that are not on this machine.

``hf://[datasets/]org/name[@revision][/path]`` is the grammar of huggingface_hub; URLs of the Hub's
pages are read, too. All other schemes are fsspec's.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from embgeo.core.errors import BadOption

HUB = "hf"
#: Schemes that fsspec opens.
STORES = ("s3", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "memory")
#: Hosts whose pages are those of the Hub.
_HUB_HOSTS = ("huggingface.co", "hf.co", "www.huggingface.co")
_PAGES = ("tree", "blob", "resolve", "raw", "blame")
_KINDS = {"models": "model", "datasets": "dataset"}

# Path drops one of two slashes.
_SCHEME = re.compile(rf"({'|'.join((HUB, *STORES))}):/{{1,2}}(?=[^/])")
_PART = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9_])?"
_BARE = re.compile(rf"{_PART}/{_PART}(?:@[\w.-]+)?")
#: Branches with a slash that need not be written as ``%2F``.
_REFERENCE = re.compile(r"refs/(?:pr/\d+|convert/[\w.-]+)(?=/|$)")
_GRAMMAR = "write hf://org/name, hf://org/name@revision or hf://org/name@revision/file"


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository of the Hub, or a file or folder in it."""

    #: ``org/name``.
    repo: str
    #: Branch, tag or commit.
    revision: str = "main"
    #: Path inside the repository; empty for all of it.
    path: str = ""
    #: ``"model"`` or ``"dataset"``.
    kind: str = "model"

    @property
    def text(self) -> str:
        """The name as users write it."""
        kind = "" if self.kind == "model" else f"{self.kind}s/"
        is_plain = "/" not in self.revision or _REFERENCE.fullmatch(self.revision)
        revision = self.revision if is_plain else quote(self.revision, safe="")
        at = "" if self.revision == "main" else f"@{revision}"
        return f"{HUB}://{kind}{self.repo}{at}" + (f"/{self.path}" if self.path else "")


def as_written(path: Path | str) -> str:
    """Return the text of a path, with the second slash of a scheme, which ``Path`` drops.

    >>> as_written(Path("hf://org/name")), as_written("model/weights.pt")
    ('hf://org/name', 'model/weights.pt')
    """
    text = str(path)
    found = _SCHEME.match(text)
    return f"{found[1]}://{text[found.end() :]}" if found else text


def hide_secrets(name: str) -> str:
    """Return a name for reports and messages: without a password, and for a query its digest.

    A signed URL gives everybody access who reads it.

    >>> hide_secrets("https://me:word@host/w.npy"), hide_secrets("hf://org/name@v1")
    ('https://host/w.npy', 'hf://org/name@v1')
    """
    if not name.startswith(("http://", "https://")):
        return name
    address = _split_address(name)
    query = f"?{sha256(address.query.encode()).hexdigest()[:8]}" if address.query else ""
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}{query}"


def _split_address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:
        # A password could be anywhere in it.
        where = f"{text.partition('://')[0]}://…"
        way_out = "write it as https://HOST/PATH"
        cause = f"is not a valid address ({error})"
        raise BadOption(cause, where=where, way_out=way_out) from None


def is_remote(path: Path | str) -> bool:
    """Tell whether a path begins with a scheme, so that reading it may use the network."""
    return _SCHEME.match(str(path)) is not None


def read_hub_name(path: Path | str) -> HubName | None:
    """Parse a name of the Hub; None for paths and for URLs of other hosts.

    >>> read_hub_name("hf://org/name@v1/onnx").text
    'hf://org/name@v1/onnx'
    >>> read_hub_name("https://huggingface.co/org/name/tree/main").text
    'hf://org/name'
    >>> read_hub_name("model.pt")
    """
    text = as_written(path)
    scheme, _, rest = text.partition("://")
    if scheme == HUB:
        return _read_name(rest, text)
    address = _split_address(text)
    if scheme in ("http", "https") and address.hostname in _HUB_HOSTS:
        return _read_name(_name_of_page(address.path), text)
    return None


def read_bare_name(path: Path | str) -> HubName | None:
    """Parse ``org/name[@revision]`` without a scheme; None for other texts.

    >>> read_bare_name("org/name@step10").revision
    'step10'
    >>> read_bare_name("a/b/c.pt")
    """
    text = str(path)
    return _read_name(text, text) if _BARE.fullmatch(text) else None


def short_name(path: Path | str) -> str:
    """Name for a remote matrix: without the organization, with its revision.

    >>> short_name("hf://org/name-2.5@step10"), short_name("s3://bucket/run/model.pt")
    ('name-2.5@step10', 'model.pt')
    """
    name = read_hub_name(path)
    if name is None:
        return hide_secrets(as_written(path)).rstrip("/").rpartition("/")[2]
    at = "" if name.revision == "main" else "@" + name.revision.replace("/", "-")
    return f"{name.repo.partition('/')[2]}{at}"


def _name_of_page(path: str) -> str:
    """Name in the path of a page's URL: ``/org/name/tree/revision/path``."""
    parts = path.strip("/").split("/")
    kind = [parts.pop(0)] if parts[0] in _KINDS else []
    repo, page = parts[:2], parts[2:]
    if page and page[0] not in _PAGES:
        return ""
    at = "@" + "/".join((page[1], *map(unquote, page[2:]))) if len(page) > 1 else ""
    return "/".join((*kind, *repo)) + at


def _read_name(rest: str, text: str) -> HubName:
    parts = rest.strip("/").split("/")
    kind = _KINDS[parts.pop(0)] if len(parts) > 2 and parts[0] in _KINDS else "model"
    rest = "/".join(parts)
    repo, at, tail = rest.partition("@")
    if at and repo.count("/") == 1:
        found = _REFERENCE.match(tail)
        revision, _, path = (
            (found[0], "/", tail[found.end() + 1 :]) if found else tail.partition("/")
        )
        revision = unquote(revision)
    else:
        repo, revision, path = "/".join(parts[:2]), "main", "/".join(parts[2:])
    steps = [*revision.split("/"), *(path.split("/") if path else ())]
    if (
        not re.fullmatch(f"{_PART}/{_PART}", repo)
        or any(step in ("", ".", "..") for step in steps)
        or not f"{repo}{revision}{path}".isprintable()
    ):
        raise BadOption("is not the name of a model", where=text, way_out=_GRAMMAR)
    return HubName(repo, revision, path, kind)
