"""The record of a study: what each method did to perplexity and geometry.

Reads finished runs (``result.json``, ``metrics.jsonl``, analyses) without torch, decides the claims
of the papers, and writes ``training.json``.
"""
