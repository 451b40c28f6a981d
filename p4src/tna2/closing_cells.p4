// The registers of closing, with one cell for each slot: closing_state (whether the connection is idle, and since when),
// closing_peer (the client's address), and closing_order (the client's port, and the start of the idle period for which the
// controller orders the switch to close the connection). v1model has two wider registers instead, and two more registers for the
// sequence numbers of both ends, which on Tofino 2 the registers of caps store.
//
// The controller reads the whole register closing_state, two bytes for each connection. For an idle connection the controller
// reads closing_peer and closing_order, and writes closing_order with the unchanged port and the start of the idle period. If a
// SYN writes the cell between read and write, the controller overwrites the SYN's port and cannot close the SYN's connection.
#ifndef SLUICE_TNA2_CLOSING_CELLS_P4
#define SLUICE_TNA2_CLOSING_CELLS_P4

// A cell of closing_state: the bit IDLE and the start time of the idle period (15 bits in units
// of 2^30 ns, which wrap after 9.8 hours), or one of the states NOT_IDLE, SERVER_SPOKE and
// CLOSED.
typedef bit<16> idle_since_t;
const idle_since_t NOT_IDLE = 0;         // the client sent the last payload, or the server is still preparing an answer
const idle_since_t SERVER_SPOKE = 1;     // the server sent the last payload, and the client has not acknowledged all of it
const idle_since_t CLOSED = 2;           // the switch has closed the connection
const idle_since_t IDLE = 0x8000;

// Result of comparing a cell of closing_state, before the packet changes it, with CLOSED and with the stamp, the value that
// ClosingPacket computes for the packet. The stateful unit returns 1 (cell equals neither), 2 (CLOSED), 4 (stamp) or 8 (both).
const compared_t WAS_CLOSED = 2;
const compared_t WAS_AS_ORDERED = 4;
const compared_t IS_CLOSED = 8;          // the cell equals CLOSED and the stamp

// Length of the interim response that Apache, nginx, Node.js and Go send (RFC 9110, section 15.2.1): "HTTP/1.1 100 Continue" and
// CR LF twice.
const bit<16> CONTINUE_BYTES = 25;

enum bit<8> ClosingOp {
    none        = 0,
    start       = 1,   // writes the stamp: the connection begins
    speak       = 2,   // writes the stamp, unless the cell is CLOSED
    acknowledge = 3,   // writes the stamp if the cell is SERVER_SPOKE
    close       = 4    // writes CLOSED if the cell equals the stamp
}

// The client's port, written by the client's SYN, and the start of the idle period that the controller orders to end, or 0. An
// order applies to one segment of the server: the answer to the controller's tickle (an ACK that the server must answer).
struct closing_order_t {
    l4_port_t    client_port;
    idle_since_t since;
}

control ClosingOrder(in flow_index_t index, in CapOp op, in l4_port_t client_port, inout idle_since_t ordered) {
    @name(".SluiceIngress.closing.closing_order")
    @id(REGISTER_CLOSING_ORDER)
    Register<closing_order_t, flow_index_t>(SPLICES, { 0, 0 }) closing_order;

    RegisterAction<closing_order_t, flow_index_t, idle_since_t>(closing_order) start = {
        void apply(inout closing_order_t cell) {
            cell.client_port = client_port;
            cell.since = 0;
        }
    };
    RegisterAction<closing_order_t, flow_index_t, idle_since_t>(closing_order) give = {
        void apply(inout closing_order_t cell, out idle_since_t value) {
            value = cell.since;
            cell.since = 0;
        }
    };

    @hidden
    action do_start() {
        start.execute(index);
    }

    @hidden
    action do_give() {
        ordered = give.execute(index);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { op : ternary @name("op"); }
        actions = { do_start; do_give; neither; }
        const entries = {
            CapOp.ask    : do_start();
            CapOp.server : do_give();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Stores the client's address when the client's SYN arrives.
control ClosingPeer(in flow_index_t index, in CapOp op, in ipv4_t client) {
    @name(".SluiceIngress.closing.closing_peer")
    @id(REGISTER_CLOSING_PEER)
    Register<bit<32>, flow_index_t>(SPLICES, 0) closing_peer;

    RegisterAction<bit<32>, flow_index_t, bit<32>>(closing_peer) start = {
        void apply(inout bit<32> cell) {
            cell = client;
        }
    };

    @hidden
    action do_start() {
        start.execute(index);
    }

    apply {
        if (op == CapOp.ask)                                                do_start();
    }
}

// Decides how a packet changes its connection's cell of closing_state:
//
//     SYN that begins the connection, or SYN-ACK                        NOT_IDLE
//     payload or FIN from the client                                    NOT_IDLE; a keepalive with one byte counts as payload
//     ACK from the client with window 0                                 NOT_IDLE
//     ACK from the client that acknowledges all                         idle from now on, if the cell is SERVER_SPOKE
//     ACK from the server that acknowledges new data                    NOT_IDLE: an answer will follow
//     segment of 25 bytes from the server                               NOT_IDLE: the segment is treated as `100 Continue`
//     payload or FIN from the server, or ACK beyond its right edge      SERVER_SPOKE, except a keepalive (a byte below the edge)
//     bare ACK from the server without new data                         CLOSED, if cell and order are equal and the state is established
control ClosingPacket(in headers_t hdr, in metadata_t meta, in CapOp op, in compared_t known, in compared_t grows,
                      in compared_t acknowledged, in idle_since_t now, in idle_since_t ordered, out ClosingOp closing_op,
                      out idle_since_t stamp) {
    @hidden
    action start() {
        closing_op = ClosingOp.start;
        stamp = NOT_IDLE;
    }

    @hidden
    action speak(idle_since_t state) {
        closing_op = ClosingOp.speak;
        stamp = state;
    }

    @hidden
    action acknowledge() {
        closing_op = ClosingOp.acknowledge;
        stamp = now;
    }

    @hidden
    action close() {
        closing_op = ClosingOp.close;
        stamp = ordered;
    }

    // Tests whether the connection is closed, without a change of the cell.
    @hidden
    action check_closed() {
        closing_op = ClosingOp.close;
        stamp = CLOSED;
    }

    @hidden
    action neither() {
        closing_op = ClosingOp.none;
        stamp = NOT_IDLE;
    }

    // A SYN that claims a slot begins a connection even if egress does not parse the SYN's TCP header.
    @hidden
    table packets {
        key = {
            meta.claimed          : ternary @name("claimed");
            op                    : ternary @name("op");
            meta.event            : ternary @name("event");
            meta.payload          : ternary @name("payload");
            hdr.tcp.window        : ternary @name("window");
            known                 : ternary @name("known");
            grows                 : ternary @name("grows");
            acknowledged          : ternary @name("acknowledged");
            meta.resources.closed : ternary @name("closed");
            meta.state            : ternary @name("state");
            ordered               : ternary @name("ordered");
        }
        actions = { start; speak; acknowledge; close; check_closed; neither; }
        const entries = {
            (1, _, _, _, _, _, _, _, _, _, _)                                                         : start();
            (_, CapOp.ask, _, _, _, _, _, _, _, _, _)                                                 : start();
            (_, CapOp.agree, _, _, _, _, _, _, _, _, _)                                               : start();
            (_, CapOp.end, _, _, _, _, _, _, _, _, _)                                                 : start();
            (_, CapOp.client, Event.ack, _, 0, _, _, _, _, _, _)                                      : speak(NOT_IDLE);
            (_, CapOp.client, Event.ack, _, _, EQUAL, _, _, _, _, _)                                  : acknowledge();
            (_, CapOp.client, Event.ack, _, _, _, _, _, _, _, _)                                      : check_closed();
            (_, CapOp.client, _, _, _, _, _, _, _, _, _)                                              : speak(NOT_IDLE);
            (_, CapOp.server, Event.ack, _, _, _, _, LATER_BY_LITTLE, _, _, _)                        : speak(NOT_IDLE);
            (_, CapOp.server, Event.ack, _, _, _, _, LATER_WRAPPED, _, _, _)                          : speak(NOT_IDLE);
            (_, CapOp.server, Event.ack, _, _, _, LATER_BY_LITTLE, _, _, _, _)                        : speak(SERVER_SPOKE);
            (_, CapOp.server, Event.ack, _, _, _, LATER_WRAPPED, _, _, _, _)                          : speak(SERVER_SPOKE);
            (_, CapOp.server, Event.ack, _, _, _, EQUAL, _, 1, PinState.established, IDLE &&& IDLE)   : close();
            (_, CapOp.server, Event.ack, _, _, _, _, _, _, _, _)                                      : check_closed();
            (_, CapOp.server, Event.payload, CONTINUE_BYTES, _, _, _, _, _, _, _)                     : speak(NOT_IDLE);
            (_, CapOp.server, Event.payload, 1, _, _, LATER_BY_LITTLE, _, _, _, _)                    : speak(SERVER_SPOKE);
            (_, CapOp.server, Event.payload, 1, _, _, LATER_WRAPPED, _, _, _, _)                      : speak(SERVER_SPOKE);
            (_, CapOp.server, Event.payload, 1, _, _, _, _, _, _, _)                                  : check_closed();
            (_, CapOp.server, _, _, _, _, _, _, _, _, _)                                              : speak(SERVER_SPOKE);
        }
        const default_action = neither();
    }

    apply {
        packets.apply();
    }
}

// Accesses a cell of closing_state. `state_before` is the result of comparing the cell before this packet.
control ClosingState(in flow_index_t index, in ClosingOp closing_op, in idle_since_t stamp, inout compared_t state_before) {
    @name(".SluiceIngress.closing.closing_state")
    @id(REGISTER_CLOSING_STATE)
    Register<idle_since_t, flow_index_t>(SPLICES, 0) closing_state;

    RegisterAction<idle_since_t, flow_index_t, compared_t>(closing_state) start = {
        void apply(inout idle_since_t cell) {
            cell = stamp;
        }
    };
    RegisterAction<idle_since_t, flow_index_t, compared_t>(closing_state) speak = {
        void apply(inout idle_since_t cell, out compared_t compared) {
            compared = this.predicate(cell == CLOSED);
            if (cell != CLOSED) {
                cell = stamp;
            }
        }
    };
    RegisterAction<idle_since_t, flow_index_t, compared_t>(closing_state) acknowledge = {
        void apply(inout idle_since_t cell, out compared_t compared) {
            compared = this.predicate(cell == CLOSED);
            if (cell == SERVER_SPOKE) {
                cell = stamp;
            }
        }
    };
    RegisterAction<idle_since_t, flow_index_t, compared_t>(closing_state) close = {
        void apply(inout idle_since_t cell, out compared_t compared) {
            compared = this.predicate(cell == CLOSED, cell == stamp);
            if (cell == stamp) {
                cell = CLOSED;
            }
        }
    };

    @hidden
    action do_start() {
        start.execute(index);
    }

    @hidden
    action do_speak() {
        state_before = speak.execute(index);
    }

    @hidden
    action do_acknowledge() {
        state_before = acknowledge.execute(index);
    }

    @hidden
    action do_close() {
        state_before = close.execute(index);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { closing_op : ternary @name("closing_op"); }
        actions = { do_start; do_speak; do_acknowledge; do_close; neither; }
        const entries = {
            ClosingOp.start       : do_start();
            ClosingOp.speak       : do_speak();
            ClosingOp.acknowledge : do_acknowledge();
            ClosingOp.close       : do_close();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

#endif
