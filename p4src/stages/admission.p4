// Admission: every SYN to a service passes the service's token bucket, before its connection is looked up.
//
//   reads  event, service, pass
//   writes refused: the SYN may keep a pin that exists, never claim one
//
// The connection table decides what happens to a refused SYN: a retransmission on a pinned connection passes.
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
