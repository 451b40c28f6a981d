// The ledger's registers: a cell a server, 32 bits, cumulative; they wrap, and whoever takes differences minds it.
#ifndef SLUICE_V1MODEL_LEDGER_CELLS_P4
#define SLUICE_V1MODEL_LEDGER_CELLS_P4

// What the ledger writes down of a packet.
control LedgerEntries(in metadata_t meta, out LedgerEntry entry) {
    apply {
        entry = LedgerEntry.none;
        if (meta.path == Path.to_service) {
            if (meta.event == Event.syn) {
                entry = LedgerEntry.syn;
            } else if ((meta.event == Event.ack || meta.event == Event.payload)
                       && meta.pinned == 1 && meta.state == PinState.answered) {
                entry = LedgerEntry.completed;
            }
        } else if (meta.path == Path.from_server) {
            if (meta.event == Event.syn_ack) {
                entry = LedgerEntry.syn_ack;
                if (meta.answered_again == 1
                    || (meta.pinned == 1 && (meta.next_state != PinState.answered || meta.state == PinState.answered))) {
                    entry = LedgerEntry.syn_ack_again;
                }
            } else if (meta.event == Event.reset) {
                entry = LedgerEntry.reset;
            }
        }
    }
}

control LedgerCells(in server_id_t server, in LedgerEntry entry) {
    @id(0x16000010)
    register<bit<32>>(SERVERS) ledger_syn;
    @id(0x16000011)
    register<bit<32>>(SERVERS) ledger_synack;
    @id(0x16000012)
    register<bit<32>>(SERVERS) ledger_synack_again;
    @id(0x16000013)
    register<bit<32>>(SERVERS) ledger_completed;
    @id(0x16000014)
    register<bit<32>>(SERVERS) ledger_reset;

    apply {
        bit<32> cell = (bit<32>)server;
        bit<32> count;
        if (entry == LedgerEntry.syn) {
            ledger_syn.read(count, cell);
            ledger_syn.write(cell, count + 1);
        } else if (entry == LedgerEntry.syn_ack) {
            ledger_synack.read(count, cell);
            ledger_synack.write(cell, count + 1);
        } else if (entry == LedgerEntry.syn_ack_again) {
            ledger_synack_again.read(count, cell);
            ledger_synack_again.write(cell, count + 1);
        } else if (entry == LedgerEntry.completed) {
            ledger_completed.read(count, cell);
            ledger_completed.write(cell, count + 1);
        } else if (entry == LedgerEntry.reset) {
            ledger_reset.read(count, cell);
            ledger_reset.write(cell, count + 1);
        }
    }
}

#endif
