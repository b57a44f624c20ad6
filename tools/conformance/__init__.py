"""PyTorch's own cases run against tgraph: see `python -m tools.conformance --help`."""
