// Translate: translates addresses and ports in both directions, also in the packet inside an ICMP error.
//
//   reads  path, server, flow, ipv4.src, tcp, udp
//          endpoint, endpoint_port: of a server's answer
//          itself: on Tofino
//   writes ipv4, tcp, udp, inner_ipv4, inner_transport: addresses and ports
//          endpoint, endpoint_port, draining: of a request
//          replaced, replaced_port: for the checksums
//   keys   servers: server -> its address and port, and whether it takes no new connections (ejected, drained or removed)
//   drops  server_unknown
#ifndef SLUICE_STAGES_TRANSLATE_P4
#define SLUICE_STAGES_TRANSLATE_P4

#include <externs/rewrite.p4>

// The action to_server itself writes the packet's destination address, because the stage `forward` needs the address early.
control Translate(inout headers_t hdr, inout metadata_t meta, inout DropReason drop) {
    Rewrite() rewrite;

    @id(ACTION_TO_SERVER)
    action to_server(ipv4_t address, l4_port_t port, bit<1> draining) {
        meta.endpoint = address;
        meta.endpoint_port = port;
        hdr.ipv4.dst = address;
        meta.draining = draining;
    }

    @defaultonly
    @id(ACTION_UNKNOWN_SERVER)
    action unknown_server() {
        drop = DropReason.server_unknown;
    }

    @id(TABLE_SERVERS)
    table servers {
        key = { meta.server : exact @name("server"); }
        actions = { to_server; unknown_server; }
        const default_action = unknown_server;
        size = SERVERS;
    }

    apply {
        if (meta.path == Path.to_service) {
            servers.apply();
        }
        rewrite.apply(hdr, meta);
    }
}

#endif
