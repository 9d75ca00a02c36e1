"""Training of language models with methods against degenerate embeddings; needs torch.

This part hands its results to the rest of the package in files, and is imported only on demand.
"""
