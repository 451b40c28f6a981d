// Forward: looks up the longest-prefix route, and the port and MAC address of the route's next hop. A neighbour (next hop) is a host
// or router on a connected subnet. Each neighbour has an id, and a host route (the longest possible prefix) unless a configured
// route applies to its address.
//
//   reads  ipv4.dst
//          neighbour: the agent to which an answer goes while the agent translates, with the client as its destination
//   writes ethernet, verdict
//   keys   routes: destination, longest prefix -> the next hop's id, or connected: the destination itself is the next hop and has
//          no id yet
//          neighbours: id -> port and MAC addresses
//   drops  no_route, neighbour_unresolved
//   punts  neighbour: the controller resolves the next hop by ARP
#ifndef SLUICE_STAGES_FORWARD_P4
#define SLUICE_STAGES_FORWARD_P4

control Forward(inout headers_t hdr, inout verdict_t verdict) {
    @id(ACTION_CONNECTED)
    action connected() {
        verdict.drop = DropReason.neighbour_unresolved;
        verdict.punt = PuntReason.neighbour;
    }

    @id(ACTION_VIA)
    action via(neighbour_id_t neighbour) {
        verdict.neighbour = neighbour;
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
        key = { verdict.neighbour : exact @name("neighbour"); }
        actions = { set_neighbour; unresolved; }
        const default_action = unresolved;
        size = NEIGHBOURS;
    }

    apply {
        if (verdict.neighbour == 0) {
            routes.apply();
        }
        if (verdict.neighbour != 0) {
            neighbours.apply();
        }
    }
}

#endif
