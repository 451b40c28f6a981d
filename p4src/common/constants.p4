// Numbers with a name, but for ids (ids.p4) and sizes (sizes.p4). tools/gen_names.py carries them into Python. No target include.
#ifndef SLUICE_COMMON_CONSTANTS_P4
#define SLUICE_COMMON_CONSTANTS_P4

// State of a pinned connection, and how long its slot is kept without a packet that counts: docs/reference/pipeline.md. Below server_closing it
// is open. Tofino knows pending, answered, established and closed.
enum bit<8> PinState {
    pending        = 0,        // SYN seen
    answered       = 1,        // SYN-ACK seen
    established    = 2,        // the handshake's last ACK seen
    reopening      = 3,        // then another SYN
    client_closing = 4,        // the client's FIN seen
    server_closing = 5,        // the server's FIN seen
    client_reset   = 6,        // the client's RST seen, and nothing of the server since
    closed         = 7,        // FINs of both seen, the client's RST behind the server's FIN, or an agent's RST
    reset          = 8         // the server's RST seen
}

// Who translates a content connection.
enum bit<8> Turn {
    agent   = 0,     // its agent: packets of both sides go there
    spliced = 1,     // the switch
    guessed = 2      // nobody; but the client's payload goes to an agent, which is to say whether the guess was right
}

// What a content service remembers of a client.
enum bit<8> Remember {
    nothing = 0,
    guess   = 1,     // its last server: the next connection goes there, and an agent looks at its first request
    client  = 2      // its server: all its connections go there
}

// In place of the generation of a content service's rules: it has no agent, and a client's SYN claims its slot as spliced, for a server of
// the service's stable choice. Nothing reads its requests.
const bit<8> UNREAD = 0;

// Whether the switch is closing an idle connection.
enum bit<8> ClosingStatus {
    open    = 0,
    probing = 1,               // a tickle is on its way, unless that was too long ago
    closed  = 2,               // RST and FIN were sent
    raced   = 3                // and payload of the client's came afterwards
}

// What a splice order is answered.
enum bit<8> SpliceStatus {
    ordered       = 0,         // not yet
    applied       = 1,
    no_connection = 2,         // no slot has it
    not_yours     = 3          // another agent has it, or the port has no agent
}
const bit<8> ORDER_SPLICE = 1; // the only operation
const bit<8> LARGEST_SCALE = 14; // of a window (RFC 7323, section 2.3)

// Time in the connection table: ticks of 65.536 ms, a 48-bit microsecond clock without its low 16 bits.
@noWarn("unused")                 // used by the controller alone
const bit<32> TICK_US   = 65536;
// Added to the clock so that a zeroed cell is older than any idle time (BMv2's clock starts at 0): 12.7 days.
const bit<32> TICK_BASE = 0x01000000;

// Ticks that a tickle waits for its answer: 0.98 s.
const bit<32> PROBE_TIME = 15;

// Time in the response rates: a 48-bit microsecond clock without its low 10 bits, plus TICK_BASE. 32 bits of it last 50 days.
@noWarn("unused")                 // used by the controller alone
const bit<32> RATE_TICK_US = 1024;

const bit<16> CPU_PORT  = 510; // the controller's port, as --cpu-port of the switch
const bit<16> INTO_PIPELINE = 0xffff; // as egress port of a packet of the controller's: through the pipeline
const bit<32> CLOSE_SESSION = 1;      // the clone session whose copies pass once more; its port is of no use
const bit<32> CLONE_OF_RECEIVED = 1;  // v1model's instance_type of a clone from ingress to egress
const bit<32> RESUBMITTED = 6;        // and of a packet that passes ingress again

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_SPLICE  = 0x88b5; // for local experiments (IEEE 802, clause 9.2.4)
const bit<16> ETHERTYPE_GUESSED = 0x88b6;

const bit<8> PROTOCOL_ICMP = 1;
const bit<8> PROTOCOL_TCP  = 6;
const bit<8> PROTOCOL_UDP  = 17;

const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY   = 2;

const bit<8> ICMP_ECHO_REPLY        = 0;
const bit<8> ICMP_UNREACHABLE       = 3;
const bit<8> ICMP_ECHO              = 8;
const bit<8> ICMP_TIME_EXCEEDED     = 11;
const bit<8> ICMP_PARAMETER_PROBLEM = 12;

const bit<8> ECHO_TTL  = 64;
const bit<8> RESET_TTL = 64;

#endif
