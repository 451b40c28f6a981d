// Resource path: applies the stages that manage a server's TCP resources to a packet of a connection that has a slot
// and no content switching.
//
//   reads  has_slot, content, next_pass, claimed, pass, path, tickle, drop
//          what resources, closing, transfers and caps read
//   writes what resources, closing and caps write
//   drops  what closing drops; not_idle: a tickle whose connection is not idle, is unknown or may not be closed
#ifndef SLUICE_V1MODEL_RESOURCE_PATH_P4
#define SLUICE_V1MODEL_RESOURCE_PATH_P4

#include "resources.p4"
#include "closing.p4"
#include "transfers.p4"
#include "caps.p4"

control ResourcePath(inout headers_t hdr, inout metadata_t meta, in place_t place, inout verdict_t outcome, in bit<48> now) {
    @name(".SluiceIngress.resources")
    Resources() resources;
    @name(".SluiceIngress.closing")
    Closing() closing;
    @name(".SluiceIngress.transfers")
    Transfers() transfers;
    @name(".SluiceIngress.caps")
    Caps() caps;

    apply {
        if (meta.has_slot == 1 && meta.content == Content.none && outcome.drop == DropReason.none && meta.next_pass == Pass.first) {
            resources.apply(meta);
            if (meta.resources.closed == 1 || meta.claimed == 1 || meta.pass == Pass.move) {
                closing.apply(hdr, meta, place, outcome);
            }
            if (outcome.drop == DropReason.none && meta.path != Path.done) {
                if (meta.resources.measured == 1)                           transfers.apply(hdr, meta, place, now);
                caps.apply(hdr, meta, place);
            }
        }
        if (hdr.tickle.isValid() && outcome.drop == DropReason.none)        outcome.drop = DropReason.not_idle;
    }
}

#endif
