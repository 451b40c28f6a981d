// sluice for Tofino 1 (TNA). Ingress decides; egress tags and counts what it forwarded.
#include <core.p4>
#include <tna.p4>

#include "../common/types.p4"
#include "../common/sizes.p4"
#include "../common/constants.p4"
#include "../common/headers.p4"
#include "../common/metadata.p4"

#include "target.p4"
#include "clock.p4"

#include "externs/lengths.p4"
#include "externs/counters.p4"
#include "externs/meters.p4"
#include "externs/choice.p4"
#include "externs/pins.p4"
#include "externs/pin_cells.p4"
#include "externs/load_cells.p4"
#include "externs/weights.p4"
#include "externs/lighter.p4"
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
#include "notes.p4"
#include "bridge.p4"
#include "verdict.p4"
#include "deparser.p4"

control SluiceIngress(inout headers_t hdr, inout ingress_metadata_t all, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Intake() intake;
    NotReceived() not_received;
    Recall() recall;
    Note() note;
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
    ResetChecksum() reset_checksum;
    Translate() translate;
    SecondLook() second_look;
    Prefer() prefer;
    AdjustChecksums() adjust_checksums;
    Forward() forward;
    Bridge() bridge;
    Verdict() verdict;

    place_t place;

#define meta all.sluice
    @hidden
    action limited_as_service() {
        all.limited = Limited.as_service;
    }

    @hidden
    action limited_as_host() {
        all.limited = Limited.as_host;
    }

    @hidden
    action pass_again() {
        meta.choose_again = 1;
        meta.path = Path.done;
    }

    // A SYN that has found its pin does not come again.
    @hidden
    action count_now() {
        all.decided.request = all.next.request;
        all.decided.destination = all.next.destination;
        all.decided.returning = all.next.returning;
        all.next.request = 0;
    }

    apply {
        // What a frame is for is looked up side by side with whether it is any good. The later verdict holds, so that the order of
        // reasons to drop is as on every target: ports before validate, validate before the rest. Conditions are of what the parser
        // knows, and a block has nothing in it that waits for what is in front of the block: every table of it would wait.
        if (!hdr.packet_out.isValid() && meta.verdict.drop == DropReason.none
                && from_parser.parser_err == PARSER_ERROR_OK && !all.ipv4_checksum_wrong) {
            intake.apply(all, intrinsic, from_parser);
            recall.apply(all.noted, all.decided);
            if (hdr.tcp.isValid())                                          events.apply(hdr, meta);
            measure.apply(hdr, meta);
            if (hdr.arp.isValid())                                          meta.path = Path.arp;
            else                                                            meta.path = Path.ipv4;
            if (hdr.ipv4.isValid())                                         classify.apply(hdr, meta);
            if (hdr.ipv4.isValid())                                         balance.apply(meta);
            payloads.apply(meta);
            places.apply(meta, all.decided, place);
            local.apply(hdr, meta);
            if (hdr.ipv4.isValid())                                         validate.apply(hdr, meta);
            ports.apply(hdr, meta);
        } else {
            not_received.apply(hdr, all, intrinsic, from_parser);
        }
        if (meta.path != Path.done)                                         hop_limit.apply(hdr, meta);
        else if (meta.verdict.drop != DropReason.none)                      meta.verdict.punt = PuntReason.none;

        if (meta.path == Path.to_service)                                   limited_as_service();
        else if (meta.path == Path.routed && meta.inside == 0)              limited_as_host();

        if (meta.path == Path.to_service || meta.path == Path.from_server) {
            connections.apply(meta, place, all.decided);
        } else if (all.decided.undecided == 1 && meta.event == Event.syn && all.limited != Limited.no) {
            pass_again();
        } else {
            refuse_routed.apply(meta, all.decided);
        }
        if (meta.verdict.drop == DropReason.admission_refused) {
            refusal.apply(hdr, meta, all.decided);
            if (meta.verdict.drop == DropReason.admission_reset)                reset_checksum.apply(hdr, all);
        } else {
            if (meta.path == Path.to_service || meta.path == Path.from_server)  translate.apply(hdr, meta, all.decided);
            if (meta.pinned == 1 || meta.choose_again == 1)                     second_look.apply(meta);
            if (meta.path == Path.to_service || meta.path == Path.from_server)  adjust_checksums.apply(hdr, all);

            if (meta.path != Path.done)                                         forward.apply(hdr, meta);
            if (meta.path != Path.done)                                         bridge.apply(meta, all.bridge);
        }

        if (meta.choose_again == 1)                                         for_deparser.resubmit_type = RESUBMIT_SECOND_PASS;
        else                                                                verdict.apply(hdr, meta, for_deparser, for_tm);
        // Behind the verdict, which does not wait for it.
        if (meta.choose_again == 1)                                         prefer.apply(meta);

        // A SYN passes twice. What is decided of it here is for its second pass; what holds now, the parser has brought. So nobody
        // waits for the limits.
        if (all.limited != Limited.no)                                      sampling.apply(meta);
        if (all.limited == Limited.as_service)                              admission.apply(meta, all.next);
        if (all.limited != Limited.no)                                      destinations.apply(meta, all.next);
        if (all.decided.undecided == 1 && meta.pinned == 1)                 count_now();
        if (all.decided.request == 1)                                       requests.apply(meta, all.decided);
        note.apply(all.next, all.notes);
    }
#undef meta
}

control SluiceEgress(inout headers_t hdr, inout egress_metadata_t all, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    // A controller is to find them by the names that they have on every target.
    @name(".SluiceIngress.tag")
    Tag() tag;
    @name(".SluiceIngress.ledger")
    Ledger() ledger;
    @name(".SluiceIngress.rates")
    Rates() rates;

    // By the hash units, as in ingress (intake).
    @hidden
    action widen_port() {
        @in_hash { all.sluice.verdict.egress_port = 7w0 ++ intrinsic.egress_port; }
    }

    apply {
        widen_port();
        tag.apply(hdr, all.sluice);
        ledger.apply(all.sluice);
        rates.apply(hdr, all.sluice);
    }
}

@pa_auto_init_metadata
@pkginfo(name = "sluice", version = "0.1.0")
Pipeline(SluiceIngressParser(), SluiceIngress(), SluiceIngressDeparser(),
         SluiceEgressParser(), SluiceEgress(), SluiceEgressDeparser()) pipe;

@pkginfo(name = "sluice", version = "0.1.0")
Switch(pipe) main;
