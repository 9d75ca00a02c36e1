"""The shape of the code: who may import whom, what is listed where, what stays small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "embgeo"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Part of the package → the other parts that it may import. Data flows one way: sources → matrix
#: → stats → metrics → result → report and figures, which see nothing but a saved result.
MAY_IMPORT = {
    "errors": "",
    "values": "",
    "matrix": "errors read_ahead",
    "read_ahead": "",
    "saved": "errors",
    "result": "errors saved values",
    "sources": "errors matrix",
    "stats": "",
    "metrics": "stats values",
    "device": "errors matrix stats",
    "reference": "matrix",
    "provenance": "matrix metrics",
    "passes": "blas_threads device matrix metrics resources stats",
    "resources": "blas_threads stats",
    "blas_threads": "",
    "analysis": "errors matrix metrics passes provenance reference resources result stats values",
    "parts": "analysis blas_threads errors matrix metrics passes provenance resources result saved "
    "sources stats",
    "compare": "analysis errors matrix metrics passes provenance resources result saved sources "
    "stats values",
    "arrays": "errors matrix sources",
    "notebook": "errors report result saved",
    "api": "analysis arrays matrix metrics notebook passes resources result",
    "callbacks": "api arrays errors metrics names",
    "train": "errors",
    "config": "errors",
    "gate": "errors result values",
    "names": "errors metrics values",
    "runs": "errors result saved values",
    "figures": "compare errors result runs values",
    "tables": "result values",
    "delimited": "values",
    "export": "delimited errors result values",
    "report": "compare errors figures result runs saved values",
    "__init__": "api errors matrix metrics result sources values",
    "__main__": "cli",
    "cli": "__init__ compare config delimited device errors export figures gate matrix metrics "
    "names parts passes report resources result runs saved sources tables train values",
}

#: What `embgeo --help` and a look into a header must not wait for.
HEAVY = ("matplotlib", "pandas", "scipy", "sklearn", "torch")
LIGHT_PARTS = (
    "__init__",
    "cli",
    "errors",
    "values",
    "matrix",
    "result",
    "saved",
    "sources",
    "stats",
)

MOST_LINES = 400
MOST_FUNCTION_LINES = 60

#: Folder → the tuple in which each of its modules has to appear, and the helpers that do not.
LISTS = {
    "stats": (
        "STATISTICS",
        {
            "base": "the law that all statistics keep",
            "block_rotation": "a cheaper product of log_partition",
            "candidates": "the search of top_neighbors and two_nearest",
            "rank_update": "the symmetric update of moments",
        },
    ),
    "metrics": (
        "FAMILIES",
        {
            "base": "what a family is given and offers",
            "all_neighbors": "neighbours of all rows, for neighbors and neighborhoods",
            "convex_hull": "the search of hidden",
            "decay": "the fits of spectrum",
            "folds": "the folds of probe",
            "least_squares": "the fits of decay",
            "logistic": "the classifier of probe",
            "nearest_point": "the small problem of convex_hull",
            "pairs": "the sampled part of cosine",
            "popularity": "who is popular; shared by frequency, probe and neighbors",
            "rank_one": "the second eigendecomposition of base",
            "ranking": "ranks, for frequency and probe",
            "ridge": "the regression of probe",
            "row_space": "what logistic and ridge look at where rows are few",
            "sphere": "the search of isotropy",
        },
    ),
    "figures": (
        "FIGURES",
        {
            "base": "what a figure is",
            "bars": "drawing of histograms",
            "curves": "drawing of series",
            "density": "drawing of point densities",
            "hexagons": "binning of points",
            "maps": "drawing of point clouds",
            "style": "fonts, colours and SVG",
        },
    ),
    "figures.compared": (
        "FIGURES",
        {"base": "what a figure of a comparison is", "bars": "drawing of overlaid histograms"},
    ),
    "figures.paper": (
        "PAPER_FIGURES",
        {
            "base": "what a figure for a paper is",
            "clouds": "drawing of scatters",
            "colouring": "what the colours of points mean",
            "lines": "what figures of curves share",
            "output": "files of figures",
            "parameter": "values of a parameter in names",
            "singular_values": "drawing of spectra",
            "style": "venues, fonts and lines",
            "vocabulary": "frequencies and classes of tokens",
        },
    ),
    "tables": (
        "TABLES",
        {
            "base": "what a LaTeX table is",
            "latex_text": "hostile text in LaTeX",
            "render": "templates",
        },
    ),
    "export": (
        "TARGETS",
        {
            "base": "what an export is",
            "columns": "an analysis as columns",
            "escaping": "hostile text in TSV, protocol buffers and YAML",
            "thinning": "fewer rows for the projector",
        },
    ),
    "sources": (
        "FORMATS",
        {
            "arrow_tables": "what Parquet and Arrow files have in common",
            "arrow_worker": "decodes them, in a process of its own",
            "base": "what a checkpoint is",
            "choose": "which tensor is the embedding",
            "compressed": "a wrapping around formats, not a format",
            "containers": "a wrapping around formats, not a format",
            "corpus": "counts of a text",
            "corpus_text": "the text of a corpus in pieces",
            "corpus_tokens": "counts of a text by a tokenizer",
            "delimited_layout": "part of the reader of text tables",
            "fairseq_dictionary": "tokens and counts beside a checkpoint",
            "fasttext_dictionary": "part of the reader of fastText's binary models",
            "fasttext_quantised": "part of the reader of fastText's binary models",
            "fasttext_subwords": "n-grams of fastText's models, for its own files and gensim's",
            "final_norm": "the LayerNorm before the output",
            "folder_vocabulary": "tokens of model folders",
            "frequencies": "counts files",
            "gensim_objects": "part of the reader of gensim's saves",
            "glove_binary": "told by what lies beside it: in BESIDE",
            "gguf_header": "part of the reader of GGUF files",
            "guard": "limits against hostile sizes",
            "hdf5_worker": "a process of its own for the HDF5 library",
            "hidden_states": "what --hidden names",
            "inspection": "what `embgeo inspect` shows",
            "labels": "token files",
            "left_out": "what a file holds and is not read",
            "leveldb_table": "the index of TensorFlow's checkpoints",
            "loading": "from options to a matrix",
            "long_text": "part of the safe pickle reader",
            "memory": "maps of files",
            "model_folder": "a folder, opened before any bytes are looked at",
            "msgpack_walker": "part of the reader of Flax's files",
            "parameter_names": "names that frameworks give to embeddings",
            "pickle_contents": "what formats that hold a pickle make of it",
            "pickle_costs": "part of the safe pickle reader",
            "pickle_leaf": "part of the safe pickle reader",
            "pickle_machine": "part of the safe pickle reader",
            "pickle_numpy": "part of the safe pickle reader",
            "pickle_opcodes": "part of the safe pickle reader",
            "pickle_rows": "pickled vectors that stand one by one",
            "pickle_tensors": "part of the safe pickle reader",
            "pickle_tree": "part of the safe pickle reader",
            "pieces": "tensors stored in pieces",
            "projector_bytes": "told by what lies beside it: in BESIDE",
            "projector_config": "part of the readers of the projector's files",
            "protobuf_wire": "part of the readers of ONNX and TensorFlow",
            "python2_text": "part of the safe pickle reader",
            "readable": "tokens as people read them",
            "reading": "small files read whole",
            "row_frequencies": "counts along the rows",
            "rows": "cuts, labels and padding",
            "safe_pickle": "part of the safe pickle reader",
            "scratch": "temporary files of wrapped sources",
            "sentencepiece_model": "a tokenizer's file",
            "shards": "files of a checkpoint in several files",
            "side_tables": "tables of tokens and counts",
            "stand_in": "temporary files under the name of what they stand for",
            "standard_input": "a checkpoint from a pipe, in any format",
            "tar_members": "members of tar archives",
            "tensorflow_slices": "names of slices in TensorFlow's checkpoints",
            "text_blocks": "part of the readers of text",
            "text_encoder": "which tokenizer a model has",
            "tiktoken_ranks": "a tokenizer's file",
            "tokenizer_files": "vocabularies of model folders",
            "tokenizer_worker": "runs a tokenizer, in a process of its own",
            "torch_tensors": "tensors of torch's formats",
            "training_step": "the step that a checkpoint records, for diff --track",
            "unknown": "what is said about a file of no known format",
            "vocabulary": "tokens in the order of their rows",
            "worker_process": "a process of its own for libraries in C",
            "words": "splitting text into words",
            "zip_members": "members of zip archives",
        },
    ),
    "arrays": ("KINDS", {"found": "what was found", "labels": "tokens and counts along the rows"}),
    "train.models": (
        "MODELS",
        {
            "base": "what a language model is",
            "dropouts": "masks that are constant in a window",
            "lstm_layer": "the layer of the recurrent models",
            "recurrent": "what the recurrent models share",
            "settings": "checks of what models are told",
        },
    ),
    "train.regularizers": (
        "REGULARIZERS",
        {
            "base": "what a regulariser is",
            "constrained": "what spectrum_control and its rivals share",
            "factored": "the layer of spectrum_control and its rivals",
            "orthogonality": "the penalties of spectrum_control and its rivals",
            "popular": "who is popular, for frage and moment_match",
            "precision": "sums kept out of mixed precision",
            "several": "methods together, not a method",
        },
    ),
    "train.experiments": ("EXPERIMENTS", {}),
    "gate": (
        "OUTPUTS",
        {
            "baseline_file": "baselines, written and read",
            "check": "rules against matrices",
            "reading": "what is known of a number",
            "rule": "a rule, and whether it holds",
            "text": "names made harmless",
            "wording": "what is said about a rule",
        },
    ),
    "cli": (
        "COMMANDS",
        {
            "app": "puts the commands together",
            "commands": "the list of commands",
            "corpus_bar": "progress of analyze while a corpus is read",
            "diff_folder": "where diff writes",
            "diff_inputs": "what diff reads",
            "diff_summary": "what diff says",
            "export_vectors": "vectors for the projector",
            "figure_choice": "which figures are wanted",
            "figure_maker": "from results to the files of figures",
            "gate_outputs": "where the outcome of a gate goes",
            "gate_plan": "what a gate does, checked",
            "in_parts": "the options of analyze on parts",
            "matrix_source": "the options of analyze about the file",
            "measured": "what a gate is about",
            "measuring": "the options of analyze, checked",
            "on_cluster": "the options of analyze on a cluster",
            "outputs": "files that belong together",
            "shared": "options and exit codes of all commands",
            "subjects": "what figures draw",
            "train_compare": "from runs of train to one comparison",
            "train_experiment": "the experiments of train",
            "train_folder": "where train writes",
            "train_geometry": "what train measures on the way",
            "train_progress": "bars of train",
            "train_runs": "the runs of train",
            "train_settings": "the options of train",
            "train_summary": "what train says",
        },
    ),
}


def part_of(path: Path) -> str:
    """The first level below the package: a folder's name, or a module's."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of what is imported anywhere in the tree, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide which part is meant"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_parts(path: Path) -> set[str]:
    """The parts of embgeo that a module imports; a name of the package itself is `__init__`."""
    parts = set()
    for name in imports(parsed(path)):
        package, _, rest = name.partition(".")
        if package == "embgeo":
            part = rest.partition(".")[0]
            parts.add(part if part in MAY_IMPORT else "__init__")
    return parts


def at_module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import: not those in functions, nor under TYPE_CHECKING."""
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT)).replace("\\", "/")


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


def test_the_table_names_every_part() -> None:
    assert {part_of(path) for path in MODULES} == set(MAY_IMPORT)


def test_the_table_has_no_cycles() -> None:
    placed: set[str] = set()
    waiting = {part: set(allowed.split()) for part, allowed in MAY_IMPORT.items()}
    while ready := {part for part, needs in waiting.items() if needs <= placed}:
        placed |= ready
        waiting = {part: needs for part, needs in waiting.items() if part not in ready}
    assert not waiting


@each_module
def test_imports_follow_the_table(path: Path) -> None:
    part = part_of(path)
    allowed = {part, *MAY_IMPORT[part].split()}
    assert imported_parts(path) <= allowed


#: Of `compare`, what may be read by those who show a comparison: its result, and what part norms
#: had in it, not its making.
COMPARISON = ("comparison", "files", "norms", "quantities")


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part_of(p) in ("figures", "report")], ids=name_of
)
def test_pages_and_figures_see_only_the_result_of_a_comparison(path: Path) -> None:
    names = [name.split(".") for name in imports(parsed(path))]
    seen = {(*name, "")[2] for name in names if name[:2] == ["embgeo", "compare"]}
    assert seen <= set(COMPARISON)


@each_module
def test_click_is_never_imported(path: Path) -> None:
    """Typer brings a copy of its own: a click from elsewhere would be another one."""
    assert "click" not in {name.partition(".")[0] for name in imports(parsed(path))}


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) in LIGHT_PARTS], ids=name_of)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    found = {
        name.partition(".")[0]
        for node in at_module_level(parsed(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imports(node)
    }
    assert not found & set(HEAVY)


def test_the_search_for_module_level_imports_sees_what_runs() -> None:
    tree = ast.parse(
        "import a\n"
        "try:\n    import b\nexcept ImportError:\n    import c\n"
        "class C:\n    import d\n"
        "if TYPE_CHECKING:\n    import x\nelse:\n    import e\n"
        "def f():\n    import y\n"
    )
    found = {n.names[0].name for n in at_module_level(tree) if isinstance(n, ast.Import)}
    assert found >= {"a", "b", "d", "e"}
    assert not found & {"x", "y"}


def test_help_imports_nothing_heavy() -> None:
    """Also not numpy, which alone takes longer than the rest of ``--help``."""
    code = (
        "import contextlib, io, sys\n"
        "from embgeo.cli.app import app\n"
        "with contextlib.redirect_stdout(io.StringIO()) as shown:\n"
        "    app(['--help'], standalone_mode=False)\n"
        "assert 'analyze' in shown.getvalue(), shown.getvalue()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = set(run.stdout.split())
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "numpy", "jinja2", "ml_dtypes", "safetensors"}


@pytest.mark.parametrize("folder", LISTS)
def test_every_module_is_listed_or_exempt(folder: str) -> None:
    if folder.startswith("train"):
        pytest.importorskip("torch")
    tuple_name, helpers = LISTS[folder]
    home = import_module("embgeo.cli.commands" if folder == "cli" else f"embgeo.{folder}")
    listed = {module_name(entry, folder) for entry in getattr(home, tuple_name)}
    present = {path.stem for path in PACKAGE.joinpath(*folder.split(".")).glob("*.py")} - {
        "__init__"
    }
    assert listed | set(helpers) == present
    assert not listed & set(helpers)


def module_name(entry: object, folder: str) -> str:
    """The module that an entry of one of the tuples comes from.

    Entries are modules, classes and functions, or, of figures, tables and exports, values
    that hold a function.
    """
    if isinstance(entry, str):  # a command, which is a module of that name
        return entry
    if folder.startswith("figures"):
        entry = entry.draw  # type: ignore[attr-defined]
    elif folder in ("tables", "export"):
        entry = entry.fill if folder == "tables" else entry.write  # type: ignore[attr-defined]
    name: str = getattr(entry, "__module__", None) or entry.__name__  # type: ignore[attr-defined]
    return name.rpartition(".")[2]


@each_module
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES


@each_module
def test_functions_stay_small(path: Path) -> None:
    """Without docstring and signature, which are long where there is much to explain."""
    long = {
        node.name: length
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := body_lines(node)) > MOST_FUNCTION_LINES
    }
    allowed = LONG_FUNCTIONS.get(name_of(path), {})
    assert set(long) == set(allowed)


#: Functions that are longer for a reason.
LONG_FUNCTIONS = {
    "embgeo/result/analysis.py": {"_from_json": "one flat list of fields, the mirror of `to_json`"},
}


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body
    if ast.get_docstring(node, clean=False) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


#: Left out: what others wrote and is kept whole.
NOT_OURS = ("embgeo/diagnosis/static/vendor/", "LICENSE")
#: Where people and build machines keep their files.
SOMEBODYS_PLACE = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|workspace|mnt|tmp)/\w")


def tracked_texts() -> dict[str, str]:
    listing = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT, check=True)
    texts = {}
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if not name.startswith(NOT_OURS) and path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[name] = content.decode("utf-8", "replace")
    return texts


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout, no list of files")
def test_no_file_names_a_place_on_somebodys_machine() -> None:
    texts = tracked_texts()
    assert "pyproject.toml" in texts
    found = {name: hit[0] for name, text in texts.items() if (hit := SOMEBODYS_PLACE.search(text))}
    assert not found
