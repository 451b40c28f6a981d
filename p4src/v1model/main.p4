// sluice for v1model: the program for BMv2 and for the project's own switch in Rust.
#include <core.p4>
#include <v1model.p4>

#include "../stages.p4"

#include "parser.p4"
#include "checksums.p4"
#include "limits.p4"
#include "pinning.p4"
#include <content_path.p4>
#include <resource_path.p4>
#include "candidates.p4"
#include "moves.p4"
#include "next_pass.p4"
#include "departure.p4"
#include <front.p4>
#include "verdict.p4"
#include "deparser.p4"

control SluiceIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    Front() front;
    Limits() limits;
    Pinning() pinning;
    ContentPath() content_path;
    ResourcePath() resource_path;
    Payloads() payloads;
    Requests() requests;
    Acknowledged() acknowledged;
    Refusal() refusal;
    Translate() translate;
    BehindTranslation() behind_translation;
    Candidates() candidates;
    Moves() moves;
    SecondLook() second_look;
    NextPass() next_pass;
    Confirm() confirm;
    Departure() departure;
    Verdict() verdict;

    place_t place;
    decided_t decided;
    verdict_t outcome;
    spliced_t spliced;
    DropReason server_drop;       // drop reason of translate, which behind_translation may clear
    bit<32> acknowledged_number;

    apply {
        decided = { 0, 0, 0, 0, 0, 0, 0, 0 };
        outcome = { DropReason.none, PuntReason.none, 0, 0 };
        place = { 0, 0, 0, { { 0, 0, 0, 0, 0 }, 0 } };

        front.apply(hdr, meta, outcome, intrinsic);
        limits.apply(meta, decided);
        pinning.apply(meta, place, decided, outcome.drop);
        content_path.apply(hdr, meta, place, decided, outcome, spliced);
        resource_path.apply(hdr, meta, place, outcome, intrinsic.ingress_global_timestamp);
        payloads.apply(meta);
        if (decided.request == 1)                                           requests.apply(meta, decided);
        if (outcome.drop == DropReason.admission_refused) {
            acknowledged.apply(hdr, meta, acknowledged_number);
            refusal.apply(hdr, meta, decided, acknowledged_number, outcome);
        } else if (outcome.drop == DropReason.none && meta.next_pass == Pass.first
                   && (meta.path == Path.to_service || meta.path == Path.from_server)) {
            server_drop = DropReason.none;
            translate.apply(hdr, meta, server_drop);
            behind_translation.apply(meta, spliced, server_drop);
            outcome.drop = server_drop;
            if (meta.content == Content.none) {
                candidates.apply(hdr, meta, place, decided, outcome.drop);
                moves.apply(hdr, meta);
            }
        }
        if (meta.pinned == 1 || (meta.next_pass != Pass.first && meta.other != 0)) second_look.apply(hdr, meta, decided, outcome.drop);

        if (meta.next_pass != Pass.first) {
            next_pass.apply(meta);
        } else {
            if (meta.path == Path.order && outcome.drop == DropReason.none) confirm.apply(hdr, meta, outcome);
            if (meta.path != Path.done && outcome.drop == DropReason.none)  departure.apply(hdr, meta, outcome);
            verdict.apply(hdr, meta, outcome, intrinsic);
        }
    }
}

control SluiceEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    apply {
        if (intrinsic.instance_type == CLONE_OF_RECEIVED)                   recirculate_preserving_field_list(1);
    }
}

@pkginfo(name = "sluice", version = "0.1.0")
V1Switch(SluiceParser(), SluiceVerifyChecksum(), SluiceIngress(), SluiceEgress(), SluiceComputeChecksum(),
         SluiceDeparser()) main;
