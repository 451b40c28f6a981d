// Events: determines what a TCP segment does to its connection.
//
//   reads  tcp; payload
//   writes event
//
// There are two controls, because the flags are known before the payload's length, and stages that handle SYNs need no length.
#ifndef SLUICE_STAGES_EVENTS_P4
#define SLUICE_STAGES_EVENTS_P4

control Events(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.tcp.rst == 1) {
            meta.event = Event.reset;
        } else if (hdr.tcp.fin == 1) {
            meta.event = Event.fin;
        } else if (hdr.tcp.syn == 1) {
            if (hdr.tcp.ack == 1) {
                meta.event = Event.syn_ack;
            } else {
                meta.event = Event.syn;
            }
        } else {
            meta.event = Event.ack;
        }
    }
}

control Payloads(inout metadata_t meta) {
    apply {
        if (meta.event == Event.ack && meta.payload != 0) {
            meta.event = Event.payload;
        }
    }
}

#endif
