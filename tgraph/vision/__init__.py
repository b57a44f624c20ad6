"""Images: data sets that lie in files, transforms for their examples, pictures of batches.

The names are torchvision's. Pillow reads and makes images: `pip install 'tgraph[vision]'`.
"""

from . import datasets, ops, transforms, utils

__all__ = ["datasets", "ops", "transforms", "utils"]
