"""Figure 1 of Gao et al. 2019: rows of a translation model, of word2vec and of classes.

    python benchmarks/gao_figure_1.py --translation m30k.runs --words texts.runs [--seeds N]
        [--out FOLDER]

`--translation` and `--words` are studies of ``embgeo train`` with the presets multi30k-cpu and
skipgram-cpu, of which the runs of `mle` are taken. The classes are those of a small network that
is trained here on the digits of scikit-learn. Writes the figure with its numbers, and prints the
table and the claims of the paper, which prints pictures and no numbers: it says that cosines of the
translation model are positive “for almost all cases”, for which 95% stands here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import embgeo
from embgeo.core.values import format_number
from embgeo.result.analysis import Analysis
from embgeo.training.study.spread import LEAST_SEEDS, compare_seeds, spread

METHOD = "mle"
SECTIONS = ("cosine", "spectrum", "projection")
MEAN, POSITIVE = "cosine.mean", "cosine.positive_share"
#: Columns of the table.
NUMBERS = {MEAN: "mean cosine", POSITIVE: "cosines above 0", "spectrum.top_share": "σ₁² / Σσ²"}
#: Text, panel, number, claimed direction, and the limit or the other panel.
CLAIMS: tuple[tuple[str, str, str, str, float | str], ...] = (
    ("Rows of a translation model lie in a cone", "translation", MEAN, "higher", 0.0),
    ("“Positive for almost all cases”: at least 95%", "translation", POSITIVE, "higher", 0.95),
    ("Rows of word2vec are spread more", "words", MEAN, "lower", "translation"),
    ("Rows of classes are spread around the origin", "classes", MEAN, "lower", 0.0),
    ("Fewer than half of their cosines are above 0", "classes", POSITIVE, "lower", 0.5),
)
EPOCHS, BATCH = 40, 64


def train_classes(seed: int) -> tuple[np.ndarray[Any, np.dtype[np.float32]], float]:
    """The softmax rows of a convolutional network on 8 × 8 digits, and its test accuracy."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    torch.manual_seed(seed)
    images = torch.from_numpy(digits.images).float().div(16.0).unsqueeze(1)
    targets = torch.from_numpy(digits.target).long()
    n = len(images) * 4 // 5
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    kept, left = order[:n], order[n:]
    network = nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.5)),
        nn.Linear(128, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in kept[torch.randperm(n)].split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), targets[rows]).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        right = (network(images[left]).argmax(dim=1) == targets[left]).double().mean()
    weight = network.get_parameter(f"{len(network) - 1}.weight")
    return weight.detach().numpy(), float(right)


def analyze_runs(study: Path) -> dict[int, Analysis]:
    """Analyses of the runs of `METHOD` by seed; of an untied model that of the output matrix."""
    found: dict[int, Analysis] = {}
    for home in sorted((study / METHOD).glob("seed-*")):
        own = home / "output" if (home / "output").is_dir() else home
        found[int(home.name.removeprefix("seed-"))] = embgeo.load_analysis(own)
    if not found:
        raise SystemExit(f"{study} holds no run of {METHOD}")
    return found


def values(analyses: Mapping[int, Analysis], name: str) -> dict[int, float]:
    """A number by seed."""
    scalars = {seed: one.scalar(name) for seed, one in analyses.items()}
    return {seed: s.value for seed, s in scalars.items() if s is not None and s.value is not None}


def tabulate(panels: Mapping[str, Mapping[int, Analysis]]) -> Iterator[str]:
    """A line for each panel."""
    yield f"| | matrix | seeds | {' | '.join(NUMBERS.values())} |"
    yield "|---" * (3 + len(NUMBERS)) + "|"
    for name, analyses in panels.items():
        first = next(iter(analyses.values()))
        held = [spread(list(values(analyses, number).values())) for number in NUMBERS]
        texts = ["–" if one is None else one.text for one in held]
        size = f"{first.kept:,} × {first.provenance['d']:,}"
        yield f"| {name} | {size} | {len(analyses)} | {' | '.join(texts)} |"


def decide(panels: Mapping[str, Mapping[int, Analysis]]) -> Iterator[str]:
    """A line for each claim: the whole 95% interval over seeds lies on one side, or neither."""
    for text, panel, number, change, limit in CLAIMS:
        after = values(panels[panel], number)
        before = (
            values(panels[limit], number)
            if isinstance(limit, str)
            else dict.fromkeys(after, float(limit))
        )
        held = compare_seeds(before, after)
        if held is None or held.interval is None:
            yield f"not decidable: {text}; at least {LEAST_SEEDS} seeds"
            continue
        side = held.side()
        verdict = {"open": "not decidable", change: "reproduced"}.get(side, "not reproduced")
        said = f"{format_number(held.after)} against {format_number(held.before)}"
        yield f"{verdict}: {text}; {said}, difference {held.text}, {held.seeds} seeds"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--translation", type=Path, required=True, help="a study")
    parser.add_argument("--words", type=Path, required=True, help="a study")
    parser.add_argument("--seeds", type=int, default=3, help="networks for the classes")
    parser.add_argument("--out", type=Path, default=Path("gao-figure-1"))
    options = parser.parse_args()
    classes: dict[int, Analysis] = {}
    for seed in range(options.seeds):
        W, accuracy = train_classes(seed)
        print(f"classes, seed {seed}: test accuracy {accuracy:.3f}")
        classes[seed] = embgeo.analyze(W, sections=SECTIONS, reference=False)
    panels: dict[str, dict[int, Analysis]] = {
        "translation": analyze_runs(options.translation),
        "words": analyze_runs(options.words),
        "classes": classes,
    }
    drawn = [next(iter(analyses.values())) for analyses in panels.values()]
    made = embgeo.figures(*drawn, figure="gao-figure-1", format=("pdf", "svg"), label=list(panels))
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in made.files.items():
        (options.out / name).write_bytes(content)
    print(*tabulate(panels), *decide(panels), sep="\n")


if __name__ == "__main__":
    main()
