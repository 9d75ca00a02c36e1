"""What can be done with the model of a finished run: sample text, export it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.errors import BadOption, argument
from embgeo.workflows.folders import is_occupied, write_set

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
    """Text that the model of a finished run draws after a prompt.

    Parameters
    ----------
    run : path
        The folder of a run, ``METHOD/seed-S``.
    prompt : str
        Words of its vocabulary; by default the end of a sentence, or the most frequent token.
    length : int
        Tokens that are drawn; the one for unknown words never is.
    temperature : float
    seed : int
    plugins : sequence of path
        Files of Python code that are run, with the model of the run where that is your own.

    Returns
    -------
    str
        Without the prompt; a line for each sentence.

    Raises
    ------
    BadOption
        A run that was trained with a tokenizer, or arguments that make no sense.
    UnreadableFile
        The run is not finished, or a file is damaged.
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
    """The rows of the words of a prompt, or of what comes before a sentence."""
    row = {token: place for place, token in enumerate(vocabulary.tokens)}
    for word in prompt.split():
        if word not in row:
            raise BadOption(
                f"{word!r} is not in the vocabulary",
                where=argument("prompt"),
                way_out="leave it out",
            )
    return [row[word] for word in prompt.split()] or [vocabulary.end or 0]


def export_model(run: Path | str, out: Path | str) -> Path:
    """Write the Transformer of a finished run as a folder that transformers loads as GPT-2.

    ``GPT2LMHeadModel.from_pretrained(out)`` has the same logits. For a model of words there is a
    tokenizer, too.

    Parameters
    ----------
    run : path
        The folder of a run, ``METHOD/seed-S``.
    out : path
        A new folder.

    Raises
    ------
    BadOption
        Another architecture, or a folder that holds something.
    UnreadableFile
        The run is not finished, or a file is damaged.
    """
    from embgeo.training.hugging_face import gpt2_files, tokenizer_files
    from embgeo.training.loop.start import load_model

    folder = Path(out)
    if is_occupied(folder):
        raise BadOption("is not empty", where=folder, way_out=f"give another {argument('out')}")
    model, vocabulary, config = load_model(Path(run))
    files = gpt2_files(model, vocabulary)
    if config.data.tokenizer is None:
        files |= tokenizer_files(vocabulary)
    write_set(folder, files)
    return folder
