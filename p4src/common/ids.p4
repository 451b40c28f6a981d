// Every id and reason number that the controller uses, defined once. A new object takes the next free number of its range and
// updates the comment "Next free". tools/gen_names.py copies the reasons into Python; tools/gen_reference.py copies the comments
// into docs/reference/contract.md. This file includes no file of a target (v1model, Tofino).
//
// p4c adds to each id the prefix of the object's kind (table, action, ...). p4c's back end for Tofino ignores the ids of externs,
// so a controller finds the externs of Tofino by their names. p4c derives a digest's id from the digest's name.
#ifndef SLUICE_COMMON_IDS_P4
#define SLUICE_COMMON_IDS_P4

// Tables. Next free: 0x19
#define TABLE_PORTS         0x01   // the router's MAC address at each ingress port, and whether servers or protected hosts are behind the port
#define TABLE_SERVICES      0x02   // services by their addresses and ports; also the servers' own addresses and ports, to which access is denied
#define TABLE_ORIGINS       0x03   // servers by their addresses and ports: finds the server that sent a packet
#define TABLE_OWNED         0x04   // addresses of the router's interfaces and of services
#define TABLE_TIMERS        0x05   // time-outs of the connection table's slots, for each state of a connection
#define TABLE_SERVERS       0x06   // each server's address and port, and whether the server takes no new connections
#define TABLE_ROUTES        0x07   // next hops by destination
#define TABLE_NEIGHBOURS    0x08   // egress port and MAC addresses of each next hop
#define TABLE_EGRESS_VLAN   0x09   // whether the switch sets, removes or leaves the VLAN tag of packets to each egress port
#define TABLE_CHOOSE        0x0a   // draws a server for a new connection, by the weights that the controller derives from the metric R
#define TABLE_CHOOSE_STABLE 0x0b   // draws a server by capacity, for packets whose connection has no slot
#define TABLE_DESTINATIONS  0x0c   // destinations that have their own counts and limits
#define TABLE_RATE_SETTINGS 0x0d   // the share of responses whose rate is measured, and the length of a measuring step
#define TABLE_SAMPLING      0x0e   // the share of packets whose destination address is sampled
#define TABLE_CHOOSE_OTHER  0x0f   // draws the other servers of a second look, which compares the loads of several servers
#define TABLE_AGENTS        0x10   // agents of content services, by their ingress ports (v1model)
#define TABLE_RESOURCES     0x11   // servers whose TCP resources are managed (v1model, Tofino 2)
#define TABLE_AGENT_HOPS    0x18   // agents as next hops of servers' answers (v1model, Tofino 2)
#define TABLE_IDLE_MEMBERS  0x12   // servers that a second look may select from the queue of idle servers (v1model)

// Actions. Next free: 0x2d
#define ACTION_SET_AGENT_HOP        0x2b
#define ACTION_NO_AGENT_HOP         0x2c
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
#define PROFILE_RATIOS          0x01   // servers of each service, by the weights that the controller derives from the metric R
#define PROFILE_CAPACITIES      0x02   // servers of each service, by capacity
#define PROFILE_OTHERS_BY_RATIO 0x03   // groups of servers from which the second look draws its second and further servers

// Counters. Next free: 0x0b
#define COUNTER_OFFERED       0x01   // SYNs to each service
#define COUNTER_REFUSED       0x02   // SYNs to each service that admission refused
#define COUNTER_CLAIMED       0x03   // connections of each service that claimed a slot of the connection table
#define COUNTER_UNPINNED_NEW  0x04   // SYNs to each service for whose connection both possible slots of the connection table (one in each way) were taken
#define COUNTER_UNPINNED_MID  0x05   // packets to each service, other than SYNs, whose connection has no slot
#define COUNTER_VERDICTS      0x06   // packets by their DropReason
#define COUNTER_PUNTS         0x07   // packets punted to the controller, by their PuntReason
#define COUNTER_PUNTS_LIMITED 0x08   // packets not punted to the controller because the limit of their PuntReason was exceeded
#define COUNTER_MOVED         0x09   // connections of each service whose repeated SYN went to another server than the first SYN (v1model)
#define COUNTER_DISOWNED      0x0a   // RSTs that each service's servers sent on connections pinned to another server, or to none (v1model)

// Meters. Next free: 0x05
#define METER_ADMISSION         0x01   // limits new connections to each service
#define METER_PUNT_LIMIT        0x02   // limits packets to the controller, by their PuntReason
#define METER_DESTINATION_LIMIT 0x03   // limits new connections to each destination
#define METER_RETURNING_LIMIT   0x04   // limits new connections that exceed METER_DESTINATION_LIMIT, and whose clients the switch has admitted to the destination before

// Registers of the connection table, 0x01 to 0x0f. Next free: 0x09
#define REGISTER_PIN_KEY_1     0x01   // way 1: fingerprint of a slot's connection, its PinState (v1model), and the time from which its time-out counts
#define REGISTER_PIN_KEY_2     0x02   // way 2: fingerprint of a slot's connection, its PinState (v1model), and the time from which its time-out counts
#define REGISTER_PIN_SERVER_1  0x03   // way 1: the server of a slot's connection
#define REGISTER_PIN_SERVER_2  0x04   // way 2: the server of a slot's connection
#define REGISTER_PIN_STATE_1   0x05   // way 1: the PinState of a slot's connection (Tofino, whose key register lacks the state)
#define REGISTER_PIN_STATE_2   0x06   // way 2: the PinState of a slot's connection (Tofino, whose key register lacks the state)
#define REGISTER_CANDIDATE_KEY 0x07   // fingerprint of a connection whose handshake is under way with a candidate (a server in place of the pinned one), and the time at which the entry expires
#define REGISTER_CANDIDATE_PIN 0x08   // the candidate, and the acknowledgement number of the client's ACK that ends the handshake

// Registers of the ledger, 0x10 to 0x1f. Next free: 0x15
#define REGISTER_LEDGER_SYN          0x10   // SYNs forwarded to each server
#define REGISTER_LEDGER_SYNACK       0x11   // first SYN-ACKs of each server
#define REGISTER_LEDGER_SYNACK_AGAIN 0x12   // repeated SYN-ACKs of each server
#define REGISTER_LEDGER_COMPLETED    0x13   // handshakes with each server that the client's ACK completed
#define REGISTER_LEDGER_RESET        0x14   // RSTs that each server sent

// Registers of requests and their clients, 0x20 to 0x27. Next free: 0x26
#define REGISTER_ADMITTED_CLIENTS   0x20   // fingerprint of an admitted client; on v1model also the time of the client's last admission
#define REGISTER_REQUESTS_OFFERED   0x21   // requests to each destination
#define REGISTER_REQUESTS_ADMITTED  0x22   // admitted connections to each destination
#define REGISTER_REQUESTS_REFUSED   0x23   // refused requests to each destination
#define REGISTER_REQUESTS_RETURNING 0x24   // admitted connections to each destination whose client was admitted before
#define REGISTER_ADMITTED_STAMPS    0x25   // time of an admitted client's last admission (Tofino)

// Registers of response rates and samples, 0x28 to 0x2f. Next free: 0x2d
#define REGISTER_RATE_FLOW   0x28   // fingerprint of a measured response, and time of its last packet
#define REGISTER_RATE_BYTES  0x29   // bytes in the sliding window of a measured response
#define REGISTER_SAMPLE_NEXT 0x2a   // number of destinations sampled since the start; its low bits are the index of the next cell of the ring
#define REGISTER_SAMPLE_RING 0x2b   // ring of the latest sampled destinations
#define REGISTER_RATE_LAST   0x2c   // measuring step in which the last packet of a measured response passed

// Registers of the second look, 0x30 to 0x37. Next free: 0x36
#define REGISTER_LOAD_FIRST   0x30   // open connections of each server, read when the server is the first one drawn
#define REGISTER_LOAD_OTHER   0x31   // open connections of each server, read when the server is the second one drawn
#define REGISTER_STALE_FIRST  0x32   // connections counted in load_first whose end the switch did not see; written by the controller
#define REGISTER_STALE_OTHER  0x33   // connections counted in load_other whose end the switch did not see; written by the controller
#define REGISTER_LOAD_EVICTED 0x34   // connections of each server that lost their slot to another connection before they ended
#define REGISTER_REFUSING_OTHER 0x35 // 1: the server's last answer to a SYN was a RST; read when the server is the second one drawn

// Registers of the draws of servers, 0x38 to 0x3f. Next free: 0x39
#define REGISTER_DRAW_POINT 0x38   // the last point of each service's Weyl sequence, by which servers are drawn evenly

// Digests. Next free: 0x02
#define DIGEST_ARP_SENDER 0x01   // arp_sender_t: the sender of an ARP packet, and the packet's ingress port

// Resubmissions. Next free: 0x02
#define RESUBMIT_NEXT_PASS 0x01   // a SYN that passes ingress again, with the decisions of its first pass (Tofino)

// Registers of content switching, 0x40 to 0x47. Next free: 0x46
#define REGISTER_SPLICE 0x40       // the Turn of a slot's connection (agent, spliced, guessed), its agent, and the change of its sequence numbers (v1model)
#define REGISTER_REMEMBERED_CLIENTS 0x41 // last server of a content service's client, for the client's next connections (v1model)
#define REGISTER_SPLICE_TURN_1  0x42 // way 1: the Turn of a slot's connection (agent, spliced, guessed), its agent, and the shift of its windows (Tofino 2)
#define REGISTER_SPLICE_TURN_2  0x43 // way 2: the Turn of a slot's connection (agent, spliced, guessed), its agent, and the shift of its windows (Tofino 2)
#define REGISTER_SPLICE_VALUE_1 0x44 // way 1: delta of the sequence numbers of a slot's connection, or the address of its agent (Tofino 2)
#define REGISTER_SPLICE_VALUE_2 0x45 // way 2: delta of the sequence numbers of a slot's connection, or the address of its agent (Tofino 2)

// Registers of transfers, 0x48 to 0x57. Next free: 0x54
#define REGISTER_TRANSFER_OWNER    0x48   // the connection whose transfer a slot measures (v1model)
#define REGISTER_TRANSFER_EDGE     0x49   // largest segment of the server, and the end of the sequence numbers that the server has sent (v1model)
#define REGISTER_TRANSFER_ACKED    0x4a   // highest acknowledgement of the client, and whether the client's window was closed (v1model)
#define REGISTER_TRANSFER_ACTIVITY 0x4b   // time of the last packet of a measured transfer (v1model)
#define REGISTER_TRANSFER_PROBE    0x4c   // the segment whose round-trip time is being measured (v1model)
#define REGISTER_TRANSFER_LEAST    0x4d   // least measured round-trip time (v1model)
#define REGISTER_TRANSFER_RTT      0x4e   // sum and number of the measured round-trip times (v1model)
#define REGISTER_TRANSFER_RECOVERY 0x4f   // recovery point: retransmissions below it belong to a loss event already counted, or to a tail-loss probe (v1model)
#define REGISTER_TRANSFER_LOSSES   0x50   // counts of retransmissions, loss events, timeouts, tail-loss probes and gaps (Tofino 2: retransmissions only)
#define REGISTER_TRANSFER_SENT     0x51   // counts of bytes and segments that the server sent (Tofino 2: segments only)
#define REGISTER_TRANSFER_FLIGHT   0x52   // largest number of bytes in flight, in the current interval and in the previous interval (v1model)
#define REGISTER_TRANSFER_HOLE     0x53   // the gap in the sequence numbers that the server has sent: its place, and the time when it opened (v1model)

// Registers of caps, 0x58 to 0x5f. Next free: 0x5f
#define REGISTER_CAP_AGREED 0x58       // window scales and segment sizes that both ends of a slot's connection announced in the handshake (v1model, Tofino 2)
#define REGISTER_CAP_CLIENT 0x59       // end of the sequence numbers that the client of a slot's connection has sent, and the client's latest acknowledgement (v1model)
#define REGISTER_CAP_SERVER 0x5a       // end of the sequence numbers that the server of a slot's connection has sent, and the server's latest acknowledgement (v1model, Tofino 2)
#define REGISTER_CAP_OFFERED_SERVER 0x5b // right edge of the window that the server of a slot's connection was offered, and the cap in effect (v1model, Tofino 2)
#define REGISTER_CAP_OFFERED_CLIENT 0x5c // right edge of the window that the client of a slot's connection was offered, and the cap in effect (v1model, Tofino 2)
#define REGISTER_SEND_CAP 0x5d         // fingerprint of a slot's connection, and the cap on what its server may send; written by the controller (v1model, Tofino 2)
#define REGISTER_RECEIVE_CAP 0x5e      // fingerprint of a slot's connection, and the cap on what its client may send; written by the controller (v1model, Tofino 2)

// Registers of closing, 0x60 to 0x67. Next free: 0x68
#define REGISTER_CLOSING_SERVER_NEXT 0x60 // next sequence number of the server of a slot's connection (v1model)
#define REGISTER_CLOSING_CLIENT_NEXT 0x61 // next sequence number of the client of a slot's connection, by the server's latest acknowledgement (v1model)
#define REGISTER_CLOSING_STATE 0x62  // which end sent the last payload and when, whether the payload is acknowledged, and the ClosingStatus (Tofino 2: start of the connection's idle time)
#define REGISTER_CLOSING_PEER 0x63   // client and server of a connection that became idle (Tofino 2: address of the client of any connection)
#define REGISTER_CLOSING_HINT 0x64   // connections that became idle: flow index, server and time (v1model)
#define REGISTER_CLOSING_TAKEN 0x65  // idle connections of each server that the switch closed (v1model, Tofino 2)
#define REGISTER_CLOSING_TAKEN_BACK 0x66 // attempts to close a connection of each server that were cancelled because payload arrived (v1model)
#define REGISTER_CLOSING_RACED 0x67  // closed connections of each server whose client sent payload afterwards (v1model)

// Registers of the third and fourth server of the second look, 0x68 to 0x6f. Next free: 0x6e
#define REGISTER_LOAD_THIRD   0x68   // open connections of each server, read when the server is the third one drawn (v1model)
#define REGISTER_LOAD_FOURTH  0x69   // open connections of each server, read when the server is the fourth one drawn (v1model)
#define REGISTER_STALE_THIRD  0x6a   // connections counted in load_third whose end the switch did not see; written by the controller (v1model)
#define REGISTER_STALE_FOURTH 0x6b   // connections counted in load_fourth whose end the switch did not see; written by the controller (v1model)
#define REGISTER_REFUSING_THIRD 0x6c // 1: the server's last answer to a SYN was a RST; read when the server is the third one drawn (v1model)
#define REGISTER_REFUSING_FOURTH 0x6d // 1: the server's last answer to a SYN was a RST; read when the server is the fourth one drawn (v1model)

// Registers of idle servers, 0x70 to 0x77. Next free: 0x75
#define REGISTER_IDLE_ENDS         0x70 // head and tail of each service's queue of idle servers (v1model)
#define REGISTER_IDLE_QUEUE        0x71 // the servers in each service's queue of idle servers (v1model)
#define REGISTER_IDLE_TICKET_FIRST 0x72 // each server's ticket (number of its entry) in a queue of idle servers, read for the first server drawn (v1model)
#define REGISTER_IDLE_TICKET_HEAD  0x73 // each server's ticket (number of its entry) in a queue of idle servers, read for the server at the queue's head (v1model)
#define REGISTER_STALE_IDLE        0x74 // connections counted in each server's load whose end the switch did not see; written by the controller (v1model)

// Further registers of closing, 0x78 to 0x7f. Next free: 0x7a
#define REGISTER_CLOSING_PAUSES 0x78 // number of pauses in each server's responses, by the pause's length (v1model)
#define REGISTER_CLOSING_ORDER 0x79  // client port of a slot's connection, and start of the idle period in which the controller orders the switch to close the connection (Tofino 2)

// Registers of caps that only Tofino 2 has, 0x80 to 0x87. Next free: 0x85
#define REGISTER_CAP_ASKED 0x80        // window scale and segment size that the SYN of a slot's connection announces (Tofino 2)
#define REGISTER_CAP_ACKED_CLIENT 0x81 // latest acknowledgement of the client of a slot's connection (Tofino 2)
#define REGISTER_CAP_ACKED_SERVER 0x82 // latest acknowledgement of the server of a slot's connection (Tofino 2)
#define REGISTER_CAP_EFFECT_SERVER 0x83 // cap in effect on what the server of a slot's connection may send (Tofino 2)
#define REGISTER_CAP_EFFECT_CLIENT 0x84 // cap in effect on what the client of a slot's connection may send (Tofino 2)

// Registers of future stages, 0x88 to 0xff. Next free: 0x88

// Why a packet was dropped: an index of the counter `verdicts`. Next free: 33
enum bit<8> DropReason {
    none                 = 0,  // none of the reasons below: the packet was forwarded, answered or punted
    truncated            = 1,  // a header extends past the end of the frame
    unsupported          = 2,  // neither ARP nor IPv4 after at most one 802.1Q tag, or an ARP packet that is not for Ethernet and IPv4
    ipv4_header          = 3,  // the IP version is not 4, or the header length is below 20 bytes; also in the packet inside an ICMP error
    ipv4_length          = 4,  // the IPv4 total length is below the header length, or exceeds the frame
    ipv4_checksum        = 5,  // the IPv4 header checksum is wrong
    fragment             = 6,  // a fragment other than the first: it contains no ports
    l4_length            = 7,  // the TCP data offset, UDP length or ICMP length is impossible
    port_unknown         = 8,  // the ingress port is not configured
    not_for_us           = 9,  // the frame is not addressed to the router's MAC address, and is no broadcast ARP packet
    martian              = 10, // source or destination address is in 0/8, 127/8 or 224/3, or the two are equal
    ttl_exceeded         = 11, // the TTL ran out; the controller answers with ICMP time exceeded
    no_service           = 12, // sent to an address of the router or of a service, but neither to a service's port nor as an echo request
    direct_to_server     = 13, // sent to a server's own address and port instead of to its service
    admission_refused    = 14, // a SYN for a new connection, above the rate of its service or of its destination
    no_server            = 15, // the service has no server to choose, or the cell for a candidate server belongs to another connection
    server_unknown       = 16, // the connection is pinned to a server that is no longer configured, or an answer is for such an agent
    no_route             = 17, // no prefix matches the destination
    neighbour_unresolved = 18, // the MAC address of the next hop is unknown; the controller resolves it by ARP and then sends the packet
    arp_ignored          = 19, // an ARP request or reply for an address that is not the router's or a service's (its sender is reported), or another ARP packet
    punt_limited         = 20, // an ARP reply to the router above the limit of its PuntReason; the switch has no other use for the reply
    cpu_header           = 21, // a packet from the controller without a valid packet_out header
    admission_reset      = 22, // a SYN above the rate of its service or of its destination, answered by a RST
    source_mac           = 23, // the frame's source is a group address, which is never the address of a station (IEEE 802.3, 3.2.3)
    not_an_agent         = 24, // a packet to a group of a content service, or a splice order, from a port without an agent of that service
    no_slot              = 25, // an agent's packet whose connection has no slot: both possible slots are taken, or the connection has ended
    spliced              = 26, // an agent's packet on a connection that is spliced, or that belongs to another agent
    unbound              = 27, // a content server's packet on a connection that has no slot, or that is now pinned to another server
    closed               = 28, // an ACK of the client on a connection that the switch has closed
    closed_reset         = 29, // the client's payload or a late packet of the server, on a closed connection; answered by a RST
    not_idle             = 30, // a tickle (the controller's frame that closes an idle connection) for a connection that is unknown, not idle, or may not be closed
    syn_payload          = 31, // a client's SYN with payload, on a content connection that has left its agent: no agent would read the payload
    closed_again         = 32  // an ACK on a closed connection, from a client that lacks the FIN or sends a keepalive; answered by FIN or ACK
}

// Why a packet is punted to the controller: an index of the counter `punts` and of the meter `punt_limit`. For an ARP packet the
// controller receives a digest with the sender (arp_sender_t); for the other reasons it receives the packet. Next free: 5
enum bit<8> PuntReason {
    none      = 0,
    arp       = 1,             // an ARP reply to an address of the router or of a service: the controller learns the neighbour
    ttl       = 2,             // the TTL ran out; the controller receives the packet unchanged, and answers with ICMP time exceeded
    neighbour = 3,             // the next hop is unresolved: the controller resolves it by ARP, adds MAC addresses and tag, and sends the packet
    sender    = 4              // any other ARP request or reply: its sender may have moved, or requests an address of the router or of a service
}

#endif
