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

    LedgerEntries() entries;

    LedgerEntry entry;

    apply {
        entries.apply(meta, entry);
        cells.apply(meta.server, entry);
    }
}

#endif
