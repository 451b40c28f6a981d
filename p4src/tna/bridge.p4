// Bridge: from ingress to egress, what is counted there. A packet without it passes egress by.
//
//   reads  path, event, state, pinned, inside, server, payload, clock, flow; of a server's packet, connection
//   writes the bridge header
#ifndef SLUICE_TNA_BRIDGE_P4
#define SLUICE_TNA_BRIDGE_P4

control Bridge(in metadata_t meta, inout bridge_h bridge) {
    @hidden
    action fill() {
        bridge.setValid();
        bridge.path = (bit<8>)meta.path;
        bridge.event = (bit<8>)meta.event;
        bridge.state = (bit<8>)meta.state;
        bridge.pinned = meta.pinned;
        bridge.inside = meta.inside;
        bridge.unused = 0;
        bridge.server = meta.server;
        bridge.payload = meta.payload;
        bridge.clock = meta.clock;
        bridge.client = meta.flow.dst;
        bridge.client_port = meta.flow.dst_port;
    }

    @hidden
    action as_service() {
        fill();
        bridge.service = meta.connection.service;
        bridge.service_port = meta.connection.service_port;
    }

    @hidden
    action as_host() {
        fill();
        bridge.service = meta.flow.src;
        bridge.service_port = meta.flow.src_port;
    }

    @hidden
    table carry {
        key = { meta.path : exact @name("path"); }
        actions = { as_service; as_host; }
        const default_action = as_host();
        const entries = {
            Path.from_server : as_service();
        }
    }

    apply {
        carry.apply();
    }
}

#endif
