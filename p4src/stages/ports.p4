// Ports: decides whether a frame is for the router and of a protocol that the router handles.
//
//   reads  ethernet.dst, ingress_port
//          arp, ipv4, splice: which of these headers is valid
//   writes router_mac, inside, known
//   keys   ports: ingress port -> the router's MAC address there, and whether servers or protected hosts are behind it
//   drops  port_unknown, not_for_us, unsupported
#ifndef SLUICE_STAGES_PORTS_P4
#define SLUICE_STAGES_PORTS_P4

control Ports(inout metadata_t meta) {
    @id(ACTION_SET_PORT)
    action set_port(mac_t mac, bit<1> inside) {
        meta.router_mac = mac;
        meta.inside = inside;
        meta.known = 1;
    }

    @defaultonly
    @id(ACTION_UNKNOWN_PORT)
    action unknown_port() { }

    @id(TABLE_PORTS)
    table ports {
        key = { meta.ingress_port : exact @name("port"); }
        actions = { set_port; unknown_port; }
        const default_action = unknown_port;
        size = PORTS;
    }

    apply {
        ports.apply();
    }
}

// Drops a frame that is not addressed to the router, or whose protocol the router does not handle.
control Addressed(in headers_t hdr, in metadata_t meta, inout DropReason drop) {
    // Each condition makes one comparison of 32 bits or less, because the hardware compares at most 44 bits.
    apply {
        if (meta.known == 0) {
            drop = DropReason.port_unknown;
        } else if (hdr.arp.isValid() && hdr.ethernet.dst[47:16] == 0xffffffff) {
            if (hdr.ethernet.dst[15:0] != 0xffff) {
                drop = DropReason.not_for_us;
            }
        } else if (hdr.ethernet.dst[47:16] != meta.router_mac[47:16]) {
            drop = DropReason.not_for_us;
        } else if (hdr.ethernet.dst[15:0] != meta.router_mac[15:0]) {
            drop = DropReason.not_for_us;
        } else if (!hdr.arp.isValid() && !hdr.ipv4.isValid() && !hdr.splice.isValid()) {
            drop = DropReason.unsupported;
        }
    }
}

#endif
