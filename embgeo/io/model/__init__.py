"""Which matrix: facts of the configuration, stored forms, pieces, candidates and their evidence."""
