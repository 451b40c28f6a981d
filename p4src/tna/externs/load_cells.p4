// The registers of the second look, with one cell for each server. Each number of open connections (32 bits) is stored in two
// registers, because one pass reads the loads of two servers, and can access a register only once. Each number of connections
// whose end the switch did not see is also stored in two registers. One register stores whether a server refuses connections (8
// bits), read only for the second server drawn.
#ifndef SLUICE_TNA_LOAD_CELLS_P4
#define SLUICE_TNA_LOAD_CELLS_P4

#include "lighter.p4"

// Reads the loads of the two servers drawn, minus the connections whose end the switch did not see (both counts wrap), or changes
// the load of the packet's server in both registers. (A SYN that will renew its pin subtracts 1 from the ejected server's load in
// its first pass. The tables repeat the conditions of the control Renew, because Renew is applied after the tables.)
control LoadCells(in headers_t hdr, inout metadata_t meta, in decided_t decided, in DropReason drop) {
    server_id_t at;

    @id(REGISTER_LOAD_FIRST)
    Register<bit<32>, server_id_t>(SERVERS, 0) load_first;
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_first) look_first = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell - meta.loads.stale;
        }
    };
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_first) add_first = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_first) take_first = {
        void apply(inout bit<32> cell) {
            cell = cell - 1;
        }
    };

    @id(REGISTER_LOAD_OTHER)
    Register<bit<32>, server_id_t>(SERVERS, 0) load_other;
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_other) look_other = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell - meta.loads.other_stale;
        }
    };
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_other) add_other = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_other) take_other = {
        void apply(inout bit<32> cell) {
            cell = cell - 1;
        }
    };

    @hidden
    action neither() { }

    @hidden
    action do_look_first() {
        meta.loads.load = look_first.execute(meta.server);
        meta.loads.read_only = 1;
    }

    @hidden
    action do_add_first() {
        add_first.execute(meta.server);
    }

    @hidden
    action do_take_first() {
        take_first.execute(meta.server);
    }

    @hidden
    table first {
        key = {
            meta.next_pass    : ternary @name("next_pass");
            meta.pinned       : ternary @name("pinned");
            meta.event        : ternary @name("event");
            meta.claimed      : ternary @name("claimed");
            meta.state        : ternary @name("state");
            drop              : ternary @name("drop");
            meta.draining     : ternary @name("draining");
            meta.pass         : ternary @name("pass");
            decided.refused   : ternary @name("refused");
            meta.choice       : ternary @name("choice");
        }
        actions = { do_look_first; do_add_first; do_take_first; neither; }
        const entries = {
            (Pass.claim, _, _, _, _, _, _, _, _, _)                                            : do_look_first();
            (_, 0, _, _, _, _, _, _, _, _)                                                     : neither();
            (_, _, Event.syn, 1, _, DropReason.none, _, _, _, _)                               : do_add_first();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, REFUSED, _)  : do_add_first();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, _, 0)        : do_add_first();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, _, _)        : neither();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, _, _, _, _)                 : do_add_first();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, REFUSED, _) : neither();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, _, 0)       : neither();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, _, _)       : do_take_first();
            (_, _, Event.fin, _, PinState.closed, _, _, _, _, _)                               : neither();
            (_, _, Event.fin, _, _, DropReason.none, _, _, _, _)                               : do_take_first();
            (_, _, Event.reset, _, PinState.closed, _, _, _, _, _)                             : neither();
            (_, _, Event.reset, _, _, DropReason.none, _, _, _, _)                             : do_take_first();
        }
        const default_action = neither();
    }

    @hidden
    action do_look_other() {
        meta.loads.other_load = look_other.execute(at);
    }

    @hidden
    action do_add_other() {
        add_other.execute(at);
    }

    @hidden
    action do_take_other() {
        take_other.execute(at);
    }

    @hidden
    table other {
        key = {
            meta.next_pass    : ternary @name("next_pass");
            meta.pinned       : ternary @name("pinned");
            meta.event        : ternary @name("event");
            meta.claimed      : ternary @name("claimed");
            meta.state        : ternary @name("state");
            drop              : ternary @name("drop");
            meta.draining     : ternary @name("draining");
            meta.pass         : ternary @name("pass");
            decided.refused   : ternary @name("refused");
            meta.choice       : ternary @name("choice");
        }
        actions = { do_look_other; do_add_other; do_take_other; neither; }
        const entries = {
            (Pass.claim, _, _, _, _, _, _, _, _, _)                                            : do_look_other();
            (_, 0, _, _, _, _, _, _, _, _)                                                     : neither();
            (_, _, Event.syn, 1, _, DropReason.none, _, _, _, _)                               : do_add_other();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, REFUSED, _)  : do_add_other();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, _, 0)        : do_add_other();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, 1, Pass.first, _, _)        : neither();
            (_, _, Event.syn, _, PinState.closed, DropReason.none, _, _, _, _)                 : do_add_other();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, REFUSED, _) : neither();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, _, 0)       : neither();
            (_, _, Event.syn, _, PinState.pending, DropReason.none, 1, Pass.first, _, _)       : do_take_other();
            (_, _, Event.fin, _, PinState.closed, _, _, _, _, _)                               : neither();
            (_, _, Event.fin, _, _, DropReason.none, _, _, _, _)                               : do_take_other();
            (_, _, Event.reset, _, PinState.closed, _, _, _, _, _)                             : neither();
            (_, _, Event.reset, _, _, DropReason.none, _, _, _, _)                             : do_take_other();
        }
        const default_action = neither();
    }

    @id(REGISTER_REFUSING_OTHER)
    Register<bit<8>, server_id_t>(SERVERS, 0) refusing_other;
    RegisterAction<bit<8>, server_id_t, bit<8>>(refusing_other) look_refusing = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
        }
    };
    RegisterAction<bit<8>, server_id_t, bit<8>>(refusing_other) refuse = {
        void apply(inout bit<8> cell) {
            cell = 1;
        }
    };
    RegisterAction<bit<8>, server_id_t, bit<8>>(refusing_other) accept_again = {
        void apply(inout bit<8> cell) {
            cell = 0;
        }
    };

    @hidden
    action do_look_refusing() {
        meta.loads.other_refuses = look_refusing.execute(at);
    }

    @hidden
    action do_refuse() {
        refuse.execute(at);
    }

    @hidden
    action do_accept_again() {
        accept_again.execute(at);
    }

    // A RST that answers a SYN has the flag ACK (RFC 9293, section 3.10.7.1); the table ignores RSTs without it.
    @hidden
    table refusing {
        key = {
            meta.next_pass : ternary @name("next_pass");
            meta.pinned    : ternary @name("pinned");
            meta.path      : ternary @name("path");
            meta.event     : ternary @name("event");
            meta.state     : ternary @name("state");
            hdr.tcp.ack    : ternary @name("ack");
        }
        actions = { do_look_refusing; do_refuse; do_accept_again; neither; }
        const entries = {
            (Pass.claim, _, _, _, _, _)                                     : do_look_refusing();
            (_, 1, Path.from_server, Event.reset, PinState.pending, 1)      : do_refuse();
            (_, 1, Path.from_server, Event.syn_ack, PinState.pending, _)    : do_accept_again();
        }
        const default_action = neither();
    }

    // All actions of a table use one index, so the index is selected first: only packets without a slot read the load of `other`.
    apply {
        if (meta.has_slot == 0) {
            at = meta.loads.other;
        } else {
            at = meta.server;
        }
        first.apply();
        other.apply();
        refusing.apply();
    }
}

// Reads the number of connections that are counted in the loads, but whose end the switch did not see. The controller writes each
// server's number into both registers.
control StaleCells(in server_id_t server, in server_id_t other, out bit<32> stale, out bit<32> other_stale) {
    @id(REGISTER_STALE_FIRST)
    Register<bit<32>, server_id_t>(SERVERS, 0) stale_first;
    RegisterAction<bit<32>, server_id_t, bit<32>>(stale_first) read_first = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };
    @id(REGISTER_STALE_OTHER)
    Register<bit<32>, server_id_t>(SERVERS, 0) stale_other;
    RegisterAction<bit<32>, server_id_t, bit<32>>(stale_other) read_other = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };

    apply {
        stale = read_first.execute(server);
        other_stale = read_other.execute(other);
    }
}

#endif
