// sluice for v1model (BMv2 and the embedded switch).
#include <core.p4>
#include <v1model.p4>

#include "../stages.p4"

#include "candidates.p4"
#include "moves.p4"
#if defined(CONTENT)
#include "agents.p4"
#include "splice.p4"
#include "options.p4"
#include "remembered.p4"
#endif
#if defined(RESOURCES)
#include "resources.p4"
#include "closing.p4"
#include "transfers.p4"
#include "caps.p4"
#endif
#include "parser.p4"
#include "checksums.p4"
#include <front.p4>
#include "verdict.p4"
#include "deparser.p4"

control SluiceIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    Front() front;
    Payloads() payloads;
    Sampling() sampling;
    Admission() admission;
    Destinations() destinations;
    Balance() balance;
    Places() places;
    Connections() connections;
    RefuseRouted() refuse_routed;
#if defined(CONTENT)
    Splice() splice;
    Confirm() confirm;
    Remembered() remembered;
    RebuildOptions() rebuild_options;
    Guessed() guessed;
#endif
#if defined(RESOURCES)
    Resources() resources;
    Closing() closing;
    Transfers() transfers;
    Caps() caps;
#endif
    Requests() requests;
    Acknowledged() acknowledged;
    Refusal() refusal;
    Translate() translate;
    Candidates() candidates;
    Moves() moves;
    SecondLook() second_look;
    Stale() stale;
    Prefer() prefer;
    AdjustChecksums() adjust_checksums;
    Forward() forward;
    Tag() tag;
    Ledger() ledger;
    Rates() rates;
    Verdict() verdict;

    place_t place;
    decided_t decided;
    verdict_t outcome;
    bit<32> acknowledged_number;

    apply {
        decided = { 0, 0, 0, 0, 0, 0, 0, 0 };
        outcome = { DropReason.none, PuntReason.none, 0, 0 };
        place = { 0, 0, 0, { { 0, 0, 0, 0, 0 }, 0 } };
        front.apply(hdr, meta, outcome, intrinsic);

        if (meta.path == Path.to_service || (meta.path == Path.routed && meta.inside == 0)) {
            meta.inward = 1;
            sampling.apply(meta);
            if (meta.path == Path.to_service)                               admission.apply(meta, decided);
            destinations.apply(meta, decided);
        }
        if (meta.path == Path.to_service && meta.pass != Pass.candidate) {
            balance.apply(meta);
            // Without a server, or with two, a SYN claims nothing in its first pass.
            if (meta.event == Event.syn && meta.pass == Pass.first) {
                if (meta.choice != 0 && meta.content != Content.client)     decided.undecided = 1;
                if (meta.choice == 0 || meta.other != 0 || meta.content == Content.client) decided.looks = 1;
            }
        }
        if (meta.pass == Pass.candidate) {
            meta.server = meta.preferred;
        } else if (meta.content == Content.server && meta.event == Event.syn_ack && meta.pass == Pass.first) {
            meta.next_pass = Pass.facts;
        } else if (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.order) {
            places.apply(meta, decided, place);
            connections.apply(meta, place, decided, outcome.drop);
        } else {
            refuse_routed.apply(decided, outcome.drop);
        }
#if defined(CONTENT)
        server_id_t pin = meta.server;
        Remember memory = Remember.nothing;
        if (meta.content != Content.none && outcome.drop == DropReason.none && meta.pass != Pass.candidate && meta.next_pass == Pass.first) {
            splice.apply(hdr, meta, place, outcome.drop);
            if (meta.pass >= Pass.guess) {
                rebuild_options.apply(hdr, meta);
            }
            if (meta.path == Path.order && hdr.splice.status == (bit<8>)SpliceStatus.applied && hdr.splice.remember != 0
                || meta.content == Content.client && meta.event == Event.syn && meta.payload == 0 && meta.vacant != 0
                   && meta.pass == Pass.first && decided.refused != REFUSED
                || meta.content == Content.client && meta.state == PinState.answered && meta.next_state == PinState.established
                || meta.content == Content.server && meta.event == Event.reset && meta.pinned == 1 && meta.state == PinState.pending) {
                if (meta.content == Content.client && meta.generation == UNREAD) {
                    if (meta.event == Event.syn) {
                        memory = Remember.client;
                        meta.preferred = meta.stable_choice;
                    }
                } else {
                    remembered.apply(hdr, meta, memory);
                }
                if (memory != Remember.nothing) {
                    meta.server = meta.preferred;
                }
            }
        }
#endif
#if defined(RESOURCES)
        if (meta.held == 1 && meta.content == Content.none && outcome.drop == DropReason.none && meta.next_pass == Pass.first) {
            resources.apply(meta);
            if (meta.resources.closed == 1 || meta.claimed == 1 || meta.pass == Pass.move) {
                closing.apply(hdr, meta, place, outcome);
            }
            if (outcome.drop == DropReason.none && meta.path != Path.done) {
                if (meta.resources.measured == 1)                           transfers.apply(hdr, meta, place, intrinsic.ingress_global_timestamp);
                caps.apply(hdr, meta, place);
            }
        }
        if (hdr.tickle.isValid() && outcome.drop == DropReason.none)        outcome.drop = DropReason.not_idle;
#endif
        payloads.apply(meta);
        if (decided.request == 1)                                           requests.apply(meta, decided);
        if (outcome.drop == DropReason.admission_refused) {
            acknowledged.apply(hdr, meta, acknowledged_number);
            refusal.apply(hdr, meta, decided, acknowledged_number, outcome);
        } else if (outcome.drop == DropReason.none && meta.next_pass == Pass.first
                   && (meta.path == Path.to_service || meta.path == Path.from_server)) {
            translate.apply(hdr, meta, outcome.drop);
#if defined(CONTENT)
            if (meta.server != pin || memory != Remember.nothing) {
                // An agent or a remembered server that is gone: to an agent, for all know the cookie's key.
                if (outcome.drop == DropReason.server_unknown || (memory != Remember.nothing && meta.draining == 1)) {
                    outcome.drop = DropReason.none;
                    meta.preferred = meta.stable_choice;
                    meta.next_pass = Pass.candidate;
                } else if (memory == Remember.client) {
                    meta.next_pass = Pass.claim;
                } else if (memory == Remember.guess) {
                    meta.next_pass = Pass.guess;
                }
                meta.server = pin;
            } else if (meta.content == Content.none)
#endif
            {
                candidates.apply(hdr, meta, place, decided, outcome.drop);
                moves.apply(hdr, meta);
            }
        }
        if (meta.pinned == 1 || (meta.next_pass != Pass.first && meta.other != 0)) second_look.apply(hdr, meta, decided, outcome.drop);

        if (meta.next_pass != Pass.first) {
            if (meta.next_pass == Pass.claim && meta.content != Content.client) {
                meta.preferred = meta.choice;
#if defined(CONTENT)
                if (meta.attempt != 0) {
                    // Who refuses has least to do: loads are not compared.
                    if (meta.choice == meta.refused_by && meta.other != 0)  meta.preferred = meta.other;
                } else
#endif
                if (meta.loads.look == 1) {
                    stale.apply(meta);
                    prefer.apply(meta);
                }
            }
            meta.pass = meta.next_pass;
            resubmit_preserving_field_list(1);
        } else {
#if defined(CONTENT)
            if (meta.path == Path.order && outcome.drop == DropReason.none) {
                confirm.apply(hdr, meta, outcome);
            }
#endif
            if (meta.path != Path.done && outcome.drop == DropReason.none) {
                if (meta.path == Path.to_service || meta.path == Path.from_server)  adjust_checksums.apply(hdr, meta);

#if defined(CONTENT)
                // In the agent's turn a server's answer goes to the agent, and keeps its client as destination.
                if (meta.agent_address != 0)                                hdr.ipv4.dst = meta.agent_address;
#endif
                forward.apply(hdr, outcome);
#if defined(CONTENT)
                if (meta.agent_address != 0)                                hdr.ipv4.dst = meta.flow.dst;
#endif
                if (outcome.drop == DropReason.none)                        tag.apply(hdr, outcome.egress_port);
                // A packet that waits at the controller for its neighbour does not pass again: it is counted here.
                if (outcome.drop == DropReason.none || outcome.drop == DropReason.neighbour_unresolved) {
#if defined(CONTENT)
                    if (hdr.guessed.isValid())                              guessed.apply(hdr);
#endif
                    ledger.apply(meta);
                    if (meta.agent_address == 0 && outcome.drop == DropReason.none) rates.apply(hdr, meta);
                }
            }
            verdict.apply(hdr, meta, outcome, intrinsic);
        }
    }
}

control SluiceEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    apply {
#if defined(RESOURCES)
        if (intrinsic.instance_type == CLONE_OF_RECEIVED)                   recirculate_preserving_field_list(1);
#endif
    }
}

@pkginfo(name = "sluice", version = "0.1.0")
V1Switch(SluiceParser(), SluiceVerifyChecksum(), SluiceIngress(), SluiceEgress(), SluiceComputeChecksum(),
         SluiceDeparser()) main;
