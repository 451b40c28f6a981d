// Splice: decides whether the agent or the switch translates a packet of a content connection between client and server (Chow,
// Wang & Prakash, section 3.1). Unlike in v1model/splice.p4, no server is chosen before the request.
//
//   reads  place, path, way, content, event, has_slot, pinned, claimed, turn, granted, agent, pass, preferred, drop
//          splice, router_mac, ingress_port, ethernet.src: of a splice order
//   writes server: the agent, while the agent translates
//          value, detour
//          path, splice.status, ethernet, egress_port: of a splice order, which is confirmed to its agent
//          the cells of splice_value_*
//   drops  no_slot, spliced, unbound
#ifndef SLUICE_TNA2_SPLICE_P4
#define SLUICE_TNA2_SPLICE_P4

#include "splice_values.p4"

// While the agent translates a connection, the client's packets go to the agent. The server's packets take a detour: they also go
// to the agent, with the client as destination.
control Splice(inout headers_t hdr, inout metadata_t meta, in place_t place, inout bit<32> value, inout bit<1> detour) {
    SpliceValue1() value_1;
    SpliceValue2() value_2;

    @hidden
    action to_agent() {
        meta.server = meta.turn;
    }

    // Sends a client's packet to another agent, because the connection's agent is no longer configured.
    @hidden
    action to_other_agent() {
        meta.server = meta.preferred;
    }

    @hidden
    action neither() { }

    @hidden
    @no_gateway_conversion
    table whose {
        key = {
            meta.path     : ternary @name("path");
            meta.content  : ternary @name("content");
            meta.has_slot : ternary @name("held");
            meta.turn     : ternary @name("turn");
            meta.pass     : ternary @name("pass");
        }
        actions = { to_agent; to_other_agent; neither; }
        const entries = {
            (Path.to_service, Content.client, 1, 0 &&& 0x8000, Pass.candidate) : to_other_agent();
            (Path.to_service, Content.client, 1, 0 &&& 0x8000, _)              : to_agent();
        }
        const default_action = neither();
    }

    apply {
        whose.apply();
        if (meta.has_slot == 1) {
            if (meta.way == 0) {
                value_1.apply(place.slot_1, hdr, meta, value, detour);
            } else {
                value_2.apply(place.slot_2, hdr, meta, value, detour);
            }
        }
    }
}

// Drops an agent's packet whose connection has no slot, is spliced or belongs to another agent (but a SYN takes the connection
// over from the other agent). Also drops a packet from a server other than the pinned server.
control Unheard(in metadata_t meta, inout DropReason drop) {
    turn_t difference;

    // Computes how the agent's number in the turn (lower ten bits) differs from this agent's number, because a condition on these
    // bits would split the field.
    @hidden
    action compare() {
        difference = meta.turn ^ meta.agent;
    }

    @hidden
    action drop_as(DropReason reason) {
        drop = reason;
    }

    @hidden
    action neither() { }

    @hidden
    table unheard {
        key = {
            drop          : ternary @name("drop");
            meta.path     : ternary @name("path");
            meta.content  : ternary @name("content");
            meta.has_slot : ternary @name("held");
            meta.event    : ternary @name("event");
            meta.pass     : ternary @name("pass");
            meta.claimed  : ternary @name("claimed");
            meta.granted  : ternary @name("granted");
            difference    : ternary @name("difference");
            meta.pinned   : ternary @name("pinned");
        }
        actions = { drop_as; neither; }
        const entries = {
            (DropReason.none, Path.to_service, Content.agent, 0, Event.syn, Pass.first, _, _, _, _) : neither();
            (DropReason.none, Path.to_service, Content.agent, 0, _, _, _, _, _, _)          : drop_as(DropReason.no_slot);
            (DropReason.none, Path.to_service, Content.agent, _, Event.syn, _, 1, _, _, _)  : neither();
            (DropReason.none, Path.to_service, Content.agent, _, Event.syn, _, _, GRANTED, _, _) : neither();
            (DropReason.none, Path.to_service, Content.agent, _, Event.syn, _, _, _, _, _)  : drop_as(DropReason.spliced);
            (DropReason.none, Path.to_service, Content.agent, _, _, _, _, _, 0 &&& 0x03ff, _) : neither();
            (DropReason.none, Path.to_service, Content.agent, _, _, _, _, _, _, _)          : drop_as(DropReason.spliced);
            (DropReason.none, Path.from_server, Content.server, _, _, _, _, _, _, 0)        : drop_as(DropReason.unbound);
        }
        const default_action = neither();
    }

    apply {
        compare();
        unheard.apply();
    }
}

// Sends a splice order back to its sender, with a status as confirmation.
control Confirm(inout headers_t hdr, inout metadata_t meta, in bit<32> value, inout verdict_t verdict) {
    @hidden
    action answer(SpliceStatus status) {
        hdr.splice.status = (bit<8>)status;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        verdict.egress_port = meta.ingress_port;
        meta.path = Path.done;
    }

    @hidden
    action neither() { }

    @hidden
    @no_gateway_conversion
    table confirm {
        key = {
            verdict.drop  : ternary @name("drop");
            meta.path     : ternary @name("path");
            meta.has_slot : ternary @name("held");
            meta.granted  : ternary @name("granted");
            value         : ternary @name("value");
        }
        actions = { answer; neither; }
        const entries = {
            (DropReason.none, Path.order, 0, _, _)                    : answer(SpliceStatus.no_connection);
            (DropReason.none, Path.order, _, GRANTED, _)              : answer(SpliceStatus.applied);
            (DropReason.none, Path.order, _, GRANTED_BEFORE, SAME)    : answer(SpliceStatus.applied);
            (DropReason.none, Path.order, _, _, _)                    : answer(SpliceStatus.not_yours);
        }
        const default_action = neither();
    }

    apply {
        confirm.apply();
    }
}

#endif
