"""The options that commands share, each declared once; a command names those that it takes.

Those of loading and measuring have no value by default, so that what was typed can be told from
what was not; the defaults are those of `Source` and `Options`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from embgeo.core import options
from embgeo.core.options import Precision as PrecisionName
from embgeo.core.options import Queries
from embgeo.core.source import Padding as PaddingName


def option(text: str, *names: str, **more: Any) -> Any:
    """Return the declaration of an option with its help; by default named as its parameter."""
    return typer.Option(*names, help=text, **more)


# --- loading --------------------------------------------------------------------------------

Checkpoint = Annotated[
    Path,
    typer.Argument(
        metavar="CHECKPOINT",
        help="Checkpoint, model folder or vector file; hf://org/name; - for stdin.",
    ),
]
Tensor = Annotated[str | None, option("Name of the embedding tensor; embgeo inspect lists them.")]
Output = Annotated[
    str | None, option("Name of the output matrix of an untied model; none leaves it out.")
]
Rows = Annotated[str | None, option("Analyze rows A to B−1.", metavar="A:B")]
Transpose = Annotated[bool | None, option("Tokens are columns in the file.", "--transpose")]
Tokens = Annotated[
    Path | None,
    option("Token labels, one a row (txt, tsv, json), or a tokenizer's file; none: no labels."),
]
Counts = Annotated[Path | None, option("Token counts (tsv, or json {token: count}).")]
Corpus = Annotated[Path | None, option("Text, or a folder of texts, whose tokens are counted.")]
RankOrder = Annotated[
    bool | None, option("Rows are sorted by frequency, most frequent first.", "--rank-order")
]
Padding = Annotated[
    PaddingName | None,
    option(
        "Rows beyond the vocabulary: mask them, keep them, or (auto) mask them only when the model "
        "itself brings the vocabulary."
    ),
]
CheckReachable = Annotated[
    bool | None,
    option(
        "Find unreachable tokens: decode each with the model's tokenizer.json and encode it again.",
        "--check-reachable",
    ),
]
Hidden = Annotated[Path | None, option("Hidden states of the model, one a row, in any format.")]
HiddenTensor = Annotated[str | None, option("Name of the tensor that holds them.")]
MaxDownload = Annotated[
    str | None,
    option("Most bytes to fetch of a remote model, such as 2GB or 640MiB.", metavar="SIZE"),
]

# --- measuring ------------------------------------------------------------------------------

Sections = Annotated[
    str | None,
    option(
        "Sections to measure, with commas: spectrum, projection, cosine, isotropy, coordinates, "
        "frequency, subspace, hidden, tokens; all by default.",
        metavar="NAME,...",
    ),
]
Metrics = Annotated[
    list[str] | None,
    option("Metric of an installed package, too; repeatable.", "--metric", metavar="NAME"),
]
Reference = Annotated[
    bool | None,
    option("Compare with isotropic Gaussian rows of the same norms.", "--reference/--no-reference"),
]
Seed = Annotated[int | None, option("Seed of all random samples; 0 by default.")]
MinNorm = Annotated[
    float | None,
    option(
        "Leave out rows whose norm is below this; by default those below the largest gap between "
        "norms, if it is at least a factor of 10.",
        metavar="NORM",
    ),
]
Pairs = Annotated[
    str | None,
    option(
        "Pairs sampled for the cosine distribution; 100000 by default; 0: none.", metavar="N|all"
    ),
]
PopularShare = Annotated[
    float | None,
    option("Share of the tokens that count as frequent; 0.2 by default.", metavar="SHARE"),
]
IsotropyRows = Annotated[
    int | None, option("Also compute I1/I2 on random samples of this many rows.")
]
IsotropyRuns = Annotated[int | None, option("Number of these samples; 10 by default.")]
Plane = Annotated[
    options.Plane | None,
    option("Add a plane to the map: tsne, of at most 5000 rows."),
]
NeighborsOf = Annotated[
    Queries | None,
    option(
        "Rows whose neighbors are searched, for hubs, rarity and intrinsic dimension: a sample by "
        "default. All of them take as long as --pairs all. page searches those of all tokens for "
        "the report alone, where rows are many in their leading coordinates: some are missed."
    ),
]
Precision = Annotated[
    PrecisionName | None,
    option("Precision of sums of products: float64 by default; float32 is faster (docs/scale.md)."),
]
ShowNeighbors = Annotated[
    list[str] | None,
    option(
        "List the neighbors of TOKEN, and the ranks of A and B among them; repeatable.",
        metavar="TOKEN[=A,B]",
    ),
]

# --- resources ------------------------------------------------------------------------------

Memory = Annotated[
    str | None,
    option("Memory for the passes; 640MiB by default, or more if columns need it.", metavar="SIZE"),
]
Threads = Annotated[int | None, option("Threads; as many as BLAS uses by default.")]
Device = Annotated[
    str | None,
    option(
        "Device of the passes: cpu by default; auto: a GPU if there is one (docs/scale.md).",
        metavar="cpu|cuda|mps|auto",
    ),
]
Engine = Annotated[
    Literal["threads", "dask"], option("Run on threads of this machine, or on a dask cluster.")
]
Scheduler = Annotated[
    str | None,
    option("Address of the cluster; by default one is started here.", metavar="ADDRESS"),
]

# --- settings and output --------------------------------------------------------------------

Config = Annotated[
    Path | None,
    option(
        "Settings file; by default embgeo.toml or pyproject.toml here or in the nearest folder "
        "above."
    ),
]
NoConfig = Annotated[bool, option("Ignore settings files.", "--no-config")]
TrustSettings = Annotated[
    bool,
    option(
        "Let settings name files outside of their folder or repository, and remote ones.",
        "--trust-settings",
    ),
]
Json = Annotated[bool, option("Print the result as JSON on stdout.", "--json")]
PrintFormat = Literal["text", "markdown"]
Format = Annotated[
    PrintFormat, option("Output format; markdown suits comments on pull requests.", "--format")
]
Venue = Annotated[
    Literal["iclr", "neurips", "icml", "acl"] | None,
    option("Venue that sets the width; iclr by default."),
]
Quiet = Annotated[bool, option("No progress and no summary.", "--quiet", "-q")]
Open = Annotated[bool, option("Open the report in the browser.", "--open")]
Debug = Annotated[bool, option("Show a traceback when something fails.", "--debug")]


def pick(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Pick the options of these names that were typed."""
    return {name: values[name] for name in names if values.get(name) not in (None, [])}
