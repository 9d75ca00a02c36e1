"""The log of a training run: what is read, what is skipped, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.training.study.log import read_log
from tests.support.refusals import refusal
from tests.support.sampling import each_folder


def write_whole(folder: Path, text: str) -> Path:
    path = folder / "metrics.jsonl"
    path.write_text(text, "utf-8")
    return path


def test_curves_are_sorted_by_step_and_the_last_word_counts(tmp_path: Path) -> None:
    log = read_log(
        write_whole(
            tmp_path,
            '{"step": 20, "cosine.mean": 0.2, "loss": 3}\n'
            '{"step": 10, "cosine.mean": 0.1}\n'
            "\n"
            '{"step": 20, "cosine.mean": 0.3}\n',
        )
    )
    steps, values, _ = log["cosine.mean"]
    assert steps.tolist() == [10, 20]
    assert values.tolist() == [0.1, 0.3]
    assert log["loss"][0].tolist() == [20]


def test_what_is_no_number_is_skipped(tmp_path: Path) -> None:
    huge = "1" + 400 * "0"
    log = read_log(
        write_whole(
            tmp_path,
            f'{{"step": 1, "a": NaN, "b": null, "c": "x", "d": true, "e": {huge}, "f": [1], '
            '"g": Infinity, "h": 2, "i": 1.1e100, "j": -1e308, "k": 1e100}\n',
        )
    )
    assert set(log) == {"h", "k"}
    assert np.isfinite(log["h"][1]).all()


def test_a_number_that_is_lost_before_the_end_is_told(tmp_path: Path) -> None:
    lines = '{"step": 3, "a": NaN, "b": 1}\n{"step": 2, "a": 1, "b": null, "c": 2}\n'
    log = read_log(write_whole(tmp_path, lines))
    assert {name: curve.lost for name, curve in log.items()} == {"a": 3, "b": None, "c": None}


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    log = read_log(write_whole(tmp_path, '{"step": 1, "a.b": 1}\n{"step": 2, "a.'))
    assert log["a.b"][0].tolist() == [1]


def test_lines_that_are_no_entries_are_refused_by_number(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            '{"step": 1, "a": 1}\n{"step": 2, "a.\n{"step": 3, "a": 1}\n',
            '{"a": 1}\n{"step": 1, "a": 1}\n',
            '{"step": "1", "a": 1}\n',
            '{"step": null, "a": 1}\n',
            '{"step": NaN, "a": 1}\n',
            '{"step": 1e308, "a": 1}\n{"step": 1, "a": 1}\n',
            "[1]\n",
            "[" * 100_000 + "\n",
        ),
    ):
        with refusal(UnreadableFile):
            read_log(write_whole(folder, text))


def test_a_log_without_numbers_is_refused(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path, ("", "\n\n", '{"step": 1}\n', '{"step": 1, "a": "x"}\n')
    ):
        with refusal(UnreadableFile):
            read_log(write_whole(folder, text))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with refusal(UnreadableFile):
        read_log(path)
    with refusal(UnreadableFile):
        read_log(tmp_path)
