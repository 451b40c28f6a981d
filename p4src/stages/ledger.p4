// Ledger: what each server was asked and what it answered, in counts that never go back.
//
//   reads  path, event, server, pinned, state
//   writes the cells of ledger_* (one a server)
//
// Behind forward: a SYN that was refused or that found no route was never offered to the server. The first SYN-ACK of a
// connection is N_A of the metric R (Ohta & Andou, eq. 5); a repeated one says that the accept queue was full at the last ACK.
// An answer without a pin counts as a first one: its SYN was counted too.
#ifndef SLUICE_STAGES_LEDGER_P4
#define SLUICE_STAGES_LEDGER_P4

control Ledger(in metadata_t meta) {
    LedgerCells() cells;

    LedgerEntry entry;

    @hidden
    action note(LedgerEntry what) {
        entry = what;
    }

    @hidden
    table entries {
        key = {
            meta.path   : ternary @name("path");
            meta.event  : ternary @name("event");
            meta.pinned : ternary @name("pinned");
            meta.state  : ternary @name("state");
        }
        actions = { note; }
        const default_action = note(LedgerEntry.none);
        const entries = {
            (Path.to_service,  Event.syn,     _, _)                 : note(LedgerEntry.syn);
            (Path.to_service,  Event.ack,     1, PinState.answered) : note(LedgerEntry.completed);
            (Path.to_service,  Event.payload, 1, PinState.answered) : note(LedgerEntry.completed);
            (Path.from_server, Event.syn_ack, 0, _)                 : note(LedgerEntry.syn_ack);
            (Path.from_server, Event.syn_ack, 1, PinState.pending)  : note(LedgerEntry.syn_ack);
            (Path.from_server, Event.syn_ack, 1, _)                 : note(LedgerEntry.syn_ack_again);
            (Path.from_server, Event.reset,   _, _)                 : note(LedgerEntry.reset);
        }
    }

    apply {
        entries.apply();
        cells.apply(meta.server, entry);
    }
}

#endif
