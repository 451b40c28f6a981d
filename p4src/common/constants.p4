// Named numbers other than ids (ids.p4) and sizes (sizes.p4). tools/gen_names.py copies them into Python. This file includes
// nothing of a target.
#ifndef SLUICE_COMMON_CONSTANTS_P4
#define SLUICE_COMMON_CONSTANTS_P4

// State of a pinned connection. docs/reference/pipeline.md has how long each state keeps its slot after the last packet that
// counts. A state below server_closing counts for the server's load. Tofino has only pending, answered, established and closed.
enum bit<8> PinState {
    pending        = 0,        // the client's SYN has passed
    answered       = 1,        // the server's SYN-ACK has passed
    established    = 2,        // the ACK that ends the handshake has passed
    reopening      = 3,        // another SYN has passed after the handshake
    client_closing = 4,        // the client's FIN has passed
    server_closing = 5,        // the server's FIN has passed
    client_reset   = 6,        // the client's RST has passed, and no packet of the server since
    closed         = 7,        // both FINs have passed, or the client's RST after the server's FIN, or an agent's RST
    reset          = 8         // the server's RST has passed
}

// Which device translates a content connection.
enum bit<8> Turn {
    agent   = 0,     // the connection's agent, to which packets of both sides go
    spliced = 1,     // the switch translates between client and server
    guessed = 2      // the server was chosen before any request; an agent reads the client's payload, and decides whether that was right
}

// What a content service remembers of a client.
enum bit<8> Remember {
    nothing = 0,
    guess   = 1,     // the client's last server: its next connection goes there, and an agent checks the first request
    client  = 2      // the client's server: all its connections go there without an agent
}

// Stands in place of the generation of a content service's rules where the service has no agent. A client's SYN then claims its
// slot as spliced, for the server of the stable choice, and no agent reads its requests.
const bit<8> UNREAD = 0;

// State of the switch's attempt to close an idle connection.
enum bit<8> ClosingStatus {
    open    = 0,               // no attempt is under way
    probing = 1,               // a tickle was sent less than PROBE_TIME ago; after that the value means the same as open
    closed  = 2,               // RST was sent to the server and FIN to the client
    raced   = 3                // closed, and payload of the client arrived afterwards
}

// Status of a splice order, in the confirmation that the agent receives.
enum bit<8> SpliceStatus {
    ordered       = 0,         // the value in the order itself, before the switch has processed it
    applied       = 1,         // the order is carried out
    no_connection = 2,         // no slot holds the connection
    not_yours     = 3          // another agent holds the connection, or the port has no agent
}
const bit<8> ORDER_SPLICE = 1; // the only operation of a splice order
const bit<8> LARGEST_SCALE = 14; // largest window scale (RFC 7323, section 2.3)

// Time in the connection table: ticks of 65.536 ms, a 48-bit microsecond clock without its low 16 bits.
@noWarn("unused")                 // used by the controller alone
const bit<32> TICK_US   = 65536;
// Added to the clock so that a zeroed cell is older than any idle time, since BMv2's clock starts at 0: 12.7 days.
const bit<32> TICK_BASE = 0x01000000;

// Ticks after a tickle (an ACK with impossible numbers, see closing.p4) within which the server's answer to it is used: 0.98 s.
const bit<32> PROBE_TIME = 15;

// Time in the response rates: a 48-bit microsecond clock without its low 10 bits, plus TICK_BASE. Its 32 bits wrap after 50 days.
@noWarn("unused")                 // used by the controller alone
const bit<32> RATE_TICK_US = 1024;

const bit<16> CPU_PORT  = 510; // the controller's port: the switch's option --cpu-port
const bit<16> INTO_PIPELINE = 0xffff; // egress port in a packet_out that sends the frame through the pipeline instead of to a port
const bit<32> CLOSE_SESSION = 1;      // the clone session whose copies pass ingress once more; its egress port is not used
const bit<32> CLONE_OF_RECEIVED = 1;  // v1model's instance_type of a clone from ingress to egress
const bit<32> RESUBMITTED = 6;        // v1model's instance_type of a packet that was resubmitted to ingress

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_SPLICE  = 0x88b5; // EtherType of splice orders: reserved for local experiments (IEEE 802, clause 9.2.4)
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
