// Comparison of sequence numbers as serial numbers (RFC 1982). A stateful unit compares numbers of 34 bits: a difference does not
// wrap, and its constants have 31 bits. So each comparison has a narrow side of 1 GB, the largest window (RFC 7323, section 2.3),
// and a wide side of half the numbers. That takes three of Tofino 2's four comparisons; equality takes the fourth.
#ifndef SLUICE_TNA2_SERIAL_P4
#define SLUICE_TNA2_SERIAL_P4

#define NARROW 0x40000000
#define WIDE 0x7ffffffe

// In a RegisterAction: whether a number is later than a cell, by at most 1 GB, or after a wrap of the numbers.
#define LATER(number_, cell_) \
    (((int<32>)(number_ - cell_) > 0 && !((int<32>)(number_ - cell_) > NARROW)) || (int<32>)(number_ - cell_) < -WIDE)
// The same comparisons for a later table: one bit of eight.
#define COMPARE(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > NARROW, (int<32>)(number_ - cell_) < -WIDE)
// COMPARE with a fourth comparison, for equality. A stateful unit returns four comparisons as one bit of 16, of which the table's
// field has the low eight: equal numbers set the ninth bit.
#define COMPARE_EQUAL(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > NARROW, (int<32>)(number_ - cell_) < -WIDE, \
                   number_ == cell_)
// For a later table: whether a number equals a cell or precedes it, by at most 1 GB, or before a wrap of the numbers. No number
// that is ahead by less than half of all numbers counts as an old one, since that would lift a cap.
#define COMPARE_KNOWN(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > WIDE, (int<32>)(number_ - cell_) < -NARROW, \
                   number_ == cell_)

const compared_t EQUAL = 0;
const compared_t NOT_LATER = 1;
const compared_t LATER_BY_LITTLE = 2;
const compared_t NOT_LATER_WRAPPED = 8;
const compared_t LATER_WRAPPED = 16;

#endif
