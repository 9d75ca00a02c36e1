"""Optimizers, learning rate schedules and weight averages."""
