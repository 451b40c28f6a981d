// Renew: a SYN whose connection is pinned to a server that takes no new ones asks for a second pass, in which the connection table
// renews the pin: where no SYN-ACK was seen, or a FIN or RST of the server. It comes again as it came: what was written into its
// headers is lost. (v1model's candidates move any connection, once its client has proved that it asks for a new one.)
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
