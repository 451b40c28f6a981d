// The cells of caps, and what segments do to them. At most 63 bits each, for Thrift carries signed 64-bit values.
#ifndef SLUICE_V1MODEL_CAP_CELLS_P4
#define SLUICE_V1MODEL_CAP_CELLS_P4

// Window scales and segment sizes that both ends announce in the handshake. Without one, or of a connection that is left alone, all is 0.
typedef bit<63> cap_agreed_t;
#define AGREED_STATE 62:61
const bit<2> CAP_ASKED  = 1;           // a SYN has been seen
const bit<2> CAP_AGREED = 2;           // and its SYN-ACK

// Of a SYN: its number's low bits, its window, four of its segments, and the scale as in options_t.
#define ASKED_NUMBER 60:45
#define ASKED_WINDOW 44:29
#define ASKED_FLOOR 24:5
#define ASKED_SCALE 4:0

// Of both: segments of the server's in a row that do not fit, and what was said of each side's windows.
#define AGREED_MISFITS 60:48
#define AGREED_CLIENT 47:24
#define AGREED_SERVER 23:0
typedef bit<24> window_facts_t;
#define FACTS_FLOOR 23:4               // the least cap: four segments of the side that takes the smaller ones
#define FACTS_SCALE 3:0

// The numbers of one side. Windows are below 2^30, so that 31 bits tell its acknowledgements apart.
typedef bit<63> cap_numbers_t;
#define NUMBERS_NEXT 62:31             // right edge of what it sent
#define NUMBERS_ACKED 30:0             // its latest acknowledgement

// What one side was offered.
typedef bit<63> cap_offer_t;
#define OFFER_CAP 62:32                // in effect, in bytes; 0: what was offered is not known, the next window says it
#define OFFER_EDGE 31:0                // right edge
const bit<31> NO_CAP = 0x7fffffff;

// Where so many of a server's segments in a row do not fit, and none of its client's does, more has passed while its connections were not
// managed. (What is sent in a client's name is no proof: anybody can.)
const bit<13> LEARN_AFTER = 16;

// A receiver may take more than it offered, such as the byte of a window probe.
const bit<32> BEYOND_OFFER = 0x10000;

// A cap that the controller gave to one connection.
typedef bit<(FINGERPRINT_BITS + 32)> own_cap_t;
#define OWN_CAP_FINGERPRINT FINGERPRINT_BITS + 31:32
#define OWN_CAP_BYTES 31:0             // 0: none

// Four segments.
bit<20> least_cap(in bit<16> mss) {
    return (bit<20>)mss << 2;
}

// What an acknowledgement is to those before it.
struct ack_t {
    bit<1> known;                      // of what was sent
    bit<1> old;                        // below one that was seen
    bit<1> advances;
}

// A segment moves its sender's numbers: by data within what was offered, and by an acknowledgement of what the peer sent.
void step_numbers(in bit<32> end, in bit<32> offered, in bit<32> acknowledgement, in bit<32> sent, inout cap_numbers_t own, out ack_t ack) {
    if (later(end, own[NUMBERS_NEXT]) && !later(end, offered + BEYOND_OFFER)) {
        own[NUMBERS_NEXT] = end;
    }
    ack.known = 0;
    ack.old = 0;
    ack.advances = 0;
    bit<32> unacknowledged = sent - acknowledgement;
    bit<31> ahead = acknowledgement[30:0] - own[NUMBERS_ACKED];
    if (unacknowledged[31:30] == 0) {
        ack.known = 1;
        if (ahead[30:30] == 1) {
            ack.old = 1;
        } else if (ahead != 0) {
            ack.advances = 1;
            own[NUMBERS_ACKED] = acknowledgement[30:0];
        }
    }
}

// Whether a segment's numbers do not fit those that are known.
bool is_misfit(in bit<32> end, in bit<32> acknowledgement, in cap_numbers_t own, in cap_numbers_t peer, in cap_offer_t bounding) {
    bit<32> most = bounding[OFFER_EDGE] + BEYOND_OFFER - own[NUMBERS_NEXT];
    bit<32> unacknowledged = peer[NUMBERS_NEXT] - acknowledgement;
    return end - own[NUMBERS_NEXT] + (1 << 30) > most + (1 << 30) || unacknowledged[31:30] != 0;
}

// A server's word on both sides' numbers is taken. What was promised is not known either: both sides' next windows pass as they are.
void learn_again(in bit<32> sequence, in bit<32> end, in bit<32> acknowledgement, out cap_numbers_t own, out cap_numbers_t peer,
                 out cap_offer_t bounding) {
    own = end ++ acknowledgement[30:0];
    peer = acknowledgement ++ sequence[30:0];
    bounding = 31w0 ++ end;
}

// At least the least; 0 is none.
void cap_in_effect(in window_facts_t facts, inout bit<32> cap) {
    if (cap == 0 || cap > (bit<32>)NO_CAP) {
        cap = (bit<32>)NO_CAP;
    } else if (cap < (bit<32>)facts[FACTS_FLOOR]) {
        cap = (bit<32>)facts[FACTS_FLOOR];
    }
}

// A window moves the edge that the peer was offered, as far as the cap lets it. Whatever it says, an old one moves nothing.
void step_offer(in ack_t ack, in bit<31> cap, in bit<32> acknowledgement, in bit<16> window, in bit<4> scale, inout cap_offer_t offer) {
    bit<32> most = (bit<32>)window << scale;
    if (offer[OFFER_CAP] == 0 && ack.known == 1) {
        offer = NO_CAP ++ (acknowledgement + most);
    } else if (ack.advances == 1) {
        offer[OFFER_CAP] = cap;
    }
    if (most > (bit<32>)offer[OFFER_CAP]) {
        most = (bit<32>)offer[OFFER_CAP];
    }
    bit<32> edge = acknowledgement + most;
    if (ack.known == 1 && ack.old == 0 && later(edge, offer[OFFER_EDGE])) {
        offer[OFFER_EDGE] = edge;
    }
}

#endif
