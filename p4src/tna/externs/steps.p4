// What a packet does to its slot: to the key, and to the state. A SYN behind a handshake's last ACK is of a new connection: clients give
// connections up without a word (Linux keeps a FIN back while data is not acknowledged), and use their ports again.
//
// One table, where conditions would be a table for each leaf. (Whether an ACK has a payload it asks of its length: as an event, that
// is known a stage later.) Unlike v1model, whose key knows the state: a client's payload keeps the slot, a server's bare ACK does not,
// for the last one of a connection is such a one; and a server's FIN leaves it the linger time, whoever was first.
#ifndef SLUICE_TNA_STEPS_P4
#define SLUICE_TNA_STEPS_P4

// What a packet does to a key of the connection table.
enum bit<8> KeyOp {
    look      = 0,   // mid-connection: a match, however old
    look_live = 1,   // a SYN that may not claim, or not yet: a match that is kept still
    claim     = 2,   // a SYN: keep a live match, or take a vacant slot
    renew     = 3,   // a SYN whose server takes no new connections, in its second pass: take its own slot again
    touch     = 4,   // of a match, the later of its time and this one
    close     = 5    // of a match, this time
}

struct step_t {
    KeyOp    op;
    ticks_t  time;                // that a key is compared with (a stateful unit has no room for a second)
    PinState expected;            // from that, and only from there,
    PinState next;                // the state steps to this;
    bit<1>   or_later;            // or from any state after that
}

control Steps(in metadata_t meta, in decided_t decided, in times_t times, out step_t step) {
    ticks_t pending;              // how old what it stamps is already: idle less the time that is meant
    ticks_t answered;
    ticks_t linger;
    ticks_t age;

    // One step an action, so that a stateful unit is given fields, not sums.
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
            meta.server     : ternary @name("server");      // 0: from a client
            meta.payload    : ternary @name("payload");
            decided.refused : ternary @name("refused");
            decided.looks   : ternary @name("looks");
            meta.pass       : ternary @name("pass");
            meta.preferred  : ternary @name("preferred");   // 0: no server to claim a slot for
        }
        actions = { steps; }
        const entries = {
            (Event.syn, _, _, REFUSED, _, _, _)    : steps(KeyOp.look_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, 1, _, _)          : steps(KeyOp.look_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, Pass.renew, _) : steps(KeyOp.renew, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, _, 0)          : steps(KeyOp.look_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, _, _)          : steps(KeyOp.claim, PinState.established, PinState.pending, 1);
            (Event.fin, 0, _, _, _, _, _)          : steps(KeyOp.look, PinState.pending, PinState.closed, 1);
            (Event.fin, _, _, _, _, _, _)          : steps(KeyOp.close, PinState.pending, PinState.closed, 1);
            (Event.reset, 0, _, _, _, _, _)        : steps(KeyOp.look, PinState.pending, PinState.closed, 1);
            (Event.reset, _, _, _, _, _, _)        : steps(KeyOp.close, PinState.pending, PinState.closed, 1);
            (Event.syn_ack, 0, _, _, _, _, _)      : steps(KeyOp.look, PinState.answered, PinState.established, 0);
            (Event.syn_ack, _, _, _, _, _, _)      : steps(KeyOp.touch, PinState.pending, PinState.answered, 0);
            (Event.ack, 0, 0, _, _, _, _)          : steps(KeyOp.look, PinState.answered, PinState.established, 0);
            (Event.ack, 0, _, _, _, _, _)          : steps(KeyOp.touch, PinState.answered, PinState.established, 0);
            (Event.ack, _, 0, _, _, _, _)          : steps(KeyOp.look, PinState.closed, PinState.closed, 0);
            (Event.ack, _, _, _, _, _, _)          : steps(KeyOp.touch, PinState.closed, PinState.closed, 0);
        }
        const default_action = steps(KeyOp.look, PinState.closed, PinState.closed, 0);
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
