// Ports: is this frame for the router, and which protocol is it?
//
//   reads  ethernet, which of arp and ipv4 is valid, ingress_port
//   writes router_mac, inside; path, of what is dropped
//   keys   ports: ingress port -> the router's MAC address there, and whether servers or protected hosts are behind it
//   drops  port_unknown, not_for_us, unsupported
#ifndef SLUICE_STAGES_PORTS_P4
#define SLUICE_STAGES_PORTS_P4

control Ports(in headers_t hdr, inout metadata_t meta) {
    @id(0x01000001)
    action set_port(mac_t mac, bit<1> inside) {
        meta.router_mac = mac;
        meta.inside = inside;
    }

    @defaultonly
    @id(0x01000002)
    action unknown_port() { }

    @id(0x02000001)
    table ports {
        key = { meta.ingress_port : exact @name("port"); }
        actions = { set_port; unknown_port; }
        const default_action = unknown_port;
        size = PORTS;
    }

    @hidden
    action not_for_us() {
        meta.verdict.drop = DropReason.not_for_us;
        meta.path = Path.done;
    }

    // One comparison a condition: hardware has room for 44 bits.
    apply {
        if (!ports.apply().hit) {
            meta.verdict.drop = DropReason.port_unknown;
            meta.path = Path.done;
        } else if (hdr.arp.isValid() && hdr.ethernet.dst[47:16] == 0xffffffff) {
            if (hdr.ethernet.dst[15:0] != 0xffff) {
                not_for_us();
            }
        } else if (hdr.ethernet.dst[47:16] != meta.router_mac[47:16]) {
            not_for_us();
        } else if (hdr.ethernet.dst[15:0] != meta.router_mac[15:0]) {
            not_for_us();
        } else if (!hdr.arp.isValid() && !hdr.ipv4.isValid()) {
            meta.verdict.drop = DropReason.unsupported;
            meta.path = Path.done;
        }
    }
}

#endif
