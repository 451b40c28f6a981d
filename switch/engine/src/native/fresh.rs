//! A function without branches that initializes the slots that may be read before they are written.

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::{I64, I64X2};
use cranelift_codegen::ir::{Function, InstBuilder, MemFlags, UserFuncName, Value};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};

use super::emit::signature;
use crate::layout::Slot;

/// The maximum number of slots that machine code initializes. If more slots of a program need an initial value, no
/// machine code is generated for this purpose, and the initial values of all slots are copied instead.
pub const MAX_SLOTS: usize = 512;

/// Compiles a function that initializes slots; its parameter is the address of the slots. `needed` are the slots to
/// initialize, and `values` the initial values of all slots. Returns `None` if there are too many slots to initialize.
pub fn define(module: &mut JITModule, needed: &[Slot], values: &[u64]) -> Result<Option<FuncId>, String> {
    if needed.len() > MAX_SLOTS {
        return Ok(None);
    }
    let signature = signature(module, 1, 0);
    let id = module.declare_anonymous_function(&signature).map_err(|e| e.to_string())?;
    let mut context = Context::new();
    context.func = Function::with_name_signature(UserFuncName::user(1, 0), signature);
    let mut buffers = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut buffers);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let slots = b.block_params(block)[0];
    stores(&mut b, slots, needed, values);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize();
    module.define_function(id, &mut context).map_err(|e| format!("start values: {e:?}"))?;
    module.clear_context(&mut context);
    Ok(Some(id))
}

/// Emits the stores that initialize these slots as a part of another function.
pub fn stores(b: &mut FunctionBuilder, slots: Value, needed: &[Slot], values: &[u64]) {
    let zero = b.ins().iconst(I64, 0);
    let zeros = b.ins().splat(I64X2, zero);
    let mut done = 0;
    for slot in needed.iter().map(|&slot| usize::from(slot)) {
        if slot < done {
            continue;
        }
        // One store sets two slots if both initial values are zero. A second slot that does not need the initial value
        // may be set, because no code has written it yet.
        let pair = values[slot..].starts_with(&[0, 0]);
        let value = match values[slot] {
            _ if pair => zeros,
            0 => zero,
            value => b.ins().iconst(I64, value as i64),
        };
        b.ins().store(MemFlags::new().with_notrap(), value, slots, 8 * slot as i32);
        done = slot + 1 + usize::from(pair);
    }
}
