// Decides which count of the ledger (SYNs to a server and its answers) a packet increments, by one table instead of branches.
#ifndef SLUICE_TNA_LEDGER_ENTRIES_P4
#define SLUICE_TNA_LEDGER_ENTRIES_P4

control LedgerEntries(in metadata_t meta, out LedgerEntry entry) {
    @hidden
    action note(LedgerEntry what) {
        entry = what;
    }

    @hidden
    table noted {
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
        noted.apply();
    }
}

#endif
