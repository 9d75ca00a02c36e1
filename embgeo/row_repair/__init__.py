"""New values for single rows of a checkpoint: which rows, by which method, and the record of it."""
