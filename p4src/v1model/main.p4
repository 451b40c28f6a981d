// sluice for v1model (BMv2 and the embedded switch).
#include <core.p4>
#include <v1model.p4>

#include "../common/types.p4"
#include "../common/sizes.p4"
#include "../common/constants.p4"
#include "../common/headers.p4"
#include "../common/metadata.p4"

#include "externs/lengths.p4"
#include "externs/counters.p4"
#include "externs/meters.p4"
#include "externs/choice.p4"
#include "externs/pins.p4"
#include "externs/load_cells.p4"
#include "externs/ledger_cells.p4"
#include "externs/samples.p4"
#include "externs/clients.p4"
#include "externs/request_cells.p4"
#include "externs/rate_cells.p4"

#include "../stages/ports.p4"
#include "../stages/measure.p4"
#include "../stages/validate.p4"
#include "../stages/events.p4"
#include "../stages/classify.p4"
#include "../stages/local.p4"
#include "../stages/hop_limit.p4"
#include "../stages/sampling.p4"
#include "../stages/admission.p4"
#include "../stages/destinations.p4"
#include "../stages/balance.p4"
#include "../stages/places.p4"
#include "externs/ways.p4"
#include "../stages/connections.p4"
#include "../stages/requests.p4"
#include "../stages/refusal.p4"
#include "../stages/translate.p4"
#include "../stages/second_look.p4"
#include "../stages/forward.p4"
#include "../stages/tag.p4"
#include "../stages/ledger.p4"
#include "../stages/rates.p4"

#include "parser.p4"
#include "checksums.p4"
#include "intake.p4"
#include "verdict.p4"
#include "deparser.p4"

control SluiceIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    Intake() intake;
    Ports() ports;
    Measure() measure;
    Validate() validate;
    Events() events;
    Payloads() payloads;
    Classify() classify;
    Local() local;
    HopLimit() hop_limit;
    Sampling() sampling;
    Admission() admission;
    Destinations() destinations;
    Balance() balance;
    Places() places;
    Connections() connections;
    RefuseRouted() refuse_routed;
    Requests() requests;
    Refusal() refusal;
    Translate() translate;
    SecondLook() second_look;
    Prefer() prefer;
    AdjustChecksums() adjust_checksums;
    Forward() forward;
    Tag() tag;
    Ledger() ledger;
    Rates() rates;
    Verdict() verdict;

    place_t place;
    decided_t decided;

    apply {
        decided = { 0, 0, 0, 0, 0, 0, 0, 0 };
        intake.apply(hdr, meta, intrinsic);

        if (meta.path != Path.done)                                         ports.apply(hdr, meta);
        if (meta.path == Path.ipv4) {
            measure.apply(hdr, meta);
            validate.apply(hdr, meta);
        }
        if (meta.path == Path.ipv4) {
            if (hdr.tcp.isValid()) {
                events.apply(hdr, meta);
                payloads.apply(meta);
            }
            classify.apply(hdr, meta);
        }
        if (meta.path == Path.ipv4 || meta.path == Path.arp)                local.apply(hdr, meta);
        if (meta.path != Path.done)                                         hop_limit.apply(hdr, meta);

        if (meta.path == Path.to_service || meta.path == Path.routed)       sampling.apply(meta);
        if (meta.path == Path.to_service)                                   admission.apply(meta, decided);
        if (meta.path == Path.to_service || meta.path == Path.routed)       destinations.apply(meta, decided);
        if (meta.path == Path.to_service) {
            balance.apply(meta);
            // Without a server, or with two, a SYN claims nothing in this pass.
            if (meta.event == Event.syn) {
                if (meta.other != 0) {
                    decided.looks = 1;
                    decided.undecided = 1;
                } else if (meta.choice == 0) {
                    decided.looks = 1;
                }
            }
        }
        if (meta.path == Path.to_service || meta.path == Path.from_server) {
            places.apply(meta, decided, place);
            connections.apply(meta, place, decided);
        } else {
            refuse_routed.apply(meta, decided);
        }
        if (decided.request == 1)                                           requests.apply(meta, decided);
        if (meta.verdict.drop == DropReason.admission_refused)              refusal.apply(hdr, meta, decided);
        else if (meta.path == Path.to_service || meta.path == Path.from_server)  translate.apply(hdr, meta, decided);
        if (meta.pinned == 1 || meta.choose_again == 1)                     second_look.apply(meta);

        if (meta.choose_again == 1) {
            prefer.apply(meta);
            meta.second_pass = 1;
            resubmit_preserving_field_list(1);
        } else {
            if (meta.path == Path.to_service || meta.path == Path.from_server)  adjust_checksums.apply(hdr, meta);

            if (meta.path != Path.done)                                         forward.apply(hdr, meta);
            if (meta.path != Path.done) {
                tag.apply(hdr, meta);
                ledger.apply(meta);
                rates.apply(hdr, meta);
            }

            verdict.apply(hdr, meta, intrinsic);
        }
    }
}

control SluiceEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    apply { }
}

@pkginfo(name = "sluice", version = "0.1.0")
V1Switch(SluiceParser(), SluiceVerifyChecksum(), SluiceIngress(), SluiceEgress(), SluiceComputeChecksum(),
         SluiceDeparser()) main;
