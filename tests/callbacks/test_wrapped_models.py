"""Models whose embedding is not where it seems to be: sharded, compiled, adapted by PEFT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.callbacks import Monitor  # noqa: E402
from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.io.memory import as_matrix  # noqa: E402
from tests.support.processes import in_two_processes  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import sample_cases  # noqa: E402

TRAINING = """
import sys, warnings

import torch
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

from embgeo.core.errors import BadOption
from embgeo.callbacks import Monitor
from embgeo.io.memory import as_matrix

warnings.simplefilter("ignore")
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()


def wrap(model, way, units):
    whole = torch.nn.parallel.DistributedDataParallel
    if way == "compiled":
        return torch.compile(whole(model), backend="aot_eager")
    if way == "ddp":
        return whole(model)
    for_each = {"device_id": torch.device("cpu"), "use_orig_params": way == "original"}
    inside = model[0] if units == "nested" else None
    if way == "fsdp2":
        if inside is not None:
            fully_shard(inside)
        return fully_shard(model)
    if inside is not None:
        model[0] = FullyShardedDataParallel(inside, **for_each)
    return FullyShardedDataParallel(model, **for_each)


def train(way="", units=""):
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Embedding(41, 8), torch.nn.Linear(8, 8))
    model = torch.nn.Sequential(inner, torch.nn.Linear(8, 41))
    with torch.no_grad():
        inner[0].weight[40] = 0.0
    model = wrap(model, way, units) if way else model
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    monitor = Monitor(["cosine.mean"], every=2)
    seen = []
    for step in range(1, 4):
        optimizer.zero_grad()
        logits = model(torch.arange(20))
        torch.nn.functional.cross_entropy(logits, torch.arange(20) + 7).backward()
        optimizer.step()
        values = monitor.observe(model, step, report=not way or rank == 0)
        values.pop("embgeo/seconds", None)
        seen.append(values)
    return model, seen


_, expected = train()
model, seen = train(*sys.argv[1:])
assert [bool(one) for one in expected] == [False, True, False]
assert rank == 1 or [one.keys() for one in seen] == [one.keys() for one in expected]
for one, other in zip(seen, expected) if rank == 0 else ():
    for name, value in one.items():
        assert abs(value - other[name]) <= 1e-6 * (1 + abs(value)), (name, value, other[name])
if sys.argv[1] == "flat":
    try:
        as_matrix(model)
    except BadOption as refused:
        assert "freed" in str(refused)
    else:
        raise AssertionError("a freed storage was read")
print("as in one process", flush=True)
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without it")
@pytest.mark.parametrize(
    ("way", "units"),
    sample_cases(
        [
            ("flat", "nested"),
            ("original", "one"),
            ("fsdp2", "nested"),
            ("ddp", "one"),
            ("compiled", "one"),
            ("flat", "one"),
            ("original", "nested"),
            ("fsdp2", "one"),
        ],
        8,
    ),
)
def test_a_training_in_two_processes_is_seen_as_in_one(way: str, units: str) -> None:
    """Looks, measurements and the rule that ends the training, however the model is wrapped.

    Reading the freed storage of flat parameters ended the process.
    """
    assert in_two_processes(TRAINING, way, units).count("as in one process") == 2


def test_a_freed_storage_is_not_read() -> None:
    rows = torch.ones(4, 3)
    rows.untyped_storage().resize_(0)
    with refusal(BadOption):
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


def test_other_adapters_are_refused_and_a_monitor_warns_once() -> None:
    layer = LowRank(torch.nn.Embedding(7, 3), use_dora={"one": True})
    with refusal(BadOption):
        as_matrix(layer)
    with pytest.warns(UserWarning, match="other than plain LoRA"):
        assert Monitor(["cosine.mean"]).measure(layer, 1) == {}


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
