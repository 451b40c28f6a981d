// Action selectors: draw a server from a service's members by a hash of the connection. Without members the result stays 0. The
// hardware has no weights: a member of weight w is w times in its group. On Tofino servers are not drawn evenly by a Weyl
// sequence, because a selector transforms its hash, so the points of a sequence would not stay in order.
#ifndef SLUICE_TNA_CHOICE_P4
#define SLUICE_TNA_CHOICE_P4

const bit<32> GROUP_SIZE = 1024;       // largest sum of the weights in a group

// Draws a server by the weights that follow from the metric R. A pass that renews a pin (a connection's entry) draws by another
// hash, with source and destination port exchanged. (The pass is not a hashed field, because CRCs are linear: all connections
// that drew one server would draw the same second server. To exchange the halves of an address would split every address into two
// fields.)
control WeightedChoice(inout metadata_t meta, in bool is_syn, inout others_id_t others, inout bit<16> point) {
    l4_port_t near_port;
    l4_port_t far_port;

    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(PROFILE_RATIOS)
    ActionProfile(SELECTOR_SIZE) ratios;
    ActionSelector(ratios, draw, SelectorMode_t.FAIR, GROUP_SIZE, SERVICES) groups;

    @id(ACTION_CHOOSE_SERVER)
    action choose_server(server_id_t id, weight_t own_weight, others_id_t others_id) {
        meta.choice = id;
        meta.choice_weight = own_weight;
        others = others_id;
    }

    @id(TABLE_CHOOSE)
    table choose {
        key = {
            meta.service       : exact @name("service");
            near_port          : selector;
            meta.flow.src      : selector;
            far_port           : selector;
            meta.flow.dst      : selector;
            meta.flow.protocol : selector;
        }
        actions = { choose_server; }
        implementation = groups;
        size = SERVICES;
    }

    apply {
        if (meta.pass == Pass.renew) {
            near_port = meta.flow.dst_port;
            far_port = meta.flow.src_port;
        } else {
            near_port = meta.flow.src_port;
            far_port = meta.flow.dst_port;
        }
        if (is_syn) {
            choose.apply();
        }
    }
}

// Draws the second server of a second look, by the same weights and a hash over another order of fields, from a group that does
// not contain the first server.
control OtherChoice(inout metadata_t meta, in others_id_t others, in bit<16> point) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(PROFILE_OTHERS_BY_RATIO)
    ActionProfile(OTHERS_SIZE) others_by_ratio;
    ActionSelector(others_by_ratio, draw, SelectorMode_t.FAIR, GROUP_SIZE, OTHERS) groups;

    @id(ACTION_CHOOSE_OTHER_SERVER)
    action choose_other_server(server_id_t id, weight_t own_weight) {
        meta.other = id;
        meta.other_weight = own_weight;
    }

    @id(TABLE_CHOOSE_OTHER)
    table choose_other {
        key = {
            others             : exact @name("others");
            meta.flow.protocol : selector;
            meta.flow.dst      : selector;
            meta.flow.src      : selector;
            meta.flow.dst_port : selector;
            meta.flow.src_port : selector;
        }
        actions = { choose_other_server; }
        implementation = groups;
        size = OTHERS;
    }

    apply {
        choose_other.apply();
    }
}

// Draws a server by the weights that follow from the servers' capacities.
control StableChoice(in service_id_t service, in flow_t flow, inout server_id_t server) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) draw;
    @id(PROFILE_CAPACITIES)
    ActionProfile(SELECTOR_SIZE) capacities;
    ActionSelector(capacities, draw, SelectorMode_t.FAIR, GROUP_SIZE, SERVICES) groups;

    @id(ACTION_CHOOSE_STABLE_SERVER)
    action choose_stable_server(server_id_t id) {
        server = id;
    }

    @id(TABLE_CHOOSE_STABLE)
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
        implementation = groups;
        size = SERVICES;
    }

    apply {
        choose_stable.apply();
    }
}

#endif
