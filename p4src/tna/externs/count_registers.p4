// Registers of counts: cells of 32 bits, which a packet increases by 1. The counts are never reset and wrap at 2^32, so the
// controller computes differences modulo 2^32.
#ifndef SLUICE_TNA_COUNT_REGISTERS_P4
#define SLUICE_TNA_COUNT_REGISTERS_P4

// For use in a control: declares a register of `cells_` counts with indices of type `index_t_`.
#define COUNT_REGISTER(id_, index_t_, cells_, name_) \
    @id(id_) \
    Register<bit<32>, index_t_>(cells_, 0) name_; \
    RegisterAction<bit<32>, index_t_, bit<32>>(name_) one_##name_ = { \
        void apply(inout bit<32> cell) { \
            cell = cell + 1; \
        } \
    };

// For use in the control's apply block: adds 1 to the cell with index `index_`.
#define COUNT(name_, index_) one_##name_.execute(index_);

#endif
