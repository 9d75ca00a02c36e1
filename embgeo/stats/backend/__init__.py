"""The passes on a GPU: what is summed over rows is summed where torch computes.

Nothing here is imported unless a device is asked for; torch neither.
"""
