// The registers of the second look, with one cell for each server. Each number of open connections (32 bits) is stored in four
// registers, because one pass reads the loads of up to four servers, and can access a register only once. Each number of
// connections whose end the switch did not see is also stored in several registers. Whether a server refuses connections (8 bits)
// is stored in only three registers, because no pass reads this value for the first server drawn.
#ifndef SLUICE_V1MODEL_LOAD_CELLS_P4
#define SLUICE_V1MODEL_LOAD_CELLS_P4

#include "../idle_servers.p4"

// Stores whether servers refuse connections: a server's RST that answers a SYN writes 1, and the server's SYN-ACK writes 0. For a
// SYN, reads the cells of the servers drawn.
control RefusingCells(in headers_t hdr, inout metadata_t meta, in server_id_t other, in server_id_t third, in server_id_t fourth) {
    @name(".SluiceIngress.second_look.cells.refusing_other")
    @id(REGISTER_REFUSING_OTHER)
    register<bit<8>>(SERVERS) refusing_other;
    @name(".SluiceIngress.second_look.cells.refusing_third")
    @id(REGISTER_REFUSING_THIRD)
    register<bit<8>>(SERVERS) refusing_third;
    @name(".SluiceIngress.second_look.cells.refusing_fourth")
    @id(REGISTER_REFUSING_FOURTH)
    register<bit<8>>(SERVERS) refusing_fourth;

    apply {
        if (meta.loads.read_only == 1) {
            refusing_other.read(meta.loads.other_refuses, (bit<32>)other);
            refusing_third.read(meta.more.third_refuses, (bit<32>)third);
            refusing_fourth.read(meta.more.fourth_refuses, (bit<32>)fourth);
        } else if (meta.path == Path.from_server && (meta.state == PinState.pending || meta.state == PinState.reopening)) {
            // A RST that answers a SYN has the flag ACK (RFC 9293, section 3.10.7.1).
            if (meta.event == Event.reset && hdr.tcp.ack == 1) {
                refusing_other.write((bit<32>)meta.server, 1);
                refusing_third.write((bit<32>)meta.server, 1);
                refusing_fourth.write((bit<32>)meta.server, 1);
            } else if (meta.event == Event.syn_ack) {
                refusing_other.write((bit<32>)meta.server, 0);
                refusing_third.write((bit<32>)meta.server, 0);
                refusing_fourth.write((bit<32>)meta.server, 0);
            }
        }
    }
}

// Reads the loads of all servers drawn, or changes the load of the packet's server in all registers. A server's load is the
// number of slots that contain the server in an open state. The load changes with the slot, even if the packet is dropped.
control LoadCells(in headers_t hdr, inout metadata_t meta, in decided_t decided, in DropReason drop) {
    @id(REGISTER_LOAD_FIRST)
    register<bit<32>>(SERVERS) load_first;
    @id(REGISTER_LOAD_OTHER)
    register<bit<32>>(SERVERS) load_other;
    @id(REGISTER_LOAD_THIRD)
    register<bit<32>>(SERVERS) load_third;
    @id(REGISTER_LOAD_FOURTH)
    register<bit<32>>(SERVERS) load_fourth;
    RefusingCells() refusing;
    IdleServers() idle_servers;

    apply {
        server_id_t other = meta.server;
        server_id_t third = meta.server;
        server_id_t fourth = meta.server;
        bit<32> change = 0;
        bool was_open = meta.state < PinState.server_closing;
        meta.loads.read_only = 0;
        if (meta.pinned == 0) {
            meta.loads.read_only = 1;       // the SYN will pass once more
            other = meta.loads.other;
            third = meta.more.third;
            fourth = meta.more.fourth;
        } else if (meta.claimed == 1 || meta.pass == Pass.move) {
            change = 1;
        } else if (was_open != (meta.next_state < PinState.server_closing)) {
            change = was_open ? 32w0xffffffff : 1;
        }
        if (meta.next_pass == Pass.move) {
            change = was_open ? 32w0xffffffff : 0;        // the next pass moves the pin to another server
        }
        if (meta.loads.read_only == 1 || change != 0) {
            load_first.read(meta.loads.load, (bit<32>)meta.server);
            meta.loads.load = meta.loads.load + change;
            load_first.write((bit<32>)meta.server, meta.loads.load);
            load_other.read(meta.loads.other_load, (bit<32>)other);
            meta.loads.other_load = meta.loads.other_load + change;
            load_other.write((bit<32>)other, meta.loads.other_load);
            if (third != 0) {
                load_third.read(meta.more.third_load, (bit<32>)third);
                meta.more.third_load = meta.more.third_load + change;
                load_third.write((bit<32>)third, meta.more.third_load);
                load_fourth.read(meta.more.fourth_load, (bit<32>)fourth);
                meta.more.fourth_load = meta.more.fourth_load + change;
                load_fourth.write((bit<32>)fourth, meta.more.fourth_load);
            }
            idle_servers.apply(meta, change);
        }
        refusing.apply(hdr, meta, other, third, fourth);
    }
}

// Reads the number of connections that are counted in the loads, but whose end the switch did not see. The controller writes each
// server's number into all registers.
control StaleCells(in server_id_t server, in server_id_t other, out bit<32> stale, out bit<32> other_stale) {
    @id(REGISTER_STALE_FIRST)
    register<bit<32>>(SERVERS) stale_first;
    @id(REGISTER_STALE_OTHER)
    register<bit<32>>(SERVERS) stale_other;

    apply {
        stale_first.read(stale, (bit<32>)server);
        stale_other.read(other_stale, (bit<32>)other);
    }
}

// Prefers the second server drawn to the first if its load per weight would be clearly lower, where each load is increased by the
// new connection. The first value must exceed the second by an eighth, because the rounding of weights (86, 85, 85) must not
// decide between equal servers. (Tofino cannot multiply, and subtracts logarithms instead.) A load is negative while the number
// of stale connections is outdated, and then counts as 0. If the second server refuses connections, the first is preferred.
//
// If the server preferred so far has an open connection, or if `seeks` is set, an idle server is preferred instead. If there is
// no idle server, a third and a fourth server are compared with the preferred server, while the preferred server has an open
// connection.
control Lighter(inout metadata_t meta) {
    @id(REGISTER_STALE_THIRD)
    register<bit<32>>(SERVERS) stale_third;
    @id(REGISTER_STALE_FOURTH)
    register<bit<32>>(SERVERS) stale_fourth;

    #define LOOK_AT(server, its_weight, its_load, its_stale, refuses) \
        its_stale.read(meta.loads.other_stale, (bit<32>)server); \
        second = its_load - meta.loads.other_stale; \
        if (second[31:31] == 1) { \
            second = 0; \
        } \
        work = ((bit<48>)first + 1) * (bit<48>)its_weight; \
        other_work = ((bit<48>)second + 1) * (bit<48>)weight; \
        if (refuses == 0 && other_work + (other_work >> 3) < work) { \
            meta.preferred = server; \
            first = second; \
            weight = its_weight; \
        }

    apply {
        bit<32> first = meta.loads.load - meta.loads.stale;             // both counts wrap
        bit<32> second = meta.loads.other_load - meta.loads.other_stale;
        if (first[31:31] == 1) {
            first = 0;
        }
        if (second[31:31] == 1) {
            second = 0;
        }
        bit<48> work = ((bit<48>)first + 1) * (bit<48>)meta.other_weight;
        bit<48> other_work = ((bit<48>)second + 1) * (bit<48>)meta.choice_weight;
        weight_t weight = meta.choice_weight;
        meta.preferred = meta.server;
        if (meta.loads.other_refuses == 0 && other_work + (other_work >> 3) < work) {
            meta.preferred = meta.loads.other;
            first = second;
            weight = meta.other_weight;
        }
        if (meta.more.idle != 0 && (first != 0 || meta.more.seeks == 1)) {
            meta.preferred = meta.more.idle;
        } else if (first != 0 && meta.more.third != 0) {
            LOOK_AT(meta.more.third, meta.more.third_weight, meta.more.third_load, stale_third, meta.more.third_refuses)
            if (meta.more.fourth != 0 && first != 0) {
                LOOK_AT(meta.more.fourth, meta.more.fourth_weight, meta.more.fourth_load, stale_fourth, meta.more.fourth_refuses)
            }
        }
    }
}

#endif
