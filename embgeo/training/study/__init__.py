"""Training runs side by side: what each method did to perplexity and geometry.

Runs are folders (``result.json``, ``metrics.jsonl``, the analysis of their embedding). `training`
is the result, which a page, figures and other programs read; the other modules make it. Nothing
here trains, and nothing needs torch.
"""
