"""Packages written for PyTorch, run with tgraph: see `python -m tools.third_party --help`."""
