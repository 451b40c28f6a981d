// What a packet does to its slot: to the key, and to the state. A SYN behind a handshake's last ACK is of a new connection: clients give
// connections up without a word (Linux keeps a FIN back while data is not acknowledged), and use their ports again.
//
// One table, where conditions would be a table for each leaf. (Whether an ACK has a payload it asks of its length: as an event, that
// is known a stage later.)
#ifndef SLUICE_TNA_STEPS_P4
#define SLUICE_TNA_STEPS_P4

control Steps(in metadata_t meta, in decided_t decided, out KeyOp op, out PinState expected, out PinState next, out bit<1> or_later) {
    @hidden
    action steps(KeyOp key_op, PinState from_state, PinState to_state, bit<1> from_later) {
        op = key_op;
        expected = from_state;
        next = to_state;
        or_later = from_later;
    }

    @hidden
    table step {
        key = {
            meta.event       : ternary @name("event");
            meta.server      : ternary @name("server");      // 0: from a client
            meta.payload     : ternary @name("payload");
            decided.refused  : ternary @name("refused");
            decided.looks    : ternary @name("looks");
            meta.second_pass : ternary @name("second_pass");
            meta.preferred   : ternary @name("preferred");
        }
        actions = { steps; }
        const entries = {
            (Event.syn, _, _, REFUSED, _, _, _) : steps(KeyOp.look_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, 1, _, _)       : steps(KeyOp.look_live, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, 1, 0)       : steps(KeyOp.renew, PinState.established, PinState.pending, 1);
            (Event.syn, _, _, _, _, _, _)       : steps(KeyOp.claim, PinState.established, PinState.pending, 1);
            (Event.fin, _, _, _, _, _, _)       : steps(KeyOp.close, PinState.pending, PinState.closing, 1);
            (Event.reset, _, _, _, _, _, _)     : steps(KeyOp.close, PinState.pending, PinState.closing, 1);
            (Event.syn_ack, 0, _, _, _, _, _)   : steps(KeyOp.touch, PinState.answered, PinState.established, 0);
            (Event.syn_ack, _, _, _, _, _, _)   : steps(KeyOp.touch, PinState.pending, PinState.answered, 0);
            (Event.ack, 0, 0, _, _, _, _)       : steps(KeyOp.look, PinState.answered, PinState.established, 0);
            (Event.ack, 0, _, _, _, _, _)       : steps(KeyOp.touch, PinState.answered, PinState.established, 0);
            (Event.ack, _, 0, _, _, _, _)       : steps(KeyOp.look, PinState.closing, PinState.closing, 0);
            (Event.ack, _, _, _, _, _, _)       : steps(KeyOp.touch, PinState.closing, PinState.closing, 0);
        }
        const default_action = steps(KeyOp.look, PinState.closing, PinState.closing, 0);
    }

    apply {
        step.apply();
    }
}

#endif
