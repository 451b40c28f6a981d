"""Tests of the page in a real browser, with a real switch and a real controller."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from configs import web
from fakecontrol import FakeControl, controlled
from live import PATIENCE_S, Running, running
from pagestatus import server, service, status
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from sluice.features.crowd.status import as_json as news_status
from sluice.names import Register
from sluice.page import view
from sluice.page.token import token_of
from sluice.views import control
from test_cli import ENV, SLUICE
from test_news import ONSET, PRODUCTION, WEB, crowd
from virtual import Run

from topo.testbed import browser as testbed_browser
from topo.testbed.browser import shown_table as table
from topo.testbed.browser import shown_text as text
from topo.testbed.switches.embedded import BINARY
from topo.testbed.switches.started import start as start_switch

pytestmark = [
    pytest.mark.skipif(not BINARY.exists(), reason="the embedded switch is not built: `make setup` builds it"),
    pytest.mark.skipif(not testbed_browser.installed(), reason="no Chromium: `make setup` installs it"),
]


@pytest.fixture(scope="module")
def chrome() -> Generator[Chrome]:
    """Start one browser for all tests, because starting a browser takes long."""
    with testbed_browser.browser() as it:
        yield it


async def seen(chrome: Chrome, what: str, condition: Callable[[Chrome], Any]) -> Any:
    """Wait until `condition` is true of the page, while controller and page run; return the condition's value."""

    def wait() -> Any:
        return WebDriverWait(chrome, PATIENCE_S, 0.1).until(condition, f"the page does not show: {what}")

    return await asyncio.to_thread(wait)


def click(chrome: Chrome, name: str) -> None:
    """Click the button whose CSS class is `sluice-` followed by the name."""
    chrome.execute_script("document.querySelector(arguments[0]).click()", f".sluice-{name}")


class Served:
    """A running `sluice page` process with the page's address."""

    def __init__(self, url: str, process: asyncio.subprocess.Process) -> None:
        self.url, self.process = url, process


@asynccontextmanager
async def paged(config: Path, port: int, *more: str) -> AsyncGenerator[Served]:
    """Run `sluice page` while the block runs."""
    process = await asyncio.create_subprocess_exec(
        *SLUICE, "page", "-c", str(config), "--address", f"127.0.0.1:{port}", *more,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=ENV,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = (await process.stdout.readline()).decode()
        assert line == f"sluice: page http://127.0.0.1:{port}/\n"
        yield Served(f"http://127.0.0.1:{port}/", process)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            _, said = await process.communicate()
    assert said == b"", "whatever browsers ask for, there is nothing to log"


@asynccontextmanager
async def led(config: Path) -> AsyncGenerator[Running]:
    """Run a controller in the test's process, with its control socket."""
    async with running(config) as it, control.serve(it.controller, it.controller.world.config.control):
        yield it


@asynccontextmanager
async def lab(tmp_path: Path, more: str = "") -> AsyncGenerator[Path]:
    """Run a switch; yield the configuration file of a controller for that switch."""
    switch = await start_switch()
    path = tmp_path / "sluice.yaml"
    path.write_text(web(switch.address, control=str(tmp_path / "s.sock"), mode="fixed", more=more))
    try:
        yield path
    finally:
        await switch.stop()


async def ask(config: Path, *arguments: str) -> Any:
    """Run a `sluice` command; return its JSON output."""
    process = await asyncio.create_subprocess_exec(
        *SLUICE, *arguments, "-c", str(config), "--json", stdout=asyncio.subprocess.PIPE, env=ENV
    )
    said, _ = await process.communicate()
    return json.loads(said)


def hosts(chrome: Chrome) -> set[str]:
    """Return the hosts to which the browser has sent requests since the last call."""
    messages = [json.loads(cast(str, entry["message"]))["message"] for entry in chrome.get_log("performance")]
    urls = [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
    return {url.split("/")[2] for url in urls if url.startswith(("http", "ws"))}


def frames(chrome: Chrome) -> list[str]:
    """Return the messages that the browser has received on the page's WebSocket since the last call."""
    messages = [json.loads(cast(str, entry["message"]))["message"] for entry in chrome.get_log("performance")]
    got = [
        message["params"]["response"] for message in messages if message["method"] == "Network.webSocketFrameReceived"
    ]
    return [str(response["payloadData"]) for response in got]


async def test_values_drain_and_a_controller_that_restarts(
    tmp_path: Path, chrome: Chrome, unused_tcp_port: int
) -> None:
    token = tmp_path / "token"
    async with (
        lab(tmp_path, f'page: {{control: true, token_file: "{token}"}}') as config,
        paged(config, unused_tcp_port) as page,
    ):
        await asyncio.to_thread(chrome.get, page.url)
        await seen(chrome, "that there is no controller", lambda it: "no controller listens on" in text(it, "error"))
        async with led(config) as it:
            await seen(
                chrome, "both servers", lambda it: [row["server"] for row in table(it, "servers")] == ["s1", "s2"]
            )
            link = it.link
            for register, count in ((Register.LEDGER_SYN, 1000), (Register.LEDGER_SYNACK, 600)):
                await link.registers.write(register, 1, count)
            await link.registers.write(Register.LOAD_FIRST, 2, 7)
            await seen(chrome, "1000 SYNs", lambda it: table(it, "servers")[0]["SYN"] == "1000")
            (status,) = (await ask(config, "status"))["services"]
            for row, server in zip(table(chrome, "servers"), status["servers"], strict=True):
                assert (row["server"], row["state"], row["address"]) == (
                    server["name"],
                    server["state"],
                    server["address"],
                )
                assert (row["ratio"], row["weight"]) == (f"{server['ratio']:.4f}", str(server["weight"]))
                assert [row[key] for key in ("SYN", "SYN-ACK", "open")] == [
                    str(server[key]) for key in ("syn", "synack", "open")
                ]
            assert status["servers"][1]["open"] == 7
            assert chrome.execute_script("return document.querySelectorAll('.nicegui-echart canvas').length") >= 5
            await control_by_the_page(chrome, config, token)
            assert hosts(chrome) == {f"127.0.0.1:{unused_tcp_port}"}, "nothing comes from elsewhere"
        await seen(chrome, "that the controller has gone", lambda it: "no controller listens" in text(it, "error"))
        async with led(config):
            await seen(chrome, "the next controller", lambda it: not text(it, "error"))
            await seen(chrome, "its drained server", lambda it: table(it, "servers")[0]["state"] == "draining")


async def control_by_the_page(chrome: Chrome, config: Path, token: Path) -> None:
    """Drain a server in the page: with a wrong token, which the page refuses, and then with the right token."""

    async def drain(given: str) -> None:
        field = chrome.find_element(By.CSS_SELECTOR, "input.sluice-token, .sluice-token input")
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, given)  # replace the field's content
        click(chrome, "drain")

    def notified(words: str) -> Callable[[Chrome], bool]:
        return lambda it: words in it.find_element(By.TAG_NAME, "body").text

    await drain("wrong")
    await seen(chrome, "the refusal", notified(f"wrong token; the right one is in {token}"))
    assert (await ask(config, "status"))["services"][0]["servers"][0]["state"] == "in"
    await drain(token_of(str(token)))
    await seen(chrome, "the answer", notified("web/s1 drains: no new connections"))
    await seen(chrome, "the drained server", lambda it: table(it, "servers")[0]["state"] == "draining")
    await seen(chrome, "it among those that are out", lambda it: "web/s1 is draining" in text(it, "out"))
    await seen(chrome, "the event", lambda it: table(it, "events")[0]["kind"] == "drain")
    chrome.find_element(By.CSS_SELECTOR, "input.sluice-words, .sluice-words input").send_keys("leads the switch")
    await seen(
        chrome, "the events with these words", lambda it: {row["kind"] for row in table(it, "events")} == {"link"}
    )


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers of the response to an HTTP request."""
    request = urllib.request.Request(
        url,
        method=method,
        data=b"{}" if method == "POST" else None,
        headers={k.replace("_", "-"): v for k, v in headers.items()},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


async def test_100_services_of_10_servers_and_what_other_sites_send(
    tmp_path: Path, chrome: Chrome, unused_tcp_port: int
) -> None:
    """The browser receives only the displayed services and servers, and the page refuses requests from other sites.

    Without `page` in the configuration the page is read-only. It fits a phone and supports a dark theme.
    """
    config = tmp_path / "sluice.yaml"
    config.write_text(web(control=str(tmp_path / "s.sock")))
    services = [
        service(f"web{index}", *(server(f"s{number}", ratio=0.1, syn=index) for number in range(10)), offered=index)
        for index in range(100)
    ]
    async with (
        controlled(tmp_path / "s.sock", FakeControl(status(*services))),
        paged(config, unused_tcp_port) as page,
    ):
        await asyncio.to_thread(chrome.get, f"{page.url}?service=web99")
        await seen(chrome, "the first of the services", lambda it: len(table(it, "services")) == 20)
        assert "1-20 of 100" in text(chrome, "services")
        await seen(
            chrome, "the servers of web99", lambda it: [row["SYN"] for row in table(it, "servers")] == ["99"] * 10
        )
        assert not chrome.find_elements(By.CSS_SELECTOR, ".sluice-token"), "nothing can be changed"
        sizes = [len(payload) for payload in frames(chrome)]
        assert 10_000 < max(sizes) < 100_000, "the other services' servers are not sent"
        await fits_a_phone_in_the_dark(chrome)
        await asyncio.to_thread(refuses_others, page.url)
        assert page.process.returncode is None


async def fits_a_phone_in_the_dark(chrome: Chrome) -> None:
    """Check that no element is wider than the screen, and that the theme follows changes of the system's theme."""
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        await seen(chrome, "a page of the screen's width", lambda it: it.execute_script("return innerWidth") == 390)
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= 390
        for theme in ("dark", "light"):
            testbed_browser.prefer(chrome, theme)
            await seen(
                chrome,
                theme,
                lambda it, theme=theme: f"body--{theme}" in it.execute_script("return document.body.className"),
            )
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


ENDPOINT = "_nicegui_ws/socket.io/?EIO=4&transport="
"""Path of the WebSocket that the page opens, relative to the page's address."""


def refuses_others(url: str) -> None:
    """Check that the page refuses requests and WebSockets that a browser sends for another site."""
    endpoint = f"{url}{ENDPOINT}"
    for method, target in (("POST", url), ("POST", f"{endpoint}polling"), ("GET", f"{endpoint}polling")):
        code, said, _ = get(target, method, Origin="http://evil.example")
        assert code == 403
        assert said == (
            "sluice: the request comes from another site (http://evil.example); this page accepts only its own\n"
        )
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    code, said, _ = get(
        f"{endpoint}websocket", Origin="null", **upgrade, **{"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    )
    assert (code, "comes from another site (null)" in said) == (403, True)
    assert get(url, Host="evil.example")[0] == 403
    code, _, headers = get(url)
    assert code == 200
    assert "frame-ancestors 'none'" in {key.lower(): value for key, value in headers.items()}["content-security-policy"]
    assert get(url, "POST")[0] == 405
    assert get(f"{url}nothing/%0a/here{1000 * 'x'}")[0] == 404


async def test_the_page_behind_a_proxy_with_a_name_of_its_own(tmp_path: Path, unused_tcp_port: int) -> None:
    config = tmp_path / "sluice.yaml"
    config.write_text(web(control=str(tmp_path / "s.sock"), more="page: {names: [status.example]}"))
    async with controlled(tmp_path / "s.sock", FakeControl(status())), paged(config, unused_tcp_port) as page:
        await asyncio.to_thread(answers_by_name, page.url)


def answers_by_name(url: str) -> None:
    """Check that the page and its WebSocket accept only the host names in `page.names`."""
    for host, origin, expected in (
        ("status.example", "https://status.example", True),
        ("127.0.0.1", "https://status.example", True),
        ("status.example", "https://evil.example", False),
        ("evil.example", "https://evil.example", False),
        ("evil.example", "https://status.example", False),
    ):
        assert get(url, Host=host, Origin=origin)[0] == (200 if expected else 403)
        assert get(f"{url}{ENDPOINT}polling", Host=host, Origin=origin)[0] == (200 if expected else 403)
        assert upgraded(url, host, origin) == (101 if expected else 403)
    assert "in `page.names`" in get(url, Host="evil.example")[1]


def upgraded(url: str, host: str, origin: str) -> int:
    """Return the HTTP status of a WebSocket handshake; urllib cannot make it, because it sends `Connection: close`."""
    fields = {
        "Host": host,
        "Origin": origin,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    head = [f"GET /{ENDPOINT}websocket HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), PATIENCE_S) as connection:
        connection.sendall("\r\n".join(head).encode())
        return int(connection.makefile("rb").readline().split()[1])


async def test_a_flash_crowd(tmp_path: Path, chrome: Chrome, unused_tcp_port: int) -> None:
    """The page shows flash-crowd control's status before a crowd, and at two moments in the crowd, 2 s apart."""

    def told(at_s: float) -> dict[str, Any]:
        return status(service("web", server("s1"))) | {
            "news": news_status(Run(PRODUCTION, crowd(WEB)).until(at_s).view)
        }

    config = tmp_path / "sluice.yaml"
    config.write_text(web(control=str(tmp_path / "s.sock")))
    calm, early, late = [await asyncio.to_thread(told, at_s) for at_s in (ONSET - 2, ONSET + 28, ONSET + 30)]
    fake = FakeControl(calm)
    async with controlled(tmp_path / "s.sock", fake), paged(config, unused_tcp_port) as page:
        await asyncio.to_thread(chrome.get, page.url)
        await seen(chrome, "that nothing is wrong", lambda it: text(it, "crowd") == calm["news"]["sentence"])
        assert {row["limit/s"] for row in table(chrome, "destinations")} == {"–"}
        fake.status = early
        await seen(chrome, "the sentence", lambda it: text(it, "crowd").startswith("Flash crowd at web (10.0.0.100): "))
        fake.status = late
        (destination,) = (
            destination for destination in late["news"]["destinations"] if destination["name"].startswith("web ")
        )
        shown = {"destination": destination["name"], "offered": str(destination["offered"])}
        await seen(
            chrome, "the requests", lambda it: [r for r in table(it, "destinations") if shown.items() <= r.items()]
        )
        (row,) = (row for row in table(chrome, "destinations") if row["destination"] == destination["name"])
        counts = ("offered", "admitted", "refused", "returning")
        assert {key: row[key] for key in counts} == {key: str(destination[key]) for key in counts}
        assert destination["offered"] > destination["admitted"] > 0 < destination["refused"]
        ((limit,), news) = (late["news"]["limits"], late["news"])
        assert row["limit/s"] == view.quantity(limit["limit_per_s"])
        offered, admitted, refused = (float(row[f"{key}/s"].replace(",", "")) for key in counts[:3])
        assert offered > admitted > 0 < refused
        assert text(chrome, "crowd") == late["news"]["sentence"]
        assert f"AR {view.quantity(news['ar_bps'] / 1000)} kbit/s, on average " in text(chrome, "crowd-line")
        assert text(chrome, "crowd-line").endswith(", hot spot web (10.0.0.100)")


async def test_a_browser_is_sent_the_events_that_it_shows(tmp_path: Path, chrome: Chrome, unused_tcp_port: int) -> None:
    """The browser receives only the displayed part of the list of events, and other parts on request."""
    config = tmp_path / "sluice.yaml"
    config.write_text(web(control=str(tmp_path / "s.sock")))
    past = [{"time": 1e9 + number, "kind": "decision", "text": f"decision-{number}."} for number in range(256)]
    fake = FakeControl(status(service("web", server("s1"))), past)

    def listed(it: Chrome) -> list[str]:
        return [row["what and why"] for row in table(it, "events")]

    async with controlled(tmp_path / "s.sock", fake), paged(config, unused_tcp_port) as page:
        await asyncio.to_thread(chrome.get, page.url)
        newest = [f"decision-{number}." for number in range(255, 235, -1)]
        await seen(chrome, "the newest", lambda it: listed(it) == newest)
        assert "1-20 of 256" in text(chrome, "events")
        fake.tell({"time": 2e9, "kind": "decision", "text": "decision-256."})
        await seen(chrome, "one more", lambda it: listed(it) == ["decision-256.", *newest[:-1]])
        counts = [payload.count("decision-") for payload in frames(chrome)]
        assert max(counts) == 20, counts
        chrome.find_element(By.XPATH, "//*[contains(@class, 'sluice-events')]//button[.//i='chevron_right']").click()
        await seen(chrome, "the next page", lambda it: "21-40 of 257" in text(it, "events"))
        chrome.find_element(By.CSS_SELECTOR, "input.sluice-words, .sluice-words input").send_keys("decision-7")
        await seen(
            chrome, "those with a word", lambda it: listed(it) == [f"decision-{n}." for n in [*range(79, 69, -1), 7]]
        )


async def test_the_page_of_a_controller_that_is_restarted(tmp_path: Path, chrome: Chrome, unused_tcp_port: int) -> None:
    """`sluice run` starts and ends the page's process; an open page reconnects to the next process."""
    async with lab(tmp_path, f'page: {{address: "127.0.0.1:{unused_tcp_port}"}}') as config:
        for end in (signal.SIGTERM, signal.SIGKILL):
            process = await asyncio.create_subprocess_exec(
                *SLUICE, "run", "-c", str(config), stdout=asyncio.subprocess.PIPE, env=ENV
            )
            try:
                assert process.stdout is not None
                url, said = f"http://127.0.0.1:{unused_tcp_port}/", b""
                async with asyncio.timeout(PATIENCE_S):
                    while f"sluice: page {url}".encode() not in said or b"sluice: ready" not in said:
                        said += await process.stdout.readline()
                if end is signal.SIGTERM:
                    await asyncio.to_thread(chrome.get, url)
                    await seen(chrome, "the servers", lambda it: len(table(it, "servers")) == 2)
                    chrome.execute_script("document.querySelector('.sluice-head').innerText = 'old'")
                else:
                    await seen(chrome, "the next controller's page", lambda it: text(it, "head").endswith("primary"))
                process.send_signal(end)
                async with asyncio.timeout(PATIENCE_S):
                    await process.wait()
                    await process.stdout.read()  # ends when the page's process, which received no signal, has ended
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


def test_what_the_page_needs_is_said(tmp_path: Path, unused_tcp_port: int) -> None:
    config = tmp_path / "sluice.yaml"

    def said(*arguments: str, without: bool = False) -> tuple[int, str]:
        hide = "import sys; sys.modules['nicegui'] = None; " if without else "import sys; "
        program = f"{hide}from sluice.cli.main import main; sys.exit(main(sys.argv[1:]))"
        done = subprocess.run(
            [sys.executable, "-c", program, "page", "-c", str(config), *arguments],
            capture_output=True, text=True, timeout=60, check=False, env=ENV,
        )  # fmt: skip
        return done.returncode, done.stderr

    config.write_text(web())
    with socket.create_server(("127.0.0.1", unused_tcp_port)):
        address = f"127.0.0.1:{unused_tcp_port}"
        assert said("--address", address) == (1, f"sluice: page {address}: Address already in use\n")
    code, error = said("--address", "localhost")
    assert (code, "--address: has no port; write HOST:PORT" in error) == (2, True)
    assert said(without=True) == (1, "sluice: the page needs NiceGUI: pip install 'sluice[page]'\n")
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0")
    config.write_text(web(more=f'page: {{control: true, token_file: "{token}"}}'))
    token.chmod(0o644)
    code, error = said()
    assert (code, error) == (
        1, f"sluice: page.token_file: {token} can be read by others (mode 644); run: chmod 600 {token}\n"
    )  # fmt: skip
