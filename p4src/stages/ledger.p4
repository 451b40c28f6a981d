// Ledger: counts what each server was asked and how it answered. The counts never decrease.
//
//   reads  path, event, server, pinned, state, next_state, answered_again
//   writes the cells of ledger_* (one a server)
//
// The ledger comes after forward: a SYN that was refused or had no route was never offered to the server. (On v1model a packet that
// waits at the controller for its neighbour is counted, since it does not pass the pipeline again.) The first SYN-ACK of a connection
// counts as N_A of the metric R (Ohta & Andou, eq. 5). A repeated SYN-ACK shows that the accept queue was full at the last ACK. An
// answer without a pin counts as a first SYN-ACK, since its SYN was counted too.
#ifndef SLUICE_STAGES_LEDGER_P4
#define SLUICE_STAGES_LEDGER_P4

#include <externs/count_registers.p4>
#include <externs/ledger_entries.p4>

control Ledger(in metadata_t meta) {
    LedgerEntries() entries;

    COUNT_REGISTER(REGISTER_LEDGER_SYN, server_id_t, SERVERS, ledger_syn)
    COUNT_REGISTER(REGISTER_LEDGER_SYNACK, server_id_t, SERVERS, ledger_synack)
    COUNT_REGISTER(REGISTER_LEDGER_SYNACK_AGAIN, server_id_t, SERVERS, ledger_synack_again)
    COUNT_REGISTER(REGISTER_LEDGER_COMPLETED, server_id_t, SERVERS, ledger_completed)
    COUNT_REGISTER(REGISTER_LEDGER_RESET, server_id_t, SERVERS, ledger_reset)

    LedgerEntry entry;

    apply {
        entries.apply(meta, entry);
        if (entry == LedgerEntry.syn)                                       COUNT(ledger_syn, meta.server)
        else if (entry == LedgerEntry.syn_ack)                              COUNT(ledger_synack, meta.server)
        else if (entry == LedgerEntry.syn_ack_again)                        COUNT(ledger_synack_again, meta.server)
        else if (entry == LedgerEntry.completed)                            COUNT(ledger_completed, meta.server)
        else if (entry == LedgerEntry.reset)                                COUNT(ledger_reset, meta.server)
    }
}

#endif
