"""Pieces of networks beside the plain rows: attention, convolutions, recurrence, optimizers."""
