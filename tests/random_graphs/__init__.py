"""Random graphs that hold the engines to each other."""
