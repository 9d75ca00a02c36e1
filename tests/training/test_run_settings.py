"""Settings of runs: what is refused, what is filled in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import inf, nextafter
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest

torch = pytest.importorskip("torch")


import embgeo  # noqa: E402
from embgeo.core.errors import BadOption, UnreadableFile  # noqa: E402
from embgeo.core.settings import parse_value, type_hints  # noqa: E402
from embgeo.training import complete, components  # noqa: E402
from embgeo.training.complete import check_settings, complete_settings  # noqa: E402
from embgeo.training.components import MODELS, TASKS  # noqa: E402
from embgeo.training.limits import Settings, choose  # noqa: E402
from embgeo.training.loop.check import check_study  # noqa: E402
from embgeo.training.registry import METHODS  # noqa: E402
from embgeo.training.schedules import SCHEDULES, InverseSqrt, OneCycle  # noqa: E402
from embgeo.training.sections import OPTIMIZERS, Sgd  # noqa: E402
from embgeo.training.settings import (  # noqa: E402
    StudySettings,
    list_presets,
    load_preset,
    parse_settings,
    read_settings,
)
from embgeo.training.study.run_result import load_result  # noqa: E402
from embgeo.training.tasks import make_task  # noqa: E402
from embgeo.workflows.train import check_runs_folder  # noqa: E402
from tests.support.documents import ROOT  # noqa: E402
from tests.support.refusals import check_message, refusal  # noqa: E402
from tests.support.sampling import each_folder  # noqa: E402
from tests.support.training_runs import N, corpus, run, settings  # noqa: E402


def test_settings_that_make_no_sense_are_refused() -> None:
    for changes in (
        {"compare": ["mel"]},
        {"compare": []},
        {"seeds": []},
        {"compare": ["mle", "mle"]},
        {"seeds": [1, 1]},
        {"compare": ["cosreg"], "method": {"cosreg": {"gamma": -1.0}}},
        {"method": {"foo": {"gamma": 1.0}}},
        {"optimizer": {"asgd": True}},
        {"method": {"cosreg": {"gama": 1.0}}},
        {"method": {"mle": {"gamma": 1.0}}},
        {"method": {"cosreg": {"gamma": "x"}}},
        {"method": {"sc-exp": {"frobenius": [1]}}},
        {"model": {"d": 8, "hiden": 3}},
        {"optimizer": {"momentum": 0.9}},
        {"training": {"device": "cuda:99"}},
        {"training": {"device": "toaster"}},
        {"training": {"batch": 300}},
        {"compare": ["coupled-adam"], "optimizer": {"kind": "sgd"}},
    ):
        with refusal(BadOption):
            check_study(complete_settings(settings().updated(changes)), corpus())


def test_settings_of_tasks_of_a_wrong_type_are_refused() -> None:
    for name, own in (
        ("skipgram", {"wordsim": 3}),
        ("classification", {"merge": 3}),
        ("translation", {"target": "x/y"}),
    ):
        with refusal(BadOption):
            make_task(settings().updated({"task": {"name": name, **own}}))


#: Of each task, settings that it cannot use: they used to be ignored in silence.
UNUSED = {
    "skipgram-cpu": ("data.bpe", "evaluation.batch", "evaluation.test", "evaluation.tokens"),
    "imdb-cpu": ("data.bpe", "model.bias_init", "training.bptt"),
    "multi30k-cpu": ("data.min_count", "training.accumulate", "evaluation.stride"),
}
GIVEN = {
    "data.bpe": 300,
    "evaluation.test": False,
    "model.bias_init": "log-counts",
}


def test_a_setting_that_the_task_cannot_use_is_refused() -> None:
    for preset, name in [(preset, name) for preset, names in UNUSED.items() for name in names]:
        table, key = name.split(".")
        with refusal(BadOption):
            complete_settings(load_preset(preset).updated({table: {key: GIVEN.get(name, 7)}}))


def test_a_run_is_of_one_method(tmp_path: Path) -> None:
    with refusal(BadOption):
        run(settings(compare=["mle", "re"]), tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
@pytest.mark.parametrize("name", ["train.toml", "mle", "mle/seed-0/vocabulary.tsv"])
def test_runs_with_a_link_among_them_are_not_resumed(name: str, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "mle" / "seed-0").mkdir(parents=True)
    (home / "train.toml").write_text("")
    check_runs_folder(home, resume=True)
    elsewhere.mkdir()
    path = home / name
    if path.exists():
        path.rename(home / "old")
    path.symlink_to(elsewhere)
    with refusal(BadOption):
        check_runs_folder(home, resume=True)
    if name == "mle":  # the folder itself may be one that the user names
        path.unlink()
        (home / "old").rename(path)
        (tmp_path / "named").symlink_to(home)
        check_runs_folder(tmp_path / "named", resume=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refusal(BadOption):
        run(settings(), tmp_path / "file" / "run")


def test_a_result_of_something_else_is_refused(tmp_path: Path) -> None:
    for content in ("", "[]", '{"format": 2}', "\x00"):
        (tmp_path / "result.json").write_text(content)
        with pytest.raises(UnreadableFile):
            load_result(tmp_path)


def test_settings_that_are_left_open_are_recorded_as_they_are_taken() -> None:
    found = complete_settings(
        settings(compare=["mle", "sc-exp", "real"], optimizer={"kind": "sgd", "lr": 0.01})
    )
    assert found.model.settings["tied"] is True
    assert found.optimizer.algorithm == Sgd(lr=0.01, weight_decay=1.2e-6)
    assert found.method["real"] == {"gamma": 0.65, "tau": 20.0}
    assert complete_settings(found) == found
    assert parse_settings(found.text(), "settings") == found


def test_another_schedule_starts_from_its_own_settings() -> None:
    """The preset has those of one cycle."""
    cycle = load_preset("tiny-cpu")
    root = complete_settings(cycle.updated({"optimizer": {"schedule": "inverse-sqrt"}})).optimizer
    assert (cycle.optimizer.schedule, root.factor) == ("one-cycle", InverseSqrt())
    back = {"optimizer": {"schedule": "one-cycle"}}
    changed = msgspec.structs.replace(cycle, optimizer=root).updated(back)
    assert complete_settings(changed).optimizer.factor == OneCycle()


def test_presets_name_methods_and_settings_that_exist() -> None:
    for name in list_presets():
        config = complete_settings(load_preset(name))
        assert complete_settings(parse_settings(config.text(), name)) == config
        task = make_task(config)
        small = {"d": 80, "hidden": 8, "layers": 2}
        own = choose(small, task.find_model(config.model.name).SETTINGS)
        task.make_model(config.model.name, N, {**config.model.settings, **own})


def test_the_augmented_loss_is_as_strong_as_published_for_the_text() -> None:
    for name, least, most in (
        ("ptb-inan", 0.5, 0.8),
        ("wt2-cycle", 1.0, 1.5),
        ("wt2-paper", 1.0, 1.5),
    ):
        config = complete_settings(load_preset(name).updated({"compare": ["untied", "al", "real"]}))
        for method in ("al", "real"):
            assert least <= config.method[method]["gamma"] <= most
            assert config.method[method]["tau"] == 20.0


def test_files_of_settings_are_refused_with_the_place(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            "[training]\nepoch = 3",
            "[trainin]\nepochs = 3",
            "steps = 20",
            "training = 3",
            "[method]\ncosreg = 1.0",
            "[training]\nepochs = 3.5",
            "[training]\nepochs = true",
            '[training]\nclip = "much"',
            "[evaluation]\ntest = 1",
            '[optimizer]\nkind = "lion"',
            "[optimizer]\nbetas = [0.9]",
            'compare = "mle"',
            'seeds = ["one"]',
            "compare = [",
        ),
    ):
        path = folder / "mine.toml"
        path.write_text(text)
        with refusal():
            read_settings(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        read_settings(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with refusal(UnreadableFile):
        read_settings(tmp_path / "bytes.toml")


def test_settings_survive_a_file_and_changes_go_in_depth(tmp_path: Path) -> None:
    config = settings(
        compare=["sc-exp"],
        seeds=[3, 4],
        data={"path": 'a "quoted" \\ path\n', "size": 5000},
        method={"sc-exp": {"frobenius": [0.1, 1.0]}},
    )
    (tmp_path / "train.toml").write_text(config.text(), "utf-8")
    assert read_settings(tmp_path / "train.toml") == config
    changed = config.updated({"data": {"size": None}, "optimizer": {"lr": 1}})
    assert changed.data.size is None
    assert changed.data.path == config.data.path
    assert changed.optimizer.algorithm.lr == 1.0
    assert config.one("sc-exp", 4).seeds == (4,)
    assert config.one("mle", 4).method == {}


def test_another_choice_leaves_the_settings_of_the_one_before() -> None:
    config = load_preset("tiny-cpu").updated({"model": {"name": "transformer", "d": 32}})
    assert config.model.settings == {"d": 32}
    assert config.model.bias_init == "log-counts"  # which any architecture has
    same = config.updated({"model": {"name": "transformer", "heads": 2}})
    assert same.model.settings == {"d": 32, "heads": 2}
    constant = config.updated({"optimizer": {"schedule": "constant"}})
    assert constant.optimizer.settings == {"lr": 0.02, "weight_decay": 0.0}
    sgd = config.updated({"optimizer": {"kind": "sgd", "weight_decay": 0.1}})
    assert sgd.optimizer.settings == {"weight_decay": 0.1, "warm_up": 0.1}
    for changed in (config, same, constant, sgd):
        complete_settings(changed)


def test_windows_of_an_evaluation_follow_the_training_where_no_state_is_carried() -> None:
    usual = load_preset("tiny-cpu")
    assert complete_settings(usual).evaluation.bptt == 70
    other = usual.updated({"model": {"name": "transformer", "d": 32}})
    assert complete_settings(other).evaluation.bptt == other.training.bptt == 20
    warm = other.updated({"evaluation": {"stride": 5}})
    assert complete_settings(warm).evaluation.stride == 5


def test_evaluations_that_make_no_sense() -> None:
    for tables in (
        {"evaluation": {"stride": 5}},
        {"model": {"name": "transformer"}, "evaluation": {"stride": 21}},
        {"training": {"patience": 3}},
    ):
        with refusal(BadOption):
            complete_settings(load_preset("tiny-cpu").updated(tables))


def test_a_tokenizer_leaves_the_size_of_a_vocabulary_of_words() -> None:
    """The usual preset has one, and there is no way to unset it on the line."""
    config = load_preset("tiny-cpu").updated({"data": {"bpe": 300, "tokens": 500}})
    assert (config.data.size, config.data.bpe, config.data.tokens) == (None, 300, 500)
    both = load_preset("tiny-cpu").updated({"data": {"bpe": 300, "size": 9}})
    assert both.data.size == 9  # asked for, and then refused


def test_few_steps_are_evaluated_on_a_part_of_the_splits() -> None:
    def tokens(**tables: Any) -> int | None:
        return complete_settings(settings(**tables)).evaluation.tokens

    assert tokens() is None
    assert tokens(training={"steps": 40}) == 20_000
    assert tokens(training={"steps": 4000, "batch": 20, "bptt": 35}) == 700_000
    assert tokens(training={"steps": 40}, evaluation={"tokens": 2}) == 2
    with refusal(BadOption):
        tokens(evaluation={"tokens": 1})


#: A mistake of each kind.
TYPOS: tuple[dict[str, Any], ...] = (
    {"compare": "mlee"},
    {"preset": "tiny"},
    {"tune": ["optimizer.lrr=1,2"]},
    {"data": "no-text"},
    {"data": "a\0b"},
    {"compare": "x", "settings": {"method.x": {"base": "mle", "model": {"memry": 0}}}},
    *(
        {"settings": {name: value}}
        for name, value in {
            "training.stps": 3,
            "model.name": "awd-lstmm",
            "model.hiden": 3,
            "model.layers": 10**6,
            "task.name": "lmm",
            "task.smothing": 0.1,
            "optimizer.kind": "adm",
            "optimizer.warm_up_steps": 3,
            "method.cosreg.gama": 3.0,
            "method.cosrg.gamma": 3.0,
            "method.mine": {"base": "cosrg"},
        }.items()
    ),
)


def test_a_mistake_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    """Importing it takes most of the time until the first step."""
    (tmp_path / "text").write_text("")
    program = (
        "import json, sys, embgeo, embgeo.core.errors\n"
        "for given in json.loads(sys.argv[1]):\n"
        "    try:\n        embgeo.train(**{'data': 'text', **given})\n"
        "    except embgeo.core.errors.EmbgeoError as error:\n        print(error)\n"
        "    assert 'torch' not in sys.modules, given\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, json.dumps(TYPOS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    lines = said.stdout.splitlines()
    assert len(lines) == len(TYPOS)
    for line in lines:
        check_message(line)


# --- Limits -------------------------------------------------------------------------------------


def list_structures() -> list[type[Settings]]:
    """All that holds settings: sections, optimizers, schedules, models, tasks, methods."""
    tables = [hint for hint in type_hints(StudySettings).values() if isinstance(hint, type)]
    of_tasks = [kind for task in TASKS.values() for kind in task.MODELS.values()]
    of_methods = [part for method in METHODS.values() for part in method.parts]
    named = [OPTIMIZERS, SCHEDULES, MODELS, TASKS]
    found = [StudySettings, *tables, *of_tasks, *of_methods]
    return list(dict.fromkeys([*found, *(kind for known in named for kind in known.values())]))


def find_edges(hint: Any) -> Iterator[tuple[Any, Any]]:
    """Values just inside and just outside of each limit of a type."""
    origin, entries = get_origin(hint), get_args(hint)
    if origin is tuple:
        assert Ellipsis not in entries, "an endless list"
        for edge in find_edges(entries[0]):
            yield tuple([value] * len(entries) for value in edge)
    elif origin is not Annotated:
        assert hint is not int, "a whole number without limits"
        for inner in entries:
            yield from find_edges(inner)
    elif get_origin(kind := entries[0]) is tuple:
        item = "x" if get_args(kind)[0] is str else 0
        yield [item] * entries[1].max_length, [item] * (entries[1].max_length + 1)
        for edge in find_edges(get_args(kind)[0]):
            yield tuple([value] for value in edge)
    else:
        below, above = (
            (lambda value: value - 1, lambda value: value + 1)
            if kind is int
            else (lambda value: nextafter(value, -inf), lambda value: nextafter(value, inf))
        )
        meta = entries[1]
        edges = {
            meta.ge: lambda limit: (limit, below(limit)),
            meta.gt: lambda limit: (above(limit), limit),
            meta.le: lambda limit: (limit, above(limit)),
            meta.lt: lambda limit: (below(limit), limit),
        }
        edges.pop(None, None)
        assert kind is float or len(edges) == 2, "a whole number without both limits"
        for limit, find in edges.items():
            yield find(limit)


def test_limits_of_all_settings_hold_on_both_sides() -> None:
    """What a stranger's settings may cost: every one is read from the types, none is left out."""
    limited = set()
    for kind in list_structures():
        for name in {*kind.__struct_fields__} - {"tune"}:
            hint = type_hints(kind)[name]
            for inside, outside in find_edges(hint):
                limited.add((kind, name))
                parse_value(inside, hint, name)
                with pytest.raises(BadOption, match=r"^[^\n]+\Z"):
                    parse_value(outside, hint, name)
    assert len(limited) > 90


def test_studies_are_limited_in_runs_and_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "MOST_RUNS", 20)
    compare = ["mle", "cosreg"]
    for fits, more in (
        ({"seeds": list(range(10))}, {"seeds": list(range(11))}),
        ({"tune": {"lr": [1.0 / n for n in range(1, 11)]}}, {"tune": {"lr": [*range(1, 12)]}}),
    ):
        check_settings(settings(compare=compare, **fits))
        with refusal(BadOption):
            check_settings(settings(compare=compare, **more))


def test_limits_hold_for_every_way_in(tmp_path: Path) -> None:
    """Python, the line, a file, and what is resumed."""
    own, out, text = tmp_path / "own.toml", tmp_path / "runs", tmp_path / "text"
    text.write_text("a b c")
    wrong = load_preset("tiny-cpu").updated({"model": {"layers": 10**6}})
    out.mkdir()
    (out / "train.toml").write_text(wrong.text(), "utf-8")
    own.write_text("[model]\nlayers = 1_000_000\n", "utf-8")
    for given in (
        {"settings": {"model": {"layers": 10**6}}},
        {"settings": ["model.layers=1000000"]},
        {"config": own},
        {"resume": True},
        {"tune": {"model.layers": [1, 10**6]}},
        {"seeds": 1001},
        {"tune": {"lr": [1 / n for n in range(1, 1002)]}},
        {"jobs": 10**9},
    ):
        with refusal(BadOption):
            embgeo.train(text, out=out, **given)


def test_the_settings_of_every_campaign_are_still_accepted() -> None:
    paths = sorted((ROOT / "benchmarks" / "results").glob("campaign-*.toml"))
    assert len(paths) == 15
    for path in paths:
        complete_settings(read_settings(path))


HEADED = [
    kind
    for kind in vars(components).values()
    if isinstance(kind, type(Settings))
    and {"d", "heads"} <= set(kind.__struct_fields__)
    and not kind.__subclasses__()
]


@pytest.mark.parametrize("kind", HEADED)
def test_heads_divide_the_features(kind: type[Any]) -> None:
    with pytest.raises(BadOption, match="heads"):
        kind(d=64, heads=3)
