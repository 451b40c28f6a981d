// Registers of counts that only grow: 32 bits a cell, one more a packet. They wrap, and whoever takes differences minds it.
#ifndef SLUICE_TNA_COUNT_REGISTERS_P4
#define SLUICE_TNA_COUNT_REGISTERS_P4

// In a control: a register of `cells_` counts, and the type of its index.
#define COUNT_REGISTER(id_, index_t_, cells_, name_) \
    @id(id_) \
    Register<bit<32>, index_t_>(cells_, 0) name_; \
    RegisterAction<bit<32>, index_t_, bit<32>>(name_) one_##name_ = { \
        void apply(inout bit<32> cell) { \
            cell = cell + 1; \
        } \
    };

// In its apply block: one more in the cell of an index.
#define COUNT(name_, index_) one_##name_.execute(index_);

#endif
