"""The page's elements, built with NiceGUI: tables, charts and the list of events. `view` supplies their contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import Client, ui
from nicegui.events import GenericEventArguments

from sluice.balance import Mode
from sluice.loops.commands import Refused
from sluice.loops.events import Kind

from . import view
from .hub import Hub
from .reading import CROWD_CHARTS, SERVICE_CHARTS, Reading
from .token import Lock

_STYLE = """
.nicegui-content { padding: 8px; gap: 8px }
.nicegui-content .q-card { gap: 4px; padding: 8px; min-width: 0 }
.nicegui-echart { height: 220px; min-width: 0 }
.sluice-grid { display: grid; width: 100%; gap: 8px }
.sluice-grid { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)) }
"""
_PAGE = 20
"""The number of rows on a page of a long table."""


class Page:
    """The page as one viewer sees it."""

    def __init__(self, hub: Hub, lock: Lock | None, client: Client, chosen: str | None) -> None:
        self._hub, self._client, self._chosen = hub, client, chosen
        self._charts: dict[str, ui.echart] = {}
        self._server_select: ui.select | None = None
        """The selection field for a server to drain, if the page permits changes."""
        self._shown_page: tuple[int, int, int] | None = None
        """The events that the browser shows: number of the page, rows per page, and the number of all events."""
        ui.add_css(_STYLE)
        self._head()
        self._services()
        self._service()
        if lock is not None:
            self._control(lock)
        self._crowds()
        self._packets()
        self._events()
        client.on_connect(lambda: hub.join(client.id, self.refresh))
        client.on_disconnect(self._disconnected)
        client.on_delete(lambda: hub.leave(client.id))

    def _disconnected(self) -> None:
        if not self._client.has_socket_connection:  # a viewer that has reconnected stays
            self._hub.leave(self._client.id)

    # -- sections of the page, from top to bottom

    def _head(self) -> None:
        with ui.row().classes("items-center full-width"):
            ui.label("sluice").classes("text-h6")
            self._switch = ui.label("connecting").classes("sluice-head")
        self._error = ui.label().classes("text-negative text-weight-bold sluice-error")
        self._error.visible = False
        self._out = ui.label().classes("text-warning text-weight-bold sluice-out")

    def _services(self) -> None:
        with _card("services"):
            search = ui.input("find").props("dense clearable")
            self._table = _table(view.SERVICES, "services").bind_filter_from(search, "value")
            self._table.on("rowClick", lambda event: self._choose(event.args[1]["name"]), [[], ["name"], None])

    def _service(self) -> None:
        with _card("service"):
            self._title = ui.label().classes("text-h6 sluice-service")
            self._sentence = ui.label().classes("sluice-sentence")
            self._servers = _table(view.SERVERS, "servers")
            with ui.element().classes("sluice-grid"):
                for key in SERVICE_CHARTS:
                    self._charts[key] = ui.echart({}).classes(f"sluice-chart-{key}")

    def _control(self, lock: Lock) -> None:
        async def execute(request: Mapping[str, Any]) -> None:
            try:
                await lock.check(token.value or "")
                ui.notify(await self._hub.ask(request), type="positive")
            except Refused as error:
                ui.notify(str(error), type="negative", multi_line=True, timeout=8000)

        async def execute_for_server(command: str) -> None:
            if server_select.value is None:
                ui.notify("choose a server first", type="negative")
            else:
                await execute({"command": command, "server": f"{self._chosen}/{server_select.value}"})

        def server_command(command: str) -> Callable[[], Any]:
            return lambda: execute_for_server(command)

        with _card("control"), ui.row().classes("items-center"):
            token = ui.input("token", password=True).props("dense autocomplete=off").classes("sluice-token")
            self._server_select = server_select = ui.select([], label="server").classes("sluice-which")
            server_select.props("dense").style("min-width: 8em")
            ui.button("drain", on_click=server_command("drain")).props("dense").classes("sluice-drain")
            ui.button("undrain", on_click=server_command("undrain")).props("dense").classes("sluice-undrain")
            mode = ui.select([str(mode) for mode in Mode], label="mode", value=str(Mode.PRODUCTION)).props("dense")
            ui.button(
                "set mode",
                on_click=lambda: execute({"command": "mode", "service": self._chosen, "mode": mode.value}),
            ).props("dense").classes("sluice-set-mode")

    def _crowds(self) -> None:
        with _card("flash crowds") as card:
            self._crowd_card = card
            self._crowd_sentence = ui.label().classes("sluice-crowd")
            self._crowd = ui.label().classes("sluice-crowd-line")
            self._destinations = _table(view.DESTINATIONS, "destinations")
            with ui.element().classes("sluice-grid"):
                for key in CROWD_CHARTS:
                    self._charts[key] = ui.echart({}).classes(f"sluice-chart-{key}")

    def _packets(self) -> None:
        with ui.element().classes("sluice-grid"):
            with _card("drops by reason"):
                self._drops = _table(view.DROPS, "drops", key="reason")
            with _card("the switch"):
                self._health = _table(view.HEALTH, "health", key="what")

    def _events(self) -> None:
        with _card("what happened, and why"):
            with ui.row():
                self._words = (
                    ui.input("words", on_change=self._list)
                    .props("dense clearable debounce=300")
                    .classes("sluice-words")
                )
                kinds = [str(kind) for kind in Kind]
                self._kinds = ui.select(kinds, label="kinds", multiple=True, on_change=self._list)
                self._kinds.props("dense use-chips").style("min-width: 9em")
            self._list_of = _table(view.EVENTS, "events", key="id", sortable=False)
            self._list_of.pagination = {"page": 1, "rowsPerPage": _PAGE, "rowsNumber": 0}
            self._list_of.on("request", self._turn, ["pagination"])

    # -- updates of what the viewer sees

    def refresh(self) -> None:
        """Show the hub's latest reading."""
        with self._client:
            hub, reading = self._hub, self._hub.reading
            self._error.text, self._error.visible = hub.error, bool(hub.error)
            if reading is None:
                return
            self._switch.text = reading.head
            self._out.text = reading.out
            self._list()
            _rows(self._health, reading.health)
            if hub.error:
                return
            _rows(self._table, reading.services)
            _rows(self._drops, reading.drops)
            self._show_service(reading)
            self._show_crowds(reading)

    def _choose(self, name: str) -> None:
        self._chosen = name
        if self._server_select is not None:
            self._server_select.set_options([], value=None)
        if self._hub.reading is not None:
            self._show_service(self._hub.reading)

    def _show_service(self, reading: Reading) -> None:
        service = reading.service(self._chosen)
        if service is None:
            return
        name = str(service["name"])
        if self._chosen is not None and self._chosen != name:
            # The buttons keep their service, because a user may be about to click one of them.
            self._title.text = f"{self._chosen} no longer exists; choose another service"
            return
        self._chosen = name
        self._title.text = (
            f"{name} {service['address']}, mode {service['mode']}, {service['weight_changes']} weight changes"
        )
        self._sentence.text = str(service["sentence"])
        _rows(self._servers, reading.servers(service))
        names = tuple(str(server["name"]) for server in service["servers"])
        if self._server_select is not None and tuple(self._server_select.options) != names:
            first = None if self._server_select.options else names[0]
            selected = self._server_select.value if self._server_select.value in names else first
            self._server_select.set_options(list(names), value=selected)
        for key, options in reading.charts(service).items():
            _draw(self._charts[key], options)

    def _show_crowds(self, reading: Reading) -> None:
        news = reading.news
        self._crowd_card.visible = news is not None
        if news is None:
            return
        self._crowd_sentence.text, self._crowd.text = news["sentence"], view.crowd(news)
        _rows(self._destinations, reading.destinations)
        for key, options in reading.crowd_charts.items():
            _draw(self._charts[key], options)

    def _list(self) -> None:
        """Send the browser the rows of the page of events that it shows, but no other rows."""
        page, count = requested_page(self._list_of.pagination)
        words, kinds = self._words.value, self._kinds.value
        words, kinds = words if isinstance(words, str) else "", kinds if isinstance(kinds, list) else ()
        first = (page - 1) * count
        rows, total = view.events(self._hub.events, words, kinds, first, count or None)
        if total <= first > 0:  # there are fewer events than before
            page, (rows, total) = 1, view.events(self._hub.events, words, kinds, 0, count)
        _rows(self._list_of, rows)
        if self._shown_page != (page, count, total):
            self._shown_page = (page, count, total)
            self._list_of.pagination = {"page": page, "rowsPerPage": count, "rowsNumber": total}

    def _turn(self, request: GenericEventArguments) -> None:
        page, count = requested_page(request.args.get("pagination") if isinstance(request.args, dict) else None)
        self._list_of.pagination = {"page": page, "rowsPerPage": count, "rowsNumber": 0}
        self._shown_page = None
        self._list()


def requested_page(request: object) -> tuple[int, int]:
    """Return number and row count (0: all rows) of the page of events that a browser requests; the first page if the
    request is invalid."""
    match request:
        case {"page": int(page), "rowsPerPage": int(count)} if page >= 1 and count in (_PAGE, 100, 0):
            return page, count
        case _:
            return 1, _PAGE


def _card(title: str) -> ui.card:
    card = ui.card().classes("full-width").props("flat bordered")
    with card:
        ui.label(title).classes("text-subtitle2 text-grey")
    return card


def _table(columns: view.Columns, mark: str, key: str = "name", *, sortable: bool = True) -> ui.table:
    definitions = [
        {
            "name": field,
            "label": title,
            "field": field,
            "align": "left" if field in columns.text else "right",
            "sortable": sortable,
        }
        for field, title in columns.titles.items()
    ]
    table = ui.table(columns=definitions, rows=[], row_key=key, pagination=_PAGE)
    table.props(f'flat dense hide-no-data :rows-per-page-options="[{_PAGE},100,0]"')
    table.classes("full-width").classes(f"sluice-{mark}")
    if mark in ("drops", "health", "servers", "destinations"):
        table.props("hide-pagination :pagination='{rowsPerPage: 0}'")
    return table


def _rows(table: ui.table, rows: list[view.Row]) -> None:
    if table.rows != rows:
        table.rows = rows


def _draw(chart: ui.echart, options: dict[str, Any]) -> None:
    """Replace a chart's options. The chart gets a copy, because the charts of all viewers share ``options``."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()
