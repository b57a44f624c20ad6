"""tgraph as it was at another commit, to be measured beside what is here."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tomllib
from pathlib import Path

from .process import ROOT


def unpack(commit: str, folder: Path) -> str:
    """Lay out the packages of a commit in `folder`, as if installed there; the commit's hash.

    ValueError for what git does not know.
    """
    found = _git("rev-parse", "--verify", "--quiet", "--short", f"{commit}^{{commit}}")
    short = found.stdout.decode().strip()
    if not short:
        raise ValueError(f"git knows no commit {commit!r}")
    settings = tomllib.loads(_git("show", f"{short}:pyproject.toml").stdout.decode())
    places = settings["tool"]["setuptools"]["package-dir"]
    for package in sorted(places, key=len):  # outer ones first
        archive = _git("archive", f"{short}:{places[package]}").stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder.joinpath(*package.split(".")), filter="data")
    return short


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True)
