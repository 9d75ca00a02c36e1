"""Rules about saved results, and whether they hold."""
