"""The public operations by family, the methods of Tensor, and the rules of gradients."""
