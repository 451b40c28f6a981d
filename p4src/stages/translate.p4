// Translate: network address and port translation, both ways, and of the packet inside an ICMP error.
//
//   reads  path, server, endpoint (from a server)
//   writes addresses and ports in the headers; endpoint, replaced for the checksums; choose_again
//   keys   servers: server -> its address and port, and whether it is ejected
//   drops  server_unknown
//
// A retransmitted SYN whose pending connection is pinned to an ejected server asks for a second pass, in which the connection
// table renews the pin. It comes again as it came: what was written into its headers is lost.
#ifndef SLUICE_STAGES_TRANSLATE_P4
#define SLUICE_STAGES_TRANSLATE_P4

// The address that a packet goes to is written where it is looked up: forward waits for it.
control Translate(inout headers_t hdr, inout metadata_t meta, in decided_t decided) {
    bit<1> is_ejected;

    @id(0x0100000a)
    action to_server(ipv4_t address, l4_port_t port, bit<1> ejected) {
        meta.endpoint = address;
        meta.endpoint_port = port;
        hdr.ipv4.dst = address;
        is_ejected = ejected;
    }

    @defaultonly
    @id(0x0100000b)
    action unknown_server() {
        is_ejected = 0;
        meta.verdict.drop = DropReason.server_unknown;
        meta.path = Path.done;
    }

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
                meta.replaced = meta.connection.service;
                meta.replaced_port = meta.connection.service_port;
                if (hdr.tcp.isValid()) {
                    hdr.tcp.dst_port = meta.endpoint_port;
                } else if (hdr.udp.isValid()) {
                    hdr.udp.dst_port = meta.endpoint_port;
                } else {
                    hdr.inner_ipv4.src = meta.endpoint;
                    hdr.inner_transport.src_port = meta.endpoint_port;
                }
                if (is_ejected == 1 && meta.event == Event.syn && meta.second_pass == 0 && meta.claimed == 0
                        && meta.pinned == 1 && meta.state == PinState.pending && decided.refused == 0 && meta.choice != 0) {
                    meta.choose_again = 1;
                }
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
