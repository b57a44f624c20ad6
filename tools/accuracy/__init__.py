"""Errors of functions of numbers in units in the last place, and the page docs/accuracy.md."""
