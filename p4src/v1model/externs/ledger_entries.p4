// Decides which count of the ledger (SYNs to a server and its answers) a packet increments, by conditions.
#ifndef SLUICE_V1MODEL_LEDGER_ENTRIES_P4
#define SLUICE_V1MODEL_LEDGER_ENTRIES_P4

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

#endif
