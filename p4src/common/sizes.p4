// Every size of the program, each with its reason; what an index counts in bits follows. tools/p4.py defines LARGE for
// the large build and TOFINO for Tofino's, and TOFINO2 besides for Tofino 2's. No target include.
#ifndef SLUICE_COMMON_SIZES_P4
#define SLUICE_COMMON_SIZES_P4

// Content switching and servers' TCP resources: not in Tofino's program, whose pipe is full, nor in what is held against it. (Tofino 2's
// program has a part of both: tools/p4.py compiles it with -DCONTENT and -DRESOURCES.)
#if !defined(TOFINO) && !defined(TWIN)
#define CONTENT
#define RESOURCES
#endif

// A third and a fourth server to look at: not on Tofino either.
#if !defined(TOFINO)
#define MORE_LOOKS
#endif

const bit<32> SERVICES         = 1024;   // services a switch is asked to carry; also the admission meters
const bit<32> SERVERS          = 1024;   // servers over all services; also the cells of each ledger register
const bit<32> SERVICE_ENDPOINTS = 2048;  // services, and one deny_direct entry for each server

// Slots of each of the connection table's two ways.
#if defined(LARGE)
const int CONNECTION_SLOT_BITS = 21;     // a million live connections: at most 1.2 % of them unpinned
#elif defined(TOFINO2)
const int CONNECTION_SLOT_BITS = 15;     // a register lies in one half of a stage: 2^15 cells of 64 bits take 17 of its 24 map RAMs
#elif defined(TOFINO)
const int CONNECTION_SLOT_BITS = 16;     // a register lies in one stage: 2^16 cells of 64 bits take 33 of its 48 map RAMs
#else
const int CONNECTION_SLOT_BITS = 17;     // 65,536 live connections: at most 1.2 % of them unpinned (2^15: 23 %, 2^18: 0.2 %)
#endif
const bit<32> CONNECTION_SLOTS = 1 << CONNECTION_SLOT_BITS;

const bit<32> SPLICES          = 2 << CONNECTION_SLOT_BITS; // a cell for each slot of both ways
const bit<32> CLOSING_HINTS    = 4096;   // connections that became idle between two polls, some times over
const int PAUSE_LENGTH_BITS    = 4;      // pauses within responses, by powers of two: up to 18 minutes
const bit<32> CLOSING_PAUSES   = 1024 << PAUSE_LENGTH_BITS; // all of each server

// 2^16 cells, as of admitted clients.
const int REMEMBERED_CLIENT_BITS = 16;
const bit<32> REMEMBERED_CLIENTS = 1 << REMEMBERED_CLIENT_BITS;

// Sampled transfers at a time: what a controller reads every second.
const int TRANSFER_BITS = 12;
const bit<32> TRANSFERS        = 1 << TRANSFER_BITS;

const bit<32> CANDIDATES       = 16384;  // handshakes at a time whose ports are pinned to a server that takes no new connections

// Sum of all weights, in each of two selectors: at least 16 a server.
#if defined(TOFINO2)
const bit<32> SELECTOR_SIZE    = 32768;  // 2^16 members and their selector take 42 SRAM blocks, and a half of a stage has 40
#else
const bit<32> SELECTOR_SIZE    = 65536;
#endif
const bit<32> OTHERS           = 2048;   // groups for the second look: one a server of a small pool, one for each larger pool

// Sum of the weights of those groups.
#if defined(TOFINO2)
const bit<32> OTHERS_SIZE      = 65536;  // as of SELECTOR_SIZE: 51 blocks
#elif defined(TOFINO)
const bit<32> OTHERS_SIZE      = 131072; // 2^18 members and their selector find no room in the 80 SRAM blocks of a stage
#else
const bit<32> OTHERS_SIZE      = 262144; // a small pool's weights sum to 256
#endif

// Idle servers of each service, in the order in which they became idle.
const int IDLE_PLACE_BITS = 5;
const bit<32> IDLE_PLACES      = 1024 << IDLE_PLACE_BITS;

const bit<32> AGENTS           = 256;    // an entry for each agent of each content service
const bit<32> PORTS            = 512;    // what a 9-bit port number can name
const bit<32> OWNED_ADDRESSES  = 2048;   // interface addresses and one address for each service
const bit<32> DESTINATIONS     = 1024;   // service addresses and protected hosts with counts and limits of their own

// 2^16 cells: of 6,000 clients (100 new ones a second, remembered for a minute), 1 in 11 is forgotten early.
const int ADMITTED_CLIENT_BITS = 16;
const bit<32> ADMITTED_CLIENTS = 1 << ADMITTED_CLIENT_BITS;

// Sampled responses at a time: the fastest tenth of 4,096 is a mean of some hundred.
const int RATE_FLOW_BITS = 12;
const bit<32> RATE_FLOWS       = 1 << RATE_FLOW_BITS;

// Destinations that are kept between two polls.
const int SAMPLE_BITS = 10;
const bit<32> SAMPLES          = 1 << SAMPLE_BITS;

#if defined(LARGE)
const bit<32> ROUTES           = 131072; // 10^5 prefixes
#else
const bit<32> ROUTES           = 4096;
#endif
const bit<32> NEIGHBOURS       = 4096;   // all servers, gateways and directly attached hosts
const bit<32> REASONS          = 256;    // an 8-bit reason

#endif
