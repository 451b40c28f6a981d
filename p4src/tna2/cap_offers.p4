// Stores, with one cell for each slot, the right edge of the window that each side was offered, the cap in effect on this window,
// and the caps that the controller sets for single connections.
#ifndef SLUICE_TNA2_CAP_OFFERS_P4
#define SLUICE_TNA2_CAP_OFFERS_P4

const bit<32> NO_CAP = 0x7fffffff;

// A cap for a single connection, in units of 1,024 bytes (0: none), and the low half of the connection's fingerprint.
struct own_cap_t {
    bit<16> fingerprint;
    bit<16> size;
}

#define OWN_CAP(register_, side_) \
    RegisterAction<own_cap_t, flow_index_t, bit<16>>(register_) forget = { \
        void apply(inout own_cap_t cell) { \
            cell.fingerprint = 0; \
            cell.size = 0; \
        } \
    }; \
    RegisterAction<own_cap_t, flow_index_t, bit<16>>(register_) give = { \
        void apply(inout own_cap_t cell, out bit<16> value) { \
            if (cell.fingerprint == fingerprint) { \
                value = cell.size; \
            } \
        } \
    }; \
    @hidden \
    action do_forget() { \
        forget.execute(index); \
    } \
    @hidden \
    action do_give() { \
        size = give.execute(index); \
    } \
    @hidden \
    action neither() { } \
    @hidden \
    table operation { \
        key = { op : ternary @name("op"); } \
        actions = { do_forget; do_give; neither; } \
        const entries = { \
            CapOp.ask : do_forget(); \
            side_     : do_give(); \
        } \
        const default_action = neither(); \
    } \
    apply { \
        operation.apply(); \
    }

control SendCap(in flow_index_t index, in CapOp op, in bit<16> fingerprint, inout bit<16> size) {
    @name(".SluiceIngress.caps.send_cap")
    @id(REGISTER_SEND_CAP)
    Register<own_cap_t, flow_index_t>(SPLICES, { 0, 0 }) send_cap;

    OWN_CAP(send_cap, CapOp.client)
}

control ReceiveCap(in flow_index_t index, in CapOp op, in bit<16> fingerprint, inout bit<16> size) {
    @name(".SluiceIngress.caps.receive_cap")
    @id(REGISTER_RECEIVE_CAP)
    Register<own_cap_t, flow_index_t>(SPLICES, { 0, 0 }) receive_cap;

    OWN_CAP(receive_cap, CapOp.server)
}

// Defines the operations on a register of caps in effect, which bound the window that a side is offered. A changed cap takes
// effect when an acknowledgement advances.
#define CAP_IN_EFFECT(register_) \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) set = { \
        void apply(inout bit<32> cell) { \
            cell = cap; \
        } \
    }; \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) give = { \
        void apply(inout bit<32> cell, out bit<32> value) { \
            value = cell; \
        } \
    }; \
    @hidden \
    action do_set() { \
        set.execute(index); \
    } \
    @hidden \
    action do_give() { \
        cap = give.execute(index); \
    } \
    @hidden \
    action neither() { } \
    @hidden \
    table operation { \
        key = { \
            op     : ternary @name("op"); \
            result : ternary @name("result"); \
        } \
        actions = { do_set; do_give; neither; } \
        const entries = { \
            (CapOp.agree, _)                : do_set(); \
            (CapOp.client, LATER_BY_LITTLE) : do_set(); \
            (CapOp.client, LATER_WRAPPED)   : do_set(); \
            (CapOp.server, LATER_BY_LITTLE) : do_set(); \
            (CapOp.server, LATER_WRAPPED)   : do_set(); \
            (CapOp.client, _)               : do_give(); \
            (CapOp.server, _)               : do_give(); \
        } \
        const default_action = neither(); \
    } \
    apply { \
        operation.apply(); \
    }

control CapEffectServer(in flow_index_t index, in CapOp op, in compared_t result, inout bit<32> cap) {
    @name(".SluiceIngress.caps.cap_effect_server")
    @id(REGISTER_CAP_EFFECT_SERVER)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_effect_server;

    CAP_IN_EFFECT(cap_effect_server)
}

control CapEffectClient(in flow_index_t index, in CapOp op, in compared_t result, inout bit<32> cap) {
    @name(".SluiceIngress.caps.cap_effect_client")
    @id(REGISTER_CAP_EFFECT_CLIENT)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_effect_client;

    CAP_IN_EFFECT(cap_effect_client)
}

// Defines the operations on a register of the right edge of the window that a side was offered. A later edge replaces the stored
// edge. The output is the previous edge, because a stateful unit returns 0 for an unchanged word of a conditional change.
#define CAP_OFFERED(register_, start_, move_, start_at_) \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) start_ = { \
        void apply(inout bit<32> cell) { \
            cell = start_at_; \
        } \
    }; \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) move_ = { \
        void apply(inout bit<32> cell, out bit<32> value) { \
            value = cell; \
            if (LATER(edge, cell)) { \
                cell = edge; \
            } \
        } \
    }; \
    @hidden \
    action do_##start_() { \
        start_.execute(index); \
    } \
    @hidden \
    action do_##move_() { \
        before = move_.execute(index); \
    }

// Accesses the right edges of the windows offered to server and client. A SYN-ACK initializes both edges: the client is offered
// the window in the SYN-ACK, and the server is offered no bytes until the client's first scaled window.
control CapOffered(in flow_index_t index, in CapOp op, in compared_t known, in bit<32> number, in bit<32> edge, inout bit<32> before) {
    @name(".SluiceIngress.caps.cap_offered_server")
    @id(REGISTER_CAP_OFFERED_SERVER)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_offered_server;

    CAP_OFFERED(cap_offered_server, start_server, move_server, number)

    @name(".SluiceIngress.caps.cap_offered_client")
    @id(REGISTER_CAP_OFFERED_CLIENT)
    Register<bit<32>, flow_index_t>(SPLICES, 0) cap_offered_client;

    CAP_OFFERED(cap_offered_client, start_client, move_client, edge)

    apply {
        if (op == CapOp.agree) {
            do_start_server();
            do_start_client();
        } else if (op == CapOp.client) {
            if (known == EQUAL || known == NOT_LATER || known == NOT_LATER_WRAPPED) do_move_server();
        } else if (op == CapOp.server) {
            do_move_client();
        }
    }
}

#endif
