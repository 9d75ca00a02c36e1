"""Backends: numpy on the host, torch on a device."""
