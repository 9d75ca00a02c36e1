"""Training of language models with the cures for degenerate embeddings; needs torch.

This part stands apart: it talks to the rest of the package through files. Nothing here is imported
before it is asked for.
"""
