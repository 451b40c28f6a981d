// The two ways of the connection table: how they share the work.
#ifndef SLUICE_V1MODEL_WAYS_P4
#define SLUICE_V1MODEL_WAYS_P4

// Finds a packet's connection in one of two ways or claims a slot for it, keeps or takes its pin, steps its state. A request goes
// to the server that its connection is pinned to; without a pin, to the stable choice, and a SYN that passes once more to its choice. Each register is touched once, in the order key_1, key_2,
// server_2, server_1, state_2, state_1: a retransmitted SYN may find way 1 free while its connection lives in way 2. It claims
// way 1 and carries the pin there; way 2 then holds a connection that has ended.
control Pins(inout metadata_t meta, in place_t place, in decided_t decided) {
    PinKey1() key_1;
    PinKey2() key_2;
    PinServer1() server_1;
    PinServer2() server_2;
    PinState1() state_1;
    PinState2() state_2;

    apply {
        bit<1> hit_1 = 0;
        bit<1> hit_2 = 0;
        bit<1> claimed_1 = 0;
        bit<1> claimed_2 = 0;
        // A SYN that a server sends opens no connection of the service's.
        bool any = meta.path != Path.from_server || meta.event != Event.syn;
        if (any) {
            key_1.apply(place.slot_1, place.op, place.fingerprint, place.oldest, place.stamp, hit_1, claimed_1);
        }
        if (any && hit_1 == 0) {
            if (claimed_1 == 0 || place.op == KeyOp.claim) {
                key_2.apply(place.slot_2, place.op, claimed_1, place.fingerprint, place.oldest, place.stamp, hit_2, claimed_2);
            }
        }

        PinState expected_2 = place.expected;
        PinState next_2 = place.next;
        bit<1> or_later_2 = place.or_later;
        if (claimed_1 == 1 || claimed_2 == 1) {
            expected_2 = PinState.pending;
            or_later_2 = 1;
            if (claimed_1 == 1) {
                next_2 = PinState.closing;
            }
        }

        // The pin: way 2 first, for way 1 may inherit it.
        server_id_t pin = meta.choice;
        server_id_t server_before = 0;
        if (hit_2 == 1 || claimed_2 == 1) {
            server_2.apply(place.slot_2, claimed_2, pin, server_before);
        }
        if (hit_1 == 1 || claimed_1 == 1) {
            server_1.apply(place.slot_1, claimed_1, pin, server_before);
        }
        if (hit_2 == 0 && (claimed_1 == 1 || claimed_2 == 1)) {
            meta.claimed = 1;
        }
        if (pin != 0 && (hit_1 == 1 || hit_2 == 1 || claimed_1 == 1 || claimed_2 == 1)) {
            meta.held = 1;
            if (meta.path == Path.to_service) {
                meta.server = pin;
            }
            if (pin == meta.server) {
                meta.pinned = 1;
            }
        } else if (meta.path == Path.to_service) {
            if (meta.event == Event.syn && decided.undecided == 1) {
                meta.server = meta.choice;
            } else {
                meta.server = meta.stable_choice;
            }
        }

        if (meta.pinned == 1) {
            PinState before_1 = PinState.pending;
            PinState before_2 = PinState.pending;
            if (hit_2 == 1 || claimed_2 == 1) {
                state_2.apply(place.slot_2, expected_2, next_2, or_later_2, before_2);
            }
            if (claimed_1 == 1) {
                // Claimed by a SYN: a connection that was established in way 2, or closing, begins anew.
                PinState inherited = PinState.pending;
                if (before_2 == PinState.answered) {
                    inherited = before_2;
                }
                state_1.apply(place.slot_1, PinState.pending, inherited, 1, before_1);
                meta.state = before_2;
                if (before_1 != PinState.closing && place.op == KeyOp.claim) {
                    meta.evicted = server_before;
                }
            } else if (hit_1 == 1) {
                state_1.apply(place.slot_1, place.expected, place.next, place.or_later, before_1);
                meta.state = before_1;
            } else if (hit_2 == 1) {
                meta.state = before_2;
            } else if (before_2 != PinState.closing && place.op == KeyOp.claim) {
                meta.evicted = server_before;
            }
        }
    }
}

#endif
