"""A headless Chromium for tests, told what to do over its DevTools protocol.

Over a pipe: messages of JSON that end in a zero byte, written to descriptor 3 of the browser and read from its 4.
No port can be taken, the browser ends with the pipe, and nothing has to be installed but itself.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60.0  # seconds for an answer, on a busy machine
_HIGH = 10  # descriptors from here on are not in the way of 3 and 4
# Tests run as root and in containers, where the sandbox and the shared memory that it wants do not exist.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--remote-debugging-pipe", "--force-device-scale-factor=1",
)  # fmt: skip


def program():
    """The path of the browser, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def chromium():
    """A browser with an empty profile, ended at the end."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, _HIGH) for end in (to_read, from_write)]
    os.close(to_read), os.close(from_write)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [program(), *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", *command],
            pass_fds=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in theirs:
            os.close(end)
        try:
            yield Page(to_write, from_read)
        finally:
            os.close(to_write)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(from_read)


class Page:
    """The one page of a browser: what it is asked, what it answers, and what it says by itself."""

    def __init__(self, to_browser, from_browser):
        """Attach to the page that is open."""
        self._to, self._from = to_browser, from_browser
        self._number, self._rest, self._session = 0, b"", None
        self.events = []
        (target, *_) = [one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def open(self, path, width, height=900):
        """Load a file in a window of that size, and wait until it is there."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        self._until(lambda: any(event["method"] == "Page.loadEventFired" for event in self.events))

    def run(self, expression):
        """The value of a JavaScript expression."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def complaints(self):
        """Whatever the browser has to say of the page: errors, warnings, messages, uncaught exceptions."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        said = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in said]

    def requested(self):
        """Addresses of everything that was asked for."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def picture(self, height):
        """A PNG of the page from its top down to a height."""
        clip = {"x": 0, "y": 0, "width": self.run("innerWidth"), "height": height, "scale": 1}
        return base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def ask(self, method, **parameters):
        """Send a command; its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answers = []

        def answered():
            answers.extend(event for event in self.events if event.get("id") == number)
            return bool(answers)

        self._until(answered)
        self.events = [event for event in self.events if "id" not in event]
        assert "error" not in answers[0], (method, answers[0])
        return answers[0]["result"]

    def _until(self, happened):
        deadline = time.monotonic() + _PATIENCE
        while not happened():
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._from], [], [], max(0.0, left))
            assert ready, f"the browser did not answer within {_PATIENCE:g} s"
            got = os.read(self._from, 1 << 20)
            assert got, "the browser has ended"
            *messages, self._rest = (self._rest + got).split(b"\0")
            self.events += map(json.loads, messages)
