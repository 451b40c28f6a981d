// Caps: bounds the windows that a client and a managed server advertise to each other (after He et al., AC/DC TCP, section 3.3).
//
//     client                              switch                              server
//       | window ----> edge = max(edge, ack + min(window, send cap)) --------->|
//       |<-------- edge = max(edge, ack + min(window, receive cap)) <-- window |
//
//   reads  place, way, path, event, pinned, claimed, state, next_state, pass, payload, options, resources, tcp
//          respliced: words that splice changed
//   writes tcp.window, respliced
//          the cells of cap_*, the cells of send_cap and receive_cap
//
// The switch forwards a window that ends at the edge, so an offered window never shrinks by more than 2^scale - 1 bytes, unless
// the endpoint shrinks it. A changed cap takes effect when an acknowledgement advances, so that duplicate ACKs remain equal.
// Windows are capped from the ACK that ends the handshake, the first segment whose scale is known. A SYN in an established
// connection, which any host can send, changes nothing; a SYN-ACK that answers this SYN ends the caps. If the stored numbers are
// outdated, because data passed while the server had no caps, the switch learns the numbers again from the server's segments.
#ifndef SLUICE_V1MODEL_CAPS_P4
#define SLUICE_V1MODEL_CAPS_P4

#include "flow_index.p4"
#include "words.p4"
#include "cap_cells.p4"

control Caps(inout headers_t hdr, inout metadata_t meta, in place_t place) {
    @id(REGISTER_CAP_AGREED)
    register<cap_agreed_t>(SPLICES) cap_agreed;
    @id(REGISTER_CAP_CLIENT)
    register<cap_numbers_t>(SPLICES) cap_client;
    @id(REGISTER_CAP_SERVER)
    register<cap_numbers_t>(SPLICES) cap_server;
    @id(REGISTER_CAP_OFFERED_SERVER)
    register<cap_offer_t>(SPLICES) cap_offered_server;
    @id(REGISTER_CAP_OFFERED_CLIENT)
    register<cap_offer_t>(SPLICES) cap_offered_client;
    @id(REGISTER_SEND_CAP)
    register<own_cap_t>(SPLICES) send_cap;
    @id(REGISTER_RECEIVE_CAP)
    register<own_cap_t>(SPLICES) receive_cap;

    bit<32> index;
    cap_agreed_t agreed;
    window_facts_t facts;         // the parameters that the packet's sender announced
    cap_numbers_t own;
    cap_numbers_t peer;
    cap_offer_t offer;
    own_cap_t own_cap;
    ack_t ack;

    // Handles the SYN-ACK of the stored SYN. If one side announces no scale, the windows of both sides are unscaled (RFC 7323,
    // section 1.3). Only the SYN-ACK decides whether the connection is signed, because an end that signs accepts no unsigned
    // answer. If the SYN decided, a client could evade the cap by an option.
    #define CAPS_AGREE \
        if (meta.options.authenticated == 1 || (meta.state > PinState.answered && meta.next_state == PinState.answered)) { \
            agreed = 0;                /* no caps: the connection is signed, or its SYN was not stored */ \
        } else if (agreed[AGREED_STATE] == CAP_ASKED && agreed[ASKED_NUMBER] == (hdr.tcp.acknowledgement - 1)[15:0]) { \
            bit<4> client_scale = 0; \
            bit<4> server_scale = 0; \
            if (agreed[ASKED_SCALE] != 0 && meta.options.scale != 0) { \
                client_scale = (agreed[ASKED_SCALE] - 1)[3:0]; \
                server_scale = (meta.options.scale - 1)[3:0]; \
            } \
            bit<32> number = hdr.tcp.sequence + 1 + (bit<32>)agreed[ASKED_WINDOW]; \
            cap_offered_server.write(index, NO_CAP ++ number); \
            number = hdr.tcp.acknowledgement + (bit<32>)hdr.tcp.window; \
            cap_offered_client.write(index, NO_CAP ++ number); \
            number = hdr.tcp.sequence + 1 + (bit<32>)meta.payload; \
            cap_server.write(index, number ++ hdr.tcp.acknowledgement[30:0]); \
            cap_client.write(index, hdr.tcp.acknowledgement ++ hdr.tcp.sequence[30:0]); \
            bit<20> floor = least_cap(meta.options.mss); \
            if (agreed[ASKED_FLOOR] < floor) { \
                floor = agreed[ASKED_FLOOR]; \
            } \
            agreed = CAP_AGREED ++ 13w0 ++ floor ++ client_scale ++ floor ++ server_scale; \
        }

    // Handles a segment by the sender's numbers (own_side), the peer's numbers (peer_side), the offered window that bounds the
    // segment (bounding), and the window that the segment offers (made). `caps`: the register of individual caps on the sender's
    // windows. `side`: the bits of `agreed` with the sender's parameters.
    #define CAPS_SEGMENT(own_side, peer_side, bounding, made, caps, side, is_server) \
        facts = agreed[side]; \
        peer_side.read(peer, index); \
        bounding.read(offer, index); \
        own_side.read(own, index); \
        bit<1> is_lost = 0; \
        if (!is_misfit(end, hdr.tcp.acknowledgement, own, peer, offer)) { \
            if (agreed[AGREED_MISFITS] != 0) { \
                agreed[AGREED_MISFITS] = 0; \
                cap_agreed.write(index, agreed); \
            } \
        } else if (is_server) { \
            agreed[AGREED_MISFITS] = agreed[AGREED_MISFITS] + 1; \
            if (agreed[AGREED_MISFITS] == LEARN_AFTER) { \
                agreed[AGREED_MISFITS] = 0; \
                is_lost = 1; \
                learn_again(hdr.tcp.sequence, end, hdr.tcp.acknowledgement, own, peer, offer); \
                peer_side.write(index, peer); \
                bounding.write(index, offer); \
            } \
            cap_agreed.write(index, agreed); \
        } \
        step_numbers(end, offer[OFFER_EDGE], hdr.tcp.acknowledgement, peer[NUMBERS_NEXT], own, ack); \
        own_side.write(index, own); \
        bit<32> cap = meta.resources.caps; \
        if (ack.advances == 1) { \
            caps.read(own_cap, index); \
            if (own_cap[OWN_CAP_FINGERPRINT] == place.fingerprint && own_cap[OWN_CAP_BYTES] != 0) { \
                cap = own_cap[OWN_CAP_BYTES]; \
            } \
            cap_in_effect(facts, cap); \
        } \
        made.read(offer, index); \
        if (is_lost == 1) { \
            offer[OFFER_CAP] = 0; \
        } \
        step_offer(ack, cap[30:0], hdr.tcp.acknowledgement, hdr.tcp.window, facts[FACTS_SCALE], offer); \
        made.write(index, offer);

    apply {
        bool managed = (meta.resources.send_cap | meta.resources.receive_cap) != 0;
        if (managed || meta.claimed == 1 || meta.pass == Pass.move) {
            index = flow_index(meta.way, place.slot_1, place.slot_2);
            if (meta.claimed == 1 || meta.pass == Pass.move || (meta.event == Event.syn && meta.state <= PinState.answered)) {
                // The slot belongs to another connection, the pin names another server, or a SYN begins the handshake again.
                agreed = 0;
                if (managed && meta.event == Event.syn) {
                    agreed = CAP_ASKED ++ hdr.tcp.sequence[15:0] ++ hdr.tcp.window ++ 4w0 ++ least_cap(meta.options.mss) ++ meta.options.scale;
                }
                cap_agreed.write(index, agreed);
                if (managed && meta.claimed == 1) {
                    send_cap.write(index, 0);
                    receive_cap.write(index, 0);
                }
            } else if (meta.pinned == 1 && hdr.tcp.isValid() && hdr.tcp.ack == 1 && hdr.tcp.rst == 0) {
                cap_agreed.read(agreed, index);
                if (hdr.tcp.syn == 1) {
                    if (meta.event == Event.syn_ack && meta.path == Path.from_server) {
                        CAPS_AGREE
                        cap_agreed.write(index, agreed);
                    }
                } else if (agreed[AGREED_STATE] == CAP_AGREED) {
                    bit<32> end = hdr.tcp.sequence + (bit<32>)meta.payload + (bit<32>)hdr.tcp.fin;
                    if (meta.path == Path.to_service) {
                        CAPS_SEGMENT(cap_client, cap_server, cap_offered_client, cap_offered_server, send_cap, AGREED_CLIENT, false)
                    } else {
                        CAPS_SEGMENT(cap_server, cap_client, cap_offered_server, cap_offered_client, receive_cap, AGREED_SERVER, true)
                    }
                    if (ack.known == 1) {
                        bit<32> remaining = offer[OFFER_EDGE] - hdr.tcp.acknowledgement + ((32w1 << facts[FACTS_SCALE]) - 1);
                        remaining = remaining >> facts[FACTS_SCALE];
                        if (remaining < (bit<32>)hdr.tcp.window) {
                            // The new window is at least 1: the edge is beyond the acknowledgement, because the window was open.
                            meta.respliced = meta.respliced + word_change(hdr.tcp.window, remaining[15:0]);
                            hdr.tcp.window = remaining[15:0];
                        }
                    }
                }
            }
        }
    }
}

#endif
