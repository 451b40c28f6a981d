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
    ticks_t       time;           // the one of both that a key is compared with (Tofino: a stateful unit has no room for a third)
    KeyOp         op;             // what it does to a key
    PinState      expected;       // from that, and only from there,
    PinState      next;           // the state steps to this;
    bit<1>        or_later;       // or from any state after that
}

control Places(in metadata_t meta, in decided_t decided, out place_t place) {
    PinHash() pin_hash;

    Steps() steps;

    ticks_t idle;
    ticks_t pending;              // how old what it stamps is already: idle less the time that is meant
    ticks_t answered;
    ticks_t linger;
    ticks_t age;
    ticks_t time_age;

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
    action ages() {
        pending = idle - pending;
        answered = idle - answered;
        linger = idle - linger;
    }

    @hidden
    action stamps() {
        place.oldest = meta.now - idle;
        place.stamp = meta.now - age;
        place.time = meta.now - time_age;
    }

    apply {
        timers.apply();
        ages();
        if (meta.event == Event.syn) {
            age = pending;
            if (meta.second_pass == 1 && meta.preferred == 0) {
                time_age = pending;
            } else {
                time_age = idle;
            }
        } else if (meta.event == Event.syn_ack) {
            age = answered;
            time_age = answered;
        } else if (meta.event == Event.fin || meta.event == Event.reset) {
            age = linger;
            time_age = linger;
        } else {
            age = 0;
            time_age = 0;
        }
        stamps();
        pin_hash.apply(meta, place.slot_1, place.slot_2, place.fingerprint);
        steps.apply(meta, decided, place.op, place.expected, place.next, place.or_later);
    }
}

#endif
