// Local: decides whether the packet is addressed to the router itself.
//
//   reads  flow
//   writes ours
//   keys   owned: address of an interface of the router, or of a service
//
// A packet (or ICMP error) that a server sends to an address of the router or of a service is addressed to the router, and
// is not an answer to a client. So servers' packets are looked up as well.
#ifndef SLUICE_STAGES_LOCAL_P4
#define SLUICE_STAGES_LOCAL_P4

control Local(inout metadata_t meta) {
    @id(ACTION_IS_OWNED)
    action is_owned() {
        meta.ours = 1;
    }
    @id(ACTION_NOT_OWNED)
    action not_owned() { }

    @id(TABLE_OWNED)
    table owned {
        key = { meta.flow.dst : exact @name("address"); }
        actions = { is_owned; @defaultonly not_owned; }
        const default_action = not_owned;
        size = OWNED_ADDRESSES;
    }

    apply {
        owned.apply();
    }
}

#endif
