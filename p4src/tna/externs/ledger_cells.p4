// The ledger's registers: a cell a server, 32 bits, cumulative; they wrap, and whoever takes differences minds it.
#ifndef SLUICE_TNA_LEDGER_CELLS_P4
#define SLUICE_TNA_LEDGER_CELLS_P4

// What the ledger writes down of a packet: one table, not a branch for each entry.
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

control LedgerCells(in server_id_t server, in LedgerEntry entry) {
    @id(0x10)
    Register<bit<32>, server_id_t>(SERVERS, 0) ledger_syn;
    RegisterAction<bit<32>, server_id_t, bit<32>>(ledger_syn) one_ledger_syn = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x11)
    Register<bit<32>, server_id_t>(SERVERS, 0) ledger_synack;
    RegisterAction<bit<32>, server_id_t, bit<32>>(ledger_synack) one_ledger_synack = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x12)
    Register<bit<32>, server_id_t>(SERVERS, 0) ledger_synack_again;
    RegisterAction<bit<32>, server_id_t, bit<32>>(ledger_synack_again) one_ledger_synack_again = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x13)
    Register<bit<32>, server_id_t>(SERVERS, 0) ledger_completed;
    RegisterAction<bit<32>, server_id_t, bit<32>>(ledger_completed) one_ledger_completed = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x14)
    Register<bit<32>, server_id_t>(SERVERS, 0) ledger_reset;
    RegisterAction<bit<32>, server_id_t, bit<32>>(ledger_reset) one_ledger_reset = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };

    apply {
        if (entry == LedgerEntry.syn) {
            one_ledger_syn.execute(server);
        } else if (entry == LedgerEntry.syn_ack) {
            one_ledger_synack.execute(server);
        } else if (entry == LedgerEntry.syn_ack_again) {
            one_ledger_synack_again.execute(server);
        } else if (entry == LedgerEntry.completed) {
            one_ledger_completed.execute(server);
        } else if (entry == LedgerEntry.reset) {
            one_ledger_reset.execute(server);
        }
    }
}

#endif
