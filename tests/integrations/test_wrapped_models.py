"""Models whose embedding is not where it seems to be: sharded by FSDP 1, adapted by PEFT."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.integrations import Gauge  # noqa: E402
from embgeo.io.memory import as_matrix  # noqa: E402
from tests.support.processes import in_two_processes  # noqa: E402
from tests.support.sampling import sampled  # noqa: E402

FSDP = """
import json, sys

import torch
from torch.distributed.fsdp import FullyShardedDataParallel

from embgeo.core.errors import BadOption
from embgeo.integrations import Gauge
from embgeo.io.memory import as_matrix

torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
inner = torch.nn.Sequential(torch.nn.Embedding(40, 8), torch.nn.Linear(8, 8))
model = torch.nn.Sequential(inner, torch.nn.Linear(8, 40))
expected = Gauge(["cosine.mean"]).measure(model, 0)["embgeo/cosine.mean"]
device, flat = torch.device("cpu"), sys.argv[1] == "flat"
for_each = {"device_id": device, "use_orig_params": not flat}
if sys.argv[2] == "nested":
    model[0] = FullyShardedDataParallel(inner, **for_each)
model = FullyShardedDataParallel(model, **for_each)
rank = torch.distributed.get_rank()
for step in (1, 2):
    model(torch.arange(5)).sum().backward()
    if flat:
        try:
            as_matrix(model)
        except BadOption as refused:
            assert "freed" in str(refused)
        else:
            raise AssertionError("a freed storage was read")
    found = Gauge(["cosine.mean"]).measure(model, step, report=rank == 0)
    if rank == 0:
        print(json.dumps([expected, found["embgeo/cosine.mean"]]), flush=True)
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without it")
@pytest.mark.parametrize(
    ("parameters", "units"), sampled([("flat", "nested"), ("original", "one")], 2)
)
def test_embeddings_that_fsdp_shards_are_gathered(parameters: str, units: str) -> None:
    """Reading the freed storage of flat parameters ended the process."""
    printed = in_two_processes(FSDP, parameters, units)
    pairs = [json.loads(line) for line in printed.splitlines() if line.startswith("[0")]
    pairs += [json.loads(line) for line in printed.splitlines() if line.startswith("[-")]
    assert len(pairs) == 2
    for expected, found in pairs:
        assert found == pytest.approx(expected, abs=1e-12)


def test_a_freed_storage_is_not_read() -> None:
    rows = torch.ones(4, 3)
    rows.untyped_storage().resize_(0)
    with pytest.raises(BadOption, match="storage of tensor is freed"):
        as_matrix(rows)
    half = torch.arange(12.0).view(4, 3)[1:, :2]
    assert as_matrix(half).data.tolist() == half.tolist()


class LowRank(torch.nn.Module):
    """A layer with the attributes of PEFT's."""

    def __init__(self, base: torch.nn.Module, **state: Any) -> None:
        super().__init__()
        self.base_layer = base
        n, d = base.weight.shape
        self.lora_embedding_A = torch.nn.ParameterDict({"one": torch.ones(2, n)})
        self.lora_embedding_B = torch.nn.ParameterDict({"one": torch.randn(d, 2)})
        self.active_adapters = ["one", "of other layers"]
        self.merged = self.disable_adapters = False
        self.use_dora: dict[str, bool] = {}
        vars(self).update(state)

    @property
    def weight(self) -> Any:
        return self.base_layer.weight

    def get_delta_weight(self, name: str) -> Any:
        return (self.lora_embedding_B[name] @ self.lora_embedding_A[name]).T * 0.5


class Model(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module, head: torch.nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, head

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.layer

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.head


def test_low_rank_changes_are_added() -> None:
    base = torch.nn.Embedding(7, 3)
    layer, head = LowRank(base), torch.nn.Linear(3, 7, bias=False)
    head.weight = base.weight
    changed = (base.weight + layer.get_delta_weight("one")).detach().numpy()
    matrix = as_matrix(Model(layer, head))
    np.testing.assert_array_equal(matrix.data, changed)
    # The head keeps the weight as it was: the two are no longer one matrix.
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, base.weight.detach().numpy())


@pytest.mark.parametrize("state", [{"merged": True}, {"disable_adapters": True}])
def test_adapters_that_change_nothing_now(state: dict[str, Any]) -> None:
    base = torch.nn.Embedding(7, 3)
    found = as_matrix(LowRank(base, **state))
    np.testing.assert_array_equal(found.data, base.weight.detach().numpy())


def test_other_adapters_are_refused_and_a_gauge_warns_once() -> None:
    layer = LowRank(torch.nn.Embedding(7, 3), use_dora={"one": True})
    with pytest.raises(BadOption, match=r"other than plain LoRA; merge it"):
        as_matrix(layer)
    with pytest.warns(UserWarning, match="other than plain LoRA"):
        assert Gauge(["cosine.mean"]).measure(layer, 1) == {}


#: peft 0.21 calls what transformers 5 deprecates.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_model_of_peft() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    peft = pytest.importorskip("peft", reason="peft is not installed")
    sizes = {"vocab_size": 50, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    )
    model = peft.get_peft_model(model, peft.LoraConfig(target_modules=["wte"], r=4))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_embedding_B" in name:
                parameter.normal_()
    found = as_matrix(model).data.copy()
    model.merge_adapter()
    merged = model.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_allclose(found, merged, atol=1e-6)
