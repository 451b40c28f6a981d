// Registers of counts that only grow: 32 bits a cell, one more a packet. They wrap, and whoever takes differences minds it.
#ifndef SLUICE_V1MODEL_COUNT_REGISTERS_P4
#define SLUICE_V1MODEL_COUNT_REGISTERS_P4

// In a control: a register of `cells_` counts, and the type of its index.
#define COUNT_REGISTER(id_, index_t_, cells_, name_) \
    @id(id_) \
    register<bit<32>>(cells_) name_;

// In its apply block: one more in the cell of an index.
#define COUNT(name_, index_) \
    { \
        bit<32> count; \
        name_.read(count, (bit<32>)index_); \
        name_.write((bit<32>)index_, count + 1); \
    }

#endif
