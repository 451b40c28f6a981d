// Local: is it addressed to the router itself?
//
//   reads  flow
//   writes ours
//   keys   owned: an interface address, or the address of a service
//
// It is asked of whatever does not go to a service: what a server sends to an address of ours, ICMP errors included, is no answer to
// anybody.
#ifndef SLUICE_STAGES_LOCAL_P4
#define SLUICE_STAGES_LOCAL_P4

control Local(inout metadata_t meta) {
    @id(0x01000007)
    action is_owned() {
        meta.ours = 1;
    }
    @id(0x01000008)
    action not_owned() { }

    @id(0x02000004)
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
