// Action selectors: draw a server from a service's weighted members, by a hash of the connection or a Weyl sequence. If a group
// has no members, the result stays 0.
#ifndef SLUICE_V1MODEL_CHOICE_P4
#define SLUICE_V1MODEL_CHOICE_P4

// The program computes a position in the group, so the selectors use the algorithm `identity`. The position is the connection's
// hash, or a point of the unit interval times the group's size. Members of a group are in the order in which they were written,
// so the members that stand for one server (as many as its weight) are adjacent.

// Draws a server by the weights that follow from the metric R.
//
// For draws without a hash, each service has a Weyl sequence, the multiples of the golden ratio modulo 1. The next point is in
// the largest gap between the earlier points, so that the draws of a server are spaced about as evenly as its weight permits.
control WeightedChoice(inout metadata_t meta, in bool is_syn, inout others_id_t others, inout bit<16> point) {
    const bit<32> GOLDEN = 0x9e3779b9;      // 2^32 times the fraction of the golden ratio

    @id(REGISTER_DRAW_POINT)
    register<bit<32>>(SERVICES) draw_point;
    bit<32> last = 0;
    bit<32> draw = 0;

    @id(PROFILE_RATIOS)
    action_selector(HashAlgorithm.identity, SELECTOR_SIZE, 32w32) ratios;

    @id(ACTION_CHOOSE_SERVER)
    action choose_server(server_id_t id, weight_t own_weight, others_id_t others_id) {
        meta.choice = id;
        meta.choice_weight = own_weight;
        others = others_id;
    }

    @id(TABLE_CHOOSE)
    table choose {
        key = {
            meta.service : exact @name("service");
            draw         : selector;
        }
        actions = { choose_server; }
        implementation = ratios;
        size = SERVICES;
    }

    apply {
        if (is_syn && meta.pass == Pass.first) {
            if (meta.shares == 0) {
                hash(draw, HashAlgorithm.crc32, 32w0,
                     { meta.flow.src_port, meta.flow.src, meta.flow.dst_port, meta.flow.dst, meta.flow.protocol },
                     64w0x100000000);
                // Each of an agent's three further attempts draws by another hash: the term changes each bit of the hash in two
                // of the three attempts.
                draw = draw ^ ((bit<32>)meta.attempt * 0x55555555);
            } else {
                draw_point.read(last, (bit<32>)meta.service);
                draw_point.write((bit<32>)meta.service, last + 2 * GOLDEN);
                draw = (((last + GOLDEN) >> 16) * (bit<32>)meta.shares) >> 16;
                point = (last + 2 * GOLDEN)[31:16];
            }
            choose.apply();
        }
    }
}

// Draws the second server of a second look by the same weights, by a hash over another order of fields or by the next point of
// the sequence. A small pool has one group for each server: the group has the server's id as its number, and contains all
// other servers. A large pool has one group of all servers, whose number is SERVERS or more.
//
// For a service that compares three or four servers, one draw selects all further servers: a member of the group also names the
// servers half a group, or one third and two thirds of a group, after this member. Each server is still named in proportion to
// its weight, and no server is drawn twice.
control OtherChoice(inout metadata_t meta, in others_id_t others, in bit<16> point) {
    bit<32> draw = 0;

    @id(PROFILE_OTHERS_BY_RATIO)
    action_selector(HashAlgorithm.identity, OTHERS_SIZE, 32w32) others_by_ratio;

    @id(ACTION_CHOOSE_OTHER_SERVER)
    action choose_other_server(server_id_t id, weight_t own_weight) {
        meta.other = id;
        meta.other_weight = own_weight;
    }

    @id(ACTION_CHOOSE_OTHER_SERVERS)
    action choose_other_servers(server_id_t id, weight_t own_weight, server_id_t third, weight_t third_weight,
                                server_id_t fourth, weight_t fourth_weight) {
        choose_other_server(id, own_weight);
        meta.more.third = third;
        meta.more.third_weight = third_weight;
        meta.more.fourth = fourth;
        meta.more.fourth_weight = fourth_weight;
    }

    @id(TABLE_CHOOSE_OTHER)
    table choose_other {
        key = {
            others : exact @name("others");
            draw   : selector;
        }
        actions = { choose_other_server; choose_other_servers; }
        implementation = others_by_ratio;
        size = OTHERS;
    }

    apply {
        if (meta.shares == 0) {
            hash(draw, HashAlgorithm.crc32, 32w0,
                 { meta.flow.protocol, meta.flow.dst, meta.flow.src, meta.flow.dst_port, meta.flow.src_port },
                 64w0x100000000);
        } else {
            draw = (bit<32>)meta.shares;
            if ((bit<32>)others < SERVERS) {
                draw = draw - (bit<32>)meta.choice_weight;
            }
            draw = ((bit<32>)point * draw) >> 16;
        }
        choose_other.apply();
    }
}

// Draws a server by the weights that follow from the servers' capacities.
control StableChoice(in service_id_t service, in flow_t flow, inout server_id_t server) {
    @id(PROFILE_CAPACITIES)
    action_selector(HashAlgorithm.crc32, SELECTOR_SIZE, 32w32) capacities;

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
        implementation = capacities;
        size = SERVICES;
    }

    apply {
        choose_stable.apply();
    }
}

#endif
