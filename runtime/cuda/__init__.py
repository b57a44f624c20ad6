"""What CUDA plans stand on; so far the compilation of their kernels, which needs no GPU."""
