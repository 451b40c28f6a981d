// Forward: longest-prefix route and neighbour.
//
//   reads  ipv4.dst
//   writes ethernet, verdict
//   keys   routes: destination, longest prefix -> directly connected, or the next hop's address
//          neighbours: next hop -> port and MAC addresses
//   drops  no_route, neighbour_unresolved
//   punts  neighbour: the controller asks for the next hop
#ifndef SLUICE_STAGES_FORWARD_P4
#define SLUICE_STAGES_FORWARD_P4

control Forward(inout headers_t hdr, inout metadata_t meta) {
    @id(0x0100000c)
    action connected() {
        meta.verdict.next_hop = hdr.ipv4.dst;
    }

    @id(0x0100000d)
    action via(ipv4_t next_hop) {
        meta.verdict.next_hop = next_hop;
    }

    @defaultonly
    @id(0x0100000e)
    action unroutable() {
        meta.verdict.drop = DropReason.no_route;
        meta.path = Path.done;
    }

    @id(0x02000007)
    table routes {
        key = { hdr.ipv4.dst : lpm @name("destination"); }
        actions = { connected; via; unroutable; }
        const default_action = unroutable;
        size = ROUTES;
    }

    @id(0x0100000f)
    action set_neighbour(port_t port, mac_t src, mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        meta.verdict.egress_port = port;
    }

    @defaultonly
    @id(0x01000010)
    action unresolved() {
        meta.verdict.drop = DropReason.neighbour_unresolved;
        meta.verdict.punt = PuntReason.neighbour;
        meta.path = Path.done;
    }

    @id(0x02000008)
    table neighbours {
        key = { meta.verdict.next_hop : exact @name("next_hop"); }
        actions = { set_neighbour; unresolved; }
        const default_action = unresolved;
        size = NEIGHBOURS;
    }

    apply {
        if (routes.apply().hit) {
            neighbours.apply();
        }
    }
}

#endif
