"""Methods against degenerate embeddings, for any training loop. One file each."""
