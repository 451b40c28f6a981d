// Registers of counts: cells of 32 bits, which a packet increases by 1. The counts are never reset and wrap at 2^32, so the
// controller computes differences modulo 2^32.
#ifndef SLUICE_V1MODEL_COUNT_REGISTERS_P4
#define SLUICE_V1MODEL_COUNT_REGISTERS_P4

// For use in a control: declares a register of `cells_` counts with indices of type `index_t_`.
#define COUNT_REGISTER(id_, index_t_, cells_, name_) \
    @id(id_) \
    register<bit<32>>(cells_) name_;

// For use in the control's apply block: adds 1 to the cell with index `index_`.
#define COUNT(name_, index_) \
    { \
        bit<32> count; \
        name_.read(count, (bit<32>)index_); \
        name_.write((bit<32>)index_, count + 1); \
    }

#endif
