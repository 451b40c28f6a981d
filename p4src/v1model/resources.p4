// Resources: looks up how the TCP resources of the packet's server are managed (Matsuo et al., SABT; Azuma et al., E-ATBT).
//
//   reads  server
//   writes resources
//   keys   resources: server -> how the switch manages its connections
//
// For connections of servers that are not managed, this look-up is the only cost of resource management in the switch.
#ifndef SLUICE_V1MODEL_RESOURCES_P4
#define SLUICE_V1MODEL_RESOURCES_P4

control Resources(inout metadata_t meta) {
    @id(ACTION_MANAGE)
    action manage(bit<1> measured, bit<8> sampling, bit<1> closed, bit<32> send_cap, bit<32> receive_cap) {
        meta.resources = { measured, sampling, closed, send_cap, receive_cap };
    }

    @defaultonly
    @id(ACTION_UNMANAGED)
    action unmanaged() { }

    @id(TABLE_RESOURCES)
    table resources {
        key = { meta.server : exact @name("server"); }
        actions = { manage; unmanaged; }
        const default_action = unmanaged;
        size = SERVERS;
    }

    apply {
        resources.apply();
    }
}

#endif
