// Requests: counts offered, admitted and refused requests: SYNs to a service, and routed SYNs from outside. The counts never
// decrease.
//
//   reads  decided, pinned, claimed, state
//   writes the cells of requests_* (one for each destination; cell 0: all destinations without an entry)
//   drops  admission_refused: a routed SYN that is refused
//
// This stage follows connections, which decides whether a refused SYN to a service is dropped. Every SYN counts as offered.
// Admitted SYNs are counted once for each connection (Chen & Heidemann, section 6.3): a SYN repeated in the handshake requests
// nothing new.
#ifndef SLUICE_STAGES_REQUESTS_P4
#define SLUICE_STAGES_REQUESTS_P4

#include <externs/count_registers.p4>
#include <externs/meters.p4>

// Drops a refused SYN that is routed, because routed packets do not pass the stage `connections`, which drops a service's SYNs.
control RefuseRouted(in decided_t decided, inout DropReason drop) {
    apply {
        if (decided.refused == REFUSED) {
            drop = DropReason.admission_refused;
        }
    }
}

control Requests(in metadata_t meta, in decided_t decided) {
    COUNT_REGISTER(REGISTER_REQUESTS_OFFERED, destination_id_t, DESTINATIONS, requests_offered)
    COUNT_REGISTER(REGISTER_REQUESTS_ADMITTED, destination_id_t, DESTINATIONS, requests_admitted)
    COUNT_REGISTER(REGISTER_REQUESTS_REFUSED, destination_id_t, DESTINATIONS, requests_refused)
    COUNT_REGISTER(REGISTER_REQUESTS_RETURNING, destination_id_t, DESTINATIONS, requests_returning)

    apply {
        COUNT(requests_offered, decided.destination)
        // A SYN that is repeated during its connection's handshake counts only as offered.
        if (!(meta.pinned == 1 && meta.claimed == 0
              && (meta.state == PinState.pending || meta.state == PinState.answered || meta.state == PinState.reopening))) {
            if (decided.refused == REFUSED && meta.pinned == 0) {
                COUNT(requests_refused, decided.destination)
            } else {
                COUNT(requests_admitted, decided.destination)
                if (decided.returning == 1) {
                    COUNT(requests_returning, decided.destination)
                }
            }
        }
    }
}

#endif
