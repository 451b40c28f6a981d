"""A headless Chromium with a temporary profile, controlled by Selenium."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from selenium import webdriver

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",  # Chromium's sandbox does not work for root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def installed() -> bool:
    """Return whether Chromium and its driver are installed."""
    return CHROMIUM.exists() and DRIVER.exists()


@contextmanager
def browser(width: int = 1280, height: int = 1600, *, dark: bool = False) -> Generator[webdriver.Chrome]:
    """Yield a browser with a window of ``width`` by ``height`` pixels; ``dark``: as on a system with a dark theme.

    Raises Selenium's WebDriverException if Chromium does not start. Chromium logs its requests and its console.
    """
    with tempfile.TemporaryDirectory(prefix="sluice-browser-") as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
        try:
            driver.set_page_load_timeout(60)
            prefer(driver, "dark" if dark else "light")
            yield driver
        finally:
            driver.quit()


def prefer(driver: webdriver.Chrome, theme: str) -> None:
    """Emulate a system with the colour theme ``dark`` or ``light``."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def shown_text(driver: webdriver.Chrome, name: str) -> str:
    """Return the visible text of the live page's first element with the CSS class ``sluice-<name>``; empty if the
    element does not exist or is not visible."""
    return str(driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", f".sluice-{name}"))


_TABLE = """
    const table = document.querySelector(arguments[0]);
    const words = (cell) => [...cell.childNodes].filter((one) => one.tagName !== "I").map((one) => one.textContent);
    const cells = (row, kind) => [...row.querySelectorAll(kind)].map((cell) => words(cell).join("").trim());
    const [head, ...rows] = table ? [...table.querySelectorAll("tr")] : [];
    return [head ? cells(head, "th") : [], rows.map((row) => cells(row, "td"))];
"""


def shown_table(driver: webdriver.Chrome, name: str) -> list[dict[str, str]]:
    """Return the rows of the live page's table with the CSS class ``sluice-<name>``, each as a mapping from column
    title to text. Icons, and rows with fewer or more cells than titles, are omitted. Without the table there are no
    rows."""
    head, rows = cast(tuple[list[str], list[list[str]]], driver.execute_script(_TABLE, f".sluice-{name}"))
    return [dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)]
