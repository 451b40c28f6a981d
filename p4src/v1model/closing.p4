// Closing: closes an idle connection of a server in the name of client and server (Azuma, Okamoto, Hasegawa & Murata, E-ATBT).
//
//   reads  place, way, path, pass, event, payload, pinned, claimed, state, server, connection, now, tickle, tcp, kept_options
//          flow, router_mac, ingress_port, ethernet.src: for a packet that goes back to its sender
//   writes tickle, path, pass, next_pass, event
//          ethernet, ipv4, ipv4_options, tcp, kept_options, reset, egress_port: of a packet that goes back to its sender as a RST or FIN
//          the cells of closing_*
//   drops  closed, closed_reset, closed_again
//
// The controller first sends a tickle (a term of the software ctdb): an ACK with impossible numbers in the client's name, which a
// host answers with its own numbers (RFC 9293, section 3.10.7.4). The switch turns the answer into a RST with exactly the number
// that the server expects (RFC 5961). In a further pass, a clone of the answer becomes the server's FIN; its numbers and
// timestamps need no change. RST and FIN may get lost. So the switch answers later packets of the server by a RST, and later
// packets of a client that lacks the FIN by the FIN again. This repetition takes a further pass, in which timestamps are parsed.
#ifndef SLUICE_V1MODEL_CLOSING_P4
#define SLUICE_V1MODEL_CLOSING_P4

#include <externs/count_registers.p4>
#include "closing_cells.p4"

// Turns the packet into an ACK to its sender with the acknowledgement number `acknowledged`. Bytes after the TCP header remain in
// the frame, as a trailer that hosts ignore.
control TurnRound(inout headers_t hdr, inout metadata_t meta, in bit<32> acknowledged, inout verdict_t verdict) {
    apply {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        hdr.ipv4_options.setInvalid();
        hdr.ipv4.ihl = 5;
        hdr.ipv4.total_length = 40;
        hdr.ipv4.more_fragments = 0;
        hdr.ipv4.ttl = RESET_TTL;
        hdr.ipv4.src = meta.flow.dst;
        hdr.ipv4.dst = meta.flow.src;
        hdr.tcp.src_port = meta.flow.dst_port;
        hdr.tcp.dst_port = meta.flow.src_port;
        hdr.tcp.sequence = hdr.tcp.acknowledgement;
        hdr.tcp.acknowledgement = acknowledged;
        hdr.tcp.data_offset = 5;
        hdr.tcp.reserved = 0;
        hdr.tcp.cwr = 0;
        hdr.tcp.ece = 0;
        hdr.tcp.urg = 0;
        hdr.tcp.ack = 1;
        hdr.tcp.psh = 0;
        hdr.tcp.rst = 0;
        hdr.tcp.syn = 0;
        hdr.tcp.fin = 0;
        hdr.tcp.window = 0;
        hdr.tcp.urgent = 0;
        verdict.egress_port = meta.ingress_port;
        meta.reset = 1;
    }
}

// Turns the packet into a RST to its sender.
control ResetSender(inout headers_t hdr, inout metadata_t meta, inout verdict_t verdict) {
    TurnRound() turn_round;

    apply {
        bit<32> acknowledged = hdr.tcp.sequence + (bit<32>)meta.payload + (bit<32>)hdr.tcp.fin;
        turn_round.apply(hdr, meta, acknowledged, verdict);
        hdr.tcp.rst = 1;
    }
}

// Turns a client's ACK into the repeated FIN of the server, or into an ACK if the client has acknowledged the FIN. The two
// timestamps are exchanged (RFC 7323, section 3.2), because a host may drop a segment without timestamps.
control SayAgain(inout headers_t hdr, inout metadata_t meta, in bit<32> client_number, in bit<1> lacks_fin, inout verdict_t verdict) {
    TurnRound() turn_round;

    apply {
        turn_round.apply(hdr, meta, client_number, verdict);
        hdr.tcp.fin = lacks_fin;
        hdr.tcp.window = 0xffff;                          // with a closed window, the client could not send its FIN
        if (hdr.kept_options.isValid()) {
            bit<32> echoed = hdr.kept_options.scale_lead ++ hdr.kept_options.scale;
            hdr.kept_options.scale_lead = hdr.kept_options.sack[31:8];
            hdr.kept_options.scale = hdr.kept_options.sack[7:0];
            hdr.kept_options.sack = echoed;
            hdr.tcp.data_offset = 8;
            hdr.ipv4.total_length = 52;
        }
    }
}

control Closing(inout headers_t hdr, inout metadata_t meta, in place_t place, inout verdict_t verdict) {
    ClosingCells() cells;
    ResetSender() reset_sender;
    SayAgain() say_again;

    COUNT_REGISTER(REGISTER_CLOSING_TAKEN, server_id_t, SERVERS, closing_taken)
    COUNT_REGISTER(REGISTER_CLOSING_TAKEN_BACK, server_id_t, SERVERS, closing_taken_back)
    COUNT_REGISTER(REGISTER_CLOSING_RACED, server_id_t, SERVERS, closing_raced)

    ClosingStep step;
    bit<32> client_number;
    bit<1> lacks_fin;

    apply {
        if (hdr.tcp.isValid() && (meta.pass != Pass.close || meta.path == Path.to_service)) {
            cells.apply(hdr, meta, place, step, client_number, lacks_fin);
            if (step == ClosingStep.probe) {
                hdr.tickle.setInvalid();
            } else if (step == ClosingStep.end) {
                meta.event = Event.none;              // the ledger must not count this RST, which follows from the closing
            } else if (step == ClosingStep.taken_back) {
                COUNT(closing_taken_back, meta.server)
            } else if (step == ClosingStep.hold) {
                verdict.drop = DropReason.closed;
            } else if (step == ClosingStep.say_again && meta.pass == Pass.first) {
                meta.next_pass = Pass.close;
            } else if (step == ClosingStep.say_again) {
                verdict.drop = DropReason.closed_again;
                say_again.apply(hdr, meta, client_number, lacks_fin, verdict);
            } else if (step >= ClosingStep.refuse && step <= ClosingStep.refuse_first) {
                verdict.drop = DropReason.closed_reset;
                if (step == ClosingStep.refuse_first) {
                    COUNT(closing_raced, meta.server)
                }
                reset_sender.apply(hdr, meta, verdict);
            } else if (step == ClosingStep.take) {
                COUNT(closing_taken, meta.server)
                meta.path = Path.done;
                meta.pass = Pass.close;               // pass of the clone, which passes ingress again
                clone_preserving_field_list(CloneType.I2E, CLOSE_SESSION, 1);
                reset_sender.apply(hdr, meta, verdict);
            }
        }
    }
}

#endif
