"""Fixtures of tests of matrix products, for their `pytest_plugins`."""

from __future__ import annotations

import ctypes

import pytest
from tgraph.runtime.cuda import backend, products

from cuda_tools import fake_cublas_lt
from cuda_tools.fake_cublas_lt import HostMemory
from cuda_tools.products import Gpu, Host


@pytest.fixture
def gpu():
    reason = backend.why_unavailable()
    if reason:
        pytest.skip(reason)
    return Gpu()


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def machine(request):
    """Each of them, with what it needs."""
    if request.param == "gpu":
        return request.getfixturevalue("gpu")
    request.getfixturevalue("library")
    return Host()


@pytest.fixture
def library(monkeypatch):
    reason = fake_cublas_lt.available()
    if reason:
        pytest.skip(reason)
    fake = fake_cublas_lt.install(monkeypatch)
    ctypes.memset(ctypes.addressof(fake.log()), 0, ctypes.sizeof(fake_cublas_lt.Log))
    return fake


@pytest.fixture
def workspaces():
    return products.Workspaces(HostMemory, fake_cublas_lt.zero)
