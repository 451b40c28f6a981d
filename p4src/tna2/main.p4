// sluice for Tofino 2 (T2NA). Ingress decides what happens to a packet and translates the packet; egress tags and counts the
// packets that ingress forwards, and manages servers' TCP resources.
#include <core.p4>
#include <chip.p4>

#include "../tna/target.p4"
#include "../stages.p4"

#include "../tna/parser.p4"
#include "front.p4"
#include "content_path.p4"
#include "counted.p4"
#include "renew_content.p4"
#include "../tna/checksums.p4"
#include "../tna/bridge.p4"
#include "../tna/verdict.p4"
#include "../tna/deparser.p4"
#include "bridge_connection.p4"
#include "egress.p4"

control SluiceIngress(inout headers_t hdr, inout ingress_metadata_t all, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Front() front;
    Balance() balance;
    Stale() stale;
    Places() places;
    Acknowledged() acknowledged;
    Answers() answers;
    RefuseRouted() refuse_routed;
    Connections() connections;
    ContentPath() content_path;
    Translate() translate;
    BehindTranslation() behind_translation;
    SecondLook() second_look;
    Prefer() prefer;
    RenewContent() renew;
    Refusal() refusal;
    Forward() forward;
    Confirm() confirm;
    Detour() detour;
    AdjustChecksums() adjust_checksums;
    Bridge() bridge;
    BridgeConnection() bridge_connection;
    Verdict() verdict;
    Admission() admission;
    Destinations() destinations;
    Note() note;
    Sampling() sampling;
    Counted() counted;
    Requests() requests;

    place_t place;
    spliced_t spliced;
    bit<1> is_counted;

#define meta all.sluice
    @hidden
    action limit_in_next_pass() {
        meta.next_pass = Pass.limit;
    }

    @hidden
    action server_unknown() {
        all.verdict.drop = DropReason.server_unknown;
    }

    apply {
        front.apply(hdr, all, intrinsic, from_parser);
        balance.apply(meta);
        stale.apply(meta);
        places.apply(meta, all.decided, place);
        acknowledged.apply(hdr, meta, all.acknowledgement);
        answers.apply(hdr, meta, all.verdict);
        if (meta.path == Path.routed) {
            if (all.decided.undecided == 1 && meta.event == Event.syn && meta.inward == 1) limit_in_next_pass();
            else                                                            refuse_routed.apply(all.decided, all.verdict.drop);
        }

        connections.apply(meta, place, all.decided, all.verdict.drop);
        bridge_connection.apply(meta, place, all.bridge);
        content_path.apply(hdr, meta, place, all.verdict.drop, spliced);
        translate.apply(hdr, meta, all.server_drop);
        behind_translation.apply(meta, spliced, all.server_drop);
        second_look.apply(hdr, meta, all.decided, all.server_drop);
        if (meta.content != Content.client)                                 prefer.apply(meta);
        renew.apply(meta, all.decided);

        detour.apply(meta, spliced, all.verdict);
        if (all.verdict.drop == DropReason.admission_refused)               refusal.apply(hdr, meta, all.decided, all.acknowledgement, all.verdict);
        else if (all.verdict.drop == DropReason.none) {
            if (all.server_drop != DropReason.none)                         server_unknown();
            else if (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed) {
                forward.apply(hdr, all.verdict);
            } else                                                          confirm.apply(hdr, meta, spliced.value, all.verdict);
        }
        adjust_checksums.apply(hdr, all);
        if (all.verdict.drop == DropReason.none
                && (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed)) {
            bridge.apply(meta, all.bridge);
        }
        verdict.apply(hdr, meta, all.verdict, for_deparser, for_tm);

        // A SYN without a pin passes ingress twice. The first pass computes the limits' results, and the second pass applies the
        // results, so that no stage above waits for the meters.
        if (meta.path == Path.to_service)                                   admission.apply(meta, all.next);
        destinations.apply(meta, all.next);
        note.apply(all.next, all.notes);
        sampling.apply(meta);
        counted.apply(meta, all.decided, all.next, is_counted);
        if (is_counted == 1)                                                requests.apply(meta, all.next);
    }
#undef meta
}

// Fixes the container sizes, because the assembler refuses a stateful unit's output in containers of two sizes.
@pa_container_size("ingress", "meta.sluice.evicted", 16)
@pa_container_size("ingress", "meta.sluice.turn", 16)
@pa_container_size("ingress", "meta.sluice.granted", 16)
// A window can be shifted only if no other field is in its container.
@pa_container_size("ingress", "hdr.tcp.window", 16)
@pa_auto_init_metadata
@pkginfo(name = "sluice", version = "0.1.0")
Pipeline(SluiceIngressParser(), SluiceIngress(), SluiceIngressDeparser(),
         ResourcesParser(), SluiceEgress(), ResourcesDeparser()) pipe;

@pkginfo(name = "sluice", version = "0.1.0")
Switch(pipe) main;
