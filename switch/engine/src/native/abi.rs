//! The interface between Rust and machine code: the data that machine code receives, and the functions that machine
//! code calls.
//!
//! All of the crate's unsafe code is in this module, in [`super`] and in [`crate::machine_code`]. The unsafe code
//! relies on these facts:
//! - [`MachineCode::run`](crate::machine_code::MachineCode::run) creates a [`Frame`] from exclusive borrows that last
//!   until machine code returns. Only the frame contains the pointers. The functions here convert the pointers to
//!   references only while machine code waits for the called function.
//! - Machine code accesses slots by 16-bit numbers (the array has 65,536 slots), and other arrays only at indices
//!   below their size (which never changes). It accesses the packet only at offsets below the packet's length, and the
//!   header buffer only up to eight bytes beyond the program's maximum header length; the buffer has this size.
//! - No function here unwinds into machine code, because a panic in an `extern "C"` function ends the process.

use crate::code::Pc;
use crate::hash::{Hash, crc32_of_number, sum_words};
use crate::layout::{FieldRef, Slot, Slots};
use crate::machine::{Machine, Stop, TableState};
use crate::phv::Head;
use crate::program::Program;
use crate::table::answer::{Answer, NONE};

/// The data on which machine code operates.
#[repr(C)]
pub struct Frame {
    pub slots: *mut Slots,
    pub machine: *mut Machine,
    pub data: *const u8,
    pub length: usize,
    /// The header buffer's first byte (`head`), and the buffer itself (`buffer`).
    pub head: *mut u8,
    pub buffer: *mut Head,
    /// The addresses of the first cells of all register arrays, followed by those of all counter arrays.
    pub arrays: *const usize,
    /// The tables (`tables`), and the result of a miss for each table (`misses`).
    pub tables: *const TableState,
    pub misses: *const Answer,
    /// The number of the parser's error, if the parser raised an error.
    pub error: u64,
    /// For the fast path: the ingress port, later replaced by the egress port (`port`), and the time in microseconds
    /// (`micros`).
    pub port: u64,
    pub micros: u64,
    /// For the fast path: the number of bytes that the parser consumed, and the length in bytes of the headers written.
    pub parsed: usize,
    pub head_length: usize,
    /// The selector's hash for the next table lookup (`hash`). The hash is valid if `hashed` is not 0.
    pub hash: u64,
    pub hashed: u64,
    pub program: *const Program,
}

/// The status with which a run of machine code ends.
pub const DONE: i64 = 0;
pub const PARSER_ERROR: i64 = 1;
pub const ASSERTION: i64 = 2;
pub const NO_FUEL: i64 = 3;
/// The fast path adds one of these numbers to the status of the last stage that it ran: `PAST_INGRESS` to the status of
/// ingress, `PAST_EGRESS` to the status of egress or of the deparser.
pub const PAST_INGRESS: i64 = 16;
pub const PAST_EGRESS: i64 = 32;
/// The status of the fast path after it has written the headers.
pub const SENT: i64 = 48;

/// The functions that machine code calls. Each element contains name, address, number of parameters and number of
/// results. Parameters and results are 64-bit integers.
pub const CALLS: [(&str, *const u8, usize, usize); 15] = [
    ("answer_one", answer_one as *const u8, 3, 2),
    ("answer_two", answer_two as *const u8, 4, 2),
    ("find_one", find_one as *const u8, 3, 2),
    ("find_two", find_two as *const u8, 4, 2),
    ("find_row", find_row as *const u8, 4, 2),
    ("meter", meter as *const u8, 4, 1),
    ("extension", extension as *const u8, 2, 1),
    ("select", select as *const u8, 2, 1),
    ("calculate", calculate as *const u8, 2, 1),
    ("hash", hash as *const u8, 3, 1),
    ("crc32_short", crc32_short as *const u8, 2, 1),
    ("sum_payload", sum_payload as *const u8, 1, 1),
    ("sum_varbit", sum_varbit as *const u8, 3, 1),
    ("deparse", deparse as *const u8, 3, 1),
    ("extract", extract as *const u8, 2, 1),
];

/// The hash algorithms. Machine code refers to an algorithm by its index.
pub const HASHES: [Hash; 9] = [
    Hash::Crc16,
    Hash::Crc32,
    Hash::CrcCcitt,
    Hash::Crc8Custom,
    Hash::Crc64Custom,
    Hash::Csum16,
    Hash::Xor16,
    Hash::Xor32,
    Hash::Identity,
];

struct Parts<'a> {
    program: &'a Program,
    machine: &'a mut Machine,
    slots: &'a mut Slots,
    data: &'a [u8],
}

impl Frame {
    /// Converts the frame's pointers to references.
    ///
    /// # Safety
    /// Only machine code that received this frame may call a function that calls this method. The references must be
    /// dropped before this method is called again for the frame.
    unsafe fn parts<'a>(frame: *mut Frame) -> Parts<'a> {
        // SAFETY: the referenced values are borrowed for the whole run of machine code, and nothing else uses them
        // meanwhile.
        unsafe {
            let f = &*frame;
            Parts {
                program: &*f.program,
                machine: &mut *f.machine,
                slots: &mut *f.slots,
                data: std::slice::from_raw_parts(f.data, f.length),
            }
        }
    }
}

/// Returns the status that represents a result in machine code, and stores a parser error in the frame.
///
/// # Safety
/// The requirements of [`Frame::parts`] must be fulfilled.
unsafe fn ended(frame: *mut Frame, result: Result<(), Stop>) -> i64 {
    match result {
        Ok(()) => DONE,
        Err(Stop::Parser(error)) => {
            // SAFETY: machine code owns the frame and waits for this function.
            unsafe { (*frame).error = error };
            PARSER_ERROR
        }
        Err(Stop::Assertion) => ASSERTION,
        Err(Stop::Fuel) => NO_FUEL,
    }
}

/// Looks up a key in a table of any kind.
///
/// # Safety
/// The requirements of [`Frame::parts`] must be fulfilled.
unsafe fn find(frame: *mut Frame, table: u64, key: &[u64]) -> Answer {
    // SAFETY: machine code, which owns the frame, waits for this function
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    // SAFETY: machine code waits, and the references above do not include these fields of the frame
    let (hashed, hash) = unsafe { ((*frame).hashed != 0, (*frame).hash) };
    let (call, hit) = machine.find(program, slots, table as usize, key, data, hashed.then_some(hash));
    Answer::new(call, hit)
}

/// Looks up a key in a plain table, whose entries consist only of their actions.
///
/// # Safety
/// The requirements of [`Frame::parts`] must be fulfilled.
#[inline(always)]
unsafe fn answer(frame: *mut Frame, table: u64, key: &[u64]) -> Answer {
    // SAFETY: machine code, which owns the frame, waits for this function
    let machine = unsafe { &*(*frame).machine };
    let table = table as usize;
    machine.tables[table].answer(key).unwrap_or(machine.misses[table])
}

unsafe extern "C" fn answer_one(frame: *mut Frame, table: u64, a: u64) -> Answer {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    unsafe { answer(frame, table, &[a]) }
}

unsafe extern "C" fn answer_two(frame: *mut Frame, table: u64, a: u64, b: u64) -> Answer {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    unsafe { answer(frame, table, &[a, b]) }
}

unsafe extern "C" fn find_one(frame: *mut Frame, table: u64, a: u64) -> Answer {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    unsafe { find(frame, table, &[a]) }
}

unsafe extern "C" fn find_two(frame: *mut Frame, table: u64, a: u64, b: u64) -> Answer {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    unsafe { find(frame, table, &[a, b]) }
}

unsafe extern "C" fn find_row(frame: *mut Frame, table: u64, key: *const u64, words: u64) -> Answer {
    // SAFETY: machine code calls this function with its own frame and waits; the key is on the stack of machine code
    unsafe { find(frame, table, std::slice::from_raw_parts(key, words as usize)) }
}

/// Returns the meter's colour. If the index is outside of the array, returns `old`, the destination's current value.
unsafe extern "C" fn meter(frame: *mut Frame, meter: u64, index: u64, old: u64) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, machine, .. } = unsafe { Frame::parts(frame) };
    machine.execute_meter(program, meter as usize, index).unwrap_or(old)
}

unsafe extern "C" fn extension(frame: *mut Frame, index: u64) -> i64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let result = machine.ext(program, &program.code.ext[index as usize], slots, data);
    // SAFETY: machine code, which owns the frame, waits for this function
    unsafe { ended(frame, result) }
}

/// Returns the address at which the parser continues. After an error, returns [`NONE`].
unsafe extern "C" fn select(frame: *mut Frame, index: u64) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let to: Result<Pc, Stop> = machine.select(program, &program.code, slots, index as usize, data);
    match to {
        Ok(to) => to.into(),
        Err(stop) => {
            // SAFETY: machine code, which owns the frame, waits for this function
            unsafe { ended(frame, Err(stop)) };
            NONE.into()
        }
    }
}

unsafe extern "C" fn calculate(frame: *mut Frame, calculation: u64) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let payload = data.get(machine.position..).unwrap_or(&[]);
    program.objects.calculations[calculation as usize].output(slots, &program.phv, payload, &mut machine.scratch)
}

unsafe extern "C" fn hash(algorithm: u64, bytes: *const u8, length: u64) -> u64 {
    // SAFETY: the bytes are on the stack of machine code, which waits for this function
    HASHES[algorithm as usize].of(unsafe { std::slice::from_raw_parts(bytes, length as usize) })
}

/// Calls [`crc32_of_number`] for machine code.
unsafe extern "C" fn crc32_short(high: u64, low: u64) -> u64 {
    crc32_of_number(high, low).into()
}

/// Returns the functions of [`CALLS`] for which this processor has a faster replacement, with the replacement's
/// address.
pub fn faster_calls() -> Vec<(&'static str, *const u8)> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1") {
        return vec![("crc32_short", clmul::crc32_short as *const u8)];
    }
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
mod clmul {
    /// Computes the result of the portable `crc32_short` by carry-less multiplication.
    ///
    /// # Safety
    /// The processor must have carry-less multiplication and SSE 4.1.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub unsafe extern "C" fn crc32_short(high: u64, low: u64) -> u64 {
        crate::hash::clmul::crc32_of_number(high, low).into()
    }
}

/// Returns the one's complement sum of the bytes after the parsed headers, not yet folded to 16 bits (see
/// [`sum_words`]).
unsafe extern "C" fn sum_payload(frame: *mut Frame) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { machine, data, .. } = unsafe { Frame::parts(frame) };
    sum_words(data.get(machine.position..).unwrap_or(&[]))
}

/// Returns the one's complement sum of a variable-length field's bytes, not yet folded to 16 bits. The field has the
/// first slot `slot`, and its value occupies up to `limbs` slots.
unsafe extern "C" fn sum_varbit(frame: *mut Frame, slot: u64, limbs: u64) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { slots, .. } = unsafe { Frame::parts(frame) };
    let field = FieldRef { slot: slot as Slot, width: 64 * limbs as u32, signed: false, varbit: true };
    let sum = crate::calc::sum_varbit(slots, field);
    // Adding the carry does not change the sum modulo 2^16 - 1, and the result is zero only if the original sum is
    // zero.
    let (sum, carry) = ((sum >> 64) as u64).overflowing_add(sum as u64);
    sum + u64::from(carry)
}

/// Writes a header to the header buffer, beginning at byte `at`. Returns the offset after the header.
unsafe extern "C" fn deparse(frame: *mut Frame, header: u64, at: u64) -> u64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, slots, .. } = unsafe { Frame::parts(frame) };
    let h = &program.phv.headers[header as usize];
    let plan = &program.phv.plans[usize::from(h.plan)];
    // SAFETY: machine code waits, and the references above do not include the header buffer
    let head = unsafe { &mut *(*frame).buffer };
    head.cut(at as usize);
    plan.deparse(slots, h.base, head);
    head.bytes().len() as u64
}

/// Extracts a header of a kind for which machine code contains no extraction.
unsafe extern "C" fn extract(frame: *mut Frame, header: u64) -> i64 {
    // SAFETY: only machine code calls this function; it passes its own frame, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let result = machine.extract(program, slots, header as usize, data);
    // SAFETY: machine code, which owns the frame, waits for this function
    unsafe { ended(frame, result) }
}
