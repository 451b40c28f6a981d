// Pinning: determines the server of a packet's connection, from the connection's slot or by a draw.
//
//   reads  path, pass, event, content, preferred, choice, other
//          what balance, places, connections and requests read
//   writes server, next_pass, decided.undecided, decided.looks
//          what balance, places and connections write
//   drops  what connections and requests drop
#ifndef SLUICE_V1MODEL_PINNING_P4
#define SLUICE_V1MODEL_PINNING_P4

control Pinning(inout metadata_t meta, inout place_t place, inout decided_t decided, inout DropReason drop) {
    @name(".SluiceIngress.balance")
    Balance() balance;
    @name(".SluiceIngress.places")
    Places() places;
    @name(".SluiceIngress.connections")
    Connections() connections;
    RefuseRouted() refuse_routed;

    apply {
        if (meta.path == Path.to_service && meta.pass != Pass.candidate) {
            balance.apply(meta);
            // A SYN claims no slot in its first pass if no server was drawn for it, if two servers were drawn (a later pass
            // compares their loads), or if it is a content client's SYN.
            if (meta.event == Event.syn && meta.pass == Pass.first) {
                if (meta.choice != 0 && meta.content != Content.client)     decided.undecided = 1;
                if (meta.choice == 0 || meta.other != 0 || meta.content == Content.client) decided.looks = 1;
            }
        }
        if (meta.pass == Pass.candidate) {
            meta.server = meta.preferred;
        } else if (meta.content == Content.server && meta.event == Event.syn_ack && meta.pass == Pass.first) {
            meta.next_pass = Pass.facts;
        } else if (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.order) {
            places.apply(meta, decided, place);
            connections.apply(meta, place, decided, drop);
        } else {
            refuse_routed.apply(decided, drop);
        }
    }
}

#endif
