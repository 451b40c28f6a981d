// Candidates: selects a server for a new connection whose client and port are still pinned to a server that takes no new
// connections.
//
//   client        switch                                  old server (draining)     candidate
//     | SYN ------->| the pin names a draining server: claim a candidate                |
//     |             |----------------------------------------------------- SYN -------->|
//     |<--- SYN-ACK |<------- its number + 1 is kept with the candidate ---- SYN-ACK ---|
//     | ACK ------->| acknowledges that number: the pin moves                           |
//     |             |----------------------------------------------------- ACK -------->|
//
//   reads  place, path, event, pass, pinned, has_slot, claimed, state, draining, server, choice, now, decided, drop, tcp
//   writes next_pass, preferred, answered_again, moved
//          the cells of candidate_*
//   drops  admission_refused, no_server
//
// A connection that is pinned to an unknown server is handled as if the server were draining. The pin is not changed until the
// client has proved that it opens a new connection, because any host can send a SYN with the client's address (RFC 5961). A SYN
// goes to the pinned server if this server is already the candidate, or if the SYN draws this server (an ejected server gets a
// share of SYNs as probes).
#ifndef SLUICE_V1MODEL_CANDIDATES_P4
#define SLUICE_V1MODEL_CANDIDATES_P4

// The key of a candidate's cell: the connection's fingerprint, and the time at which the cell expires.
typedef bit<(FINGERPRINT_BITS + 32)> candidate_key_t;
#define CANDIDATE_FINGERPRINT FINGERPRINT_BITS + 31:32
#define CANDIDATE_UNTIL 31:0
typedef bit<49> candidate_pin_t;
#define CANDIDATE_ANSWERED 48:48       // the candidate has sent its SYN-ACK
#define CANDIDATE_SERVER 47:32
#define CANDIDATE_NUMBER 31:0          // acknowledgement number by which the client acknowledges the candidate's SYN-ACK

// Decides from the metadata what a packet does to a candidate; at most one output is true. `claims`: a SYN goes to the cell's
// candidate, or to a new candidate. `answers`: a SYN-ACK that may be from the candidate; its number is then stored.
// `acknowledges`: a client's segment that may acknowledge the stored number; if it does, the pin moves. A SYN that may go to no
// candidate gets a drop reason; a SYN that claims loses the reason server_unknown. Input `begun`: the pinned connection's
// handshake has not ended.
control CandidateUse(in metadata_t meta, in decided_t decided, in bool begun, out bool claims, out bool answers, out bool acknowledges,
                     inout DropReason drop) {
    apply {
        claims = false;
        answers = false;
        acknowledges = false;
        if (meta.path == Path.from_server) {
            answers = meta.event == Event.syn_ack && meta.has_slot == 1 && meta.pinned == 0;
        } else if ((meta.draining == 1 || drop == DropReason.server_unknown) && meta.pass == Pass.first && meta.claimed == 0) {
            if (meta.event != Event.syn) {
                acknowledges = meta.pinned == 1 && (meta.event == Event.ack || meta.event == Event.payload || meta.event == Event.fin);
            } else if (decided.refused == REFUSED) {
                drop = DropReason.admission_refused;
            } else if (meta.pinned == 0 || meta.choice == 0) {
                drop = DropReason.no_server;
            } else if (meta.choice != meta.server) {
                drop = DropReason.none;
                claims = true;
            }
        } else if (begun && meta.pinned == 1 && meta.pass == Pass.first) {
            // The pinned server takes new connections again, but the client may still acknowledge the candidate's SYN-ACK.
            acknowledges = meta.event == Event.ack || meta.event == Event.payload || meta.event == Event.fin;
        }
    }
}

// Sends a SYN to the candidate in the connection's cell, or to the choice if the cell is free. If the cell contains another
// connection's candidate, the SYN is dropped.
control CandidateClaim(register<candidate_key_t> candidate_key, register<candidate_pin_t> candidate_pin, inout metadata_t meta, in place_t place,
                       in bit<32> cell, in candidate_key_t key, in bool match, in bool begun, inout DropReason drop) {
    candidate_pin_t pin;

    apply {
        if (match) {
            candidate_pin.read(pin, cell);
            meta.preferred = pin[CANDIDATE_SERVER];
        } else if (later(meta.now, key[CANDIDATE_UNTIL])) {
            candidate_key.write(cell, place.fingerprint ++ (meta.now + place.step.times.pending));
            candidate_pin.write(cell, 1w0 ++ meta.choice ++ 32w0);
            meta.preferred = meta.choice;
            if (begun) {
                meta.moved = 1;           // the pinned server has received a SYN of the same handshake
            }
        } else {
            drop = DropReason.no_server;
        }
        if (drop == DropReason.none) {
            meta.next_pass = Pass.candidate;
        }
    }
}

// Handles the candidate's SYN-ACK: stores the acknowledgement number that the client's ACK will have.
control CandidateAnswer(register<candidate_key_t> candidate_key, register<candidate_pin_t> candidate_pin, in headers_t hdr, inout metadata_t meta,
                        in place_t place, in bit<32> cell, in candidate_pin_t pin) {
    apply {
        if (pin[CANDIDATE_SERVER] == meta.server) {
            candidate_pin_t answered = 1w1 ++ meta.server ++ (hdr.tcp.sequence + 1);
            if (pin == answered) {
                meta.answered_again = 1;
            }
            candidate_pin.write(cell, answered);
            candidate_key.write(cell, place.fingerprint ++ (meta.now + place.step.times.answered));
        }
    }
}

control Candidates(in headers_t hdr, inout metadata_t meta, in place_t place, in decided_t decided, inout DropReason drop) {
    @id(REGISTER_CANDIDATE_KEY)
    register<candidate_key_t>(CANDIDATES) candidate_key;
    @id(REGISTER_CANDIDATE_PIN)
    register<candidate_pin_t>(CANDIDATES) candidate_pin;
    CandidateUse() use;
    CandidateClaim() claim;
    CandidateAnswer() answer;

    bool claims;
    bool answers;
    bool acknowledges;
    candidate_key_t key;
    candidate_pin_t pin;

    apply {
        bool begun = meta.state <= PinState.answered || meta.state == PinState.reopening;
        use.apply(meta, decided, begun, claims, answers, acknowledges, drop);
        if (claims || answers || acknowledges) {
            bit<32> cell = (bit<32>)place.slot_1 & (CANDIDATES - 1);
            candidate_key.read(key, cell);
            bool match = key[CANDIDATE_FINGERPRINT] == place.fingerprint && !later(meta.now, key[CANDIDATE_UNTIL]);
            if (claims) {
                claim.apply(candidate_key, candidate_pin, meta, place, cell, key, match, begun, drop);
            } else if (match) {
                candidate_pin.read(pin, cell);
                if (answers) {
                    answer.apply(candidate_key, candidate_pin, hdr, meta, place, cell, pin);
                } else if (pin[CANDIDATE_ANSWERED] == 1 && pin[CANDIDATE_NUMBER] == hdr.tcp.acknowledgement) {
                    candidate_key.write(cell, 0);
                    meta.preferred = pin[CANDIDATE_SERVER];
                    meta.next_pass = Pass.move;
                }
            }
        }
    }
}

#endif
