// Action selectors: a server drawn from a service's weighted members by a hash of the connection; 0 where there is none.
// (BMv2 takes no default action for a table with a selector: the server is set beforehand.)
#ifndef SLUICE_V1MODEL_CHOICE_P4
#define SLUICE_V1MODEL_CHOICE_P4

// The weights that R decides. A second pass draws anew, with the client's address in front of its port. (Its number as one more
// field would not do: CRCs are linear, and all who drew one server would draw the same other one.)
control WeightedChoice(in service_id_t service, in connection_t connection, in bit<1> second_pass,
                       out server_id_t server, out weight_t weight, out others_id_t others) {
    l4_port_t client_high = connection.client_port;
    bit<32> client_low = connection.client;

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
            service                 : exact @name("service");
            client_high             : selector;
            client_low              : selector;
            connection.service_port : selector;
            connection.service      : selector;
            connection.protocol     : selector;
        }
        actions = { choose_server; }
        implementation = ratios;
        size = SERVICES;
    }

    apply {
        server = 0;
        weight = 0;
        others = 0;
        if (second_pass == 1) {
            client_high = connection.client[31:16];
            client_low = connection.client[15:0] ++ connection.client_port;
        }
        choose.apply();
    }
}

// The other server of a second look, by the same weights and another order of fields, from a group that leaves out the first.
control OtherChoice(in others_id_t others, in connection_t connection, out server_id_t server, out weight_t weight) {
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
            others                  : exact @name("others");
            connection.protocol     : selector;
            connection.service      : selector;
            connection.client       : selector;
            connection.service_port : selector;
            connection.client_port  : selector;
        }
        actions = { choose_other_server; }
        implementation = others_by_ratio;
        size = OTHERS;
    }

    apply {
        server = 0;
        weight = 0;
        choose_other.apply();
    }
}

// The weights of capacity.
control StableChoice(in service_id_t service, in connection_t connection, out server_id_t server) {
    @id(0x11000002)
    action_selector(HashAlgorithm.crc32, SELECTOR_SIZE, 32w32) capacities;

    @id(0x01000015)
    action choose_stable_server(server_id_t id) {
        server = id;
    }

    @id(0x0200000b)
    table choose_stable {
        key = {
            service                 : exact @name("service");
            connection.service      : selector;
            connection.client_port  : selector;
            connection.client       : selector;
            connection.service_port : selector;
            connection.protocol     : selector;
        }
        actions = { choose_stable_server; }
        implementation = capacities;
        size = SERVICES;
    }

    apply {
        server = 0;
        choose_stable.apply();
    }
}

#endif
