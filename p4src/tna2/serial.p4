// Sequence numbers are serial ones (RFC 1982), but a stateful unit compares numbers of 34 bits: a difference does not wrap. So what is later
// is ahead by less than WRAPPED, or behind by more than it. That takes three of Tofino 2's four comparisons.
#ifndef SLUICE_TNA2_SERIAL_P4
#define SLUICE_TNA2_SERIAL_P4

#define WRAPPED 0x70000000

// In a RegisterAction: whether a number is later, and the same for what follows.
#define LATER(number_, cell_) \
    (((int<32>)(number_ - cell_) > 0 && !((int<32>)(number_ - cell_) > WRAPPED)) || (int<32>)(number_ - cell_) < -WRAPPED)
#define COMPARE(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > WRAPPED, (int<32>)(number_ - cell_) < -WRAPPED)

// What that gives: one bit of eight.
const compared_t NOT_LATER = 1;
const compared_t LATER_BY_LITTLE = 2;
const compared_t NOT_LATER_WRAPPED = 8;
const compared_t LATER_WRAPPED = 16;

#endif
