"""The live page of a lab, and a picture of the page. `sluice page` runs in the main namespace, the controller in the
switch's namespace.

Without NiceGUI or a free address the lab has no page, and without Chromium no picture. The lab then prints the reason.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from topo.labs.web import Lab
from topo.testbed.controller import CONFIGURATION
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import free_port

PICTURE = "page.png"
_HOST, _PORT = "127.0.0.1", 8080
_START_S, _SHOW_S = 60.0, 60.0


def start_page(lab: Lab, say: Callable[[str], None]) -> str | None:
    """Serve the page until the lab ends; return its URL, or None if it cannot be served."""
    program = str(Path(sys.executable).parent / "sluice")
    try:
        address = f"{_HOST}:{free_port(_PORT, _HOST)}"
        options = ["--history", "--address", address, "--config", str(lab.directory / CONFIGURATION)]
        process = lab.start("sluice page", [program, "page", *options])
        process.await_output("sluice: page ", _START_S)
    except (SetupError, OSError) as error:
        say(f"no live page: {error}")
        return None
    url = f"http://{address}/"
    say(f"live page: {url}")
    return url


def save_picture(url: str, path: Path, say: Callable[[str], None]) -> None:
    """Save a picture of the page in a browser, as PNG."""
    try:
        # Only development environments have Selenium. A lab also runs without Selenium and without a browser.
        from selenium.common import WebDriverException  # noqa: PLC0415

        from topo.testbed import browser  # noqa: PLC0415
    except ImportError as error:
        say(f"no picture of the live page: {error}")
        return
    if not browser.installed():
        say(f"no picture of the live page: {browser.CHROMIUM} is missing: apt-get install chromium chromium-driver")
        return
    try:
        with browser.browser(width=1280, height=2000) as driver:
            driver.get(url)
            deadline = time.monotonic() + _SHOW_S
            while not driver.execute_script(_SHOWN) and time.monotonic() < deadline:
                time.sleep(0.2)
            time.sleep(1.0)  # until the browser has drawn the charts
            driver.save_screenshot(str(path))
    except WebDriverException as error:
        say(f"no picture of the live page: {error.msg}")


_SHOWN = "return document.querySelectorAll('.sluice-servers tbody td').length > 0"
