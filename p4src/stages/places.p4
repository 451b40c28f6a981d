// Places: where the connection table has a packet's connection if it has it, and what the packet does there.
//
//   reads  event, server (of an answer), connection, now, decided, second_pass, preferred
//   writes the place, for connections
//   keys   timers: none; the times are parameters of its default action
//
// A slot is free when its stamp is older than the idle time. What a packet stamps decides how long the slot lives on:
// payload idle, a SYN pending, a SYN-ACK answered, FIN and RST linger; an ACK alone stamps nothing. "Closed", "never
// answered" and "idle" are then one comparison, and the entries of a flood live short.
#ifndef SLUICE_STAGES_PLACES_P4
#define SLUICE_STAGES_PLACES_P4

struct place_t {
    pin_slot_t    slot_1;
    pin_slot_t    slot_2;
    fingerprint_t fingerprint;
    ticks_t       oldest;         // of a slot that is not free
    ticks_t       stamp;          // that this packet leaves
    KeyOp         op;             // what it does to a key
    PinState      expected;       // from that, and only from there,
    PinState      next;           // the state steps to this;
    bit<1>        force;          // or from anywhere
}

control Places(in metadata_t meta, in decided_t decided, out place_t place) {
    PinHash() pin_hash;

    ticks_t idle;
    ticks_t pending;
    ticks_t answered;
    ticks_t linger;

    // In ticks. Each at most idle, and idle below TICK_BASE.
    @id(0x01000009)
    action set_timers(ticks_t idle_time, ticks_t pending_time, ticks_t answered_time, ticks_t linger_time) {
        idle = idle_time;
        pending = pending_time;
        answered = answered_time;
        linger = linger_time;
    }

    // 300 s, 10 s, 60 s, 2 s.
    @id(0x02000005)
    table timers {
        actions = { set_timers; }
        default_action = set_timers(4578, 153, 916, 31);
        size = 1;
    }

    // One step an action, so that a stateful unit is given fields, not sums.
    @hidden
    action stamp_now() {
        place.oldest = meta.now - idle;
        place.stamp = meta.now;
    }

    @hidden
    action stamp_pending() {
        place.stamp = place.oldest + pending;
    }

    @hidden
    action stamp_answered() {
        place.stamp = place.oldest + answered;
    }

    @hidden
    action stamp_linger() {
        place.stamp = place.oldest + linger;
    }

    apply {
        timers.apply();
        pin_hash.apply(meta.connection, place.slot_1, place.slot_2, place.fingerprint);
        stamp_now();
        place.op = KeyOp.look;
        place.expected = PinState.closing;
        place.next = PinState.closing;
        place.force = 0;
        if (meta.event == Event.syn) {
            stamp_pending();
            place.next = PinState.pending;
            if (decided.refused == 1 || decided.looks == 1) {
                place.op = KeyOp.look_live;
            } else if (meta.second_pass == 1 && meta.preferred == 0) {
                place.op = KeyOp.renew;
            } else {
                place.op = KeyOp.claim;
            }
        } else if (meta.event == Event.fin || meta.event == Event.reset) {
            stamp_linger();
            place.op = KeyOp.close;
            place.force = 1;
        } else {
            if (meta.event == Event.syn_ack) {
                stamp_answered();
                place.op = KeyOp.touch;
            } else if (meta.event == Event.payload) {
                place.op = KeyOp.touch;
            }
            if (meta.server == 0) {     // from a client
                if (meta.event != Event.none) {
                    place.expected = PinState.answered;
                    place.next = PinState.established;
                }
            } else if (meta.event == Event.syn_ack) {
                place.expected = PinState.pending;
                place.next = PinState.answered;
            }
        }
    }
}

#endif
