// Forward: looks up the longest-prefix route and the next hop's MAC address.
//
//   reads  ipv4.dst
//   writes ethernet, verdict
//   keys   routes: destination, longest prefix -> directly connected, or the next hop's address
//          neighbours: next hop -> port and MAC addresses
//   drops  no_route, neighbour_unresolved
//   punts  neighbour: the controller resolves the next hop by ARP
#ifndef SLUICE_STAGES_FORWARD_P4
#define SLUICE_STAGES_FORWARD_P4

control Forward(inout headers_t hdr, inout verdict_t verdict) {
    @id(ACTION_CONNECTED)
    action connected() {
        verdict.next_hop = hdr.ipv4.dst;
    }

    @id(ACTION_VIA)
    action via(ipv4_t next_hop) {
        verdict.next_hop = next_hop;
    }

    @defaultonly
    @id(ACTION_UNROUTABLE)
    action unroutable() {
        verdict.drop = DropReason.no_route;
    }

    @id(TABLE_ROUTES)
    table routes {
        key = { hdr.ipv4.dst : lpm @name("destination"); }
        actions = { connected; via; unroutable; }
        const default_action = unroutable;
        size = ROUTES;
    }

    @id(ACTION_SET_NEIGHBOUR)
    action set_neighbour(port_t port, mac_t src, mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        verdict.egress_port = port;
    }

    @defaultonly
    @id(ACTION_UNRESOLVED)
    action unresolved() {
        verdict.drop = DropReason.neighbour_unresolved;
        verdict.punt = PuntReason.neighbour;
    }

    @id(TABLE_NEIGHBOURS)
    table neighbours {
        key = { verdict.next_hop : exact @name("next_hop"); }
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
