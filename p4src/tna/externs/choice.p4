// Action selectors: a server drawn from a service's members by a hash of the connection; 0 where there is none. There are no weights
// in the hardware: a member of weight w stands w times in its group.
#ifndef SLUICE_TNA_CHOICE_P4
#define SLUICE_TNA_CHOICE_P4

const bit<32> GROUP_SIZE = 1024;       // weights of a group sum to at most this

// The weights that R decides. A second pass draws anew, with client and service exchanged. (Its number as one more field would not do: CRCs
// are linear, and all who drew one server would draw the same other one. Halves of an address exchanged would cut every address.)
control WeightedChoice(in service_id_t service, in connection_t connection, in bit<1> second_pass,
                       out server_id_t server, out weight_t weight, out others_id_t others) {
    ipv4_t near = connection.client;
    ipv4_t far = connection.service;
    l4_port_t near_port = connection.client_port;
    l4_port_t far_port = connection.service_port;

    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(0x01)
    ActionProfile(SELECTOR_SIZE) ratios;
    ActionSelector(ratios, draw, SelectorMode_t.FAIR, GROUP_SIZE, SERVICES) groups;

    @id(0x01000014)
    action choose_server(server_id_t id, weight_t own_weight, others_id_t others_id) {
        server = id;
        weight = own_weight;
        others = others_id;
    }

    @id(0x0200000a)
    table choose {
        key = {
            service             : exact @name("service");
            near_port           : selector;
            near                : selector;
            far_port            : selector;
            far                 : selector;
            connection.protocol : selector;
        }
        actions = { choose_server; }
        implementation = groups;
        size = SERVICES;
    }

    apply {
        server = 0;
        weight = 0;
        others = 0;
        if (second_pass == 1) {
            near = connection.service;
            far = connection.client;
            near_port = connection.service_port;
            far_port = connection.client_port;
        }
        choose.apply();
    }
}

// The other server of a second look, by the same weights and another order of fields, from a group that leaves out the first.
control OtherChoice(in others_id_t others, in connection_t connection, out server_id_t server, out weight_t weight) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(0x03)
    ActionProfile(OTHERS_SIZE) others_by_ratio;
    ActionSelector(others_by_ratio, draw, SelectorMode_t.FAIR, GROUP_SIZE, OTHERS) groups;

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
        implementation = groups;
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
    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(0x02)
    ActionProfile(SELECTOR_SIZE) capacities;
    ActionSelector(capacities, draw, SelectorMode_t.FAIR, GROUP_SIZE, SERVICES) groups;

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
        implementation = groups;
        size = SERVICES;
    }

    apply {
        server = 0;
        choose_stable.apply();
    }
}

#endif
