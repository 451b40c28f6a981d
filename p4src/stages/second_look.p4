// Second look: of two to four servers drawn for a new connection, the one with least to do for its weight; on v1model, or the one that has
// been idle for longest. R's weights move once a period; this covers the seconds between.
//
//   reads  path, event, pass, next_pass, held, pinned, claimed, draining, state, next_state, evicted, service, server, refused, drop, tcp
//          choice, loads.other, more, choice_weight, other_weight: the servers drawn, and their weights
//   writes loads, more, preferred
//          the cells of load_* (open connections of each server) and of refusing_* (whether it refuses)
//
//     first pass                                     second pass
//     SYN finds no pin of its connection             claims a slot for the preferred server
//     looks at the loads of choice and others ->     adds itself to that server's load
//
// A register stands in one place of a switch and is touched once in a pass: looking and adding take two. Nothing but SYNs
// without a pin pass twice; without a second look they add themselves at once. FIN or RST, whichever comes first, takes it off
// again. Connections that end without are found by the controller, which writes them into the cells stale_*.
//
// A server whose program has ended has no connection open, and its host answers each SYN with a RST: it would be preferred to every other.
// So a server refuses from such a RST until its next SYN-ACK, and is meanwhile preferred to none: it gets its own draws.
#ifndef SLUICE_STAGES_SECOND_LOOK_P4
#define SLUICE_STAGES_SECOND_LOOK_P4

#include <externs/count_registers.p4>
#include <externs/load_cells.p4>

control SecondLook(in headers_t hdr, inout metadata_t meta, in decided_t decided, in DropReason drop) {
    LoadCells() cells;

    // Connections whose slot was claimed by another one before they had ended. The controller takes them for stale.
    COUNT_REGISTER(REGISTER_LOAD_EVICTED, server_id_t, SERVERS, load_evicted)

    apply {
        cells.apply(hdr, meta, decided, drop);
        if (meta.evicted != 0) {
            COUNT(load_evicted, meta.evicted)
        }
    }
}

// The comparison, for nothing but the second pass: no other stage waits for it.
control Stale(inout metadata_t meta) {
    StaleCells() stale_cells;

    apply {
        stale_cells.apply(meta.choice, meta.loads.other, meta.loads.stale, meta.loads.other_stale);
    }
}

control Prefer(inout metadata_t meta) {
    Lighter() lighter;

    apply {
        lighter.apply(meta);
    }
}

#endif
