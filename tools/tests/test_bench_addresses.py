"""Checks that the address ranges of the bench do not overlap."""

from ipaddress import IPv4Interface, IPv4Network

from sluice.addresses import from_text
from sluice.config.model import Config

from tools.bench.addresses import CLIENTS, INTERFACES, extra_routes, server_addresses
from tools.bench.forwarders import rps_mask
from tools.bench.program import order


def test_a_thousand_servers_are_behind_their_interface() -> None:
    network = IPv4Interface(INTERFACES[1]).network
    servers = [from_text(address) for address in server_addresses(1000)]
    assert len(set(servers)) == 1000
    assert all(server in network for server in servers)
    assert IPv4Interface(INTERFACES[1]).ip not in servers


def test_extra_routes_are_apart_from_all_else() -> None:
    routes = [IPv4Network(prefix) for prefix in extra_routes(100_000)]
    assert len(set(routes)) == 100_000
    taken = [IPv4Network(CLIENTS), *(IPv4Interface(interface).network for interface in INTERFACES)]
    assert not any(route.overlaps(network) for route in (routes[0], routes[-1]) for network in taken)


def test_the_order_is_a_configuration() -> None:
    content = order(servers=1000, entries=10, thrift=True, pipeline=None, fresh=True)
    config = Config.model_validate(content["config"])
    assert len(config.services[0].servers) == 1000
    assert len(config.routes) == 11
    assert len(content["neighbours"]) == 1001


def test_the_kernel_leaves_the_first_core_to_the_load() -> None:
    assert [rps_mask(cpus) for cpus in (1, 2, 4)] == [0, 0b10, 0b1110]
