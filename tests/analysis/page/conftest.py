"""A headless Chromium, spoken to over its debugging pipe: no driver to install beside the browser."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Tab:
    """One page in the browser, and everything that it asked for or complained about."""

    def __init__(self, browser, session):
        self._browser, self._session = browser, session
        self.requests, self.errors = [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self._browser.call(method, parameters, self._session, self._note)

    def _note(self, event):
        method, found = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(found["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.errors.append(str(found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.errors.append(found["entry"]["text"])

    def open(self, page, width=1280, height=900, dark=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=Path(page).resolve().as_uri())
        loaded = "document.readyState === 'complete' ? done() : addEventListener('load', done)"
        self.run(f"new Promise(done => {loaded})")

    def run(self, script):
        """Evaluate a JavaScript expression and return its value."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, key, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more)


class Browser:
    """A running Chromium."""

    def __init__(self, program, profile):
        out_read, out_write = os.pipe()
        in_read, in_write = os.pipe()

        def connect():
            """Give the browser its ends of the pipes as the descriptors 3 and 4, where it looks for them."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (in_read, out_write)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={profile}", "--no-first-run", "--disable-dev-shm-usage"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [program, *options, "about:blank"]
        self._process = subprocess.Popen(command, preexec_fn=connect, pass_fds=(3, 4), **silent)
        os.close(in_read)
        os.close(out_write)
        self._to, self._from = os.fdopen(in_write, "wb", 0), os.fdopen(out_read, "rb")
        self._waiting, self._number = b"", 0

    def tab(self):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Tab(self, session)

    def call(self, method, parameters, session=None, note=lambda event: None):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if "method" in answer and answer.get("sessionId") == session:
                note(answer)

    def _read(self):
        while b"\0" not in self._waiting:
            piece = os.read(self._from.fileno(), 1 << 20)
            assert piece, "the browser is gone"
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\0")
        return json.loads(line)

    def close(self):
        self._to.close()
        self._from.close()
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is installed")
    running = Browser(program, tmp_path_factory.mktemp("browser"))
    yield running
    running.close()


@pytest.fixture
def tab(browser):
    return browser.tab()
