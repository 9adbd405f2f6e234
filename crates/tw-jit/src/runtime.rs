//! What compiled code calls, and the memory it works on.
//!
//! A kernel is given a [`Frame`]. It holds the address of its parameters and one [`View`] per array: where the elements are, how many there
//! are, and for how many there is room. Arrays that a kernel makes are [`Buffer`]s of this side, as long as there is room: elements behind
//! the view's length are zeros or what a shortened array has left. Compiled code writes elements below the room, and changes the length; it
//! asks [`grow`] and [`resize`] for more. Both are ordinary checked code: sizes are bounded, an allocation that fails is an error, and a
//! limit of the caller is asked first. At the end every output is cut to its length.
#![allow(unsafe_code)]

use std::mem::{offset_of, size_of};
use std::sync::Arc;

use tw_ir::dtype::{C64, C128, bf16, f16};
use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{BinaryOp, Buffer, DType, Error, Result, Scalar, UnaryOp, with_buffer};
use tw_sparse::level::MAX_POSITIONS;
use tw_sparse::loops::interpret::{check_arguments, index_too_wide, outside, seek};
use tw_sparse::loops::{ArrayRole, LoopKernel};

use crate::sort::sort_keys;

/// Where an array is.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct View {
    data: *mut u8,
    length: u64,
    capacity: u64,
}

pub(crate) const VIEW_SIZE: usize = size_of::<View>();
pub(crate) const VIEW_DATA: i32 = offset_of!(View, data) as i32;
pub(crate) const VIEW_LENGTH: i32 = offset_of!(View, length) as i32;
pub(crate) const VIEW_CAPACITY: i32 = offset_of!(View, capacity) as i32;

/// What a kernel is given.
#[repr(C)]
pub(crate) struct Frame {
    params: *const i64,
    views: *mut View,
    /// The array and the index at which a kernel has failed.
    array: i64,
    index: i64,
    host: *mut Host<'static>,
}

/// Where the fields of a [`Frame`] are.
pub(crate) struct FrameOffset;
impl FrameOffset {
    pub(crate) const PARAMS: i32 = offset_of!(Frame, params) as i32;
    pub(crate) const VIEWS: i32 = offset_of!(Frame, views) as i32;
    pub(crate) const ARRAY: i32 = offset_of!(Frame, array) as i32;
    pub(crate) const INDEX: i32 = offset_of!(Frame, index) as i32;
}

/// How a kernel has ended.
pub(crate) struct Status;
impl Status {
    pub(crate) const DONE: i64 = 0;
    /// An index does not fit into the width of its array.
    pub(crate) const TOO_WIDE: i64 = 1;
    /// An index is outside its array.
    pub(crate) const OUTSIDE: i64 = 2;
    /// A function of this module has left an error in the host.
    pub(crate) const HOST: i64 = 3;
}

/// Asked before arrays of a kernel take more memory: the number of bytes.
pub type GrowthLimit = dyn Fn(u64) -> Result<()> + Send + Sync;

/// The side of this module.
struct Host<'a> {
    kernel: &'a LoopKernel,
    /// The arrays that the kernel makes.
    own: Vec<Option<Buffer>>,
    limit: Option<&'a GrowthLimit>,
    error: Option<Error>,
    /// Keys with their places, kept from sort to sort.
    keyed: Vec<(u64, u64)>,
    /// Memory of sorts of keys alone.
    words: Vec<u64>,
}

fn data_of(buffer: &mut Buffer) -> *mut u8 {
    with_buffer!(buffer, values => values.as_mut_ptr().cast())
}

/// Runs compiled code: parameters and input arrays in, output arrays out. Outputs get room for `lengths` from the start.
///
/// # Safety
///
/// `code` was compiled for this kernel by this crate, and its memory stays as it is meanwhile. Either the kernel keeps to its arrays, as
/// `crate::translate` argues, or it was compiled with checks.
pub(crate) unsafe fn run(
    kernel: &LoopKernel,
    code: unsafe extern "C" fn(*mut Frame) -> i64,
    params: &[i64],
    inputs: &[Arc<Buffer>],
    lengths: &[u64],
    limit: Option<&GrowthLimit>,
) -> Result<Vec<Buffer>> {
    // The code trusts numbers and types.
    check_arguments(kernel, params, inputs)?;
    let (mut given, mut own, mut views) = (inputs.iter(), Vec::new(), Vec::new());
    for array in &kernel.arrays {
        match (array.role, given.len()) {
            (ArrayRole::Input, 1..) => {
                let Some(buffer) = given.next() else { continue };
                let length = buffer.len() as u64;
                let data: *const u8 = with_buffer!(&**buffer, values => values.as_ptr().cast());
                // The verifier has seen that inputs are never written, so the pointer is only read through.
                views.push(View { data: data.cast_mut(), length, capacity: length });
                own.push(None);
            }
            _ => {
                let mut buffer = Buffer::zeros(array.kind.stored(), 0);
                views.push(View { data: data_of(&mut buffer), length: 0, capacity: 0 });
                own.push(Some(buffer));
            }
        }
    }
    let mut host = Host { kernel, own, limit, error: None, keyed: Vec::new(), words: Vec::new() };
    let outputs = (0..kernel.arrays.len()).filter(|&k| kernel.arrays[k].role == ArrayRole::Output);
    for (k, &length) in outputs.zip(lengths).filter(|(_, length)| (1..=MAX_POSITIONS).contains(*length)) {
        host.reserve(k, &mut views[k], length)?;
    }
    let mut frame = Frame {
        params: params.as_ptr(),
        views: views.as_mut_ptr(),
        array: 0,
        index: 0,
        // The lifetime is left out of the pointer; the host outlives the call.
        host: (&raw mut host).cast(),
    };
    // SAFETY: the caller vouches for the code. The frame, the views, the parameters and all buffers live until it returns, and nothing else
    // uses them meanwhile but the functions of this module, which the code calls one at a time.
    let status = unsafe { code(&raw mut frame) };
    let name = || kernel.arrays.get(frame.array as usize).map_or("?", |array| array.name.as_str());
    match status {
        Status::DONE => {}
        Status::TOO_WIDE => {
            let kind = kernel.arrays.get(frame.array as usize).map(|array| array.kind);
            return Err(index_too_wide(frame.index, kind.map_or(DType::U64, |kind| kind.stored())));
        }
        Status::OUTSIDE => return Err(outside(kernel, name(), frame.index)),
        _ => return Err(host.error.unwrap_or_else(|| Error::internal("compiled code has ended without a reason"))),
    }
    let made = host.own.into_iter().zip(&views).zip(&kernel.arrays);
    Ok(made
        .filter_map(|((buffer, view), array)| {
            let mut buffer = buffer.filter(|_| array.role == ArrayRole::Output)?;
            with_buffer!(&mut buffer, values => values.truncate(view.length as usize));
            Some(buffer)
        })
        .collect())
}

/// The host and a view, while compiled code waits.
///
/// # Safety
///
/// `frame` is the frame that [`run`] has given to the code that calls, and `array` the position of one of its arrays.
unsafe fn borrow<'a>(frame: *mut Frame, array: i64) -> (&'a mut Host<'static>, &'a mut View) {
    // SAFETY: `run` keeps all of them alive and uses none of them before the code returns; the code calls one function at a time.
    unsafe {
        let frame = &mut *frame;
        (&mut *frame.host, &mut *frame.views.add(array as usize))
    }
}

/// An allocation beyond this is tried before it is made, so that its failure is an error.
const LARGE: u64 = 1 << 28;

impl Host<'_> {
    /// Makes room for `capacity` elements.
    fn reserve(&mut self, array: usize, view: &mut View, capacity: u64) -> Result<()> {
        let Some(Some(buffer)) = self.own.get_mut(array) else {
            return Err(Error::internal("compiled code grows an input"));
        };
        let size = buffer.dtype().size();
        let bytes = (capacity - view.capacity) * size;
        if let Some(limit) = self.limit {
            limit(bytes)?;
        }
        let no_room = || Error::resource(format!("no memory for an array of {capacity} elements"));
        if capacity * size > LARGE {
            Vec::<u8>::new().try_reserve_exact((capacity * size) as usize).map_err(|_| no_room())?;
        }
        match buffer.len() {
            // Zeros that the system gives are not written.
            0 => *buffer = Buffer::zeros(buffer.dtype(), capacity as usize),
            _ => with_buffer!(&mut *buffer, values => {
                values.try_reserve_exact(capacity as usize - values.len()).map_err(|_| no_room())?;
                values.resize(capacity as usize, Default::default());
            }),
        }
        (view.data, view.capacity) = (data_of(buffer), capacity);
        Ok(())
    }

    fn resize(&mut self, array: usize, view: &mut View, length: i64, fill: (u64, u64)) -> Result<()> {
        let wanted = u64::try_from(length)
            .ok()
            .filter(|&length| length <= MAX_POSITIONS)
            .ok_or_else(|| Error::resource(format!("an array of {length} elements is too large")))?;
        let is_fresh = view.capacity == 0;
        if wanted > view.capacity {
            // What grows by one element at a time must not be copied each time.
            let room = if is_fresh { wanted } else { wanted.max(view.capacity + view.capacity / 2) };
            self.reserve(array, view, room)?;
        }
        let Some(Some(buffer)) = self.own.get_mut(array) else {
            return Err(Error::internal("compiled code resizes an input"));
        };
        if !(is_fresh && fill == (0, 0)) {
            let fill = from_bits(buffer.dtype(), fill.0, fill.1);
            let (from, to) = (view.length as usize, wanted as usize);
            with_buffer!(&mut *buffer, values => values[from..to].fill(tw_ir::dtype::Element::from_scalar(fill)));
        }
        view.length = wanted;
        Ok(())
    }

    fn sort(&mut self, keys: usize, n: u64, values: Option<(usize, u64)>) -> Result<()> {
        let n = n as usize;
        let fault = || Error::internal("compiled code sorts what is no list of keys");
        let Some((values, n_values)) = values else {
            match self.own.get_mut(keys) {
                Some(Some(Buffer::U32(keys))) => sort_keys(&mut keys[..n], &mut self.words),
                Some(Some(Buffer::U64(keys))) => sort_keys(&mut keys[..n], &mut self.words),
                _ => return Err(fault()),
            }
            return Ok(());
        };
        if n_values != n as u64 {
            return Err(fault());
        }
        let keyed = &mut self.keyed;
        keyed.clear();
        match self.own.get(keys) {
            Some(Some(Buffer::U32(keys))) => keyed.extend(keys[..n].iter().zip(0..).map(|(&key, k)| (key as u64, k))),
            Some(Some(Buffer::U64(keys))) => keyed.extend(keys[..n].iter().zip(0..).map(|(&key, k)| (key, k))),
            _ => return Err(fault()),
        }
        // Places differ, so this is the stable order.
        keyed.sort_unstable();
        match self.own.get_mut(keys) {
            Some(Some(Buffer::U32(keys))) => keys.iter_mut().zip(&*keyed).for_each(|(to, (key, _))| *to = *key as u32),
            Some(Some(Buffer::U64(keys))) => keys.iter_mut().zip(&*keyed).for_each(|(to, (key, _))| *to = *key),
            _ => return Err(fault()),
        }
        let Some(Some(values)) = self.own.get_mut(values) else { return Err(fault()) };
        with_buffer!(values, values => {
            let sorted: Vec<_> = keyed.iter().map(|(_, k)| values[*k as usize]).collect();
            values[..n].copy_from_slice(&sorted);
        });
        Ok(())
    }

    fn status(&mut self, result: Result<()>) -> i64 {
        match result {
            Ok(()) => Status::DONE,
            Err(error) => {
                let name = &self.kernel.name;
                self.error = Some(error.note(format!("in kernel {name}")));
                Status::HOST
            }
        }
    }
}

/// Room for so many more elements is made at least.
pub(crate) const LEAST_GROWTH: i64 = 64;

/// Makes room for at least [`LEAST_GROWTH`] more elements.
pub(crate) unsafe extern "C" fn grow(frame: *mut Frame, array: i64) -> i64 {
    // SAFETY: compiled code passes its own frame and a position that the translation has taken from the kernel.
    let (host, view) = unsafe { borrow(frame, array) };
    // The length is at most the capacity.
    let capacity = view.capacity + view.capacity.max(LEAST_GROWTH as u64);
    let grown = match capacity <= MAX_POSITIONS {
        true => host.reserve(array as usize, view, capacity),
        false => Err(Error::resource(format!("an array of {capacity} elements is too large"))),
    };
    host.status(grown)
}

/// Makes an array longer, with copies of a value.
pub(crate) unsafe extern "C" fn resize(frame: *mut Frame, array: i64, length: i64, low: u64, high: u64) -> i64 {
    // SAFETY: as in `grow`.
    let (host, view) = unsafe { borrow(frame, array) };
    let resized = host.resize(array as usize, view, length, (low, high));
    host.status(resized)
}

/// Sorts an array, with its values if `values` is not negative.
pub(crate) unsafe extern "C" fn sort(frame: *mut Frame, keys: i64, values: i64) -> i64 {
    let values = (values >= 0).then(|| {
        // SAFETY: as in `grow`.
        (values as usize, unsafe { borrow(frame, values) }.1.length)
    });
    // SAFETY: as in `grow`; the view of the values is not held any more.
    let (host, view) = unsafe { borrow(frame, keys) };
    let sorted = host.sort(keys as usize, view.length, values);
    host.status(sorted)
}

macro_rules! seeks {
    ($($name:ident $type:ty;)*) => {
        $(/// [`seek`] in an array.
        pub(crate) unsafe extern "C" fn $name(data: *const $type, from: i64, to: i64, target: i64) -> i64 {
            // SAFETY: `seek` reads positions of the run only, which lies in the array: see `crate::translate`.
            seek(|k| unsafe { *data.add(k as usize) } as i64, from, to, target)
        })*
    };
}
seeks! { seek_u32 u32; seek_u64 u64; }

fn unary_op(code: u64) -> UnaryOp {
    UnaryOp::ALL[code as usize]
}

macro_rules! float_functions {
    ($($unary:ident $binary:ident $variant:ident $type:ty;)*) => {
        $(pub(crate) extern "C" fn $unary(op: u64, x: $type) -> $type {
            match eval_unary(unary_op(op), Scalar::$variant(x)) {
                Scalar::$variant(y) => y,
                _ => x,
            }
        }
        pub(crate) extern "C" fn $binary(op: u64, x: $type, y: $type) -> $type {
            match eval_binary(BinaryOp::ALL[op as usize], Scalar::$variant(x), Scalar::$variant(y)) {
                Scalar::$variant(z) => z,
                _ => x,
            }
        })*
    };
}
float_functions! { f32_unary f32_binary F32 f32; f64_unary f64_binary F64 f64; }

/// Two arguments and a result of any type.
pub(crate) type Slot = [u64; 6];

fn operand(slot: &Slot, code: u64, k: usize) -> Scalar {
    from_bits(DType::PHYSICAL[code as usize & 0xff], slot[2 * k], slot[2 * k + 1])
}

/// # Safety
///
/// `slot` is the address of a [`Slot`].
pub(crate) unsafe extern "C" fn scalar_unary(code: u64, slot: *mut Slot) {
    // SAFETY: the translation gives the address of a slot on its stack.
    let slot = unsafe { &mut *slot };
    (slot[4], slot[5]) = bits(eval_unary(unary_op(code >> 8), operand(slot, code, 0)));
}

/// # Safety
///
/// `slot` is the address of a [`Slot`].
pub(crate) unsafe extern "C" fn scalar_binary(code: u64, slot: *mut Slot) {
    // SAFETY: as in `scalar_unary`.
    let slot = unsafe { &mut *slot };
    let op = BinaryOp::ALL[(code >> 8) as usize];
    (slot[4], slot[5]) = bits(eval_binary(op, operand(slot, code, 0), operand(slot, code, 1)));
}

/// # Safety
///
/// `slot` is the address of a [`Slot`].
pub(crate) unsafe extern "C" fn scalar_cast(code: u64, slot: *mut Slot) {
    // SAFETY: as in `scalar_unary`.
    let slot = unsafe { &mut *slot };
    (slot[4], slot[5]) = bits(operand(slot, code, 0).cast(DType::PHYSICAL[(code >> 8) as usize]));
}

/// The bits of an element, in one or two parts.
pub(crate) fn bits(value: Scalar) -> (u64, u64) {
    match value {
        Scalar::F16(v) => (v.to_bits() as u64, 0),
        Scalar::BF16(v) => (v.to_bits() as u64, 0),
        Scalar::F32(v) => (v.to_bits() as u64, 0),
        Scalar::F64(v) => (v.to_bits(), 0),
        Scalar::C64(v) => (v.re.to_bits() as u64, v.im.to_bits() as u64),
        Scalar::C128(v) => (v.re.to_bits(), v.im.to_bits()),
        other => (other.as_i64() as u64, 0),
    }
}

/// An element of a physical type from its bits; bits above those of the type do not count.
fn from_bits(dtype: DType, low: u64, high: u64) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(low & 0xff != 0),
        DType::F16 => Scalar::F16(f16::from_bits(low as u16)),
        DType::BF16 => Scalar::BF16(bf16::from_bits(low as u16)),
        DType::F32 => Scalar::F32(f32::from_bits(low as u32)),
        DType::F64 => Scalar::F64(f64::from_bits(low)),
        DType::C64 => Scalar::C64(C64::new(f32::from_bits(low as u32), f32::from_bits(high as u32))),
        DType::C128 => Scalar::C128(C128::new(f64::from_bits(low), f64::from_bits(high))),
        DType::U64 => Scalar::U64(low),
        integer => Scalar::I64(low as i64).cast(integer),
    }
}
