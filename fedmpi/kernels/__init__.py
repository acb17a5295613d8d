"""Compiled and grouped kernels: networks, losses and optimizer steps without torch, one file per layer."""
