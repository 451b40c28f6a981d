// Cells of the caps, and the functions that update the cells. A cell has at most 63 bits, because Thrift transmits signed 64-bit
// values.
#ifndef SLUICE_V1MODEL_CAP_CELLS_P4
#define SLUICE_V1MODEL_CAP_CELLS_P4

// Window scales and segment sizes that both ends announce in the handshake. All bits are 0 if the switch has not seen a
// handshake, or if the connection has no caps.
typedef bit<63> cap_agreed_t;
#define AGREED_STATE 62:61
const bit<2> CAP_ASKED  = 1;           // a SYN has passed
const bit<2> CAP_AGREED = 2;           // the SYN-ACK of this SYN has passed as well

// After a SYN: the low bits of its sequence number, its window, four times its MSS, and its scale as in options_t.
#define ASKED_NUMBER 60:45
#define ASKED_WINDOW 44:29
#define ASKED_FLOOR 24:5
#define ASKED_SCALE 4:0

// After SYN and SYN-ACK: the number of consecutive segments of the server that do not fit the stored numbers, and the window
// parameters that each side announced.
#define AGREED_MISFITS 60:48
#define AGREED_CLIENT 47:24
#define AGREED_SERVER 23:0
typedef bit<24> window_facts_t;
#define FACTS_FLOOR 23:4               // the least cap: four segments of the smaller of the two segment sizes
#define FACTS_SCALE 3:0

// Sequence numbers of one side. 31 bits suffice to compare acknowledgements, because windows are below 2^30.
typedef bit<63> cap_numbers_t;
#define NUMBERS_NEXT 62:31             // right edge (end of the sequence numbers) of what the side sent
#define NUMBERS_ACKED 30:0             // latest acknowledgement that the side sent

// The window that one side was offered.
typedef bit<63> cap_offer_t;
#define OFFER_CAP 62:32                // cap in effect, in bytes; 0: the offered window is unknown until the next window is
                                       // announced
#define OFFER_EDGE 31:0                // right edge of the window
const bit<31> NO_CAP = 0x7fffffff;

// Number of consecutive segments of a server that do not fit the stored numbers, after which the switch learns the numbers again,
// because data has passed while the server had no caps. (A client's segments are not counted, because any host can forge them.)
const bit<13> LEARN_AFTER = 16;

// Number of bytes by which a segment may end beyond the offered window, because a receiver may accept such a segment, for example
// the one byte of a window probe.
const bit<32> BEYOND_OFFER = 0x10000;

// A cap that the controller sets for a single connection.
typedef bit<(FINGERPRINT_BITS + 32)> own_cap_t;
#define OWN_CAP_FINGERPRINT FINGERPRINT_BITS + 31:32
#define OWN_CAP_BYTES 31:0             // 0: the connection has no individual cap

// Returns the least cap in bytes: four segments.
bit<20> least_cap(in bit<16> mss) {
    return (bit<20>)mss << 2;
}

// Comparison of an acknowledgement with the connection's earlier acknowledgements.
struct ack_t {
    bit<1> known;                      // the acknowledgement covers only data that was sent
    bit<1> old;                        // the acknowledgement is below an earlier acknowledgement
    bit<1> advances;                   // the acknowledgement is above all earlier acknowledgements
}

// Updates the numbers of a segment's sender: the right edge, if the segment ends at most BEYOND_OFFER bytes after the offered
// window, and the acknowledgement, if it covers only data that the peer sent.
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

// Returns whether a segment's numbers do not fit the stored numbers of its connection: the segment ends more than BEYOND_OFFER
// bytes after the offered window or more than 1 GB below the stored right edge, or it acknowledges data that the peer has not
// sent (or sent more than 1 GB ago).
bool is_misfit(in bit<32> end, in bit<32> acknowledgement, in cap_numbers_t own, in cap_numbers_t peer, in cap_offer_t bounding) {
    bit<32> most = bounding[OFFER_EDGE] + BEYOND_OFFER - own[NUMBERS_NEXT];
    bit<32> unacknowledged = peer[NUMBERS_NEXT] - acknowledgement;
    return end - own[NUMBERS_NEXT] + (1 << 30) > most + (1 << 30) || unacknowledged[31:30] != 0;
}

// Copies both sides' numbers from a server's segment, and marks the window offered to the server as unknown, so that the client's
// next window passes unchanged. The caller does the same with the window offered to the client.
void learn_again(in bit<32> sequence, in bit<32> end, in bit<32> acknowledgement, out cap_numbers_t own, out cap_numbers_t peer,
                 out cap_offer_t bounding) {
    own = end ++ acknowledgement[30:0];
    peer = acknowledgement ++ sequence[30:0];
    bounding = 31w0 ++ end;
}

// Raises a cap that is below the least cap to the least cap. A cap of 0 (which means no cap) or above NO_CAP becomes NO_CAP.
void cap_in_effect(in window_facts_t facts, inout bit<32> cap) {
    if (cap == 0 || cap > (bit<32>)NO_CAP) {
        cap = (bit<32>)NO_CAP;
    } else if (cap < (bit<32>)facts[FACTS_FLOOR]) {
        cap = (bit<32>)facts[FACTS_FLOOR];
    }
}

// Moves the right edge of the window that the peer was offered to the end of a new window, bounded by the cap in effect. The edge
// never moves back, and `cap` takes effect only when the acknowledgement advances. If the offered window was unknown, the new
// window is stored without a cap; otherwise an old acknowledgement changes nothing.
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
