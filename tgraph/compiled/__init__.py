"""Compiled functions: how one is called, cut into values and gradients, checked and explained."""
