// Second look: selects, of two to four servers drawn for a new connection, the server with the least load per weight. On v1model
// the server that has been idle for longest may be selected instead. The weights derived from the metric R change once a period;
// the second look balances the load between the changes.
//
//   reads  path, event, pass, next_pass, has_slot, pinned, claimed, draining, state, next_state, evicted, service, server, refused, drop,
//          tcp
//          choice, loads.other, more, choice_weight, other_weight: the servers drawn, and their weights
//   writes loads, more, preferred
//          the cells of load_* (open connections of each server) and of refusing_* (whether a server refuses connections)
//
//     first pass                                     second pass
//     SYN without a pin                              claims a slot for the preferred server
//     reads the loads of choice and others ->        adds 1 to that server's load
//
// Hardware accesses a register once in a pass, so reading all loads and adding to one of them takes two passes. Only SYNs without
// a pin make a second pass for this. If the service has no second look, v1model usually lets such a SYN claim its slot, and add
// to the load, in the first pass already. The server's FIN (on Tofino the FIN of either side) or a RST, whichever is first,
// subtracts 1. The controller finds connections that end without FIN and RST, and writes their number into the cells stale_*.
//
// A server whose program has ended has no open connection, and its host answers each SYN by a RST: by load alone, this server
// would be preferred to every other server. So a server counts as refusing from such a RST until the server's next SYN-ACK. A
// refusing server is not preferred to another server, and gets only the connections for which it is drawn first.
#ifndef SLUICE_STAGES_SECOND_LOOK_P4
#define SLUICE_STAGES_SECOND_LOOK_P4

#include <externs/count_registers.p4>
#include <externs/load_cells.p4>

control SecondLook(in headers_t hdr, inout metadata_t meta, in decided_t decided, in DropReason drop) {
    LoadCells() cells;

    // Connections that lost their slot to another connection before they ended. The controller counts these connections as
    // stale.
    COUNT_REGISTER(REGISTER_LOAD_EVICTED, server_id_t, SERVERS, load_evicted)

    apply {
        cells.apply(hdr, meta, decided, drop);
        if (meta.evicted != 0) {
            COUNT(load_evicted, meta.evicted)
        }
    }
}

// Reads how many connections in the loads of choice and other are stale: the switch did not see their end.
control Stale(inout metadata_t meta) {
    StaleCells() stale_cells;

    apply {
        stale_cells.apply(meta.choice, meta.loads.other, meta.loads.stale, meta.loads.other_stale);
    }
}

// Selects the preferred server. Only the second pass uses the result, so no other stage of this pass waits for it.
control Prefer(inout metadata_t meta) {
    Lighter() lighter;

    apply {
        lighter.apply(meta);
    }
}

#endif
