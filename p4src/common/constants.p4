// Named numbers other than ids (ids.p4) and sizes (sizes.p4). tools/gen_names.py copies the numbers into Python. This file
// includes no file of a target (v1model, Tofino).
#ifndef SLUICE_COMMON_CONSTANTS_P4
#define SLUICE_COMMON_CONSTANTS_P4

// State of a pinned connection (a connection that has a slot in the connection table). docs/reference/pipeline.md states the
// time-out of each state. A connection in a state whose number is below server_closing counts in its server's load. Tofino uses
// only four of the states: pending, answered, established and closed. There, any FIN or RST of the server leads to closed.
enum bit<8> PinState {
    pending        = 0,        // the client's SYN has passed
    answered       = 1,        // the server's SYN-ACK has passed
    established    = 2,        // the ACK that ends the handshake has passed
    reopening      = 3,        // another SYN has passed after the handshake
    client_closing = 4,        // the client's FIN has passed
    server_closing = 5,        // the server's FIN has passed
    client_reset   = 6,        // the client's RST has passed, and the server has sent no packet since then
    closed         = 7,        // both FINs have passed, or the server's FIN and then the client's RST, or an agent's RST
    reset          = 8         // the server's RST has passed
}

// The device that translates the packets of a content connection (a connection whose server is chosen by the request's content).
enum bit<8> Turn {
    agent   = 0,     // the connection's agent: the switch sends the packets of client and server to the agent
    spliced = 1,     // the switch itself, between client and server
    guessed = 2      // the switch; an agent first reads the client's payload, to check the server, which was chosen beforehand
}

// What a content service stores about a client for the client's next connections.
enum bit<8> Remember {
    nothing = 0,
    guess   = 1,     // the client's last server, which gets the next connection; an agent checks that connection's first request
    client  = 2      // the client's server: all connections of the client go to this server without an agent
}

// The generation number of a content service's rules if the service has no agent. A client's SYN then occupies a slot of the
// connection table for the server that is drawn by capacity. The switch translates the connection from the start, and no agent
// reads its requests.
const bit<8> UNREAD = 0;

// State of the switch's attempt to close an idle connection.
enum bit<8> ClosingStatus {
    open    = 0,               // the switch makes no attempt to close the connection
    probing = 1,               // the server was sent a tickle less than PROBE_TIME ago; after PROBE_TIME the value means open
    closed  = 2,               // the switch has sent a RST to the server and a FIN to the client
    raced   = 3                // the connection is closed, and payload of the client arrived afterwards
}

// Status of a splice order (an agent's request that the switch translate a connection), in the confirmation to the agent.
enum bit<8> SpliceStatus {
    ordered       = 0,         // value in the agent's order, which the switch has not yet processed
    applied       = 1,         // the switch has carried out the order
    no_connection = 2,         // the connection is not in the connection table
    not_yours     = 3          // the connection belongs to another agent, or no agent is behind the ingress port
}
const bit<8> ORDER_SPLICE = 1; // the only operation of a splice order
const bit<8> LARGEST_SCALE = 14; // largest window scale (RFC 7323, section 2.3)

// Microseconds in a tick, the unit of time in the connection table (v1model; on Tofino a tick is 2^26 ns). A time in ticks is the
// 48-bit microsecond clock without its low 16 bits, plus TICK_BASE.
@noWarn("unused")                 // only the controller uses this constant
const bit<32> TICK_US   = 65536;
// Ticks (12.7 days) that are added to the clock. BMv2's clock starts at 0; with this sum, the time 0 in an empty cell is always
// longer ago than any time-out.
const bit<32> TICK_BASE = 0x01000000;

// Ticks (0.98 s) after a tickle within which the switch uses the server's answer. A tickle is an ACK with impossible
// sequence numbers, which the server answers by an ACK with its own numbers (closing.p4).
const bit<32> PROBE_TIME = 15;

// Microseconds in the unit of time of response rates (v1model; on Tofino the unit is 2^20 ns). Such a time consists of bits 10 to
// 41 of the microsecond clock, plus TICK_BASE.
@noWarn("unused")                 // only the controller uses this constant
const bit<32> RATE_TICK_US = 1024;

const bit<16> CPU_PORT  = 510; // the port to the controller: value of BMv2's option --cpu-port
const bit<16> INTO_PIPELINE = 0xffff; // egress port in a packet_out whose frame passes the pipeline instead of leaving by a port
const bit<32> CLOSE_SESSION = 1;      // clone session whose copies pass ingress once more; the session's egress port is not used
const bit<32> CLONE_OF_RECEIVED = 1;  // v1model's instance_type of a clone from ingress to egress
const bit<32> RESUBMITTED = 6;        // v1model's instance_type of a packet that was resubmitted to ingress

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_SPLICE  = 0x88b5; // EtherType of splice orders; IEEE 802, clause 9.2.4, reserves it for experiments
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
