// Renew: gives a SYN a second pass to renew its pin, if the pinned server takes no new connections. It does so if no SYN-ACK, or a FIN or RST
// of the server, has passed. The second pass starts with the SYN as received: changes of its headers are lost. (v1model's candidates move any
// connection, once its client has proved that it opens a new one.)
//
//   reads  draining, event, pass, pinned, claimed, state, decided, choice
//   writes next_pass
#ifndef SLUICE_TNA_RENEW_P4
#define SLUICE_TNA_RENEW_P4

control Renew(inout metadata_t meta, in decided_t decided) {
    apply {
        if (meta.draining == 1 && meta.event == Event.syn && meta.pass == Pass.first && meta.claimed == 0 && meta.pinned == 1
                && (meta.state == PinState.pending || meta.state == PinState.closed) && decided.refused != REFUSED && meta.choice != 0) {
            meta.next_pass = Pass.renew;
        }
    }
}

#endif
