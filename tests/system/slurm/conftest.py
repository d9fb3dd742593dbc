"""Tests against a Slurm of their own, where Debian's slurm-wlm and munge are installed."""

import os

import pytest

import private_slurm


def pytest_collection_modifyitems(items):
    absent = "CI" not in os.environ and not private_slurm.installed()  # in CI nothing skips
    for item in items:
        if "tests/system/slurm/" in item.path.as_posix():
            item.add_marker(pytest.mark.slurm)
            item.add_marker(pytest.mark.skipif(absent, reason="slurm-wlm and munge are missing"))


@pytest.fixture(scope="session")
def munge(tmp_path_factory):
    """A munge that all controllers of this session trust."""
    with private_slurm.munged(tmp_path_factory.mktemp("munge")) as folder:
        yield folder


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory, munge):
    """Two nodes of four devices that take jobs: both are this host, and the devices are empty files."""
    folder = tmp_path_factory.mktemp("slurm")
    for number in range(4):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={folder}/gpu[0-3]\n")
    with private_slurm.running(folder / "cluster", munge, gres=folder / "gres.conf") as cluster:
        yield cluster
