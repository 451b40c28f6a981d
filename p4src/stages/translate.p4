// Translate: network address and port translation, both ways, and of the packet inside an ICMP error.
//
//   reads  path, server, endpoint (from a server)
//   writes addresses and ports in the headers; endpoint, replaced for the checksums; choose_again
//   keys   servers: server -> its address and port, and whether it is ejected
//   drops  server_unknown
//
// A retransmitted SYN whose pending connection is pinned to an ejected server is not translated: it asks for a second
// pass, in which the connection table renews the pin.
#ifndef SLUICE_STAGES_TRANSLATE_P4
#define SLUICE_STAGES_TRANSLATE_P4

control Translate(inout headers_t hdr, inout metadata_t meta) {
    @id(0x0100000a)
    action to_server(ipv4_t address, l4_port_t port, bit<1> ejected) {
        meta.endpoint = address;
        meta.endpoint_port = port;
        meta.choose_again = ejected;
    }

    @defaultonly
    @id(0x0100000b)
    action unknown_server() { }

    @id(0x02000006)
    table servers {
        key = { meta.server : exact @name("server"); }
        actions = { to_server; unknown_server; }
        const default_action = unknown_server;
        size = SERVERS;
    }

    apply {
        if (meta.path == Path.to_service) {
            if (servers.apply().hit) {
                if (meta.choose_again == 1 && meta.event == Event.syn && meta.second_pass == 0 && meta.claimed == 0
                        && meta.pinned == 1 && meta.state == PinState.pending && meta.refused == 0 && meta.choice != 0) {
                    meta.second_pass = 1;
                    meta.path = Path.done;
                } else {
                    meta.choose_again = 0;
                    meta.replaced = meta.connection.service;
                    meta.replaced_port = meta.connection.service_port;
                    hdr.ipv4.dst = meta.endpoint;
                    if (hdr.tcp.isValid()) {
                        hdr.tcp.dst_port = meta.endpoint_port;
                    } else if (hdr.udp.isValid()) {
                        hdr.udp.dst_port = meta.endpoint_port;
                    } else {
                        hdr.inner_ipv4.src = meta.endpoint;
                        hdr.inner_transport.src_port = meta.endpoint_port;
                    }
                }
            } else {
                meta.verdict.drop = DropReason.server_unknown;
                meta.path = Path.done;
            }
        } else {
            meta.replaced = meta.flow.src;
            meta.replaced_port = meta.flow.src_port;
            if (hdr.ipv4.src == meta.replaced) {
                hdr.ipv4.src = meta.endpoint;
            }
            if (hdr.tcp.isValid()) {
                hdr.tcp.src_port = meta.endpoint_port;
            } else if (hdr.udp.isValid()) {
                hdr.udp.src_port = meta.endpoint_port;
            } else {
                hdr.inner_ipv4.dst = meta.endpoint;
                hdr.inner_transport.dst_port = meta.endpoint_port;
            }
        }
    }
}

#endif
