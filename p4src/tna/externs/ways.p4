// The two ways of the connection table: how they share the work.
#ifndef SLUICE_TNA_WAYS_P4
#define SLUICE_TNA_WAYS_P4

// Finds a packet's connection in one of two ways or claims a slot for it, keeps or takes its pin, steps its state. `pin` is the
// choice, and becomes the server that the connection is pinned to.
//
// Both ways are looked at side by side: what is done to each is known beforehand. A SYN looks in its first pass, and remembers
// which way it found free; in its second it claims that one and looks at the other. (A slot that another SYN has claimed
// in between stays its: the connection goes without a pin.) Where both have it, way 1 counts.
control Pins(inout metadata_t meta, in place_t place, in bit<8> way, inout server_id_t pin) {
    PinKey1() key_1;
    PinKey2() key_2;
    PinServer1() server_1;
    PinServer2() server_2;
    PinState1() state_1;
    PinState2() state_2;

    apply {
        found_t found_1;
        found_t found_2;
        key_1.apply(place.slot_1, place.op, way, place.fingerprint, place.oldest, place.stamp, found_1);
        key_2.apply(place.slot_2, place.op, way, place.fingerprint, place.oldest, place.stamp, found_2);

        server_id_t server_before = 0;
        bit<1> in_1 = 0;
        bit<1> in_2 = 0;
        if (found_1 == ITS_OWN || found_1 == TAKEN) {
            server_1.apply(place.slot_1, found_1, pin, server_before, in_1);
        } else {
            server_2.apply(place.slot_2, found_2, pin, server_before, in_2);
        }
        if (found_1 == VACANT) {
            meta.vacant = 1;
        } else if (found_2 == VACANT) {
            meta.vacant = 2;
        }

        if (in_1 == 1 || in_2 == 1) {
            if (pin != 0 && (meta.path == Path.to_service || pin == meta.server)) {
                meta.pinned = 1;
            }
        }
        PinState before = PinState.closing;
        if (meta.pinned == 1) {
            if (in_1 == 1) {
                state_1.apply(place.slot_1, found_1, place.expected, place.next, place.force, before);
            } else {
                state_2.apply(place.slot_2, found_2, place.expected, place.next, place.force, before);
            }
            if (found_1 == TAKEN || (in_1 == 0 && found_2 == TAKEN)) {
                meta.claimed = 1;
                meta.state = PinState.pending;
                if (before != PinState.closing && place.op == KeyOp.claim) {
                    meta.evicted = server_before;
                }
            } else {
                meta.state = before;
            }
        }
    }
}

#endif
