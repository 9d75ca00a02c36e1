"""``embgeo analyze``: from a checkpoint to a result folder with a report."""

from pathlib import Path
from typing import Annotated, Any

from embgeo.cli import options as o
from embgeo.cli import shared
from embgeo.cli.help import HelpAll
from embgeo.cli.shared import progress_bar
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.core.options import LOADING, MEASURING, OF_ANALYZE, RESOURCES, merge_options


@shared.guarded
def analyze(
    *,
    path: o.Checkpoint,
    tensor: o.Tensor = None,
    output: o.Output = None,
    rows: o.Rows = None,
    transpose: o.Transpose = None,
    tokens: o.Tokens = None,
    counts: o.Counts = None,
    corpus: o.Corpus = None,
    rank_order: o.RankOrder = None,
    padding: o.Padding = None,
    check_reachable: o.CheckReachable = None,
    hidden: o.Hidden = None,
    hidden_tensor: o.HiddenTensor = None,
    max_download: o.MaxDownload = None,
    sections: o.Sections = None,
    metrics: o.Metrics = None,
    reference: o.Reference = None,
    show_neighbors: o.ShowNeighbors = None,
    seed: o.Seed = None,
    min_norm: o.MinNorm = None,
    pairs: o.Pairs = None,
    popular_share: o.PopularShare = None,
    isotropy_rows: o.IsotropyRows = None,
    isotropy_runs: o.IsotropyRuns = None,
    neighbors_of: o.NeighborsOf = None,
    plane: o.Plane = None,
    precision: o.Precision = None,
    memory: o.Memory = None,
    threads: o.Threads = None,
    device: o.Device = None,
    engine: o.Engine = "threads",
    scheduler: o.Scheduler = None,
    config: o.Config = None,
    no_config: o.NoConfig = False,
    trust_settings: o.TrustSettings = False,
    out: Annotated[
        Path | None,
        o.option(
            "Result folder; NAME.embgeo here by default, none with --json.",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
    force: Annotated[
        bool,
        o.option(
            "Replace a result that has more sections or rows, or is of another file.", "--force"
        ),
    ] = False,
    open_: o.Open = False,
    format_: o.Format = "text",
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
    help_all: HelpAll = False,
) -> None:
    """Measure an embedding matrix and write a report.

    Example: embgeo analyze fixtures/baseline.pt --counts fixtures/vocab_counts.tsv
    """
    given = o.pick(locals(), (*LOADING, *MEASURING, *OF_ANALYZE))
    from embgeo.rules.settings import find_options
    from embgeo.stats.resources import Resources
    from embgeo.workflows.analyze import analyze_sides
    from embgeo.workflows.folders import choose_analysis_folder, write_analysis
    from embgeo.workflows.metrics import choose_metrics
    from embgeo.workflows.settings import read_settings

    shared.check_output(json_, format_, open_, out)
    settings = merge_options(find_options(config, not no_config, trust_settings), given)
    where = {name: settings.pop(name) for name in RESOURCES if name in settings}
    sections, reference = settings.pop("sections", None), settings.pop("reference", True)
    source, options, chosen = read_settings(settings, sections, path)
    functions = choose_metrics(metrics or ())
    if engine == "dask":
        from embgeo.workflows.cluster import analyze_in_cluster, check_in_cluster

        check_in_cluster(source, options, where.get("device", "cpu"))
        refuse_if(
            bool(functions), argument("metrics"), "is not measured in a cluster", "leave it out"
        )
    alone = scheduler is not None and engine != "dask"
    way_out = f"add {argument('engine', 'dask')}"
    refuse_if(alone, argument("scheduler"), "belongs to a cluster", way_out)
    resources = Resources(**where)
    writes = not json_ or out is not None
    folder = choose_analysis_folder(out, source, chosen, force) if writes else Path()
    of_output = None
    how: dict[str, Any] = {"sections": chosen, "reference": reference, "resources": resources}
    how["command"] = shared.command_line()
    with progress_bar(quiet) as how["progress"]:
        if engine == "dask":
            analysis = analyze_in_cluster(source, options, scheduler, **how)
        else:
            analysis, of_output = analyze_sides(source, options, metrics=functions, **how)
    try:
        report = write_analysis(analysis, folder, of_output) if writes else None
    finally:  # neither a full disk nor a closed pipe loses the numbers
        shared.print_result(analysis, json_, quiet, format_)
    if report is not None:
        shared.print_report(report, quiet or json_ or format_ != "text", open_)
