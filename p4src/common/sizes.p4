// Every size of the program, each with its reason. Widths of indices follow from these. tools/p4.py defines LARGE for the large
// build, TOFINO for both Tofinos and TOFINO2 also for Tofino 2. This file includes nothing of a target.
#ifndef SLUICE_COMMON_SIZES_P4
#define SLUICE_COMMON_SIZES_P4

// Switches on content switching and the management of servers' TCP resources. Tofino's pipe has no room for either. The twin
// leaves them out since it is compared with Tofino's program. (Tofino 2's program has some of both: tools/p4.py compiles it with
// -DCONTENT and -DRESOURCES.)
#if !defined(TOFINO) && !defined(TWIN)
#define CONTENT
#define RESOURCES
#endif

// Switches on a third and a fourth server of the second look. Neither Tofino has them.
#if !defined(TOFINO)
#define MORE_LOOKS
#endif

const bit<32> SERVICES         = 1024;   // services that a switch has to carry; also the number of admission meters
const bit<32> SERVERS          = 1024;   // servers of all services together; also the cells of each ledger register
const bit<32> SERVICE_ENDPOINTS = 2048;  // addresses and ports of services, and an entry of action deny_direct for each server

// Slots in each of the connection table's two ways.
#if defined(LARGE)
const int CONNECTION_SLOT_BITS = 21;     // for 2^20 live connections, at most 1.2 % of them unpinned
#elif defined(TOFINO2)
const int CONNECTION_SLOT_BITS = 15;     // a register lies in one half of a stage: 2^15 cells of 64 bits take 17 of its 24 map
                                         // RAMs
#elif defined(TOFINO)
const int CONNECTION_SLOT_BITS = 16;     // a register lies in one stage: 2^16 cells of 64 bits take 33 of its 48 map RAMs
#else
const int CONNECTION_SLOT_BITS = 17;     // for 65,536 live connections, at most 1.2 % of them unpinned (2^15 slots: 23 %, 2^18:
                                         // 0.2 %)
#endif
const bit<32> CONNECTION_SLOTS = 1 << CONNECTION_SLOT_BITS;

const bit<32> SPLICES          = 2 << CONNECTION_SLOT_BITS; // a cell for each slot of both ways
const bit<32> CLOSING_HINTS    = 4096;   // several times the connections that become idle between two polls of the controller
const int PAUSE_LENGTH_BITS    = 4;      // classes of pause lengths within responses, by powers of two: up to 18 minutes
const bit<32> CLOSING_PAUSES   = 1024 << PAUSE_LENGTH_BITS; // a cell for each pause length of each server

// 2^16 cells, as many as for admitted clients.
const int REMEMBERED_CLIENT_BITS = 16;
const bit<32> REMEMBERED_CLIENTS = 1 << REMEMBERED_CLIENT_BITS;

// Transfers that can be sampled at the same time. A controller reads these cells every second.
const int TRANSFER_BITS = 12;
const bit<32> TRANSFERS        = 1 << TRANSFER_BITS;

const bit<32> CANDIDATES       = 16384;  // handshakes at the same time whose client and port are pinned to a server that takes no
                                         // new connections

// Largest sum of all weights in each of two selectors: at least 16 for each server.
#if defined(TOFINO2)
const bit<32> SELECTOR_SIZE    = 32768;  // 2^16 members and their selector take 42 SRAM blocks, and half a stage has 40
#else
const bit<32> SELECTOR_SIZE    = 65536;
#endif
const bit<32> OTHERS           = 2048;   // groups for the second look: one for each server of a small pool, one for each larger
                                         // pool

// Largest sum of the weights in those groups.
#if defined(TOFINO2)
const bit<32> OTHERS_SIZE      = 65536;  // same reason as for SELECTOR_SIZE: 2^16 members and their selector take 51 SRAM blocks
#elif defined(TOFINO)
const bit<32> OTHERS_SIZE      = 131072; // 2^18 members and their selector do not fit in the 80 SRAM blocks of a stage
#else
const bit<32> OTHERS_SIZE      = 262144; // the weights of a small pool sum to 256
#endif

// The queue of each service: its idle servers in the order in which they became idle.
const int IDLE_PLACE_BITS = 5;
const bit<32> IDLE_PLACES      = 1024 << IDLE_PLACE_BITS;

const bit<32> AGENTS           = 256;    // one entry for each agent of each content service
const bit<32> PORTS            = 512;    // all values of a 9-bit port number
const bit<32> OWNED_ADDRESSES  = 2048;   // addresses of the router's interfaces, and one address for each service
const bit<32> DESTINATIONS     = 1024;   // service addresses and protected hosts with counts and limits of their own

// 2^16 cells: of 6,000 clients (100 new clients a second, remembered for a minute), 1 in 11 is forgotten early.
const int ADMITTED_CLIENT_BITS = 16;
const bit<32> ADMITTED_CLIENTS = 1 << ADMITTED_CLIENT_BITS;

// Responses that can be sampled at the same time: the fastest tenth of 4,096 is a mean of some hundred.
const int RATE_FLOW_BITS = 12;
const bit<32> RATE_FLOWS       = 1 << RATE_FLOW_BITS;

// Destinations that the ring keeps between two polls of the controller.
const int SAMPLE_BITS = 10;
const bit<32> SAMPLES          = 1 << SAMPLE_BITS;

#if defined(LARGE)
const bit<32> ROUTES           = 131072; // for 10^5 prefixes
#else
const bit<32> ROUTES           = 4096;
#endif
const bit<32> NEIGHBOURS       = 4096;   // entries for all servers, gateways and directly attached hosts
const bit<32> REASONS          = 256;    // cells of a counter by reason: an 8-bit reason has that many values

#endif
