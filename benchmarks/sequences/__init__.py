"""Whole training steps of models of sequences, with the modules of each library."""
