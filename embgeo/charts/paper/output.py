"""From a drawing to the bytes of files; equal drawings give equal bytes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.charts.paper import style
from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FORMATS = ("pdf", "svg", "png", "pgf")


def check_format(form: str) -> None:
    """Refuse a format that this machine cannot write.

    Raises
    ------
    BadOption
    """
    if form == "pgf" and shutil.which("pdflatex") is None:
        raise BadOption(
            "PGF needs LaTeX to measure text, and there is no pdflatex",
            where="--format pgf",
            way_out="install TeX, or choose pdf",
        )


def render(drawing: Drawing, name: str, form: str, creator: str) -> dict[str, bytes]:
    """The drawing as files of that format, by file name; call it within :func:`style.settings`.

    PGF comes with a PNG file for each rasterized part.

    Raises
    ------
    BadOption
        If LaTeX cannot set the text of a PGF file.
    """
    said: dict[str, Any] = {
        "pdf": {"metadata": {"Creator": creator, "CreationDate": None}},
        "svg": {"metadata": {"Creator": creator, "Date": None}},
        "png": {"metadata": {"Software": creator}},
    }
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.{form}"
        try:
            drawing.savefig(target, format=form, dpi=style.DPI, **said.get(form, {}))
        except (RuntimeError, ValueError) as error:  # what PGF raises, with TeX's log in it
            if form != "pgf":
                raise
            raise BadOption(
                f"LaTeX could not set the text: {' '.join(str(error).split())[:200]}",
                where="--format pgf",
                way_out="install pgf (texlive-pictures), or choose pdf",
            ) from error
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
