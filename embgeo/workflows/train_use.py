"""Sampling text from, and exporting, the model of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, argument
from embgeo.workflows.folders import ELSEWHERE, is_occupied, write_set

if TYPE_CHECKING:
    from embgeo.training.data import Vocabulary


def sample_text(
    run: Path | str,
    *,
    prompt: str = "",
    length: int = 100,
    temperature: float = 1.0,
    seed: int = 0,
    plugins: Sequence[Path | str] = (),
) -> str:
    """Sample text from the model of a finished run: a line for each sentence, without the prompt.

    `run` is the folder ``METHOD/seed-S``. The `prompt` consists of words of its vocabulary; by
    default it is the end of a sentence, or the most frequent token. The token for unknown words is
    never drawn. `plugins` are files of Python code that define the model, which are run.
    """
    from embgeo.training.loop.start import load_model
    from embgeo.training.plugins import load_plugins, naming_plugins, require_plugins
    from embgeo.training.sampling import sample_rows

    loaded = load_plugins([Path(path) for path in plugins])
    folder = Path(run)
    with naming_plugins(plugins):
        model, vocabulary, config = load_model(folder)
        require_plugins({n: d for n, d in config.plugins.items() if n in loaded}, loaded)
        if config.data.tokenizer is not None:
            raise BadOption(
                "was trained with a tokenizer; text is sampled from models of words",
                where=folder,
                way_out="export it, and sample with transformers",
            )
        rows = sample_rows(
            model,
            place_prompt(prompt, vocabulary),
            length=length,
            window=config.training.bptt,
            temperature=temperature,
            seed=seed,
            never=() if vocabulary.unknown is None else (vocabulary.unknown,),
        )
    words = ["\n" if row == vocabulary.end else vocabulary.tokens[row] for row in rows]
    return "\n".join(line.strip() for line in " ".join(words).split("\n")).strip()


def place_prompt(prompt: str, vocabulary: Vocabulary) -> list[int]:
    """The rows of the words of a prompt; without words, of the end of a sentence."""
    row = {token: place for place, token in enumerate(vocabulary.tokens)}
    for word in prompt.split():
        cause = f"{word!r} is not in the vocabulary"
        refuse_if(word not in row, argument("prompt"), cause, "leave it out")
    return [row[word] for word in prompt.split()] or [vocabulary.end or 0]


def export_model(run: Path | str, out: Path | str) -> Path:
    """Write the Transformer of a finished run as a folder that transformers loads as GPT-2.

    ``GPT2LMHeadModel.from_pretrained(out)`` gives the same logits. A model of words gets a
    tokenizer, too.
    """
    from embgeo.training.hugging_face import gpt2_files, tokenizer_files
    from embgeo.training.loop.start import load_model

    folder = Path(out)
    refuse_if(is_occupied(folder), str(folder), "exists and is not empty", ELSEWHERE)
    model, vocabulary, config = load_model(Path(run))
    files = gpt2_files(model, vocabulary)
    if config.data.tokenizer is None:
        files |= tokenizer_files(vocabulary)
    write_set(folder, files)
    return folder
