"""The outcome of a gate for people and for other programs: one format a file."""
