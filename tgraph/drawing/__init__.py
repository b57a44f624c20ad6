"""Pictures of graphs, functions, compiled functions and histories of gradients."""
