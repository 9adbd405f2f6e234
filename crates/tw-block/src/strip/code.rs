//! Scalar code with a register for every value.

use tw_ir::scalar::{eval_binary, eval_random, eval_unary};
use tw_ir::{BinaryOp, DType, RandomDistribution, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp};

use super::RegisterId;

/// Hands out registers, and counts how many there must be.
#[derive(Debug, Default)]
pub(crate) struct RegisterPlan {
    /// Per physical type. Boxed, since plans lie inside small enums.
    files: Box<[RegisterFile; DType::N_PHYSICAL]>,
}

#[derive(Debug, Default)]
struct RegisterFile {
    next: u32,
    free: Vec<u32>,
}

impl RegisterPlan {
    /// An unused register.
    pub(crate) fn take(&mut self, dtype: DType) -> RegisterId {
        let file = &mut self.files[dtype.physical_index()];
        let index = file.free.pop().unwrap_or_else(|| {
            file.next += 1;
            file.next - 1
        });
        RegisterId { dtype: dtype.storage(), index }
    }

    fn give_back(&mut self, register: RegisterId) {
        self.files[register.dtype.physical_index()].free.push(register.index);
    }

    /// Number of registers of a type.
    pub(crate) fn count(&self, dtype: DType) -> usize {
        self.files[dtype.physical_index()].next as usize
    }
}

/// Where a value is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The k-th parameter: a lane given by the caller, or else the parameter's register.
    Param(u32),
    Const(Scalar),
    Register(RegisterId),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Select,
    Cast,
    Random { distribution: RandomDistribution, seed: u64 },
}

/// One loop over a strip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) operation: Operation,
    pub(super) inputs: [Source; 3],
    /// Type of the last input: what decides which loop runs.
    pub(super) input: DType,
    pub(super) target: RegisterId,
    /// The result this is, if it is needed for nothing else: it may go straight to where results go.
    pub(super) result: Option<u32>,
}

/// Scalar code ready to be evaluated on strips.
#[derive(Debug)]
pub(crate) struct StripCode {
    pub(super) steps: Vec<Step>,
    pub(super) results: Vec<Source>,
    pub(super) params: Vec<RegisterId>,
}

impl StripCode {
    /// Plans registers for the code. Registers of parameters and results stay taken; others may be reused by code compiled later.
    pub(crate) fn compile(code: &ScalarCode, plan: &mut RegisterPlan) -> StripCode {
        StripCode::compile_after(&[], code, plan)
    }

    /// As [`StripCode::compile`], for code whose first parameters are found in the given registers.
    pub(crate) fn compile_after(first: &[RegisterId], code: &ScalarCode, plan: &mut RegisterPlan) -> StripCode {
        let code = code.without_dead_ops();
        let mut params = first.to_vec();
        params.extend(code.params()[first.len()..].iter().map(|&dtype| plan.take(dtype)));
        let n = code.ops().len();
        let mut last_use = vec![0usize; n];
        for (k, op) in code.ops().iter().enumerate() {
            op.inputs().for_each(|slot| last_use[slot.0 as usize] = k);
        }
        let mut n_results = vec![0; n];
        for slot in code.results() {
            n_results[slot.0 as usize] += 1;
            last_use[slot.0 as usize] = n;
        }
        let mut sources: Vec<Source> = Vec::with_capacity(n);
        let mut steps = Vec::new();
        for (k, op) in code.ops().iter().enumerate() {
            let source = match *op {
                ScalarOp::Param(param) => Source::Param(param),
                ScalarOp::Const(value) => Source::Const(value),
                op => {
                    let inputs: Vec<Source> = op.inputs().map(|slot| sources[slot.0 as usize]).collect();
                    match fold_constants(op, &inputs) {
                        Some(value) => Source::Const(value),
                        None => {
                            let target = plan.take(code.dtype(Slot(k as u32)));
                            let read_later =
                                code.ops()[k + 1..].iter().any(|op| op.inputs().any(|s| s.0 as usize == k));
                            let result = (n_results[k] == 1 && !read_later)
                                .then(|| code.results().iter().position(|slot| slot.0 as usize == k))
                                .flatten();
                            let last = op.inputs().last().unwrap_or(Slot(0));
                            steps.push(Step {
                                operation: operation(op),
                                inputs: padded(&inputs),
                                input: code.dtype(last),
                                target,
                                result: result.map(|k| k as u32),
                            });
                            Source::Register(target)
                        }
                    }
                }
            };
            sources.push(source);
            // A register is free again after its last use; the target was chosen before, so it differs from all inputs.
            let mut freed: Vec<u32> = Vec::new();
            for slot in op.inputs() {
                if last_use[slot.0 as usize] == k
                    && !freed.contains(&slot.0)
                    && let Source::Register(register) = sources[slot.0 as usize]
                {
                    plan.give_back(register);
                    freed.push(slot.0);
                }
            }
        }
        let results = code.results().iter().map(|slot| sources[slot.0 as usize]).collect();
        StripCode { steps, results, params }
    }

    /// The registers of the parameters.
    pub(crate) fn params(&self) -> &[RegisterId] {
        &self.params
    }

    /// The parameter that is the only result, if nothing is computed.
    pub(crate) fn as_param(&self) -> Option<usize> {
        match (self.steps.as_slice(), self.results.as_slice()) {
            ([], [Source::Param(k)]) => Some(*k as usize),
            _ => None,
        }
    }

    /// True if nothing is computed: results are parameters or constants.
    pub(crate) fn is_trivial(&self) -> bool {
        self.steps.is_empty()
    }
}

fn operation(op: ScalarOp) -> Operation {
    match op {
        ScalarOp::Unary(op, _) => Operation::Unary(op),
        ScalarOp::Binary(op, _, _) => Operation::Binary(op),
        ScalarOp::Select(..) => Operation::Select,
        ScalarOp::Random { distribution, seed, .. } => Operation::Random { distribution, seed },
        // Parameters and constants make no step.
        ScalarOp::Cast(..) | ScalarOp::Param(_) | ScalarOp::Const(_) => Operation::Cast,
    }
}

fn padded(inputs: &[Source]) -> [Source; 3] {
    let filler = Source::Const(Scalar::Bool(false));
    std::array::from_fn(|k| inputs.get(k).copied().unwrap_or(filler))
}

fn fold_constants(op: ScalarOp, inputs: &[Source]) -> Option<Scalar> {
    let mut values = [Scalar::Bool(false); 3];
    for (value, input) in values.iter_mut().zip(inputs) {
        match input {
            Source::Const(constant) => *value = *constant,
            _ => return None,
        }
    }
    let dtype = match op {
        ScalarOp::Cast(dtype, _) => dtype,
        _ => DType::Bool,
    };
    Some(operation(op).on_scalars(values, dtype))
}

impl Operation {
    /// The operation on one value each.
    pub(super) fn on_scalars(self, inputs: [Scalar; 3], target: DType) -> Scalar {
        match self {
            Operation::Unary(op) => eval_unary(op, inputs[0]),
            Operation::Binary(op) => eval_binary(op, inputs[0], inputs[1]),
            Operation::Select if inputs[0].is_true() => inputs[1],
            Operation::Select => inputs[2],
            Operation::Cast => inputs[0].cast(target),
            Operation::Random { distribution, seed } => eval_random(distribution, seed, inputs[0].as_i64()),
        }
    }

    /// How many inputs it has.
    pub(super) fn n_inputs(self) -> usize {
        match self {
            Operation::Unary(_) | Operation::Cast | Operation::Random { .. } => 1,
            Operation::Binary(_) => 2,
            Operation::Select => 3,
        }
    }
}
