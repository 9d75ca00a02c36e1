"""Make the pictures of the documentation anew: ``python docs/make_pictures.py``.

Needs Chromium and ``embgeo[train]``; takes some minutes, most of them for the film.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embgeo.cli.app import run

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = (1440, 900)
#: Colors of a screenshot as a PNG with a palette.
COLORS = 128
_COUNTS = "--counts fixtures/vocab_counts.tsv"


@dataclass(frozen=True)
class Picture:
    """A picture, and the commands that make it; OUT stands for an empty folder.

    With `page`, the picture is the first screen of that file, else the file `drawn`.
    """

    name: str
    commands: Sequence[str]
    page: str = ""
    drawn: str = ""
    #: Of the commands, in ``embgeo.toml``.
    settings: str = ""


PICTURES = (
    Picture(
        "report.png",
        [f"analyze fixtures/baseline.pt {_COUNTS} -o OUT/baseline.embgeo"],
        page="baseline.embgeo/report.html",
    ),
    Picture(
        "diff.png",
        [
            f"analyze fixtures/baseline.pt {_COUNTS} -q -o OUT/baseline.embgeo",
            f"analyze fixtures/cosreg.safetensors {_COUNTS} -q -o OUT/cosreg.embgeo",
            "diff OUT/baseline.embgeo OUT/cosreg.embgeo -o OUT/diff.embgeo",
        ],
        page="diff.embgeo/report.html",
    ),
    Picture(
        "training.png",
        ["train --data fixtures/pydocs.txt.gz --compare mle,cosreg,sc-exp -o OUT/pydocs.runs"],
        page="pydocs.runs/report.html",
    ),
    Picture(
        "tutorials/figure1.png",
        [
            f"analyze fixtures/baseline.pt {_COUNTS} -o OUT/a.embgeo",
            f"analyze fixtures/cosreg.safetensors {_COUNTS} -q -o OUT/b.embgeo",
            "figures OUT/a.embgeo OUT/b.embgeo --label MLE --label CosReg --figure figure1 "
            "--annotate the --venue iclr --format png -o OUT",
        ],
        drawn="figure1.png",
    ),
    Picture(
        "film.gif",
        [
            "train --data fixtures/pydocs.txt.gz --plugin keep_matrices.py "
            "--compare mle-film,cosreg-film --set training.steps=150 --set evaluation.every=75 "
            "--set geometry.every=75 -o OUT/runs",
            "diff --track kept/mle-film -q -o OUT/mle.track",
            "diff --track kept/cosreg-film -q -o OUT/cosreg.track",
            "figures OUT/mle.track OUT/cosreg.track --label MLE --label CosReg --figure film "
            "--format png -o OUT",
        ],
        drawn="film.gif",
        settings='[analyze]\ncounts = "runs/mle-film/seed-0/vocabulary.tsv"\n',
    ),
)


def run_commands(picture: Picture, out: Path) -> None:
    """Run the commands of a picture in a folder."""
    # A copy: a saved analysis opens no checkpoint outside of the working folder.
    shutil.copytree(ROOT / "fixtures", out / "fixtures")
    shutil.copy(DOCS / "keep_matrices.py", out)
    if picture.settings:
        (out / "embgeo.toml").write_text(picture.settings, encoding="utf-8")
    for command in picture.commands:
        with (
            contextlib.chdir(out),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            words = shlex.split(command.replace("OUT/", "").replace("OUT", "."))
            code = run(words)
        if code != 0:
            raise SystemExit(f"embgeo {command} ended with {code}")


def take_screenshot(page: Path, target: Path) -> None:
    """The first screen of a page, as a PNG with a palette."""
    from PIL import Image

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("needs Chromium on the PATH")
    subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-prefers-reduced-motion",
            "--virtual-time-budget=5000",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={target}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    Image.open(target).convert("RGB").quantize(COLORS).save(target, optimize=True)


def make(picture: Picture) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        run_commands(picture, out)
        target = DOCS / picture.name
        if picture.page:
            take_screenshot(out / picture.page, target)
        else:
            shutil.copy(out / picture.drawn, target)


def main() -> None:
    """Make all pictures, or those that are named."""
    for picture in [picture for picture in PICTURES if picture.name in sys.argv[1:]] or PICTURES:
        print(picture.name)
        make(picture)


if __name__ == "__main__":
    main()
