"""Transforms of functions that work by contexts over others: batching and forward mode."""
