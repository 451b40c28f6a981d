// Ledger: counts the SYNs that each server was sent, and the server's answers. The counts never decrease.
//
//   reads  path, event, server, pinned, state, next_state, answered_again
//   writes the cells of ledger_* (one for each server)
//
// This stage follows forward, because a SYN that was refused or had no route was never offered to the server. (v1model also
// counts a packet for which the controller must resolve the next hop, because the packet does not pass the pipeline again.) A
// connection's first SYN-ACK counts as N_A of the metric R (Ohta & Andou, eq. 5). Repeated SYN-ACKs are
// counted separately: Linux repeats a SYN-ACK if its accept queue was full when the client's ACK arrived. A SYN-ACK of a
// connection without a pin counts as a first SYN-ACK, because the connection's SYN was counted as well.
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
