// Transfers: counts the segments that servers send on connections without content switching, and the retransmissions among them.
//
//   reads  payload, index
//          op, grows: of caps
//   writes the cells of transfer_sent and transfer_losses
//
// v1model/transfers.p4 measures a sample of connections, including round-trip times. Tofino 2 has no 32-bit containers left for
// round-trip times (docs/reference/targets.md). A connection's bytes in flight are the difference of the registers cap_server and
// cap_acked_client.
#ifndef SLUICE_TNA2_TRANSFERS_P4
#define SLUICE_TNA2_TRANSFERS_P4

// The kind of a packet, for the counts of a server's segments.
enum bit<8> Segment {
    none  = 0,       // no payload, or one byte that does not move the right edge (a keepalive or a window probe)
    start = 1,       // the client's SYN, which resets the counts
    next  = 2,       // a server's segment beyond the right edge
    again = 3        // a server's retransmission
}

control TransferSegment(in metadata_t meta, in CapOp op, in compared_t grows, out Segment segment) {
    @hidden
    action is(Segment value) {
        segment = value;
    }

    @hidden
    table segments {
        key = {
            op           : ternary @name("op");
            meta.payload : ternary @name("payload");
            grows        : ternary @name("grows");
        }
        actions = { is; }
        const entries = {
            (CapOp.ask, _, _)                  : is(Segment.start);
            (CapOp.server, 0, _)               : is(Segment.none);
            (CapOp.server, _, LATER_BY_LITTLE) : is(Segment.next);
            (CapOp.server, _, LATER_WRAPPED)   : is(Segment.next);
            (CapOp.server, 1, _)               : is(Segment.none);
            (CapOp.server, _, _)               : is(Segment.again);
        }
        const default_action = is(Segment.none);
    }

    apply {
        segments.apply();
    }
}

// For use in a control: declares the operations on a register of counts, with one cell for each connection.
#define TRANSFER_COUNT(register_) \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) start = { \
        void apply(inout bit<32> cell) { \
            cell = 0; \
        } \
    }; \
    RegisterAction<bit<32>, flow_index_t, bit<32>>(register_) add = { \
        void apply(inout bit<32> cell) { \
            cell = cell + 1; \
        } \
    }; \
    @hidden \
    action do_start() { \
        start.execute(index); \
    } \
    @hidden \
    action do_add() { \
        add.execute(index); \
    } \
    @hidden \
    action neither() { }

// Counts a server's segments with payload, including retransmissions.
control TransferSent(in flow_index_t index, in Segment segment) {
    @name(".SluiceIngress.transfers.sent.transfer_sent")
    @id(REGISTER_TRANSFER_SENT)
    Register<bit<32>, flow_index_t>(SPLICES, 0) transfer_sent;

    TRANSFER_COUNT(transfer_sent)

    @hidden
    table operation {
        key = { segment : ternary @name("segment"); }
        actions = { do_start; do_add; neither; }
        const entries = {
            Segment.start : do_start();
            Segment.next  : do_add();
            Segment.again : do_add();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Counts a server's retransmitted segments.
control TransferLosses(in flow_index_t index, in Segment segment) {
    @name(".SluiceIngress.transfers.losses.transfer_losses")
    @id(REGISTER_TRANSFER_LOSSES)
    Register<bit<32>, flow_index_t>(SPLICES, 0) transfer_losses;

    TRANSFER_COUNT(transfer_losses)

    @hidden
    table operation {
        key = { segment : ternary @name("segment"); }
        actions = { do_start; do_add; neither; }
        const entries = {
            Segment.start : do_start();
            Segment.again : do_add();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control Transfers(in metadata_t meta, in flow_index_t index, in CapOp op, in compared_t grows) {
    TransferSegment() transfer_segment;
    TransferSent() sent;
    TransferLosses() losses;

    Segment segment;

    apply {
        transfer_segment.apply(meta, op, grows, segment);
        sent.apply(index, segment);
        losses.apply(index, segment);
    }
}

#endif
