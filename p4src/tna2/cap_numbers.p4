// Stores the server's right edge (the end of the sequence numbers that the server has sent) and the latest acknowledgements of
// client and server, with one cell for each slot. The client's right edge is not stored, because any host can send segments in
// the client's name.
#ifndef SLUICE_TNA2_CAP_NUMBERS_P4
#define SLUICE_TNA2_CAP_NUMBERS_P4

// Accesses the right edge of what the server has sent. The end of a server's segment is compared with the edge (result: `grows`),
// and replaces the edge if later. A client's acknowledgement is compared with the edge (result: `known`).
control CapServer(in flow_index_t index, in CapOp op, in bit<32> number, inout compared_t known, inout compared_t grows) {
    @name(".SluiceIngress.caps.cap_server")
    @id(REGISTER_CAP_SERVER)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_server;

    RegisterAction<bit<32>, flow_index_t, compared_t>(cap_server) start = {
        void apply(inout bit<32> cell) {
            cell = number;
        }
    };
    RegisterAction<bit<32>, flow_index_t, compared_t>(cap_server) send = {
        void apply(inout bit<32> cell, out compared_t compared) {
            compared = COMPARE_EQUAL(number, cell);
            if (LATER(number, cell)) {
                cell = number;
            }
        }
    };
    RegisterAction<bit<32>, flow_index_t, compared_t>(cap_server) compare = {
        void apply(inout bit<32> cell, out compared_t compared) {
            compared = COMPARE_KNOWN(number, cell);
        }
    };

    @hidden
    action do_start() {
        start.execute(index);
    }

    @hidden
    action do_send() {
        grows = send.execute(index);
        known = NOT_LATER;
    }

    @hidden
    action do_compare() {
        known = compare.execute(index);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { op : ternary @name("op"); }
        actions = { do_start; do_send; do_compare; neither; }
        const entries = {
            CapOp.agree  : do_start();
            CapOp.server : do_send();
            CapOp.client : do_compare();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Defines the operations on a register of a side's latest acknowledgement. The SYN-ACK initializes the server's cell with the
// SYN-ACK's acknowledgement number, and the client's cell with the SYN-ACK's sequence number. A later acknowledgement replaces
// the stored one.
#define CAP_ACKED(register_, side_, start_) \
    RegisterAction<bit<32>, flow_index_t, compared_t>(register_) start = { \
        void apply(inout bit<32> cell) { \
            cell = start_; \
        } \
    }; \
    RegisterAction<bit<32>, flow_index_t, compared_t>(register_) move = { \
        void apply(inout bit<32> cell, out compared_t compared) { \
            compared = COMPARE(hdr.tcp.acknowledgement, cell); \
            if (LATER(hdr.tcp.acknowledgement, cell)) { \
                cell = hdr.tcp.acknowledgement; \
            } \
        } \
    }; \
    @hidden \
    action do_start() { \
        start.execute(index); \
    } \
    @hidden \
    action do_move() { \
        result = move.execute(index); \
    } \
    @hidden \
    action neither() { } \
    @hidden \
    table operation { \
        key = { \
            op    : ternary @name("op"); \
            known : ternary @name("known"); \
        } \
        actions = { do_start; do_move; neither; } \
        const entries = { \
            (CapOp.agree, _)           : do_start(); \
            (side_, EQUAL)             : do_move(); \
            (side_, NOT_LATER)         : do_move(); \
            (side_, NOT_LATER_WRAPPED) : do_move(); \
        } \
        const default_action = neither(); \
    } \
    apply { \
        operation.apply(); \
    }

control CapAckedClient(in headers_t hdr, in flow_index_t index, in CapOp op, in compared_t known, inout compared_t result) {
    @name(".SluiceIngress.caps.cap_acked_client")
    @id(REGISTER_CAP_ACKED_CLIENT)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_acked_client;

    CAP_ACKED(cap_acked_client, CapOp.client, hdr.tcp.sequence)
}

control CapAckedServer(in headers_t hdr, in flow_index_t index, in CapOp op, in compared_t known, inout compared_t result) {
    @name(".SluiceIngress.caps.cap_acked_server")
    @id(REGISTER_CAP_ACKED_SERVER)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_acked_server;

    CAP_ACKED(cap_acked_server, CapOp.server, hdr.tcp.acknowledgement)
}

#endif
