//! Index statements.

use tw_ir::kernel::StatementKernel;
use tw_ir::{Error, Result, Scalar};

use crate::block::Block;
use crate::walk::Points;

/// A statement kernel made ready.
#[derive(Debug)]
pub(crate) struct Statement {
    kernel: StatementKernel,
}

impl Statement {
    pub(crate) fn compile(kernel: &StatementKernel) -> Result<Statement> {
        Ok(Statement { kernel: kernel.clone() })
    }

    pub(crate) fn run(
        &self,
        point: u32,
        first: bool,
        operands: &[Option<&Block>],
        outputs: &mut [Block],
    ) -> Result<()> {
        let kernel = &self.kernel;
        if first {
            let start = kernel.accum.as_ref().map_or(&kernel.out_fill, |accum| &accum.identity);
            for (output, value) in outputs.iter_mut().zip(start) {
                output.fill(*value)?;
            }
        }
        let mut points = Points::new(&kernel.var_box(point as u64));
        let mut args = Vec::new();
        while let Some(coords) = points.next() {
            let at: Vec<i64> = coords.iter().map(|&c| c as i64).collect();
            args.clear();
            let mut outside = None;
            for (read, operand) in kernel.reads.iter().zip(operands) {
                let mut inside = Vec::with_capacity(read.idx.len());
                for (axis, (idx, &extent)) in read.idx.iter().zip(&read.shape).enumerate() {
                    let index = idx.eval(&at);
                    match read.edge.apply(index, extent) {
                        Some(c) => inside.push(c),
                        None if read.edge == tw_ir::Edge::Error => outside = Some((index, axis, extent)),
                        None => {}
                    }
                }
                let complete = inside.len() == read.idx.len();
                let value = operand.filter(|_| complete).and_then(|block| block.get(&inside));
                args.push(value.unwrap_or(read.fill));
            }
            args.extend(at.iter().map(|&c| Scalar::I64(c)));
            let results = kernel.code.eval(&args);
            if kernel.has_guard && !results[0].is_true() {
                continue;
            }
            if let Some((index, axis, extent)) = outside {
                return Err(Error::data(format!("index {index} is outside axis {axis} of length {extent}")));
            }
            let mut target = Vec::with_capacity(kernel.out_idx.len());
            for (axis, (idx, &extent)) in kernel.out_idx.iter().zip(&kernel.out_shape).enumerate() {
                let index = idx.eval(&at);
                match kernel.out_edge.apply(index, extent) {
                    Some(c) => target.push(c),
                    None if kernel.out_edge == tw_ir::Edge::Error => {
                        return Err(Error::data(format!("index {index} is outside axis {axis} of length {extent}")));
                    }
                    None => break,
                }
            }
            if target.len() < kernel.out_idx.len() {
                continue;
            }
            let bodies = &results[kernel.has_guard as usize..];
            match &kernel.accum {
                None => {
                    for (output, value) in outputs.iter_mut().zip(bodies) {
                        output.set(&target, *value)?;
                    }
                }
                Some(accum) => {
                    let state: Option<Vec<Scalar>> = outputs.iter().map(|output| output.get(&target)).collect();
                    let Some(mut state) = state else { continue };
                    state.extend(accum.lift.eval(bodies));
                    for (output, value) in outputs.iter_mut().zip(accum.combine.eval(&state)) {
                        output.set(&target, value)?;
                    }
                }
            }
        }
        Ok(())
    }
}
