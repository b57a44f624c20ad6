"""scikit-learn computes with tensors, by the namespace that they tell it."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import sklearn
import tgraph as tg
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

rng = np.random.default_rng(0)
x = rng.normal(size=(40, 6)).astype("float32")
y = x @ np.arange(6, dtype="float32") + 1
cases = (
    (PCA(n_components=3, svd_solver="full"), (x,), ("components_", "mean_"), "transform"),
    (Ridge(solver="svd"), (x, y), ("coef_", "intercept_"), "predict"),
)
for model, data, names, method in cases:
    expected = sklearn.base.clone(model).fit(*data)
    with sklearn.config_context(array_api_dispatch=True):
        found = model.fit(*map(tg.tensor, data))
        pairs = [(getattr(found, name), getattr(expected, name)) for name in names]
        pairs += [(getattr(found, method)(tg.tensor(x)), getattr(expected, method)(x))]
    for ours, theirs in pairs:
        assert isinstance(ours, (tg.Tensor, float)) and np.shape(theirs) == np.shape(ours)
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-4, atol=1e-5)
    print(type(found).__name__)
"""


def test_models_with_dispatch():
    pytest.importorskip("sklearn")
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}  # before SciPy is imported
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["PCA", "Ridge"]
