"""tgraph as it was at another commit, to be measured beside what is here."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tomllib
from pathlib import Path

from .machine import git


def unpack(commit: str, folder: Path) -> str:
    """Lay out the packages of a commit in `folder`, as if installed there; the commit's hash.

    ValueError for what git does not know.
    """
    try:
        found = git("rev-parse", "--verify", "--quiet", "--short", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise ValueError(f"git knows no commit {commit!r}") from None
    short = found.decode().strip()
    settings = tomllib.loads(git("show", f"{short}:pyproject.toml").decode())
    places = settings["tool"]["setuptools"]["package-dir"]
    for package in sorted(places, key=len):  # outer ones first
        archive = git("archive", f"{short}:{places[package]}")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            # Safe members only, which the first releases of Python 3.11 cannot be asked for.
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            files.extractall(folder.joinpath(*package.split(".")), **safe)
    return short
