"""The configuration files beside the weights of a model."""

from pathlib import Path
from typing import Any

from embgeo.files.guard import refuse
from embgeo.files.small_files import is_companion, read_json
from embgeo.io.model.facts import ModelFacts, facts_of

#: That of transformers; of Llama and Mistral in their own form; of PEFT; of ModelOpt, which writes
#: its quantization beside a configuration that does not name it.
CONFIGURATIONS = (
    "config.json", "params.json", "adapter_config.json", "hf_quant_config.json"
)  # fmt: skip


def read_facts(folder: Path) -> ModelFacts:
    """Read the facts of a model folder; empty without its files."""
    own, other, adapter, modelopt = (_object(folder / name) for name in CONFIGURATIONS)
    return facts_of(own or other, adapter, modelopt)


def _object(path: Path) -> dict[str, Any]:
    if not is_companion(path):
        return {}
    data = read_json(path)
    if not isinstance(data, dict):
        raise refuse(path, "is not a JSON object")
    return data
