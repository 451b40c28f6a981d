// What a packet does to its slot: to the key, and to the state. A SYN behind a handshake's last ACK is of a new connection: clients give
// connections up without a word (Linux keeps a FIN back while data is not acknowledged), and use their ports again.
//
// Whether an ACK has a payload it asks of its length, as on hardware: as an event, that is known a stage later.
#ifndef SLUICE_V1MODEL_STEPS_P4
#define SLUICE_V1MODEL_STEPS_P4

control Steps(in metadata_t meta, in decided_t decided, out KeyOp op, out PinState expected, out PinState next, out bit<1> or_later) {
    apply {
        op = KeyOp.look;
        expected = PinState.closing;
        next = PinState.closing;
        or_later = 0;
        if (meta.event == Event.syn) {
            expected = PinState.established;
            next = PinState.pending;
            or_later = 1;
            if (decided.refused == REFUSED || decided.looks == 1) {
                op = KeyOp.look_live;
            } else if (meta.second_pass == 1 && meta.preferred == 0) {
                op = KeyOp.renew;
            } else {
                op = KeyOp.claim;
            }
        } else if (meta.event == Event.fin || meta.event == Event.reset) {
            op = KeyOp.close;
            expected = PinState.pending;
            or_later = 1;
        } else {
            if (meta.event == Event.syn_ack || (meta.event == Event.ack && meta.payload != 0)) {
                op = KeyOp.touch;
            }
            if (meta.server == 0) {     // from a client
                if (meta.event != Event.none) {
                    expected = PinState.answered;
                    next = PinState.established;
                }
            } else if (meta.event == Event.syn_ack) {
                expected = PinState.pending;
                next = PinState.answered;
            }
        }
    }
}

#endif
