"""What `make gpu` runs: the tests that take a CUDA device, sanitizers, the benchmark (`gpu.py`)."""
