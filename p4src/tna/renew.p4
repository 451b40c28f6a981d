// Renew: requests a second pass for a SYN whose pinned server takes no new connections, if the pinned connection's handshake has
// not been answered yet, or the connection has been closed. The second pass pins the connection to another server. This pass
// starts with the SYN as received, without the first pass's changes of headers. (v1model's control Candidates moves a connection
// in any state, after the client has proved that the SYN is new.)
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
