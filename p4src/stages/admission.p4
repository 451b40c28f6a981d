// Admission: every SYN to a service passes the service's token bucket, before anything is known of its connection.
//
//   reads  event, service, pass
//   writes refused: the SYN may keep a pin that exists, never claim one
//
// The verdict on a refused SYN is the connection table's: a retransmission of a pinned connection passes.
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
