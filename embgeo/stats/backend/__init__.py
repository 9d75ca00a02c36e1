"""Where arrays are and what computes on them: numpy, or torch on a device."""
