//! Speed of matrix products beside rivals in the same run: the crate `gemm`, and the CBLAS that `TILEWRIGHT_BLAS` names.
//!
//! Repeats are interleaved and the median of the ratios of times is shown, because other work on the machine comes and goes.
//!
//!     TILEWRIGHT_BLAS=/path/to/libopenblas.so cargo run --release -p tw-block --example product_speed -- square thin batch semiring
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use tw_block::{Block, CompiledKernel, Provider};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{Accum, Array, Axis, BinaryOp, BoxRegion, DType, Edge, Idx, ScalarCode, UnaryOp, Var};

/// A contraction with one letter per variable, as in `ik,kj->ij`.
struct Case {
    spec: &'static str,
    sizes: Vec<(char, u64)>,
    dtype: DType,
    fold: Accum,
    term: BinaryOp,
    /// Whether the absolute value of the term is taken, for which there is no kernel.
    absolute: bool,
}

impl Case {
    fn product(spec: &'static str, sizes: &[(char, u64)], dtype: DType) -> Case {
        let fold = Accum::sum(dtype);
        Case { spec, sizes: sizes.to_vec(), dtype, fold, term: BinaryOp::Mul, absolute: false }
    }

    fn size(&self, letters: &str) -> Vec<u64> {
        letters.chars().map(|c| self.sizes.iter().find(|(name, _)| *name == c).unwrap().1).collect()
    }

    fn parts(&self) -> (&'static str, &'static str, &'static str) {
        let (inputs, out) = self.spec.split_once("->").unwrap();
        let (left, right) = inputs.split_once(',').unwrap();
        (left, right, out)
    }

    fn kernel(&self) -> Kernel {
        let var = |c: char| Idx::var(Var(self.sizes.iter().position(|(name, _)| *name == c).unwrap() as u32));
        let idx = |letters: &str| letters.chars().map(var).collect::<Vec<Idx>>();
        let read = |letters: &str| KernelRead {
            dtype: self.dtype,
            shape: self.size(letters),
            idx: idx(letters),
            edge: Edge::Error,
            fill: self.dtype.zero(),
        };
        let (left, right, out) = self.parts();
        let mut params = vec![self.dtype; 2];
        params.extend(vec![DType::I64; self.sizes.len()]);
        let mut code = ScalarCode::new(params);
        let (a, b) = (code.param(0), code.param(1));
        let mut term = code.binary(self.term, a, b).unwrap();
        if self.absolute {
            term = code.unary(UnaryOp::Abs, term).unwrap();
        }
        code.set_results(vec![term]);
        Kernel::Statement(StatementKernel {
            vars: self.sizes.iter().map(|&(_, n)| Axis::uniform(n, n)).collect(),
            reads: vec![read(left), read(right)],
            code,
            has_guard: false,
            accum: Some(self.fold.clone()),
            out_idx: idx(out),
            out_edge: Edge::Error,
            out_shape: self.size(out),
            out_fill: Vec::new(),
        })
    }

    fn operations(&self) -> f64 {
        2.0 * self.sizes.iter().map(|&(_, n)| n as f64).product::<f64>()
    }
}

fn numbers(shape: &[u64], dtype: DType) -> Block {
    let mut array = Array::zeros(shape, dtype).unwrap();
    for k in 0..array.data().len() {
        let value = tw_ir::Scalar::F64((k * 7919 % 1000) as f64 / 1000.0 + (k % 2) as f64);
        array.data_mut().set(k, value.cast(dtype));
    }
    Block::from_array(&vec![0; shape.len()], array, None).unwrap()
}

/// Something that computes a case, by name.
struct Contestant<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
}

fn compare(case: &Case) {
    let (left, right, out) = case.parts();
    let blocks = [numbers(&case.size(left), case.dtype), numbers(&case.size(right), case.dtype)];
    let operands = [Some(&blocks[0]), Some(&blocks[1])];
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    let chosen = Provider::chosen();
    let is_plain = matches!(case.dtype, DType::F32 | DType::F64) && case.term == BinaryOp::Mul;
    for provider in [Provider::rust(), chosen] {
        let is_new = contestants.iter().all(|c| c.name != provider.name());
        if is_new && (is_plain || contestants.is_empty()) {
            let kernel = CompiledKernel::compile_for(&case.kernel(), &provider).unwrap();
            let mut outputs = [Block::for_output(case.dtype, BoxRegion::whole(&case.size(out)), None).unwrap()];
            let run = Box::new(move || kernel.run(0, true, &operands, &mut outputs).unwrap());
            contestants.push(Contestant { name: provider.name().to_string(), run });
        }
    }
    if case.spec == "ik,kj->ij" && is_plain {
        let (m, n, k) = (case.sizes[0].1 as usize, case.sizes[1].1 as usize, case.sizes[2].1 as usize);
        let (a, b) = (blocks[0].to_array().unwrap(), blocks[1].to_array().unwrap());
        let run: Box<dyn FnMut()> = match case.dtype {
            DType::F32 => by_crate::<f32>((m, n, k), a, b),
            _ => by_crate::<f64>((m, n, k), a, b),
        };
        contestants.push(Contestant { name: "gemm".to_string(), run });
    }
    let inner = ((3e7 / case.operations()) as usize).clamp(1, 100_000);
    let repeats = if case.operations() > 1e9 { 5 } else { 15 };
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    for _ in 0..repeats {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (0..inner).for_each(|_| (contestant.run)());
            times.push(start.elapsed().as_secs_f64() / inner as f64);
        }
    }
    let sizes: Vec<String> = case.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    print!("{:14} {:5} {:28}", case.spec, case.dtype.to_string(), sizes.join(" "));
    for (contestant, of) in contestants.iter().zip(&times) {
        let best = of.iter().copied().fold(f64::INFINITY, f64::min);
        let mut ratios: Vec<f64> = of.iter().zip(&times[0]).map(|(theirs, ours)| theirs / ours).collect();
        ratios.sort_by(f64::total_cmp);
        let rate = case.operations() / best / 1e9;
        print!("  {}: {rate:.1} Gop/s ({:.2}x)", contestant.name, ratios[ratios.len() / 2]);
    }
    println!();
}

fn by_crate<T: tw_ir::dtype::Element>((m, n, k): (usize, usize, usize), a: Array, b: Array) -> Box<dyn FnMut()> {
    let (zero, one) = (T::from_scalar(T::DTYPE.zero()), T::from_scalar(T::DTYPE.one()));
    let mut c = vec![zero; m * n];
    Box::new(move || {
        let (a, b) = (T::of(a.data()), T::of(b.data()));
        // SAFETY: three row-major matrices of the sizes given.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c.as_mut_ptr(),
                1,
                n as isize,
                false,
                a.as_ptr(),
                1,
                k as isize,
                b.as_ptr(),
                1,
                n as isize,
                zero,
                one,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    })
}

fn square() {
    for n in [16, 64, 128, 256, 512, 1000, 2000] {
        for dtype in [DType::F64, DType::F32] {
            compare(&Case::product("ik,kj->ij", &[('i', n), ('j', n), ('k', n)], dtype));
        }
    }
    for spec in ["ki,kj->ij", "ik,jk->ij", "ki,jk->ji"] {
        compare(&Case::product(spec, &[('i', 1000), ('j', 1000), ('k', 1000)], DType::F64));
    }
}

fn thin() {
    for dtype in [DType::F64, DType::F32] {
        compare(&Case::product("ik,kj->ij", &[('i', 1), ('j', 4000), ('k', 4000)], dtype));
        compare(&Case::product("ik,k->i", &[('i', 4000), ('k', 4000)], dtype));
        compare(&Case::product("ki,k->i", &[('i', 4000), ('k', 4000)], dtype));
        compare(&Case::product("ik,kj->ij", &[('i', 100_000), ('j', 3), ('k', 50)], dtype));
        compare(&Case::product("ki,kj->ij", &[('i', 50), ('j', 50), ('k', 100_000)], dtype));
        compare(&Case::product("ik,kj->ij", &[('i', 2000), ('j', 2000), ('k', 2)], dtype));
    }
}

fn batch() {
    for (n, size) in [(100_000, 2), (100_000, 4), (30_000, 8), (10_000, 12), (3_000, 32)] {
        for dtype in [DType::F64, DType::F32] {
            compare(&Case::product("bik,bkj->bij", &[('b', n), ('i', size), ('j', size), ('k', size)], dtype));
        }
    }
}

fn semiring() {
    use BinaryOp::{Add, And, Min, Mul, Sub};
    let sizes = [('i', 1000), ('j', 1000), ('k', 1000)];
    let case = |dtype, fold, term, absolute| {
        compare(&Case { spec: "ik,kj->ij", sizes: sizes.to_vec(), dtype, fold, term, absolute });
    };
    for dtype in [DType::F64, DType::F32, DType::I64, DType::I32] {
        case(dtype, Accum::sum(dtype), Mul, false);
        case(dtype, Accum::min(dtype), Add, false);
        case(dtype, Accum::max(dtype), Min, false);
        case(dtype, Accum::sum(dtype), Sub, true);
    }
    case(DType::Bool, Accum::any(), And, false);
    case(DType::C128, Accum::sum(DType::C128), Mul, false);
    case(DType::C64, Accum::sum(DType::C64), Mul, false);
    case(DType::I8, Accum::sum(DType::I8), Mul, false);
}

fn main() {
    println!("operations per second, and times relative to the first");
    if let Some(note) = Provider::note() {
        println!("{note}");
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let all: [(&str, fn()); 4] = [("square", square), ("thin", thin), ("batch", batch), ("semiring", semiring)];
    for (name, run) in all {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            run();
        }
    }
}
