// Action selectors: a server drawn from a service's weighted members by a hash of the connection; where there is none, 0 as before.
#ifndef SLUICE_V1MODEL_CHOICE_P4
#define SLUICE_V1MODEL_CHOICE_P4

// The weights that R decides. A second pass draws anew, with the client's address in front of its port. (Its number as one more
// field would not do: CRCs are linear, and all who drew one server would draw the same other one.)
control WeightedChoice(in service_id_t service, in flow_t flow, in bit<1> second_pass, in bool asked,
                       inout server_id_t server, inout weight_t weight, inout others_id_t others) {
    l4_port_t client_high = flow.src_port;
    bit<32> client_low = flow.src;

    @id(0x11000001)
    action_selector(HashAlgorithm.crc32, SELECTOR_SIZE, 32w32) ratios;

    @id(0x01000014)
    action choose_server(server_id_t id, weight_t own_weight, others_id_t others_id) {
        server = id;
        weight = own_weight;
        others = others_id;
    }

    @id(0x0200000a)
    table choose {
        key = {
            service       : exact @name("service");
            client_high   : selector;
            client_low    : selector;
            flow.dst_port : selector;
            flow.dst      : selector;
            flow.protocol : selector;
        }
        actions = { choose_server; }
        implementation = ratios;
        size = SERVICES;
    }

    apply {
        if (asked) {
            if (second_pass == 1) {
                client_high = flow.src[31:16];
                client_low = flow.src[15:0] ++ flow.src_port;
            }
            choose.apply();
        }
    }
}

// The other server of a second look, by the same weights and another order of fields, from a group that leaves out the first.
control OtherChoice(in others_id_t others, in flow_t flow, inout server_id_t server, inout weight_t weight) {
    @id(0x11000003)
    action_selector(HashAlgorithm.crc32, OTHERS_SIZE, 32w32) others_by_ratio;

    @id(0x0100001a)
    action choose_other_server(server_id_t id, weight_t own_weight) {
        server = id;
        weight = own_weight;
    }

    @id(0x0200000f)
    table choose_other {
        key = {
            others        : exact @name("others");
            flow.protocol : selector;
            flow.dst      : selector;
            flow.src      : selector;
            flow.dst_port : selector;
            flow.src_port : selector;
        }
        actions = { choose_other_server; }
        implementation = others_by_ratio;
        size = OTHERS;
    }

    apply {
        choose_other.apply();
    }
}

// The weights of capacity.
control StableChoice(in service_id_t service, in flow_t flow, inout server_id_t server) {
    @id(0x11000002)
    action_selector(HashAlgorithm.crc32, SELECTOR_SIZE, 32w32) capacities;

    @id(0x01000015)
    action choose_stable_server(server_id_t id) {
        server = id;
    }

    @id(0x0200000b)
    table choose_stable {
        key = {
            service       : exact @name("service");
            flow.dst      : selector;
            flow.src_port : selector;
            flow.src      : selector;
            flow.dst_port : selector;
            flow.protocol : selector;
        }
        actions = { choose_stable_server; }
        implementation = capacities;
        size = SERVICES;
    }

    apply {
        choose_stable.apply();
    }
}

#endif
