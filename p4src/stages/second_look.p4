// Second look: of two servers drawn for a new connection, the one with less to do for its weight. R's weights move once a period;
// this covers the seconds between.
//
//   reads  event, path, pinned, claimed, state, evicted, server, choice, other and their weights, second_pass
//   writes choose_again, second_pass, preferred; the open connections of each server (load_*, load_evicted)
//
//     first pass                                     second pass
//     SYN claims a slot for its choice               takes its own slot anew, for the preferred server
//     looks at the loads of choice and other -->     adds itself to that server's load
//
// A register stands in one place of a switch and is touched once in a pass: looking and adding take two. Nothing but the first SYN
// of a connection passes twice; without a second look it adds itself at once. FIN or RST, whichever comes first, takes it off
// again. Connections that end without are found by the controller, which writes them into the cells stale_*.
#ifndef SLUICE_STAGES_SECOND_LOOK_P4
#define SLUICE_STAGES_SECOND_LOOK_P4

control SecondLook(inout metadata_t meta) {
    LoadCells() cells;
    StaleCells() stale_cells;
    EvictedCells() evicted_cells;
    Lighter() lighter;

    apply {
        bit<1> look = 0;
        bit<32> change = 0;
        server_id_t other = meta.server;
        if (meta.choose_again == 1) {
            change = 0xffffffff;            // leaves its ejected server
        } else if (meta.path != Path.done) {
            if (meta.event == Event.syn) {
                if (meta.claimed == 1 && meta.other != 0) {
                    look = 1;
                    other = meta.other;
                } else if (meta.claimed == 1 || meta.state == PinState.closing) {
                    change = 1;
                }
            } else if ((meta.event == Event.fin || meta.event == Event.reset) && meta.state != PinState.closing) {
                change = 0xffffffff;
            }
        }
        if (look == 1 || change != 0) {
            bit<32> load;
            bit<32> other_load;
            cells.apply(meta.server, other, change, load, other_load);
            if (look == 1) {
                meta.choose_again = 1;
                meta.second_pass = 1;
                bit<32> stale;
                bit<32> other_stale;
                stale_cells.apply(meta.server, other, stale, other_stale);
                // Both wrap; a difference below zero is for a moment behind the truth.
                load = load - stale;
                if (load[31:31] == 1) {
                    load = 0;
                }
                other_load = other_load - other_stale;
                if (other_load[31:31] == 1) {
                    other_load = 0;
                }
                bit<1> other_is;
                lighter.apply(load, meta.choice_weight, other_load, meta.other_weight, other_is);
                if (other_is == 1) {
                    meta.preferred = other;
                } else {
                    meta.preferred = meta.server;
                }
            }
        }
        if (meta.evicted != 0) {
            evicted_cells.apply(meta.evicted);
        }
    }
}

#endif
