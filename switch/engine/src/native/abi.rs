//! The interface between Rust and machine code: the data passed to machine code, and the functions that machine code
//! calls.
//!
//! All of the crate's unsafe code is here, in [`super`] and in [`crate::machine_code`]. It relies on these facts:
//! - [`MachineCode::run`](crate::machine_code::MachineCode::run) makes a [`Frame`] from exclusive borrows that last
//!   until machine code returns. Only the frame has the pointers, and a function here makes references from them only
//!   while machine code waits for that function.
//! - Machine code accesses slots by 16-bit numbers (the array has 65,536), arrays below their size (which never
//!   changes), the packet below its length, and the header buffer no further than the longest headers of the program.
//! - No function here unwinds into machine code: `extern "C"` ends the process first.

use crate::code::Pc;
use crate::hash::{Hash, crc32_of_number, sum_words};
use crate::layout::{FieldRef, Slot, Slots};
use crate::machine::{Machine, Stop, TableState};
use crate::phv::Head;
use crate::program::Program;
use crate::table::answer::{Answer, NONE};

/// The data that machine code works on.
#[repr(C)]
pub struct Frame {
    pub slots: *mut Slots,
    pub machine: *mut Machine,
    pub data: *const u8,
    pub length: usize,
    /// The address of the header buffer's first byte, and of the buffer itself.
    pub head: *mut u8,
    pub buffer: *mut Head,
    /// Addresses of the first cells of all register arrays, then of all counter arrays.
    pub arrays: *const usize,
    /// The tables, and their answers on a miss.
    pub tables: *const TableState,
    pub misses: *const Answer,
    /// The parser's error, if it raised one.
    pub error: u64,
    /// For the fast path: the ingress port, later replaced by the egress port (`port`), and the time in microseconds
    /// (`micros`).
    pub port: u64,
    pub micros: u64,
    /// For the fast path: the number of bytes parsed, and the length of the headers written.
    pub parsed: usize,
    pub head_length: usize,
    /// The selector's hash for the table that is looked up next; valid if `hashed` is not 0.
    pub hash: u64,
    pub hashed: u64,
    pub program: *const Program,
}

/// How a run ended.
pub const DONE: i64 = 0;
pub const PARSER_ERROR: i64 = 1;
pub const ASSERTION: i64 = 2;
pub const NO_FUEL: i64 = 3;
/// The fast path adds these to the status of the last stage that it ran, if it got past the parser or past ingress.
pub const PAST_INGRESS: i64 = 16;
pub const PAST_EGRESS: i64 = 32;
/// The status of the fast path if it has written the headers.
pub const SENT: i64 = 48;

/// The functions that machine code calls: name, address, and the numbers of parameters and results, all integers of 64
/// bits.
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

/// The hash algorithms, by the number that machine code passes.
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
    /// Turns the frame's pointers into references.
    ///
    /// # Safety
    /// To be called only while machine code that was given this frame waits, and not again before the references are
    /// dropped.
    unsafe fn parts<'a>(frame: *mut Frame) -> Parts<'a> {
        // SAFETY: all of them were borrowed for the run of the machine code, and nothing else uses them meanwhile.
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

/// The status that a result stands for in machine code.
///
/// # Safety
/// As for [`Frame::parts`].
unsafe fn ended(frame: *mut Frame, result: Result<(), Stop>) -> i64 {
    match result {
        Ok(()) => DONE,
        Err(Stop::Parser(error)) => {
            // SAFETY: the frame belongs to machine code, which waits.
            unsafe { (*frame).error = error };
            PARSER_ERROR
        }
        Err(Stop::Assertion) => ASSERTION,
        Err(Stop::Fuel) => NO_FUEL,
    }
}

/// Looks up a key in any table.
///
/// # Safety
/// As for [`Frame::parts`].
unsafe fn find(frame: *mut Frame, table: u64, key: &[u64]) -> Answer {
    // SAFETY: machine code waits
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    // SAFETY: as above
    let (hashed, hash) = unsafe { ((*frame).hashed != 0, (*frame).hash) };
    let (call, hit) = machine.find(program, slots, table as usize, key, data, hashed.then_some(hash));
    Answer::new(call, hit)
}

/// Looks up a key in a plain table.
///
/// # Safety
/// As for [`Frame::parts`].
#[inline(always)]
unsafe fn answer(frame: *mut Frame, table: u64, key: &[u64]) -> Answer {
    // SAFETY: machine code waits
    let machine = unsafe { &*(*frame).machine };
    let table = table as usize;
    machine.tables[table].answer(key).unwrap_or(machine.misses[table])
}

unsafe extern "C" fn answer_one(frame: *mut Frame, table: u64, a: u64) -> Answer {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    unsafe { answer(frame, table, &[a]) }
}

unsafe extern "C" fn answer_two(frame: *mut Frame, table: u64, a: u64, b: u64) -> Answer {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    unsafe { answer(frame, table, &[a, b]) }
}

unsafe extern "C" fn find_one(frame: *mut Frame, table: u64, a: u64) -> Answer {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    unsafe { find(frame, table, &[a]) }
}

unsafe extern "C" fn find_two(frame: *mut Frame, table: u64, a: u64, b: u64) -> Answer {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    unsafe { find(frame, table, &[a, b]) }
}

unsafe extern "C" fn find_row(frame: *mut Frame, table: u64, key: *const u64, words: u64) -> Answer {
    // SAFETY: machine code calls this with its frame and waits; the key is on its stack
    unsafe { find(frame, table, std::slice::from_raw_parts(key, words as usize)) }
}

/// Returns the colour, or `old`, the destination's value, if the index is outside of the array.
unsafe extern "C" fn meter(frame: *mut Frame, meter: u64, index: u64, old: u64) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, machine, .. } = unsafe { Frame::parts(frame) };
    machine.execute_meter(program, meter as usize, index).unwrap_or(old)
}

unsafe extern "C" fn extension(frame: *mut Frame, index: u64) -> i64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let result = machine.ext(program, &program.code.ext[index as usize], slots, data);
    // SAFETY: as above
    unsafe { ended(frame, result) }
}

/// Returns the address at which the parser continues; [`NONE`] after an error.
unsafe extern "C" fn select(frame: *mut Frame, index: u64) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let to: Result<Pc, Stop> = machine.select(program, &program.code, slots, index as usize, data);
    match to {
        Ok(to) => to.into(),
        Err(stop) => {
            // SAFETY: as above
            unsafe { ended(frame, Err(stop)) };
            NONE.into()
        }
    }
}

unsafe extern "C" fn calculate(frame: *mut Frame, calculation: u64) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let payload = data.get(machine.position..).unwrap_or(&[]);
    program.objects.calculations[calculation as usize].output(slots, &program.phv, payload, &mut machine.scratch)
}

unsafe extern "C" fn hash(algorithm: u64, bytes: *const u8, length: u64) -> u64 {
    // SAFETY: the bytes are on the stack of machine code, which waits
    HASHES[algorithm as usize].of(unsafe { std::slice::from_raw_parts(bytes, length as usize) })
}

/// See [`crc32_of_number`].
unsafe extern "C" fn crc32_short(high: u64, low: u64) -> u64 {
    crc32_of_number(high, low).into()
}

/// Replacements for functions of [`CALLS`] that are faster on this processor.
pub fn faster_calls() -> Vec<(&'static str, *const u8)> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1") {
        return vec![("crc32_short", clmul::crc32_short as *const u8)];
    }
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
mod clmul {
    /// The same as the portable `crc32_short`.
    ///
    /// # Safety
    /// Only for processors that have carry-less multiplication and SSE 4.1.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub unsafe extern "C" fn crc32_short(high: u64, low: u64) -> u64 {
        crate::hash::clmul::crc32_of_number(high, low).into()
    }
}

/// The one's complement sum of the bytes after the parsed headers.
unsafe extern "C" fn sum_payload(frame: *mut Frame) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { machine, data, .. } = unsafe { Frame::parts(frame) };
    sum_words(data.get(machine.position..).unwrap_or(&[]))
}

/// The one's complement sum of a variable-length field's bytes.
unsafe extern "C" fn sum_varbit(frame: *mut Frame, slot: u64, limbs: u64) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { slots, .. } = unsafe { Frame::parts(frame) };
    let field = FieldRef { slot: slot as Slot, width: 64 * limbs as u32, signed: false, varbit: true };
    let sum = crate::calc::sum_varbit(slots, field);
    // The folded sum is the same modulo 2^16 - 1, and zero only if the original is.
    let (sum, carry) = ((sum >> 64) as u64).overflowing_add(sum as u64);
    sum + u64::from(carry)
}

/// Writes a header to the header buffer from byte `at` on; returns the position after it.
unsafe extern "C" fn deparse(frame: *mut Frame, header: u64, at: u64) -> u64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, slots, .. } = unsafe { Frame::parts(frame) };
    let h = &program.phv.headers[header as usize];
    let plan = &program.phv.plans[usize::from(h.plan)];
    // SAFETY: as above
    let head = unsafe { &mut *(*frame).buffer };
    head.cut(at as usize);
    plan.deparse(slots, h.base, head);
    head.bytes().len() as u64
}

/// Extracts a header that machine code does not extract itself.
unsafe extern "C" fn extract(frame: *mut Frame, header: u64) -> i64 {
    // SAFETY: only machine code calls this, with the frame of the run that called it, which nothing else borrows
    let Parts { program, machine, slots, data } = unsafe { Frame::parts(frame) };
    let result = machine.extract(program, slots, header as usize, data);
    // SAFETY: as above
    unsafe { ended(frame, result) }
}
