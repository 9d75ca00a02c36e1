"""The documentation as a site: ``scripts/site`` builds it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from embgeo.core.version import VERSION

sys.path.insert(0, str(Path(__file__).parent))
from mathml import write_mathml

HERE = Path(__file__).parent
ROOT = HERE.parent
project = "embgeo"
copyright = "the embgeo authors"
release = VERSION
html_title = f"embgeo {release}"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
#: Reports that ``scripts/site`` makes of the fixtures.
html_extra_path = ["_build/gallery"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
napoleon_google_docstring = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
# A name in a docstring may be that of several attributes.
suppress_warnings = ["ref.python"]

#: Pages of the repository that are pages of the site, under other names.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
INCLUDED = re.compile(r"^```\{include\} \.\./([\w.]+)\n```$", re.MULTILINE)
#: Key, title and meaning of a quantity, its formula, and the rest of the row.
FORMULA = re.compile(
    r"^(\| `\w+\.\w+`<br>(?:[^|\\]|\\.)*\|(?:[^|\\]|\\.)*?<br>)`([^`]+)`( \|)", re.MULTILINE
)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def adapt_links(text: str, written_in: Path, shown_in: Path) -> str:
    """Links of a page as seen from where it is shown; files outside of ``docs`` are downloads."""

    def adapt(link: re.Match[str]) -> str:
        image, label, target, anchor = link[1], link[2], link[3], link[4] or ""
        path = (written_in / target).resolve()
        if "://" in target or not path.exists():
            return link[0]
        page = PAGES.get(path.relative_to(ROOT).as_posix())
        here = Path(os.path.relpath(HERE / page if page else path, shown_in)).as_posix()
        if page or path.is_relative_to(HERE):
            return f"{image}[{label}]({here}{anchor})"
        # A folder has no page: its name is enough.
        return label if path.is_dir() else f"{{download}}`{label.strip('`')} <{here}>`"

    return LINK.sub(adapt, text)


def adapt_source(_app: Any, page: str, source: list[str]) -> None:
    """A page of ``docs``, with the page of the repository that it includes."""
    folder = (HERE / page).parent

    def include(directive: re.Match[str]) -> str:
        text = (ROOT / directive[1]).read_text("utf-8")
        return adapt_links(text, ROOT, folder)

    # Sphinx has an event for included pages, which the directive of MyST does not send.
    text = INCLUDED.sub(include, adapt_links(source[0], folder, folder))
    source[0] = FORMULA.sub(show_formula, text) if page == "metrics" else text


def show_formula(row: re.Match[str]) -> str:
    """Write the formula in a row of the table of metrics as MathML."""
    shown = write_mathml(row[2].replace("\\|", "|")).replace("|", "&#124;")
    return f"{row[1]}{shown}{row[3]}"


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect("source-read", adapt_source)
