"""Packed graphs and the sparse kernels that work on them."""
