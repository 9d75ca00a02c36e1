"""The module of the token embedding by architecture, as transformers and llama.cpp name it."""

import re

#: Patterns of ``architectures`` in config.json, or of GGUF's ``general.architecture``, and the last
#: part of the name of the embedding's module; the first that fits counts.
_EMBEDDINGS = (
    (r"Csm", "embed_text_tokens"),
    (r"GPTNeoX", "embed_in"),
    (r"GPT2|GPTBigCode|GPTJ|GPTNeo|CodeGen|MPT|Dbrx|QWenLM|OLMoFor|Molmo|Exaone|Jais", "wte"),
    (r"Bloom|Falcon|RWFor|ChatGLM|Electra|Albert|MPNet|Nomic", "word_embeddings"),
    (r"ModernBert|InternLM2", "tok_embeddings"),
    (r"^(Bert|DistilBert|MobileBert|Roberta|XLMRoberta|Camembert|Deberta|Longformer|Esm)",
     "word_embeddings"),
    (r"Mamba|Rwkv|RWKV|NemotronH", "embeddings"),
    (r"(^|[A-Za-z])(M?T5|Bart|M2M100|Marian|Pegasus|Switch|LED)(For|Model|Encoder)", "shared"),
    (r"Whisper|Speech2Text|MoshiFor|OPTFor", "embed_tokens"),
    (r"^(Llama|Mistral|Mixtral|Ministral|Qwen\d|Gemma|Phi|Deepseek|Glm4|Olmo|GptOss|Cohere|"
     r"Granite|StableLm|Starcoder2|Smol|Kimi|Minimax|MiniMax|Hunyuan|Ernie4|Llava|Paligemma|"
     r"PaliGemma|Idefics|Mllama|Jamba|Bamba|Lfm2|Apertus|Arcee|Seed|Voxtral|Internvl|InternVL)",
     "embed_tokens"),
    (r"^[a-z0-9_-]+$", "token_embd"),
)  # fmt: skip


def embedding_module(architecture: str) -> str:
    """Return the last part of the name of the embedding's module; empty if it is not known."""
    found = (name for pattern, name in _EMBEDDINGS if re.search(pattern, architecture[:100]))
    return next(found, "") if architecture else ""


def is_named_by(architecture: str, name: str) -> bool:
    """Tell whether a name is that of the token embedding of an architecture."""
    module = embedding_module(architecture)
    parts = [part for part in re.split(r"[./:]", name) if part not in ("weight", "base_layer")]
    return bool(module) and bool(parts) and parts[-1] == module
