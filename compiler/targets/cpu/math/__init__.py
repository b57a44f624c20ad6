"""Math functions as branch-free LLVM IR."""
