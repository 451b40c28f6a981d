// The registers of closing. With one cell for each slot: sequence numbers, state and ends of the slot's connection. With fewer
// cells: hints for the controller about idle connections, and counts of pauses.
//
//     client                         switch                          server
//       | ACK of all that was sent ---->| idle: noted as a hint        |
//       |                               |<-- controller: tickle        |    probing
//       |                               |----- seq 0, ack 0 ---------->|
//       |                               |<---- ACK, both as stored ----|    closed
//       |                               |----- RST ------------------->|
//       |<------------------- FIN ------|                              |
//
// Only the server's segments change the two stored numbers, because any host can send segments in the client's name. Any payload
// cancels the status `probing`. A keepalive (at most one byte, before the next sequence number) does not count as payload. A
// connection is not idle in three further cases: the server has acknowledged new data without an answer, and is still preparing
// the answer; the client's window is closed, so the server may have more data to send; or the server's last answer is `100
// Continue`, so the client has more data to send.
//
// The switch cannot distinguish an idle connection from a connection whose server pauses within a response. So the switch counts
// pauses by server and length, whichever end sends the packet after the pause. The controller derives from these counts the time
// for which a connection must be idle before it is closed.
#ifndef SLUICE_V1MODEL_CLOSING_CELLS_P4
#define SLUICE_V1MODEL_CLOSING_CELLS_P4

#include "flow_index.p4"

// The next sequence number of one side of a connection, and whether the number is known. The server's first segment
// makes both numbers known.
typedef bit<33> closing_number_t;
#define CLOSING_KNOWN 32:32
#define CLOSING_NUMBER 31:0

typedef bit<62> closing_state_t;
#define CLOSING_STATUS 61:60           // state of the attempt to close the connection: a ClosingStatus
#define CLOSING_SERVER_SPOKE 59:59     // the last payload came from the server
#define CLOSING_ACKNOWLEDGED 58:58     // the client has acknowledged all of the last payload
#define CLOSING_LAST 57:26             // time of the last payload or of its acknowledgement, in ticks
#define CLOSING_REST 25:0
#define CLOSING_PAUSE 25:22            // a pause_length_t: how long the connection seemed idle before the server's last payload
#define CLOSING_SHORT 21:21            // the payload after the pause was shorter than any response
#define CLOSING_PROBED 20:0            // time of the last tickle, in ticks

// The two ends of a connection that became idle, in 63 bits, because Thrift transmits signed 64-bit values.
typedef bit<63> closing_peer_t;        // the client's address and port, and the server

// A hint that a connection is idle: flow index, server (below SERVERS), and the low 31 bits of the time when the connection
// became idle. The hint has 63 bits in the large build.
typedef bit<(CONNECTION_SLOT_BITS + 42)> closing_hint_t;

// Class of a pause's length: 0, or n for a pause of 2^(n-1) ticks or more and below 2^n ticks. The last class, 15, also contains
// all longer pauses.
typedef bit<4> pause_length_t;

// Length of the interim response that Apache, nginx, Node.js and Go send (RFC 9110, section 15.2.1): "HTTP/1.1 100 Continue", CR
// LF twice.
const bit<16> CONTINUE_BYTES = 25;

// Length in bytes of the shortest payload that counts as a response. The closing alert of TLS, which a server sends before a
// FIN (RFC 8446, section 6.1), is shorter.
const bit<16> LEAST_RESPONSE = 64;

typedef bit<2> closing_status_t;       // a ClosingStatus with the width that it has in a cell
const closing_status_t CLOSING_OPEN    = 0;
const closing_status_t CLOSING_PROBING = 1;
const closing_status_t CLOSING_CLOSED  = 2;
const closing_status_t CLOSING_RACED   = 3;

// What the switch does with a packet of a connection.
enum bit<8> ClosingStep {
    nothing    = 0,
    probe      = 1,  // forwards a tickle to the server
    take       = 2,  // turns the answer to a tickle into RST and FIN
    hold       = 3,  // drops a packet of a closed connection
    refuse     = 4,  // answers a packet of a closed connection by a RST
    refuse_first = 5, // answers the client's first payload on a closed connection by a RST
    say_again  = 6,  // answers a client's packet on a closed connection by the server's FIN, or by an ACK
    taken_back = 7,  // cancels the attempt to close, because payload precedes the answer to a tickle
    end        = 8   // forwards a RST of the server, which no longer has the connection
}

pause_length_t pause_length(in bit<32> ticks) {
    bit<32> remaining = ticks;
    pause_length_t length = 0;
    if (remaining >= (1 << 14)) {
        length = 15;
    } else {
        if (remaining >= 128) {
            length = 7;
            remaining = remaining >> 7;
        }
        if (remaining >= 8) {
            length = length + 3;
            remaining = remaining >> 3;
        }
        if (remaining >= 4) {
            length = length + 2;
            remaining = remaining >> 2;
        }
        if (remaining >= 2) {
            length = length + 2;
        } else {
            length = length + remaining[3:0];
        }
    }
    return length;
}

// Returns the state after a packet that shows that the connection is open and not idle.
closing_state_t spoken(in bit<1> by_server, in ticks_t now, in closing_state_t state) {
    return CLOSING_OPEN ++ by_server ++ 1w0 ++ now ++ state[CLOSING_REST];
}

// Updates the next sequence numbers of both ends from a server's segment: a SYN-ACK sets both numbers, and any other segment
// except a RST advances them.
control ServerNumbers(register<closing_number_t> closing_server_next, register<closing_number_t> closing_client_next, in headers_t hdr,
                      in Event event, in bit<32> index, in bit<32> end, in closing_number_t server_next, in closing_number_t client_next) {
    apply {
        if (event == Event.syn_ack) {
            closing_server_next.write(index, 1w1 ++ (hdr.tcp.sequence + 1));
            closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
        } else if (event != Event.reset) {
            if (server_next[CLOSING_KNOWN] == 0 || later(end, server_next[CLOSING_NUMBER])) {
                closing_server_next.write(index, 1w1 ++ end);
            }
            if (client_next[CLOSING_KNOWN] == 0 || later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
                closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
            }
        }
    }
}

// Handles a bare ACK of the server. While the status is `probing`, an ACK with both stored numbers is the answer to the tickle
// and closes the connection. After an ACK of new data, the connection is not idle, because the server is preparing an answer.
control ServerAck(in headers_t hdr, in metadata_t meta, in closing_number_t server_next, in closing_number_t client_next, in bool probing,
                  inout closing_state_t state, inout ClosingStep step) {
    apply {
        bool as_stored = server_next == 1w1 ++ hdr.tcp.sequence && client_next == 1w1 ++ hdr.tcp.acknowledgement;
        if (probing && as_stored && meta.state == PinState.established) {
            state[CLOSING_STATUS] = CLOSING_CLOSED;
            step = ClosingStep.take;
        } else if (client_next[CLOSING_KNOWN] == 1 && later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
            state = spoken(0, meta.now, state);
        }
    }
}

// Handles payload or a FIN of the server: measures the pause before new payload. At a FIN, the pause before the last payload is
// counted, unless that payload was shorter than any response.
control ServerPayload(in metadata_t meta, in bit<32> end, in closing_number_t server_next, in closing_state_t before,
                      inout closing_state_t state, inout bool pauses) {
    apply {
        state = spoken(1, meta.now, state);
        if (before[CLOSING_SERVER_SPOKE] == 1 && before[CLOSING_ACKNOWLEDGED] == 1 && meta.payload != 0
            && later(end, server_next[CLOSING_NUMBER])) {
            state[CLOSING_PAUSE] = pause_length(meta.now - before[CLOSING_LAST]);
            state[CLOSING_SHORT] = 0;
            if (meta.payload < LEAST_RESPONSE) {
                state[CLOSING_SHORT] = 1;
            }
        } else if (meta.payload != 0) {
            state[CLOSING_SHORT] = 0;
        }
        if (meta.event == Event.fin) {
            if (state[CLOSING_SHORT] == 1) {
                state[CLOSING_PAUSE] = 0;
            }
            pauses = state[CLOSING_PAUSE] != 0;
        }
    }
}

// Decides on a tickle: forwards it to the server if the connection has been idle for at least the tickle's `least_age`.
control Tickle(in headers_t hdr, in metadata_t meta, in closing_state_t before, inout closing_state_t state, inout ClosingStep step) {
    apply {
        if (before[CLOSING_STATUS] < CLOSING_CLOSED && before[CLOSING_SERVER_SPOKE] == 1 && before[CLOSING_ACKNOWLEDGED] == 1
            && meta.state == PinState.established && meta.now - before[CLOSING_LAST] >= hdr.tickle.least_age) {
            state[CLOSING_STATUS] = CLOSING_PROBING;
            state[CLOSING_PROBED] = meta.now[20:0];
            step = ClosingStep.probe;
        }
    }
}

// Handles a client's segment on a closed connection. `client_number`: the client's next sequence number. `lacks_fin`: the client
// has not acknowledged the FIN.
control LateSegment(in headers_t hdr, in metadata_t meta, in closing_number_t server_next, in closing_number_t client_next, in bool keepalive,
                    inout closing_state_t state, inout ClosingStep step, inout bit<32> client_number, inout bit<1> lacks_fin) {
    apply {
        client_number = client_next[CLOSING_NUMBER];
        if (server_next == 1w1 ++ hdr.tcp.acknowledgement) {
            lacks_fin = 1;
        }
        if (meta.event == Event.ack && (keepalive || (lacks_fin == 1 && meta.payload == 0))
            && (lacks_fin == 1 || server_next == 1w1 ++ (hdr.tcp.acknowledgement - 1))) {
            step = ClosingStep.say_again;
        } else if (meta.payload != 0 && meta.event != Event.reset && meta.event != Event.syn) {
            step = ClosingStep.refuse;
            if (state[CLOSING_STATUS] == CLOSING_CLOSED) {
                step = ClosingStep.refuse_first;
                state[CLOSING_STATUS] = CLOSING_RACED;
            }
        } else if (meta.event == Event.ack) {
            step = ClosingStep.hold;
        }
    }
}

// Handles a client's ACK without payload. The first ACK that acknowledges all of the server's last payload begins the idle time,
// writes a hint for the controller, and lets the pause before that payload be counted. After an ACK that closes the client's
// window, the connection is not idle, because the server may have more data to send.
control ClientAck(register<closing_peer_t> closing_peer, register<closing_hint_t> closing_hint, in headers_t hdr, in metadata_t meta,
                  in bit<32> index, in closing_number_t server_next, inout closing_state_t state, inout bool pauses) {
    apply {
        if (state[CLOSING_SERVER_SPOKE] == 0 || server_next != 1w1 ++ hdr.tcp.acknowledgement) {
            // The client sent the last payload, or the ACK does not acknowledge all of the server's last payload.
        } else if (hdr.tcp.window == 0) {
            state = spoken(1, meta.now, state);
        } else if (state[CLOSING_ACKNOWLEDGED] == 0) {
            state[CLOSING_ACKNOWLEDGED] = 1;
            state[CLOSING_LAST] = meta.now;
            pauses = true;
            closing_peer.write(index, meta.connection.client ++ meta.connection.client_port ++ meta.server[14:0]);
            closing_hint.write(index & (CLOSING_HINTS - 1), index[CONNECTION_SLOT_BITS:0] ++ meta.server[9:0] ++ meta.now[30:0]);
        }
    }
}

// Counts the pause before the server's last payload, by server and length, and then clears the pause in `state`.
control PauseCount(in metadata_t meta, inout closing_state_t state) {
    @name(".SluiceIngress.closing.closing_pauses")
    @id(REGISTER_CLOSING_PAUSES)
    register<bit<32>>(CLOSING_PAUSES) closing_pauses;

    apply {
        bit<32> cell = (bit<32>)(meta.server[9:0] ++ state[CLOSING_PAUSE]);
        bit<32> counted;
        closing_pauses.read(counted, cell);
        closing_pauses.write(cell, counted + 1);
        state[CLOSING_PAUSE] = 0;
    }
}

// Updates the registers of closing, and decides on the packet. If `step` is say_again, `client_number` is the client's next
// sequence number. `lacks_fin`: the client has not acknowledged the FIN.
control ClosingCells(in headers_t hdr, in metadata_t meta, in place_t place, out ClosingStep step, out bit<32> client_number,
                     out bit<1> lacks_fin) {
    @name(".SluiceIngress.closing.closing_server_next")
    @id(REGISTER_CLOSING_SERVER_NEXT)
    register<closing_number_t>(SPLICES) closing_server_next;
    @name(".SluiceIngress.closing.closing_client_next")
    @id(REGISTER_CLOSING_CLIENT_NEXT)
    register<closing_number_t>(SPLICES) closing_client_next;
    @name(".SluiceIngress.closing.closing_state")
    @id(REGISTER_CLOSING_STATE)
    register<closing_state_t>(SPLICES) closing_state;
    @name(".SluiceIngress.closing.closing_peer")
    @id(REGISTER_CLOSING_PEER)
    register<closing_peer_t>(SPLICES) closing_peer;
    @name(".SluiceIngress.closing.closing_hint")
    @id(REGISTER_CLOSING_HINT)
    register<closing_hint_t>(CLOSING_HINTS) closing_hint;
    ServerNumbers() server_numbers;
    ServerAck() server_ack;
    ServerPayload() server_payload;
    Tickle() tickle;
    LateSegment() late_segment;
    ClientAck() client_ack;
    PauseCount() pause_count;

    bit<32> index;
    bit<32> end;                       // sequence number after the packet's payload
    closing_number_t server_next;
    closing_number_t client_next;
    closing_state_t before;
    closing_state_t state;
    bool pauses;                       // the pause before the server's last payload must be counted

    apply {
        step = ClosingStep.nothing;
        client_number = 0;
        lacks_fin = 0;
        pauses = false;
        index = flow_index(meta.way, place.slot_1, place.slot_2);
        if (meta.claimed == 1 || meta.pass == Pass.move) {
            closing_server_next.write(index, 0);
            closing_client_next.write(index, 0);
            closing_state.write(index, CLOSING_OPEN ++ 2w0 ++ meta.now ++ 26w0);
        } else if (meta.path == Path.to_service || (meta.pinned == 1 && (hdr.tcp.ack == 1 || meta.event == Event.reset))) {
            end = hdr.tcp.sequence + (bit<32>)meta.payload;
            closing_server_next.read(server_next, index);
            closing_client_next.read(client_next, index);
            closing_state.read(before, index);
            state = before;
            bit<21> waited = meta.now[20:0] - before[CLOSING_PROBED];
            bool probing = before[CLOSING_STATUS] == CLOSING_PROBING && (bit<32>)waited <= PROBE_TIME;
            bool closed = before[CLOSING_STATUS] >= CLOSING_CLOSED;

            if (meta.path == Path.from_server) {
                server_numbers.apply(closing_server_next, closing_client_next, hdr, meta.event, index, end, server_next, client_next);
                if (meta.event == Event.syn_ack)                            state = spoken(0, meta.now, state);
                else if (closed && meta.event == Event.reset)               step = ClosingStep.end;
                else if (closed && (meta.payload != 0 || meta.event == Event.ack)) step = ClosingStep.refuse;    // the RST is late or lost
                else if (closed || meta.event == Event.reset)               { }
                else if (meta.payload == 0 && meta.event == Event.ack)      server_ack.apply(hdr, meta, server_next, client_next, probing, state, step);
                else if (meta.payload == CONTINUE_BYTES && meta.event == Event.ack && before[CLOSING_SERVER_SPOKE] == 0) {
                    state = spoken(0, meta.now, state);
                } else if (meta.payload != 1 || server_next != 1w1 ++ end)  server_payload.apply(meta, end, server_next, before, state, pauses);
            } else {
                bool keepalive = meta.payload <= 1 && meta.event == Event.ack && client_next == 1w1 ++ (hdr.tcp.sequence + 1);
                if (hdr.tickle.isValid())                                   tickle.apply(hdr, meta, before, state, step);
                else if (closed)                                            late_segment.apply(hdr, meta, server_next, client_next, keepalive, state, step, client_number, lacks_fin);
                else if (meta.event == Event.ack && (meta.payload == 0 || keepalive)) {
                    client_ack.apply(closing_peer, closing_hint, hdr, meta, index, server_next, state, pauses);
                } else {
                    state = spoken(0, meta.now, state);
                    pauses = before[CLOSING_PAUSE] != 0;
                }
            }

            if (pauses)                                                     pause_count.apply(meta, state);
            if (probing && state[CLOSING_STATUS] == CLOSING_OPEN)           step = ClosingStep.taken_back;
            if (state != before)                                            closing_state.write(index, state);
        }
    }
}

#endif
