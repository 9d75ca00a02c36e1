"""A matrix whose rows lie elsewhere: its passes run there, part by part, and their states merge."""
