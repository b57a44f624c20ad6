"""Images: data sets that lie in files, transforms for their examples, pictures of batches,
and networks that tell their classes.

The names are torchvision's. Pillow reads and makes images: `pip install 'tgraph[vision]'`.
"""

from . import datasets, models, ops, transforms, utils

__all__ = ["datasets", "models", "ops", "transforms", "utils"]
