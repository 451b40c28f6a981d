// Connections: pins every connection to its server, from its first SYN to its end.
//
//            slot_1                          slot_2
//     +-------------------+           +-------------------+
//     | key    | fingerprint, stamp   | key               |   1  find it, or claim a free slot
//     | server | 16 bit               | server            |   2  keep the pin, or take the choice
//     | state  | pending .. closing   | state             |   3  step, and say what it was before
//     +-------------------+           +-------------------+
//
//   reads  the place, event, refused, choice, stable_choice, second_pass; server (of an answer)
//   writes pinned, claimed, state, evicted, server (of a request)
//   drops  admission_refused, no_server
//
// Each register is touched once in a pass, in the order key_1, key_2, server_2, server_1, state_2, state_1: a retransmitted
// SYN may find way 1 free while its connection lives in way 2. It claims way 1 and carries the pin there; way 2 then holds a
// connection that has ended.
#ifndef SLUICE_STAGES_CONNECTIONS_P4
#define SLUICE_STAGES_CONNECTIONS_P4

control Connections(inout metadata_t meta, in place_t place) {
    PinKey1() key_1;
    PinKey2() key_2;
    PinServer1() server_1;
    PinServer2() server_2;
    PinState1() state_1;
    PinState2() state_2;
    ConnectionCounters() counters;

    apply {
        // A SYN claims if it may.
        KeyOp op;
        if (meta.event == Event.syn && (meta.refused == 1 || meta.choice == 0)) {
            op = KeyOp.look_live;
        } else if (meta.event == Event.syn && meta.second_pass == 1) {
            op = KeyOp.renew;
        } else {
            op = place.op;
        }

        bit<1> hit_1 = 0;
        bit<1> hit_2 = 0;
        bit<1> claimed_1 = 0;
        bit<1> claimed_2 = 0;
        key_1.apply(place.slot_1, op, place.fingerprint, place.oldest, place.stamp, hit_1, claimed_1);
        if (hit_1 == 0) {
            if (claimed_1 == 0 || op == KeyOp.claim) {
                key_2.apply(place.slot_2, op, claimed_1, place.fingerprint, place.oldest, place.stamp, hit_2, claimed_2);
            }
        }

        // The state's step: from `expected`, and only from there, to `next`.
        PinState expected = PinState.closing;
        PinState next = PinState.closing;
        bit<1> force = 0;
        if (meta.event == Event.syn) {
            next = PinState.pending;
        } else if (meta.event == Event.fin || meta.event == Event.reset) {
            force = 1;
        } else if (meta.path == Path.from_server && meta.event == Event.syn_ack) {
            expected = PinState.pending;
            next = PinState.answered;
        } else if (meta.path == Path.to_service && meta.event != Event.none) {
            expected = PinState.answered;
            next = PinState.established;
        }
        PinState next_2 = next;
        bit<1> force_2 = force;
        if (claimed_1 == 1) {
            next_2 = PinState.closing;
            force_2 = 1;
        } else if (claimed_2 == 1) {
            force_2 = 1;
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
        if (hit_1 == 1 || hit_2 == 1 || claimed_1 == 1 || claimed_2 == 1) {
            meta.pinned = 1;
        }
        if (pin == 0 || (meta.path == Path.from_server && pin != meta.server)) {
            meta.pinned = 0;
        }

        if (meta.pinned == 1) {
            PinState before_1 = PinState.pending;
            PinState before_2 = PinState.pending;
            if (hit_2 == 1 || claimed_2 == 1) {
                state_2.apply(place.slot_2, expected, next_2, force_2, before_2);
            }
            if (claimed_1 == 1) {
                // Claimed by a SYN: a connection that was closing in way 2 begins anew.
                PinState inherited = PinState.pending;
                if (before_2 != PinState.closing) {
                    inherited = before_2;
                }
                state_1.apply(place.slot_1, expected, inherited, 1, before_1);
                meta.state = inherited;
                if (before_1 != PinState.closing && meta.second_pass == 0) {
                    meta.evicted = server_before;
                }
            } else if (hit_1 == 1) {
                state_1.apply(place.slot_1, expected, next, force, before_1);
                meta.state = before_1;
            } else if (hit_2 == 1) {
                meta.state = before_2;
            } else if (before_2 != PinState.closing && meta.second_pass == 0) {
                meta.evicted = server_before;
            }
        }

        if (meta.path == Path.to_service) {
            if (meta.pinned == 1) {
                meta.server = pin;
            } else {
                meta.server = meta.stable_choice;
            }
            if (meta.event == Event.syn && meta.refused == 1 && meta.pinned == 0) {
                meta.verdict.drop = DropReason.admission_refused;
                meta.path = Path.done;
            } else if (meta.server == 0) {
                meta.verdict.drop = DropReason.no_server;
                meta.path = Path.done;
            }
            counters.apply(meta);
        }
    }
}

#endif
