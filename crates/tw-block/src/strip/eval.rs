//! The interpreter: one loop over the strip per step.

use tw_ir::dtype::{C64, C128, CastFrom, bf16, f16};
use tw_ir::{BinaryOp, Buffer, DType, Scalar, Writable, with_slice_mut};

use super::code::{Operation, Source, Step, StripCode};
use super::ops;
use super::{InRegisters, Lane, Registers, Values, with_dtype};

/// Where results go without a detour through registers: consecutive elements of one buffer per result.
pub(crate) struct Direct<'a, B> {
    /// One per result.
    pub(crate) buffers: &'a mut [B],
    /// Position of the strip in all of them.
    pub(crate) start: usize,
}

/// The registers and operands that a step may read.
struct Inputs<'a> {
    code: &'a StripCode,
    lanes: &'a [Option<Lane<'a>>],
    registers: &'a Registers,
    len: usize,
}

impl<'a> Inputs<'a> {
    fn lane(&self, source: Source) -> Lane<'a> {
        match source {
            Source::Const(value) => Lane::same(value),
            Source::Register(register) => self.registers.lane(register, self.len),
            Source::Param(k) => match self.lanes.get(k as usize) {
                Some(Some(lane)) => *lane,
                _ => self.registers.lane(self.code.params[k as usize], self.len),
            },
        }
    }

    fn values<T: InRegisters>(&self, source: Source) -> Values<'a, T> {
        T::of_lane(self.lane(source))
    }

    /// The result, if all inputs are the same for the whole strip.
    fn uniform(&self, step: &Step) -> Option<Scalar> {
        let mut scalars = [Scalar::Bool(false); 3];
        for (scalar, &source) in scalars.iter_mut().zip(&step.inputs[..step.operation.n_inputs()]) {
            *scalar = self.lane(source).as_same()?;
        }
        Some(step.operation.on_scalars(scalars, step.target.dtype))
    }
}

impl StripCode {
    /// Evaluates a strip of `len` elements; [`StripCode::result`] tells the results. Parameters without a lane are taken from their registers.
    pub(crate) fn eval(&self, lanes: &[Option<Lane<'_>>], registers: &mut Registers, len: usize) {
        self.eval_into(lanes, registers, len, None::<Direct<'_, Buffer>>);
    }

    /// Evaluates a strip of `len` elements, and puts the results where they belong.
    pub(crate) fn eval_into<B: Writable>(
        &self,
        lanes: &[Option<Lane<'_>>],
        registers: &mut Registers,
        len: usize,
        mut direct: Option<Direct<'_, B>>,
    ) {
        for step in &self.steps {
            let inputs = Inputs { code: self, lanes, registers, len };
            let uniform = inputs.uniform(step);
            if let (Some(direct), Some(k)) = (&mut direct, step.result) {
                let range = direct.start..direct.start + len;
                with_slice_mut!(direct.buffers[k as usize].elements_mut(), out => {
                    store(&inputs, step, uniform, &mut out[range])
                });
                continue;
            }
            if let Some(value) = uniform {
                registers.set_same(step.target, value);
                continue;
            }
            with_dtype!(step.target.dtype, T => self.fill_register::<T>(step, lanes, registers, len));
        }
        if let Some(direct) = direct {
            self.copy_remaining(lanes, registers, len, direct);
        }
    }

    fn fill_register<T: Compute>(
        &self,
        step: &Step,
        lanes: &[Option<Lane<'_>>],
        registers: &mut Registers,
        len: usize,
    ) {
        // The target differs from every input, so its vector can be taken out while the inputs are borrowed.
        let mut vector = registers.take_vector::<T>(step.target.index, len);
        T::compute(&Inputs { code: self, lanes, registers, len }, step, &mut vector[..len]);
        registers.put_vector(step.target.index, vector);
    }

    /// Copies the results that are parameters, constants, or also inputs of other steps.
    fn copy_remaining<B: Writable>(
        &self,
        lanes: &[Option<Lane<'_>>],
        registers: &Registers,
        len: usize,
        direct: Direct<'_, B>,
    ) {
        let inputs = Inputs { code: self, lanes, registers, len };
        let range = direct.start..direct.start + len;
        for (k, (&source, buffer)) in self.results.iter().zip(direct.buffers).enumerate() {
            if self.steps.iter().any(|step| step.result == Some(k as u32)) {
                continue;
            }
            with_slice_mut!(buffer.elements_mut(), out => ops::copy(inputs.values(source), &mut out[range.clone()]));
        }
    }

    /// A result of the last evaluation, which must have been given the same lanes and length.
    pub(crate) fn result<'a>(
        &'a self,
        k: usize,
        lanes: &'a [Option<Lane<'a>>],
        registers: &'a Registers,
        len: usize,
    ) -> Lane<'a> {
        Inputs { code: self, lanes, registers, len }.lane(self.results[k])
    }
}

fn store<T: Compute>(inputs: &Inputs<'_>, step: &Step, uniform: Option<Scalar>, out: &mut [T]) {
    match uniform {
        Some(value) => out.fill(T::from_scalar(value)),
        None => T::compute(inputs, step, out),
    }
}

/// Element types as targets of steps.
trait Compute: InRegisters {
    /// Runs the loop of a step whose result is of this type.
    fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [Self]);
}

/// Conversions and choices, which all types have, and which are all that halves have.
fn convert_or_choose<T: InRegisters>(inputs: &Inputs<'_>, step: &Step, out: &mut [T]) {
    let [a, b, c] = step.inputs;
    match step.operation {
        Operation::Select => ops::select(inputs.values(a), inputs.values(b), inputs.values(c), out),
        _ => convert(inputs.lane(a), out),
    }
}

/// Elements converted on the way through another type at once: few enough for the nearest cache.
const ON_THE_WAY: usize = 256;

/// Converts a lane. Narrow types go through a wider one of their kind, which changes no value: loops for every pair of types would be hundreds.
pub(crate) fn convert<T: InRegisters>(lane: Lane<'_>, out: &mut [T]) {
    match lane {
        Lane::I32(Values::Each(a)) => ops::cast(a, out),
        Lane::I64(Values::Each(a)) => ops::cast(a, out),
        Lane::U64(Values::Each(a)) => ops::cast(a, out),
        Lane::F32(Values::Each(a)) => ops::cast(a, out),
        Lane::F64(Values::Each(a)) => ops::cast(a, out),
        Lane::C128(Values::Each(a)) => ops::cast(a, out),
        Lane::Bool(Values::Each(a)) => convert_through::<_, i32, T>(a, out),
        Lane::I8(Values::Each(a)) => convert_through::<_, i32, T>(a, out),
        Lane::I16(Values::Each(a)) => convert_through::<_, i32, T>(a, out),
        Lane::U8(Values::Each(a)) => convert_through::<_, i32, T>(a, out),
        Lane::U16(Values::Each(a)) => convert_through::<_, i32, T>(a, out),
        Lane::U32(Values::Each(a)) => convert_through::<_, i64, T>(a, out),
        Lane::F16(Values::Each(a)) => convert_through::<_, f32, T>(a, out),
        Lane::BF16(Values::Each(a)) => convert_through::<_, f32, T>(a, out),
        Lane::C64(Values::Each(a)) => convert_through::<_, C128, T>(a, out),
        same => {
            if let Some(value) = same.as_same() {
                out.fill(T::from_scalar(value));
            }
        }
    }
}

fn convert_through<S: Copy, P: CastFrom<S> + Copy + Default, T: CastFrom<P>>(a: &[S], out: &mut [T]) {
    let mut wide = [P::default(); ON_THE_WAY];
    for (a, out) in a.chunks(ON_THE_WAY).zip(out.chunks_mut(ON_THE_WAY)) {
        ops::cast(a, &mut wide[..a.len()]);
        ops::cast(&wide[..a.len()], out);
    }
}

macro_rules! halves {
    ($($type:ty)*) => {
        $(impl Compute for $type {
            fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [Self]) {
                convert_or_choose(inputs, step, out)
            }
        })*
    };
}
halves! { f16 bf16 }

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Compute for $type {
            fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [Self]) {
                let [a, b, _] = step.inputs;
                match step.operation {
                    Operation::Unary(op) => ops::unary_integer(op, inputs.values(a), out),
                    Operation::Binary(op) => ops::binary_integer(op, inputs.values(a), inputs.values(b), out),
                    _ => convert_or_choose(inputs, step, out),
                }
            }
        })*
    };
}
integers! { i8 i16 i32 u8 u16 u32 u64 }

impl Compute for i64 {
    fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [i64]) {
        let [a, b, _] = step.inputs;
        match step.operation {
            Operation::Unary(op) => ops::unary_integer(op, inputs.values(a), out),
            Operation::Binary(op) => ops::binary_integer(op, inputs.values(a), inputs.values(b), out),
            Operation::Random { distribution, seed } => ops::random_i64(distribution, seed, inputs.values(a), out),
            _ => convert_or_choose(inputs, step, out),
        }
    }
}

impl Compute for f64 {
    fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [f64]) {
        let [a, b, _] = step.inputs;
        match step.operation {
            Operation::Unary(op) if step.input == DType::C128 => ops::part(op, inputs.values::<C128>(a), out),
            Operation::Unary(op) => ops::unary_f64(op, inputs.values(a), out),
            Operation::Binary(op) => ops::binary_f64(op, inputs.values(a), inputs.values(b), out),
            Operation::Random { distribution, seed } => ops::random_f64(distribution, seed, inputs.values(a), out),
            _ => convert_or_choose(inputs, step, out),
        }
    }
}

impl Compute for f32 {
    fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [f32]) {
        let [a, b, _] = step.inputs;
        match step.operation {
            Operation::Unary(op) if step.input == DType::C64 => ops::part(op, inputs.values::<C64>(a), out),
            Operation::Unary(op) => ops::unary_f32(op, inputs.values(a), out),
            Operation::Binary(op) => ops::binary_f32(op, inputs.values(a), inputs.values(b), out),
            _ => convert_or_choose(inputs, step, out),
        }
    }
}

macro_rules! complex {
    ($($type:ty, $part:ty;)*) => {
        $(impl Compute for $type {
            fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [Self]) {
                let [a, b, _] = step.inputs;
                match step.operation {
                    Operation::Unary(op) => ops::unary_complex(op, inputs.values(a), out),
                    Operation::Binary(BinaryOp::Complex) => {
                        ops::join(inputs.values::<$part>(a), inputs.values::<$part>(b), out)
                    }
                    Operation::Binary(op) => ops::binary_complex(op, inputs.values(a), inputs.values(b), out),
                    _ => convert_or_choose(inputs, step, out),
                }
            }
        })*
    };
}
complex! { C64, f32; C128, f64; }

impl Compute for bool {
    fn compute(inputs: &Inputs<'_>, step: &Step, out: &mut [bool]) {
        let [a, b, _] = step.inputs;
        macro_rules! compare {
            ($($dtype:ident $type:ty,)*) => {
                match (step.operation, step.input) {
                    (Operation::Unary(op), DType::F64) => ops::classify_f64(op, inputs.values(a), out),
                    (Operation::Unary(op), DType::F32) => ops::classify_f32(op, inputs.values(a), out),
                    // `not` is the only operation on one bool.
                    (Operation::Unary(_), _) => ops::not_bool(inputs.values(a), out),
                    (Operation::Binary(op), DType::Bool) => {
                        ops::binary_bool(op, inputs.values(a), inputs.values(b), out)
                    }
                    $((Operation::Binary(op), DType::$dtype) => {
                        ops::compare::<$type>(op, inputs.values(a), inputs.values(b), out)
                    })*
                    (Operation::Binary(op), DType::C64) => {
                        ops::equal::<C64>(op, inputs.values(a), inputs.values(b), out)
                    }
                    (Operation::Binary(op), DType::C128) => {
                        ops::equal::<C128>(op, inputs.values(a), inputs.values(b), out)
                    }
                    _ => convert_or_choose(inputs, step, out),
                }
            };
        }
        compare! {
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64,
        }
    }
}
