// Determines the operation of a packet on its slot's key and state. A SYN after a handshake's last ACK opens a new connection,
// because clients abandon connections without notice (Linux delays a FIN while data is unacknowledged) and reuse their ports.
//
// This is one table, because conditions would need a table for each case. (The table reads the payload's length, because the
// event `payload` is set only a stage later.) Unlike on v1model, the key does not contain the state, so the state cannot
// decide which packets renew the slot's time: payload of either side always does. A bare ACK does not, because it may be the
// connection's last segment. After a server's FIN the slot expires after the linger time, even if the client closes later.
#ifndef SLUICE_TNA_STEPS_P4
#define SLUICE_TNA_STEPS_P4

// The operation of a packet on a key of the connection table.
enum bit<8> KeyOp {
    find      = 0,   // a packet other than a SYN: finds a matching key of any age
    find_live = 1,   // a SYN that may not claim a slot in this pass: finds a matching key that has not expired
    claim     = 2,   // a SYN: finds a matching key that has not expired, or claims a vacant slot
    renew     = 3,   // second pass of a SYN whose server takes no new connections: claims the connection's slot again
    touch     = 4,   // writes the packet's time into a matching key, if the key's time is earlier
    close     = 5    // writes the packet's time into a matching key
}

struct step_t {
    KeyOp    op;
    ticks_t  time;                // the time with which a key's time is compared, and from which the time to write is derived (a
                                  // stateful unit has no input for a second time)
    PinState expected;            // the state becomes `next` if it equals `expected`
    PinState next;
    bit<1>   or_later;            // 1: the state also becomes `next` if it is above `expected`
}

control Steps(in metadata_t meta, in decided_t decided, in times_t times, out step_t step) {
    ticks_t pending;              // number of ticks by which the written time is before `now`: the idle time minus the time-out
                                  // of the state (likewise `answered`, `linger` and `age`)
    ticks_t answered;
    ticks_t linger;
    ticks_t age;

    // Computes the differences in separate actions, because the inputs of a stateful unit must be fields, not sums.
    @hidden
    action ages() {
        pending = times.idle - times.pending;
        answered = times.idle - times.answered;
        linger = times.idle - times.linger;
    }

    @hidden
    action stamp() {
        step.time = meta.now - age;
    }

    @hidden
    action steps(KeyOp key_op, PinState from_state, PinState to_state, bit<1> from_later) {
        step.op = key_op;
        step.expected = from_state;
        step.next = to_state;
        step.or_later = from_later;
    }

    @hidden
    table by_event {
        key = {
            meta.event      : ternary @name("event");
            meta.server     : ternary @name("server");      // 0: the packet is from a client
            meta.payload    : ternary @name("payload");
            decided.refused : ternary @name("refused");
            decided.looks   : ternary @name("looks");
            meta.pass       : ternary @name("pass");
            meta.preferred  : ternary @name("preferred");   // 0: no server was drawn, so no slot is claimed
        }
        actions = { steps; }
        const entries = {
            (Event.syn, _, _, REFUSED, _, _, _)    : steps(KeyOp.find_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, 1, _, _)          : steps(KeyOp.find_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, Pass.renew, _) : steps(KeyOp.renew, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, _, 0)          : steps(KeyOp.find_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, _, _)          : steps(KeyOp.claim, PinState.established, PinState.pending, 1);
            (Event.fin, 0, _, _, _, _, _)          : steps(KeyOp.find, PinState.pending, PinState.closed, 1);
            (Event.fin, _, _, _, _, _, _)          : steps(KeyOp.close, PinState.pending, PinState.closed, 1);
            (Event.reset, 0, _, _, _, _, _)        : steps(KeyOp.find, PinState.pending, PinState.closed, 1);
            (Event.reset, _, _, _, _, _, _)        : steps(KeyOp.close, PinState.pending, PinState.closed, 1);
            (Event.syn_ack, 0, _, _, _, _, _)      : steps(KeyOp.find, PinState.answered, PinState.established, 0);
            (Event.syn_ack, _, _, _, _, _, _)      : steps(KeyOp.touch, PinState.pending, PinState.answered, 0);
            (Event.ack, 0, 0, _, _, _, _)          : steps(KeyOp.find, PinState.answered, PinState.established, 0);
            (Event.ack, 0, _, _, _, _, _)          : steps(KeyOp.touch, PinState.answered, PinState.established, 0);
            (Event.ack, _, 0, _, _, _, _)          : steps(KeyOp.find, PinState.closed, PinState.closed, 0);
            (Event.ack, _, _, _, _, _, _)          : steps(KeyOp.touch, PinState.closed, PinState.closed, 0);
        }
        const default_action = steps(KeyOp.find, PinState.closed, PinState.closed, 0);
    }

    apply {
        ages();
        if (meta.event == Event.syn) {
            if (meta.pass == Pass.renew) {
                age = pending;
            } else {
                age = times.idle;
            }
        } else if (meta.event == Event.syn_ack) {
            age = answered;
        } else if (meta.event == Event.fin || meta.event == Event.reset) {
            age = linger;
        } else {
            age = 0;
        }
        stamp();
        by_event.apply();
    }
}

#endif
