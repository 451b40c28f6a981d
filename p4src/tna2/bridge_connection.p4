// Bridge connection: adds the connection's slot and fingerprint to the metadata for egress, where servers' TCP resources are
// managed. Egress cannot derive the slot from the packet's addresses, because ingress has translated the addresses.
//
//   reads  claimed, content, way, place
//   writes bridge.claimed, bridge.content, bridge.fingerprint, bridge.connection, bridge.unused_too
#ifndef SLUICE_TNA2_BRIDGE_CONNECTION_P4
#define SLUICE_TNA2_BRIDGE_CONNECTION_P4

control BridgeConnection(in metadata_t meta, in place_t place, inout bridge_h bridge) {
    @hidden
    action fill() {
        bridge.claimed = meta.claimed;
        bridge.unused_too = 0;
        bridge.content = (bit<8>)meta.content;
    }

    @hidden
    action cut_fingerprint() {
        @in_hash { bridge.fingerprint = place.fingerprint[15:0]; }
    }

    @hidden
    action first_way() {
        @in_hash { bridge.connection = 1w0 ++ place.slot_1; }
    }

    @hidden
    action second_way() {
        @in_hash { bridge.connection = 1w1 ++ place.slot_2; }
    }

    apply {
        fill();
        cut_fingerprint();
        if (meta.way == 0) {
            first_way();
        } else {
            second_way();
        }
    }
}

#endif
