// Second look: of two servers drawn for a new connection, the one with less to do for its weight. R's weights move once a period;
// this covers the seconds between.
//
//   reads  event, path, choose_again, pinned, claimed, state, evicted, server, other, the weights of both
//   writes preferred; the open connections of each server (load_*, load_evicted)
//
//     first pass                                     second pass
//     SYN finds no pin of its connection             claims a slot for the preferred server
//     looks at the loads of choice and other -->     adds itself to that server's load
//
// A register stands in one place of a switch and is touched once in a pass: looking and adding take two. Nothing but SYNs
// without a pin pass twice; without a second look they add themselves at once. FIN or RST, whichever comes first, takes it off
// again. Connections that end without are found by the controller, which writes them into the cells stale_*.
#ifndef SLUICE_STAGES_SECOND_LOOK_P4
#define SLUICE_STAGES_SECOND_LOOK_P4

control SecondLook(inout metadata_t meta) {
    LoadCells() cells;
    EvictedCells() evicted_cells;

    apply {
        bit<32> change = 0;
        meta.loads.look = 0;
        meta.loads.other = meta.server;
        if (meta.choose_again == 1) {
            if (meta.pinned == 1) {
                change = 0xffffffff;        // leaves its ejected server
            } else {
                meta.loads.look = 1;
                if (meta.other != 0) {
                    meta.loads.other = meta.other;
                }
            }
        } else if (meta.path != Path.done) {
            if (meta.event == Event.syn) {
                if (meta.claimed == 1 || meta.state == PinState.closing) {
                    change = 1;
                }
            } else if ((meta.event == Event.fin || meta.event == Event.reset) && meta.state != PinState.closing) {
                change = 0xffffffff;
            }
        }
        if (meta.loads.look == 1 || change != 0) {
            cells.apply(meta.server, meta.loads.other, change, meta.loads.load, meta.loads.other_load);
        }
        if (meta.evicted != 0) {
            evicted_cells.apply(meta.evicted);
        }
    }
}

// The comparison, for nothing but the second pass: no other stage waits for it.
control Prefer(inout metadata_t meta) {
    StaleCells() stale_cells;
    Lighter() lighter;

    apply {
        if (meta.loads.look == 1) {
            bit<32> stale;
            bit<32> other_stale;
            stale_cells.apply(meta.server, meta.loads.other, stale, other_stale);
            bit<1> other_is;
            meta.loads.load = meta.loads.load - stale;                      // both wrap
            meta.loads.other_load = meta.loads.other_load - other_stale;
            lighter.apply(meta.loads.load, meta.choice_weight, meta.loads.other_load, meta.other_weight, other_is);
            if (other_is == 1) {
                meta.preferred = meta.loads.other;
            } else {
                meta.preferred = meta.server;
            }
        }
    }
}

#endif
