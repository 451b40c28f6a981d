// Bridge: from ingress to egress, what is counted there. A packet without it passes egress by.
#ifndef SLUICE_TNA_BRIDGE_P4
#define SLUICE_TNA_BRIDGE_P4

control Bridge(in metadata_t meta, out bridge_h bridge) {
    apply {
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
        bridge.protocol = meta.flow.protocol;
        bridge.client = meta.flow.dst;
        bridge.client_port = meta.flow.dst_port;
        if (meta.path == Path.from_server) {
            bridge.service = meta.connection.service;
            bridge.service_port = meta.connection.service_port;
        } else {
            bridge.service = meta.flow.src;
            bridge.service_port = meta.flow.src_port;
        }
    }
}

control Unbridge(in bridge_h bridge, in egress_intrinsic_metadata_t intrinsic, inout metadata_t meta) {
    apply {
        meta.verdict.egress_port = (bit<16>)intrinsic.egress_port;
        meta.path = (Path)bridge.path;
        meta.event = (Event)bridge.event;
        meta.state = (PinState)bridge.state;
        meta.pinned = bridge.pinned;
        meta.inside = bridge.inside;
        meta.server = bridge.server;
        meta.payload = bridge.payload;
        meta.clock = bridge.clock;
        meta.connection.client = bridge.client;
        meta.connection.service = bridge.service;
        meta.connection.client_port = bridge.client_port;
        meta.connection.service_port = bridge.service_port;
        meta.connection.protocol = bridge.protocol;
        meta.flow.dst = bridge.client;
        meta.flow.src = bridge.service;
        meta.flow.dst_port = bridge.client_port;
        meta.flow.src_port = bridge.service_port;
        meta.flow.protocol = bridge.protocol;
    }
}

#endif
