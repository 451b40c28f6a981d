// Admission: applies a service's token bucket to every SYN that is sent to the service, before the switch looks up the SYN's
// connection.
//
//   reads  event, service, pass
//   writes refused: the SYN claims no slot, and passes only if its connection is pinned
//
// The stage `connections` decides what happens to a refused SYN: it forwards a retransmission on a pinned connection.
#ifndef SLUICE_STAGES_ADMISSION_P4
#define SLUICE_STAGES_ADMISSION_P4

#include <externs/meters.p4>

control Admission(in metadata_t meta, inout decided_t decided) {
    AdmissionMeter() bucket;

    apply {
        if (meta.event == Event.syn && meta.pass == Pass.first) {
            bucket.apply(meta.service, decided.refused);
        }
    }
}

#endif
