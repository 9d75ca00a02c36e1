"""Conversion of earlier versions of ``training.json``, each to the next."""

from __future__ import annotations

from embgeo.io.bounded.records import Json


def upgrade_1(content: Json) -> Json:
    """Convert version 1 to version 2, which has p-values of claims."""
    unknown = {"p_value": None, "p_adjusted": None, "detectable": None}
    return content | {"claims": [{**claim, **unknown} for claim in content["claims"]]}


def upgrade_2(content: Json) -> Json:
    """Convert version 2 to version 3, which has warnings and output matrices of untied models."""
    runs = [{**run, "output": {}, "stopped_early": False} for run in content["runs"]]
    methods = [{**method, "role": "input", "tried": []} for method in content["methods"]]
    unknown = {
        "role": None,
        "cause": None,
        "sanity": False,
        "share": None,
        "text_interval": None,
    }
    claims = [{**claim, **unknown} for claim in content["claims"]]
    return content | {"warnings": [], "runs": runs, "methods": methods, "claims": claims}


def upgrade_3(content: Json) -> Json:
    """Convert version 3, which has language models only, to version 4."""
    runs = [{**run, "task": "lm", "quality": "perplexity"} for run in content["runs"]]
    return content | {"runs": runs}


def upgrade_4(content: Json) -> Json:
    """Convert version 4, which has input and output matrices only, to version 5."""
    runs = []
    for run in content["runs"]:
        own = {name: value for name, value in run.items() if name != "output"}
        runs.append(own | {"others": {"output": run["output"]} if run["output"] else {}})
    return content | {"runs": runs}


UPGRADES = {1: upgrade_1, 2: upgrade_2, 3: upgrade_3, 4: upgrade_4}
