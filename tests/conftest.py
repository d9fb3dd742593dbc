"""What holds for every test: in CI (variable CI is set) a test that was skipped is a failure.

`--bless` writes golden files anew instead of comparing with them.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("busy", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("busy")


def pytest_addoption(parser):
    """Golden files are only written where somebody says so."""
    parser.addoption("--bless", action="store_true", help="write golden files anew")


@pytest.fixture
def bless(request):
    """Whether golden files are written."""
    return request.config.getoption("--bless")


def pytest_sessionfinish(session):
    """A skipped test passes unseen: where all tools are installed on purpose, it means that one is missing."""
    if _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Name what was skipped, since the closing line only counts it."""
    for report in _skipped(config):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"FAILED for being skipped in CI: {report.nodeid}: {reason}", red=True)


def _skipped(config):
    """Reports of skipped tests and files in CI; on a worker of pytest-xdist, or elsewhere, none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter is not None and os.environ.get("CI") else []
