// Operations of packets on a key of the connection table. A key consists of the connection's fingerprint, its state, and the time
// from which the slot's time-out counts.
#ifndef SLUICE_V1MODEL_PINS_P4
#define SLUICE_V1MODEL_PINS_P4

// The fields of a key, which has 63 bits, because Thrift transmits signed 64-bit values.
const int FINGERPRINT_BITS = 27;
typedef bit<(FINGERPRINT_BITS)> fingerprint_t;
typedef bit<(FINGERPRINT_BITS + 36)> pin_key_t;
#define KEY_FINGERPRINT FINGERPRINT_BITS + 35:36
#define KEY_STATE 35:32                // the connection's PinState
#define KEY_STAMP 31:0
#define KEY_STATE_AND_STAMP 35:0

// Computes the slot in each way and the fingerprint: CRC-32 of the connection's fields in three orders. (With one order and a
// salt for each way, two connections that collide in way 1 would also collide in way 2, because CRCs are linear. The selectors
// use further orders.)
control PinHash(in metadata_t meta, out pin_slot_t slot_1, out pin_slot_t slot_2, out fingerprint_t fingerprint) {
    apply {
        hash(slot_1, HashAlgorithm.crc32, (pin_slot_t)0,
             { meta.connection.client, meta.connection.service, meta.connection.client_port, meta.connection.service_port, meta.connection.protocol },
             CONNECTION_SLOTS);
        hash(slot_2, HashAlgorithm.crc32, (pin_slot_t)0,
             { meta.connection.service_port, meta.connection.client_port, meta.connection.protocol, meta.connection.service, meta.connection.client },
             CONNECTION_SLOTS);
        hash(fingerprint, HashAlgorithm.crc32, (fingerprint_t)0,
             { meta.connection.protocol, meta.connection.client_port, meta.connection.client, meta.connection.service_port, meta.connection.service },
             32w1 << FINGERPRINT_BITS);
    }
}

typedef bit<4> pin_state_t;          // a PinState with the width that it has in a key

const pin_state_t PENDING        = 0;
const pin_state_t ANSWERED       = 1;
const pin_state_t ESTABLISHED    = 2;
const pin_state_t REOPENING      = 3;
const pin_state_t CLIENT_CLOSING = 4;
const pin_state_t SERVER_CLOSING = 5;
const pin_state_t CLIENT_RESET   = 6;
const pin_state_t CLOSED         = 7;
const pin_state_t RESET          = 8;

// The result of a packet's operation on a slot of the connection table.
struct found_t {
    bit<1>      hit;              // the slot belongs to the packet's connection
    bit<1>      vacant;           // the slot belongs to no connection any more: a SYN may claim the slot
    pin_state_t before;           // the slot's state before the packet; for a vacant slot, the last state of its previous
                                  // connection
    pin_state_t after;
}

// Returns the time-out in ticks of a slot in a state.
ticks_t lifetime(in pin_state_t state, in times_t times) {
    ticks_t time = times.idle;
    if (state == PENDING) {
        time = times.pending;
    } else if (state == ANSWERED) {
        time = times.answered;
    } else if (state >= CLOSED) {
        time = times.linger;
    } else if (state >= SERVER_CLOSING) {
        time = times.half_closed;
    }
    return time;
}

// Applies a SYN to a slot. A SYN does not renew the time of a live connection, because any host can send SYNs. With `claims`, a
// SYN claims a vacant slot. On a content connection a SYN changes no state; if the server's FIN or a RST has passed, the slot is
// vacant, because the client has proved to an agent that it opens a new connection. A content client's SYN claims no slot. It
// frees the slot of an earlier connection with the same ports that has ended on both sides or expired, so that the client's next
// packets go to an agent.
void step_syn(in bit<1> claims, in Content content, in fingerprint_t fingerprint, in ticks_t now, in times_t times, inout pin_key_t cell, out found_t outcome) {
    bool match = cell[KEY_FINGERPRINT] == fingerprint;
    outcome.hit = 0;
    outcome.vacant = 0;
    outcome.before = cell[KEY_STATE];
    outcome.after = outcome.before;
    pin_state_t ended = CLOSED;
    if (content != Content.none) {
        ended = SERVER_CLOSING;
    }
    bool expired = later(now - lifetime(outcome.before, times), cell[KEY_STAMP]);
    if (expired || (match && outcome.before >= ended)) {
        outcome.vacant = 1;
        if (claims == 1) {
            outcome.after = PENDING;
            cell = fingerprint ++ PENDING ++ now;
        } else if (content == Content.client && match && (expired || outcome.before >= CLOSED)) {
            cell = ~fingerprint ++ outcome.before ++ (now - lifetime(outcome.before, times) - 1);
        }
    } else if (match) {
        outcome.hit = 1;
        if (outcome.before > ANSWERED && content == Content.none) {
            outcome.after = REOPENING;
            cell[KEY_STATE] = REOPENING;
        }
    }
}

// Applies any other packet of a client to a slot. While the connection is open, only the ACK or payload that ends a handshake
// renews the slot's time: only the server can check the sequence numbers of later packets, and the server's answers renew the
// time. Before the server's FIN, a client's FIN does not shorten the time-out, and a client's RST makes the time-out that of a
// half-closed connection. An agent's RST closes the connection for good: late packets of the server do not reopen the slot,
// because otherwise the agent's next SYN would go to this server, whatever the SYN's group.
void step_request(in Event event, in Content content, in fingerprint_t fingerprint, in ticks_t now, inout pin_key_t cell, out found_t outcome) {
    outcome.hit = 0;
    outcome.vacant = 0;
    outcome.before = cell[KEY_STATE];
    outcome.after = outcome.before;
    if (cell[KEY_FINGERPRINT] == fingerprint) {
        outcome.hit = 1;
        if (event == Event.fin) {
            if (outcome.before == SERVER_CLOSING) {
                outcome.after = CLOSED;
                cell[KEY_STATE_AND_STAMP] = CLOSED ++ now;
            } else if (outcome.before == ANSWERED || outcome.before == ESTABLISHED) {
                outcome.after = CLIENT_CLOSING;
                cell[KEY_STATE] = CLIENT_CLOSING;
            }
        } else if (event == Event.reset) {
            if (outcome.before == SERVER_CLOSING || content == Content.agent) {
                outcome.after = CLOSED;
                cell[KEY_STATE_AND_STAMP] = CLOSED ++ now;
            } else if (outcome.before < SERVER_CLOSING) {
                outcome.after = CLIENT_RESET;
                cell[KEY_STATE_AND_STAMP] = CLIENT_RESET ++ now;
            }
        } else if (outcome.before == ANSWERED && (event == Event.ack || event == Event.payload)) {
            outcome.after = ESTABLISHED;
            cell[KEY_STATE_AND_STAMP] = ESTABLISHED ++ now;
        }
    }
}

// Applies a server's packet to a slot. A packet of the slot's server (`own`) renews the slot's time, and reverts states that
// other hosts caused in the client's name. A packet of another server changes nothing. In a pass `close` the switch itself has
// closed the connection at both ends, so the FIN makes the state CLOSED.
void step_answer(in bit<1> own, in Pass pass, in Event event, in fingerprint_t fingerprint, in ticks_t now, inout pin_key_t cell, out found_t outcome) {
    outcome.hit = 0;
    outcome.vacant = 0;
    outcome.before = cell[KEY_STATE];
    outcome.after = outcome.before;
    if (cell[KEY_FINGERPRINT] == fingerprint) {
        outcome.hit = 1;
        if (own == 1 && event != Event.none) {
            if (event == Event.syn_ack) {
                if (outcome.before == PENDING || outcome.before == REOPENING || outcome.before == CLIENT_RESET || outcome.before == RESET) {
                    outcome.after = ANSWERED;
                }
            } else if (event == Event.fin) {
                if (pass != Pass.close && (outcome.before <= REOPENING || outcome.before == SERVER_CLOSING)) {
                    outcome.after = SERVER_CLOSING;
                } else {
                    outcome.after = CLOSED;
                }
            } else if (event == Event.reset) {
                if (outcome.before != CLOSED) {
                    outcome.after = RESET;
                }
            } else if (outcome.before == PENDING || outcome.before == REOPENING || outcome.before == CLIENT_RESET || outcome.before == RESET) {
                outcome.after = ESTABLISHED;
            }
            cell[KEY_STATE_AND_STAMP] = outcome.after ++ now;
        }
    }
}

// Applies the client's ACK that moves the pin to the server that answered the client's new SYN.
void step_move(in fingerprint_t fingerprint, in ticks_t now, inout pin_key_t cell, out found_t outcome) {
    outcome.hit = 0;
    outcome.vacant = 0;
    outcome.before = ANSWERED;
    outcome.after = ESTABLISHED;
    if (cell[KEY_FINGERPRINT] == fingerprint) {
        outcome.hit = 1;
        cell = fingerprint ++ ESTABLISHED ++ now;
    }
}

#endif
