"""CPUs: loops over vectors and threads, written as LLVM IR."""
