// Bridge: adds the metadata that egress needs to count a packet. A packet without the header `bridge` bypasses egress.
//
//   reads  path, event, state, pinned, inside, server, payload, clock
//   writes bridge
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
    }

    apply {
        fill();
    }
}

#endif
