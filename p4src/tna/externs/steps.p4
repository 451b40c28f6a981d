// The operation of a packet on its slot: on the key, and on the state. A SYN after a handshake's last ACK opens a new connection: clients
// abandon connections without notice (Linux delays a FIN while data is unacknowledged), and use their ports again.
//
// This is one table, since conditions would need a table for each leaf. (It reads the payload's length itself, since the event `payload` is
// known only a stage later.) v1model's key contains the state, here it does not. So a client's payload keeps the slot. A server's bare ACK
// does not, since a connection's last segment may be such an ACK. A server's FIN leaves the slot the linger time, whichever side closed first.
#ifndef SLUICE_TNA_STEPS_P4
#define SLUICE_TNA_STEPS_P4

// The operation of a packet on a key of the connection table.
enum bit<8> KeyOp {
    look      = 0,   // packets in mid-connection: finds a matching key, however old
    look_live = 1,   // a SYN that may not claim a slot, or not yet: finds a matching key that has not expired
    claim     = 2,   // a SYN: finds a matching key that has not expired, or takes a vacant slot
    renew     = 3,   // the second pass of a SYN whose server takes no new connections: takes its own slot again
    touch     = 4,   // writes the later of the matching key's time and this packet's
    close     = 5    // writes this packet's time into a matching key
}

struct step_t {
    KeyOp    op;
    ticks_t  time;                // the time that a key is compared with (a stateful unit has no input for a second one)
    PinState expected;            // the state steps to `next` if it is `expected`,
    PinState next;
    bit<1>   or_later;            // or, if this is 1, not below `expected`
}

control Steps(in metadata_t meta, in decided_t decided, in times_t times, out step_t step) {
    ticks_t pending;              // how far before now the written time lies: the idle time less the time for which the slot is
                                  // to be kept
    ticks_t answered;
    ticks_t linger;
    ticks_t age;

    // One step in each action, so that a stateful unit gets fields, not sums.
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
            meta.preferred  : ternary @name("preferred");   // 0: there is no server to claim a slot for
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
