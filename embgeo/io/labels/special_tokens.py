"""Special tokens: those that a tokenizer, its files and chat templates name."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from embgeo.core.errors import UnreadableFile
from embgeo.core.special import Role, SpecialToken
from embgeo.files.small_files import is_companion, read_json, read_text, safe_text
from embgeo.io.labels.vocabulary import TokenizerVocabulary

#: Keys of tokenizer_config.json and special_tokens_map.json by role.
_NAMED: dict[str, Role] = {
    "bos_token": "bos", "eos_token": "eos", "pad_token": "pad", "unk_token": "unk",
    "cls_token": "cls", "sep_token": "sep", "mask_token": "mask",
}  # fmt: skip
_LISTS = ("additional_special_tokens", "extra_special_tokens")
#: Keys of config.json, whose values are row numbers.
_IDS: dict[str, Role] = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "pad"}
#: Spellings in a template that are tokens if the vocabulary has them; others are markup.
_SPELLED = re.compile(
    r"<\|[^|<>\s]{1,80}\|>|<｜[^｜<>\s]{1,80}｜>|</?[A-Za-z_][\w.:-]{0,80}>|\[/?[A-Za-z_]{1,80}\]"
)
_SETTINGS = "tokenizer_config.json"
#: Characters of a template times the tokens that are sought in it.
_MOST_LOOKED_AT = 2**30

_RolesByToken = dict[str, set[Role]]


def find_special(folder: Path, vocabulary: TokenizerVocabulary) -> tuple[SpecialToken, ...]:
    """Find the special tokens of a model folder, by row; those without a row come last."""
    tables = [_object(folder / name) for name in ("special_tokens_map.json", _SETTINGS)]
    template = "\n".join(_templates(folder, tables[-1]))
    return collect_special(vocabulary, tables, template, _object(folder / "config.json"))


def collect_special(
    vocabulary: TokenizerVocabulary,
    tables: Iterable[Mapping[str, Any]],
    template: str,
    config: Mapping[str, Any],
) -> tuple[SpecialToken, ...]:
    """Collect the special tokens, by row; those without a row come last.

    `tables` name tokens by role, as tokenizer_config.json does; `template` joins all chat
    templates; `config` names rows by role, as config.json does.
    """
    named: _RolesByToken = defaultdict(set)
    for token in vocabulary.added:
        named[token].add("special" if token in vocabulary.special else "added")
    for table in tables:
        for role, token in _list_named(table):
            named[token].add(role)
    if len(template) * len(named) > _MOST_LOOKED_AT:
        cause = f"its chat template is implausibly long for {len(named):,} added tokens"
        raise UnreadableFile(cause, where=_SETTINGS)
    for token in list(_find_used(template, named)):
        named[token].add("template")
    rows = {token: row for row, token in enumerate(vocabulary.tokens) if token in named}
    rows |= vocabulary.added
    # By row, or by token where the vocabulary does not have it.
    found: dict[int | str, tuple[str, set[Role]]] = {}
    for token, roles in named.items():
        if token in rows or roles != {"template"}:
            found[rows.get(token, token)] = (token, roles)
    for role, row in _list_rows(config, len(vocabulary.tokens)):
        found.setdefault(row, (vocabulary.tokens[row], set()))[1].add(role)
    special = (
        SpecialToken(
            token,
            key if isinstance(key, int) else None,
            tuple(role for role in get_args(Role) if role in roles),
        )
        for key, (token, roles) in found.items()
    )
    return tuple(sorted(special, key=lambda one: (one.row is None, one.row, one.token)))


def _object(path: Path) -> Mapping[str, Any]:
    data = read_json(path) if is_companion(path) else {}
    return data if isinstance(data, dict) else {}


def _list_named(table: Mapping[str, Any]) -> Iterator[tuple[Role, str]]:
    for key, role in _NAMED.items():
        if text := _content(table.get(key)):
            yield role, text
    for key in _LISTS:
        listed = table.get(key)
        entries = list(listed.values()) if isinstance(listed, dict) else listed
        for entry in entries if isinstance(entries, list) else ():
            if text := _content(entry):
                yield "additional", text


def _content(entry: Any) -> str:
    """Return the text of a token, which may be wrapped in an object; empty if there is none."""
    text = entry.get("content") if isinstance(entry, dict) else entry
    return safe_text(text) if isinstance(text, str) else ""


def _list_rows(config: Mapping[str, Any], size: int) -> Iterator[tuple[Role, int]]:
    for key, role in _IDS.items():
        ids = config.get(key)
        for row in ids if isinstance(ids, list) else [ids]:
            if type(row) is int and 0 <= row < size:
                yield role, row


def _templates(folder: Path, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield chat templates from all files that may hold one."""
    for value in (
        settings.get("chat_template"),
        _object(folder / "chat_template.json").get("chat_template"),
    ):
        entries = value if isinstance(value, list) else [value]
        texts = (entry.get("template") if isinstance(entry, dict) else entry for entry in entries)
        yield from (text for text in texts if isinstance(text, str))
    path = folder / "chat_template.jinja"
    if is_companion(path):
        yield read_text(path, inside=True)


def _find_used(template: str, named: _RolesByToken) -> Iterator[str]:
    """Yield tokens that a template writes: named ones, and whatever is spelled like a token."""
    for token, roles in named.items():
        variables = (key for key, role in _NAMED.items() if role in roles)
        # A word may be part of the template language.
        is_word = not token.strip() or token.isidentifier()
        if (not is_word and token in template) or any(key in template for key in variables):
            yield token
    yield from (safe_text(spelled) for spelled in _SPELLED.findall(template))
