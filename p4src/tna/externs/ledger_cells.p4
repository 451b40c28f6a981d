// The ledger's registers: a cell a server, 32 bits, cumulative; they wrap, and whoever takes differences minds it.
#ifndef SLUICE_TNA_LEDGER_CELLS_P4
#define SLUICE_TNA_LEDGER_CELLS_P4

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
