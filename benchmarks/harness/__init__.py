"""What the benchmarks have in common: matrices, truths, floors, peers, clocks and the table."""
