"""A small model folder as chat models have it: sharded, untied, with a tokenizer and a template."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

N, D, TOKENS = 3000, 16, 2990
#: Rows that a damaged model has lost, among them that of the token which begins each message.
DEAD = tuple(range(2900, 2979))
ADDED = {"<s>": 2, "<pad>": 3, "<|im_end|>": 2500, "<|im_start|>": 2950}
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


def write_chat_model(folder: Path, *, dead: bool = True, tied: bool = False) -> Path:
    """Write the folder; with `dead`, its damaged rows have the norm of rounding noise."""
    folder.mkdir()
    g = np.random.default_rng(0)
    W, U = g.standard_normal((2, N, D)).astype(np.float32)
    if dead:
        W[list(DEAD)] *= np.float32(1e-17)
    tensors = {"model.embed_tokens.weight": W, "lm_head.weight": U}
    shards = {name: f"model-0000{k}-of-00002.safetensors" for k, name in enumerate(tensors, 1)}
    for name, tensor in tensors.items():
        save_file({name: tensor}, folder / shards[name])
    words = {f"w{k}": k for k in range(TOKENS) if k not in ADDED.values()}
    added = [{"id": row, "content": token, "special": True} for token, row in ADDED.items()]
    files = {
        "model.safetensors.index.json": {"weight_map": shards},
        "config.json": {"tie_word_embeddings": tied, "vocab_size": N},
        "tokenizer.json": {"model": {"type": "BPE", "vocab": words}, "added_tokens": added},
        "tokenizer_config.json": {"bos_token": "<s>", "pad_token": "<pad>"},
        "chat_template.jinja": TEMPLATE,
    }
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
