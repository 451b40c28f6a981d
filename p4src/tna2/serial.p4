// Compares sequence numbers as serial numbers (RFC 1982). A stateful unit compares differences of 34 bits, which do not wrap,
// with constants of 31 bits. So one number counts as later (or earlier) than the other within a narrow range of 1 GB, the largest
// window (RFC 7323, section 2.3), if the numbers have not wrapped between the two, and within half of all numbers (WIDE) if they
// have wrapped. This needs three of Tofino 2's four comparisons; equality needs the fourth.
#ifndef SLUICE_TNA2_SERIAL_P4
#define SLUICE_TNA2_SERIAL_P4

#define NARROW 0x40000000
#define WIDE 0x7ffffffe

// For use in a RegisterAction: true if a number is later than a cell by at most 1 GB (across a wrap: by at most 2 GB).
#define LATER(number_, cell_) \
    (((int<32>)(number_ - cell_) > 0 && !((int<32>)(number_ - cell_) > NARROW)) || (int<32>)(number_ - cell_) < -WIDE)
// Returns the results of LATER's three comparisons, encoded as a byte with one of eight bits set, for a table's key.
#define COMPARE(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > NARROW, (int<32>)(number_ - cell_) < -WIDE)
// Like COMPARE, with equality as fourth comparison. A stateful unit encodes four comparisons as one of 16 bits, but the result
// field has only eight bits: equal numbers set the ninth bit, so the field is 0.
#define COMPARE_EQUAL(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > NARROW, (int<32>)(number_ - cell_) < -WIDE, \
                   number_ == cell_)
// Compares for a table whether a number equals a cell or precedes the cell by at most 1 GB (across a wrap: by at most 2 GB). A
// number that is after the cell by less than half of all numbers never counts as preceding the cell, because this would lift a
// cap.
#define COMPARE_KNOWN(number_, cell_) \
    this.predicate((int<32>)(number_ - cell_) > 0, (int<32>)(number_ - cell_) > WIDE, (int<32>)(number_ - cell_) < -NARROW, \
                   number_ == cell_)

const compared_t EQUAL = 0;
const compared_t NOT_LATER = 1;
const compared_t LATER_BY_LITTLE = 2;
const compared_t NOT_LATER_WRAPPED = 8;
const compared_t LATER_WRAPPED = 16;

#endif
