"""What every call touches: the tensor, who computes operations, and the records of gradients."""
