"""Text sampled from trained models, and Transformers exported for transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.cli.app import run as command  # noqa: E402
from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.data import write_vocabulary  # noqa: E402
from embgeo.training.data.vocabulary import Vocabulary  # noqa: E402
from embgeo.training.loop.start import load_model  # noqa: E402
from embgeo.training.sampling import sample_rows  # noqa: E402
from embgeo.workflows.train_use import export_model, sample_text  # noqa: E402
from tests.support.training_runs import LSTM, corpus, run, settings  # noqa: E402

TRANSFORMER: dict[str, Any] = {"name": "transformer", "d": 8, "heads": 2, "layers": 2}
EVALUATION = {"evaluation": {"bptt": 10}}


def trained(folder: Path, method: str = "mle", model: dict[str, Any] = TRANSFORMER) -> Path:
    config = settings(method, model=model, **EVALUATION)
    run(config.updated({"training": {"epochs": 1}}), folder)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def lstm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("lstm"), model=LSTM)


# --- Sampling ---------------------------------------------------------------------------------


def test_a_state_is_carried_as_if_all_were_read_again(lstm: Path) -> None:
    model, _, _ = load_model(lstm)
    with torch.no_grad():
        found = sample_rows(model, [0, 3], length=12, window=10, seed=5)
        generator = torch.Generator().manual_seed(5)
        rows = [0, 3]
        for _ in range(12):
            output = model(torch.tensor(rows).unsqueeze(1))
            p = torch.softmax(model.head(output.hidden[-1, 0]).double(), dim=0)
            rows.append(int(torch.multinomial(p, 1, generator=generator)))
    assert found == rows[2:]


def test_a_model_without_a_state_sees_its_last_window(home: Path) -> None:
    model, _, _ = load_model(home)
    long = sample_rows(model, [0] * 30, length=5, window=10, seed=1)
    assert long == sample_rows(model, [0] * 10, length=5, window=10, seed=1)


def test_temperature_seed_and_rows_that_are_never_drawn(lstm: Path) -> None:
    model, _, _ = load_model(lstm)

    def drawn(**more: Any) -> list[int]:
        return sample_rows(model, [0], **{"length": 40, "window": 10, **more})

    assert drawn() == drawn(seed=0) != drawn(seed=1)
    cold = drawn(temperature=1e-6)
    assert cold == drawn(temperature=1e-6, seed=1)
    assert len(set(drawn(temperature=50.0))) > len(set(cold))
    assert 0 not in drawn(never=[0])
    with pytest.raises(BadOption, match=r"temperature is 0.0; give a number above 0"):
        drawn(temperature=0.0)


def test_text_is_drawn_on_the_command_line(
    lstm: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = sample_text(lstm, prompt="t3 t4", length=7, seed=2)
    assert len(text.split()) == 7
    assert command(["train", "--sample", str(lstm), "--prompt", "t3 t4", "--length", "7",
                    "--seed", "2"]) == 0  # fmt: skip
    assert capsys.readouterr().out == text + "\n"
    with pytest.raises(BadOption, match="'nothing' is not in the vocabulary"):
        sample_text(lstm, prompt="nothing")
    assert command(["train", "--sample", str(tmp_path)]) == 2
    assert "the run is not finished" in capsys.readouterr().err


def test_a_sentence_ends_a_line_and_unknown_words_are_not_drawn(lstm: Path, tmp_path: Path) -> None:
    for name in ("result.json", "model.safetensors"):
        (tmp_path / name).write_bytes((lstm / name).read_bytes())
    old = corpus().vocabulary
    tokens = ("<eos>", "<unk>", *old.tokens[2:])
    write_vocabulary(Vocabulary(tokens, old.counts, 1, 0), tmp_path / "vocabulary.tsv")
    text = sample_text(tmp_path, length=300)
    assert "<" not in text
    assert text.count("\n") > 3


# --- Export -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mle", "untied", "sc-exp"])
def test_the_folder_is_a_gpt2(home: Path, tmp_path: Path, method: str) -> None:
    source = home if method == "mle" else trained(tmp_path / "run", method)
    out = export_model(source, tmp_path / "out")
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert (config["n_layer"], config["n_head"], config["n_inner"]) == (2, 2, 32)
    assert config["tie_word_embeddings"] == (method != "untied")
    ours, vocabulary, _ = load_model(source)
    weights = read(out / "model.safetensors")
    assert ("lm_head.weight" in weights) == (method == "untied")
    inputs = torch.randint(0, len(vocabulary), (9, 3), generator=torch.manual_seed(0))
    with torch.no_grad():
        expected = ours.head(ours(inputs).hidden).transpose(0, 1)
        assert torch.allclose(gpt2_logits(weights, config, inputs.T), expected, atol=1e-5)


def read(path: Path) -> Any:
    from safetensors.torch import load_file

    return load_file(path)


def gpt2_logits(weights: Any, config: dict[str, Any], ids: Any) -> Any:
    """GPT-2 as Radford et al. describe it, by its published names."""
    layer_norm, heads = torch.nn.functional.layer_norm, config["n_head"]

    def norm(x: Any, name: str) -> Any:
        w, b = (weights[f"transformer.{name}.{part}"] for part in ("weight", "bias"))
        return layer_norm(x, (x.shape[-1],), w, b, config["layer_norm_epsilon"])

    def dense(x: Any, name: str) -> Any:
        return x @ weights[f"transformer.{name}.weight"] + weights[f"transformer.{name}.bias"]

    length = ids.shape[1]
    x = weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][:length]
    hidden = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
    for i in range(config["n_layer"]):
        parts = dense(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        seen = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)
        x = x + dense(seen, f"h.{i}.attn.c_proj")
        inner = torch.nn.functional.gelu(dense(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + dense(inner, f"h.{i}.mlp.c_proj")
    W = weights.get("lm_head.weight", weights["transformer.wte.weight"])
    return norm(x, "ln_f") @ W.T


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_transformers_loads_it_with_the_same_logits(home: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    out = export_model(home, tmp_path / "out")
    loaded, report = transformers.GPT2LMHeadModel.from_pretrained(out, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ours, vocabulary, _ = load_model(home)
    inputs = torch.randint(0, len(vocabulary), (9, 3), generator=torch.manual_seed(0))
    with torch.no_grad():
        expected = ours.head(ours(inputs).hidden).transpose(0, 1)
        assert torch.allclose(loaded.eval()(inputs.T).logits, expected, atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    assert tokenizer("t3 t0")["input_ids"] == [3, 0]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LSTM, "the model is of type awd-lstm; train model.name=transformer"),
        ({**TRANSFORMER, "positions": "rotary"}, "its positions are rotary"),
        ({**TRANSFORMER, "bias": True}, "its output layer has a bias; train model.bias=false"),
    ],
)
def test_other_architectures_are_refused(
    tmp_path: Path, model: dict[str, Any], message: str
) -> None:
    trained(tmp_path / "run", model=model)
    with pytest.raises(BadOption) as error:
        export_model(tmp_path / "run", tmp_path / "out")
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


def test_an_export_on_the_command_line(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command(["train", "--export", str(home), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"model: {out}\n"
    assert command(["train", "--export", str(home), "-o", str(out)]) == 2
    assert "is not empty; choose another folder with -o" in capsys.readouterr().err
    assert command(["train", "--export", str(home)]) == 2
    assert "no folder is given" in capsys.readouterr().err
