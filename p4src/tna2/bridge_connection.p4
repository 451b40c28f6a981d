// Bridge connection: the connection's fields that the management of servers' TCP resources needs in egress. After translation, egress can
// no longer derive the connection's slot from its addresses.
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
