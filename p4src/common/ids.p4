// Every number that a controller may know an object or a reason by, each given once. A new one takes the next free number of its
// range, and says so. tools/gen_names.py carries the reasons into Python, and the texts into docs/reference/contract.md. No target
// include.
//
// An id is the number below the prefix of its kind, which p4c adds. (Its back end for Tofino numbers externs itself: a controller
// finds them by name. A digest has the id that p4c makes of its name.)
#ifndef SLUICE_COMMON_IDS_P4
#define SLUICE_COMMON_IDS_P4

// Tables. Next free: 0x13
#define TABLE_PORTS         0x01   // what is known of an ingress port
#define TABLE_SERVICES      0x02   // services by their endpoints; servers' own endpoints are denied
#define TABLE_ORIGINS       0x03   // servers by their endpoints: whose answer a packet is
#define TABLE_OWNED         0x04   // addresses of the router and of services
#define TABLE_TIMERS        0x05   // how long a slot of the connection table is kept
#define TABLE_SERVERS       0x06   // where a server is, and whether it takes no new connections
#define TABLE_ROUTES        0x07   // next hops by destination
#define TABLE_NEIGHBOURS    0x08   // port and MAC addresses of a next hop
#define TABLE_EGRESS_VLAN   0x09   // what happens to the tag at an egress port
#define TABLE_CHOOSE        0x0a   // a server for a new connection, by the weights that R decides
#define TABLE_CHOOSE_STABLE 0x0b   // a server for packets without a pin, by capacity
#define TABLE_DESTINATIONS  0x0c   // destinations with counts and limits of their own
#define TABLE_RATE_SETTINGS 0x0d   // which responses are measured, and in what steps
#define TABLE_SAMPLING      0x0e   // the share of packets whose destinations are sampled
#define TABLE_CHOOSE_OTHER  0x0f   // the other servers of a second look
#define TABLE_AGENTS        0x10   // agents of content services by their ports (v1model)
#define TABLE_RESOURCES     0x11   // servers whose TCP resources are managed (v1model, Tofino 2)
#define TABLE_IDLE_MEMBERS  0x12   // servers that a second look may seek out because they are idle (v1model)

// Actions. Next free: 0x25
#define ACTION_SET_PORT             0x01
#define ACTION_UNKNOWN_PORT         0x02
#define ACTION_TO_SERVICE           0x03
#define ACTION_DENY_DIRECT          0x04
#define ACTION_FROM_SERVER          0x05
#define ACTION_NEITHER              0x06
#define ACTION_IS_OWNED             0x07
#define ACTION_NOT_OWNED            0x08
#define ACTION_SET_TIMERS           0x09
#define ACTION_TO_SERVER            0x0a
#define ACTION_UNKNOWN_SERVER       0x0b
#define ACTION_CONNECTED            0x0c
#define ACTION_VIA                  0x0d
#define ACTION_UNROUTABLE           0x0e
#define ACTION_SET_NEIGHBOUR        0x0f
#define ACTION_UNRESOLVED           0x10
#define ACTION_KEEP                 0x11
#define ACTION_SET_VLAN             0x12
#define ACTION_STRIP                0x13
#define ACTION_CHOOSE_SERVER        0x14
#define ACTION_CHOOSE_STABLE_SERVER 0x15
#define ACTION_LIMIT_DESTINATION    0x16
#define ACTION_UNLISTED             0x17
#define ACTION_SET_RATES            0x18
#define ACTION_SET_SAMPLING         0x19
#define ACTION_CHOOSE_OTHER_SERVER  0x1a
#define ACTION_TO_CONTENT           0x1b
#define ACTION_TO_GROUP             0x1c
#define ACTION_FROM_CONTENT         0x1d
#define ACTION_SET_AGENT            0x1e
#define ACTION_NO_AGENT             0x1f
#define ACTION_MANAGE               0x20
#define ACTION_UNMANAGED            0x21
#define ACTION_CHOOSE_OTHER_SERVERS 0x22
#define ACTION_SEEK_IDLE            0x23
#define ACTION_SEEK_NOBODY          0x24

// Action profiles. Next free: 0x04
#define PROFILE_RATIOS          0x01   // servers of each service, by the weights that R decides
#define PROFILE_CAPACITIES      0x02   // servers of each service, by capacity
#define PROFILE_OTHERS_BY_RATIO 0x03   // servers to draw the other one from

// Counters. Next free: 0x0b
#define COUNTER_OFFERED       0x01   // SYNs to each service
#define COUNTER_REFUSED       0x02   // of them, those that admission refused
#define COUNTER_CLAIMED       0x03   // connections of each service that were pinned
#define COUNTER_UNPINNED_NEW  0x04   // SYNs that found both ways taken
#define COUNTER_UNPINNED_MID  0x05   // any other packet without a pin
#define COUNTER_VERDICTS      0x06   // packets by their DropReason
#define COUNTER_PUNTS         0x07   // packets given to the controller, by their PuntReason
#define COUNTER_PUNTS_LIMITED 0x08   // packets kept from the controller: above the limit
#define COUNTER_MOVED         0x09   // connections of each service whose SYN, said again, went to another server than before (v1model)
#define COUNTER_DISOWNED      0x0a   // resets of each service's servers for connections that are not pinned to them (v1model)

// Meters. Next free: 0x05
#define METER_ADMISSION         0x01   // new connections of each service
#define METER_PUNT_LIMIT        0x02   // packets to the controller, by their PuntReason
#define METER_DESTINATION_LIMIT 0x03   // new connections towards each destination
#define METER_RETURNING_LIMIT   0x04   // beyond that, those of clients that were admitted before

// Registers of the connection table, 0x01 to 0x0f. Next free: 0x09
#define REGISTER_PIN_KEY_1     0x01   // way 1: fingerprint, state and time of a slot's connection
#define REGISTER_PIN_KEY_2     0x02   // way 2: the same
#define REGISTER_PIN_SERVER_1  0x03   // way 1: the server of a slot's connection
#define REGISTER_PIN_SERVER_2  0x04   // way 2: the same
#define REGISTER_PIN_STATE_1   0x05   // way 1: the PinState of a slot's connection, where it is not in the key
#define REGISTER_PIN_STATE_2   0x06   // way 2: the same
#define REGISTER_CANDIDATE_KEY 0x07   // whose handshake with a candidate a place holds, and until when
#define REGISTER_CANDIDATE_PIN 0x08   // its candidate, and the number that proves the handshake

// Registers of the ledger, 0x10 to 0x1f. Next free: 0x15
#define REGISTER_LEDGER_SYN          0x10   // SYNs forwarded to each server
#define REGISTER_LEDGER_SYNACK       0x11   // first SYN-ACKs of each server
#define REGISTER_LEDGER_SYNACK_AGAIN 0x12   // repeated SYN-ACKs of each server
#define REGISTER_LEDGER_COMPLETED    0x13   // handshakes that each server completed
#define REGISTER_LEDGER_RESET        0x14   // RSTs of each server

// Registers of requests and their clients, 0x20 to 0x27. Next free: 0x26
#define REGISTER_ADMITTED_CLIENTS   0x20   // fingerprint, and where one cell holds both the time, of a client that was admitted
#define REGISTER_REQUESTS_OFFERED   0x21   // requests to each destination
#define REGISTER_REQUESTS_ADMITTED  0x22   // connections to each destination that were admitted
#define REGISTER_REQUESTS_REFUSED   0x23   // of the requests, those refused
#define REGISTER_REQUESTS_RETURNING 0x24   // of those admitted, those of clients that were admitted before
#define REGISTER_ADMITTED_STAMPS    0x25   // the time of an admitted client, where it is not in the cell of its fingerprint

// Registers of response rates and samples, 0x28 to 0x2f. Next free: 0x2d
#define REGISTER_RATE_FLOW   0x28   // fingerprint and last time of a measured response
#define REGISTER_RATE_BYTES  0x29   // bytes in its window
#define REGISTER_SAMPLE_NEXT 0x2a   // destinations ever sampled
#define REGISTER_SAMPLE_RING 0x2b   // the latest of them
#define REGISTER_RATE_LAST   0x2c   // the step of a response's last packet

// Registers of the second look, 0x30 to 0x37. Next free: 0x36
#define REGISTER_LOAD_FIRST   0x30   // open connections of each server, as the first of two
#define REGISTER_LOAD_OTHER   0x31   // the same, as the other
#define REGISTER_STALE_FIRST  0x32   // of them, those that ended unseen; written by the controller
#define REGISTER_STALE_OTHER  0x33   // the same, as the other
#define REGISTER_LOAD_EVICTED 0x34   // connections of each server that lost their slot before their end
#define REGISTER_REFUSING_OTHER 0x35 // 1: each server's last answer to a SYN was a RST; as the other

// Registers of the draws, 0x38 to 0x3f. Next free: 0x39
#define REGISTER_DRAW_POINT 0x38   // the last point of each service's sequence

// Digests. Next free: 0x02
#define DIGEST_ARP_SENDER 0x01   // arp_sender_t: who sent an ARP, and where

// Resubmissions. Next free: 0x02
#define RESUBMIT_NEXT_PASS 0x01   // a SYN, with what its pass has decided (Tofino)

// Registers of content switching, 0x40 to 0x47. Next free: 0x46
#define REGISTER_SPLICE 0x40       // of a slot's connection: whose turn it is, its agent, and how numbers are translated (v1model)
#define REGISTER_REMEMBERED_CLIENTS 0x41 // servers of content services' clients, for their next connections (v1model)
#define REGISTER_SPLICE_TURN_1  0x42 // way 1: whose turn a slot's connection is, its agent, and the shift of its windows (Tofino)
#define REGISTER_SPLICE_TURN_2  0x43 // way 2: the same
#define REGISTER_SPLICE_VALUE_1 0x44 // way 1: the delta of a slot's connection, or the address of its agent (Tofino)
#define REGISTER_SPLICE_VALUE_2 0x45 // way 2: the same

// Registers of transfers, 0x48 to 0x57. Next free: 0x54
#define REGISTER_TRANSFER_OWNER    0x48   // whose transfer a slot measures (v1model, as are the others but for counts)
#define REGISTER_TRANSFER_EDGE     0x49   // largest segment, and right edge of what the server has sent
#define REGISTER_TRANSFER_ACKED    0x4a   // highest acknowledgement, and whether its window was closed
#define REGISTER_TRANSFER_ACTIVITY 0x4b   // time of the last packet
#define REGISTER_TRANSFER_PROBE    0x4c   // the segment whose round trip is being measured
#define REGISTER_TRANSFER_LEAST    0x4d   // least round trip
#define REGISTER_TRANSFER_RTT      0x4e   // sum and number of the round trips
#define REGISTER_TRANSFER_RECOVERY 0x4f   // up to where retransmissions belong to a loss event that was counted, or to a tail-loss probe
#define REGISTER_TRANSFER_LOSSES   0x50   // retransmissions, loss events, timeouts, tail-loss probes, holes (Tofino 2: retransmissions)
#define REGISTER_TRANSFER_SENT     0x51   // bytes and segments (Tofino 2: segments)
#define REGISTER_TRANSFER_FLIGHT   0x52   // largest flight of this interval and the one before
#define REGISTER_TRANSFER_HOLE     0x53   // the hole in what the server has sent: where and when it opened

// Registers of caps, 0x58 to 0x5f. Next free: 0x5f
#define REGISTER_CAP_AGREED 0x58       // window scales and segment sizes that both ends of a slot's connection announce in its handshake (v1model, Tofino 2)
#define REGISTER_CAP_CLIENT 0x59       // right edge of what its client sent, and the client's latest acknowledgement (v1model)
#define REGISTER_CAP_SERVER 0x5a       // the same of its server (v1model, Tofino 2)
#define REGISTER_CAP_OFFERED_SERVER 0x5b // right edge that its server was offered, and the cap in effect (v1model, Tofino 2)
#define REGISTER_CAP_OFFERED_CLIENT 0x5c // the same of its client (v1model, Tofino 2)
#define REGISTER_SEND_CAP 0x5d         // fingerprint and cap of what its server may send; written by the controller (v1model, Tofino 2)
#define REGISTER_RECEIVE_CAP 0x5e      // the same of what its server may be sent (v1model, Tofino 2)

// Registers of closing, 0x60 to 0x67. Next free: 0x68
#define REGISTER_CLOSING_SERVER_NEXT 0x60 // the next sequence number of a connection's server (v1model)
#define REGISTER_CLOSING_CLIENT_NEXT 0x61 // and of its client, by the server's word (v1model)
#define REGISTER_CLOSING_STATE 0x62  // who spoke last and when, what is acknowledged; whether it is being closed (Tofino 2: since when it is idle)
#define REGISTER_CLOSING_PEER 0x63   // client and server of a connection that became idle (Tofino 2: the address of any connection's client)
#define REGISTER_CLOSING_HINT 0x64   // connections that became idle, whose they are and since when (v1model)
#define REGISTER_CLOSING_TAKEN 0x65  // idle connections of each server that the switch closed (v1model, Tofino 2)
#define REGISTER_CLOSING_TAKEN_BACK 0x66 // tickles about each server's connections that payload took back (v1model)
#define REGISTER_CLOSING_RACED 0x67  // closed connections of each server whose client sent payload afterwards (v1model)

// Registers of the third and fourth look, 0x68 to 0x6f. Next free: 0x6e
#define REGISTER_LOAD_THIRD   0x68   // open connections of each server, as the third of four (v1model)
#define REGISTER_LOAD_FOURTH  0x69   // the same, as the fourth (v1model)
#define REGISTER_STALE_THIRD  0x6a   // of them, those that ended unseen; written by the controller (v1model)
#define REGISTER_STALE_FOURTH 0x6b   // the same, as the fourth (v1model)
#define REGISTER_REFUSING_THIRD 0x6c // 1: each server's last answer to a SYN was a RST; as the third (v1model)
#define REGISTER_REFUSING_FOURTH 0x6d // the same, as the fourth (v1model)

// Registers of idle servers, 0x70 to 0x77. Next free: 0x75
#define REGISTER_IDLE_ENDS         0x70 // head and tail of each service's queue of idle servers (v1model)
#define REGISTER_IDLE_QUEUE        0x71 // those servers (v1model)
#define REGISTER_IDLE_TICKET_FIRST 0x72 // each server's ticket of a queue, looked at of the first server drawn (v1model)
#define REGISTER_IDLE_TICKET_HEAD  0x73 // the same, looked at of the queue's head (v1model)
#define REGISTER_STALE_IDLE        0x74 // connections of each server that ended unseen; written by the controller (v1model)

// Further registers of closing, 0x78 to 0x7f. Next free: 0x7a
#define REGISTER_CLOSING_PAUSES 0x78 // responses of each server by the pause that was in them (v1model)
#define REGISTER_CLOSING_ORDER 0x79  // port of a slot's client, and the beginning of the idle time that the controller orders to end (Tofino 2)

// Registers of caps that only Tofino 2 has, 0x80 to 0x87. Next free: 0x85
#define REGISTER_CAP_ASKED 0x80        // window scale and segment size that the SYN of a slot's connection announces (Tofino 2)
#define REGISTER_CAP_ACKED_CLIENT 0x81 // its client's latest acknowledgement (Tofino 2)
#define REGISTER_CAP_ACKED_SERVER 0x82 // its server's (Tofino 2)
#define REGISTER_CAP_EFFECT_SERVER 0x83 // the cap in effect of what its server may send (Tofino 2)
#define REGISTER_CAP_EFFECT_CLIENT 0x84 // the same of its client (Tofino 2)

// Registers of stages to come, 0x88 to 0xff. Next free: 0x88

// Why a packet was dropped: an index of the counter `verdicts`. Next free: 33
enum bit<8> DropReason {
    none                 = 0,  // forwarded, answered or punted
    truncated            = 1,  // a header goes past the end of the frame
    unsupported          = 2,  // neither ARP nor IPv4 behind at most one 802.1Q tag, or an ARP that is not Ethernet/IPv4
    ipv4_header          = 3,  // version is not 4, or the header length is below 20 bytes; also of the packet inside an ICMP error
    ipv4_length          = 4,  // total length below the header's, or beyond the frame
    ipv4_checksum        = 5,  // header checksum is wrong
    fragment             = 6,  // a fragment other than the first: it has no ports
    l4_length            = 7,  // TCP data offset, UDP length or ICMP length impossible
    port_unknown         = 8,  // the ingress port is not configured
    not_for_us           = 9,  // the frame is neither to the router's MAC address nor an ARP to broadcast
    martian              = 10, // source or destination is of 0/8, 127/8 or 224/3, or the two are alike
    ttl_exceeded         = 11, // TTL ran out; the controller answers with ICMP time exceeded
    no_service           = 12, // to one of our addresses, but neither to a service nor an echo request
    direct_to_server     = 13, // past the service, to a server's own address and port
    admission_refused    = 14, // a new connection above its service's or its destination's rate
    no_server            = 15, // the service has no server to choose, or the place of its candidate is taken
    server_unknown       = 16, // pinned to a server that is no longer configured
    no_route             = 17, // no prefix matches the destination
    neighbour_unresolved = 18, // next hop has no MAC address yet; the controller asks for it, and then sends the packet
    arp_ignored          = 19, // an ARP that is neither a request for nor a reply to one of our addresses: only its sender is heard
    punt_limited         = 20, // an ARP reply to us above the limit of its reason: it is of no other use
    cpu_header           = 21, // from the controller, without a valid packet_out header
    admission_reset      = 22, // as admission_refused, and a reset was sent back
    source_mac           = 23, // the frame's source is a group address, which no station has (IEEE 802.3, 3.2.3)
    not_an_agent         = 24, // to a group of a content service, or a splice order, and the port has no agent of that service
    no_slot              = 25, // an agent's, without a slot: both ways are taken, or the connection has ended
    spliced              = 26, // an agent's, but the connection is spliced, or another agent has it
    unbound              = 27, // a content server's, but its connection has no slot, or is another server's now
    closed               = 28, // of a connection that the switch has closed: an ACK of its client's
    closed_reset         = 29, // the same, but payload of its client's, or anything late of its server's, and a reset was sent back
    not_idle             = 30, // a tickle, but its connection is not idle, or unknown, or may not be closed
    syn_payload          = 31, // a client's SYN with payload, of a content connection that has left its agent: no rule would read it
    closed_again         = 32  // as closed, of a client without the FIN, or a keepalive: the FIN was sent again, or an ACK
}

// Why a packet goes to the controller: an index of the counter `punts` and of the meter `punt_limit`. Of an ARP the controller gets the
// sender, by a digest (arp_sender_t); of everything else the packet itself. Next free: 5
enum bit<8> PuntReason {
    none      = 0,
    arp       = 1,             // an ARP reply to us: a neighbour to learn
    ttl       = 2,             // answer with ICMP time exceeded; the packet is as it was received
    neighbour = 3,             // next hop unresolved: ask for it; the packet is as it is to leave, but for MAC addresses and tag
    sender    = 4              // any other ARP: a neighbour that asks for us, or may have moved
}

#endif
