// The cell of a content connection's slot. It contains the turn (which device translates: agent or switch), the agent, window
// shifts, and the delta of sequence numbers. For a guessed connection (whose server was chosen before
// a request), it contains the client's initial sequence number and the handshake's options.
#ifndef SLUICE_V1MODEL_SPLICE_CELLS_P4
#define SLUICE_V1MODEL_SPLICE_CELLS_P4

#include "flow_index.p4"

typedef bit<62> splice_cell_t;
#define SPLICE_TURN 61:60
#define SPLICE_CLIENT_SHIFT 56:53
#define SPLICE_AGENT 52:37
#define SPLICE_SHIFT 36:32
#define SPLICE_VALUE 31:0
// Fields of a guessed connection's cell: the client's initial sequence number, and the options of SYN and SYN-ACK.
#define GUESSED_CLIENT 59:28
#define GUESSED_HAS_SPOKEN 17:17       // the server has sent data or a FIN
#define GUESSED_SERVER_SCALE 27:23     // window scale + 1, as in options_t; 0: no scale
#define GUESSED_CLIENT_SCALE 22:18
#define GUESSED_SACK 16:16
#define GUESSED_MSS 15:0

// One register has the cells of both ways of the connection table. An agent's SYN writes its agent into the cell if the SYN
// claims the slot, or if an agent (the same or another) translates the connection. A splice order of the connection's agent
// transfers the connection to the switch; a repetition of the order changes nothing. A guessed connection has no agent yet: any
// agent may splice the connection, close it at the server, or take it over by an order that contains the client's initial
// sequence number.
control SpliceCells(inout headers_t hdr, in metadata_t meta, in place_t place, out splice_t splice, inout DropReason drop) {
    @name(".SluiceIngress.splice.splice_cells")
    @id(REGISTER_SPLICE)
    register<splice_cell_t>(SPLICES) splice_cells;

    splice_cell_t cell;

    apply {
        bit<32> index = flow_index(meta.way, place.slot_1, place.slot_2);
        splice_cells.read(cell, index);
        if (meta.content == Content.agent) {
            bool is_owner = cell[SPLICE_AGENT] == meta.agent;
            bool agents_turn = (bit<8>)cell[SPLICE_TURN] == (bit<8>)Turn.agent;
            if ((bit<8>)cell[SPLICE_TURN] == (bit<8>)Turn.guessed) {
                is_owner = true;
            }
            if (meta.path == Path.order) {
                splice_cell_t ordered = ((bit<8>)Turn.spliced)[1:0] ++ 3w0 ++ hdr.splice.client_shift[3:0] ++ meta.agent
                                        ++ hdr.splice.shift[4:0] ++ hdr.splice.delta;
                bool is_allowed = is_owner && (bit<8>)cell[SPLICE_TURN] != (bit<8>)Turn.spliced;
                if (hdr.splice.turn == (bit<8>)Turn.agent) {
                    ordered = ((bit<8>)Turn.agent)[1:0] ++ 7w0 ++ meta.agent ++ 37w0;
                    is_allowed = (bit<8>)cell[SPLICE_TURN] == (bit<8>)Turn.guessed && cell[GUESSED_CLIENT] == hdr.splice.delta;
                }
                if (is_allowed || cell == ordered) {
                    splice_cells.write(index, ordered);
                    hdr.splice.status = (bit<8>)SpliceStatus.applied;
                } else {
                    hdr.splice.status = (bit<8>)SpliceStatus.not_yours;
                }
            } else if (meta.claimed == 1 || (meta.event == Event.syn && agents_turn)) {
                splice_cells.write(index, ((bit<8>)Turn.agent)[1:0] ++ 7w0 ++ meta.agent ++ 37w0);
            } else if (!is_owner || meta.event == Event.syn) {
                drop = DropReason.spliced;
            }
        } else if (meta.content == Content.client && meta.claimed == 1) {
            cell = ((bit<8>)Turn.spliced)[1:0] ++ 60w0;
            if (meta.pass == Pass.guess) {
                cell = ((bit<8>)Turn.guessed)[1:0] ++ hdr.tcp.sequence ++ 5w0 ++ meta.options.scale ++ 1w0 ++ meta.options.sack ++ meta.options.mss;
            }
            splice_cells.write(index, cell);
        } else if (meta.pass == Pass.facts && (bit<8>)cell[SPLICE_TURN] == (bit<8>)Turn.guessed) {
            cell[GUESSED_SERVER_SCALE] = meta.options.scale;
            cell[GUESSED_SACK] = cell[GUESSED_SACK] & meta.options.sack;
            splice_cells.write(index, cell);
        } else if (meta.content == Content.server && meta.pinned == 1 && (bit<8>)cell[SPLICE_TURN] == (bit<8>)Turn.guessed
                   && cell[GUESSED_HAS_SPOKEN] == 0 && (meta.payload != 0 || meta.event == Event.fin)) {
            cell[GUESSED_HAS_SPOKEN] = 1;
            splice_cells.write(index, cell);
        }
        splice.client = cell[GUESSED_CLIENT];
        splice.turn = (Turn)(bit<8>)cell[SPLICE_TURN];
        splice.agent = cell[SPLICE_AGENT];
        splice.shift = cell[SPLICE_SHIFT];
        splice.client_shift = cell[SPLICE_CLIENT_SHIFT];
        splice.value = cell[SPLICE_VALUE];
    }
}

#endif
