// Registers of counts that only grow: cells of 32 bits, which a packet increases by 1. They wrap, so readers compute differences
// modulo 2^32.
#ifndef SLUICE_V1MODEL_COUNT_REGISTERS_P4
#define SLUICE_V1MODEL_COUNT_REGISTERS_P4

// In a control: declares a register of `cells_` counts with indices of type `index_t_`.
#define COUNT_REGISTER(id_, index_t_, cells_, name_) \
    @id(id_) \
    register<bit<32>>(cells_) name_;

// In the control's apply block: adds 1 to the cell of an index.
#define COUNT(name_, index_) \
    { \
        bit<32> count; \
        name_.read(count, (bit<32>)index_); \
        name_.write((bit<32>)index_, count + 1); \
    }

#endif
