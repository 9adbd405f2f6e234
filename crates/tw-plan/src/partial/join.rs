//! Index statements over block coordinates.

use tw_ir::Grid;
use tw_ir::error::Result;
use tw_ir::kernel::{Kernel, StatementKernel};
use tw_ir::plan::PlanStep;

use super::chains::Chains;
use super::reads::{Reads, image, ranges_at};
use super::{MAX_TASKS, Odometer, Partial, check_count, guard};

impl Partial<'_> {
    pub(super) fn join(&mut self, step: &PlanStep, kernel: &StatementKernel, chains: u32) -> Result<()> {
        let out_grid = self.plan.relations[step.outputs[0]].grid.clone();
        let vars = &kernel.vars;
        check_count(vars.n_blocks(), MAX_TASKS, "tiles of its variables")?;
        let reads: Vec<Reads> = kernel
            .reads
            .iter()
            .zip(&step.inputs)
            .map(|(read, &input)| Reads::new(input, &self.plan.relations[input].grid, &read.idx, read.edge, vars))
            .collect();
        let fill = kernel.accum.as_ref().map_or_else(|| kernel.out_fill.clone(), |accum| accum.identity.clone());
        let contributions = Contributions::new(kernel, &out_grid)?;

        // Regions that span blocks are assembled first, so that their blocks are numbered together.
        for read in reads.iter().filter(|read| !read.never_spans()) {
            let mut regions = Vec::new();
            let mut relation = None;
            contributions.for_each(|_, points| {
                for &point in points {
                    if let Some((r, region)) = read.spanning_region(vars, &vars.coords(point.into())) {
                        relation = Some(r);
                        regions.push(region);
                    }
                }
                Ok(())
            })?;
            if let Some(relation) = relation {
                self.assemble(relation, regions, step.statement)?;
            }
        }

        let kernel_ref = Kernel::Statement(kernel.clone());
        let chains = Chains::new(self, step, kernel_ref, kernel.accum.as_ref(), fill, chains)?;
        contributions.for_each(|position, points| {
            chains.emit(self, position, points, |partial, point, operands| {
                let coords = vars.coords(point.into());
                for read in &reads {
                    operands.push(read.operand(partial, vars, &coords)?);
                }
                Ok(())
            })
        })
    }
}

/// Which tiles of the iteration space contribute to which output block.
enum Contributions<'a> {
    /// Output tiles are tiles of variables: the others run freely inside.
    Aligned { kernel: &'a StatementKernel, out_vars: Vec<usize>, reduced: Vec<usize> },
    /// Anything else: pairs of output position and point, sorted.
    Listed { n_outputs: u64, pairs: Vec<(u32, u32)> },
}

impl<'a> Contributions<'a> {
    fn new(kernel: &'a StatementKernel, out_grid: &Grid) -> Result<Contributions<'a>> {
        let mut out_vars = Vec::new();
        for (idx, axis) in kernel.out_idx.iter().zip(out_grid) {
            match idx.as_var() {
                Some(v) if kernel.vars[v.0 as usize] == *axis && !out_vars.contains(&(v.0 as usize)) => {
                    out_vars.push(v.0 as usize)
                }
                _ => return Contributions::listed(kernel, out_grid),
            }
        }
        let reduced = (0..kernel.vars.len()).filter(|v| !out_vars.contains(v)).collect();
        Ok(Contributions::Aligned { kernel, out_vars, reduced })
    }

    fn listed(kernel: &StatementKernel, out_grid: &Grid) -> Result<Contributions<'a>> {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (point, coords) in Odometer::over(&kernel.vars).enumerate() {
            let ranges = ranges_at(&kernel.vars, &coords);
            if excluded(kernel, &ranges) {
                continue;
            }
            let tiles = kernel
                .out_idx
                .iter()
                .zip(out_grid)
                .map(|(idx, axis)| axis.tiles_meeting(&image(idx, &ranges, axis.extent(), kernel.out_edge)))
                .collect();
            for out in Odometer::new(tiles) {
                check_count(pairs.len() as u64, MAX_TASKS, "contributions")?;
                pairs.push((out_grid.position(&out) as u32, point as u32));
            }
        }
        pairs.sort_unstable();
        let n_outputs = out_grid.n_blocks();
        Ok(Contributions::Listed { n_outputs, pairs })
    }

    /// Calls back for every output block with the points that contribute to it, in order.
    fn for_each(&self, mut f: impl FnMut(u64, &[u32]) -> Result<()>) -> Result<()> {
        let mut points: Vec<u32> = Vec::new();
        match self {
            Contributions::Aligned { kernel, out_vars, reduced } => {
                let tiles_of = |vars: &[usize]| vars.iter().map(|&v| 0..kernel.vars[v].n_tiles()).collect();
                let mut coords = vec![0; kernel.vars.len()];
                for (position, out) in Odometer::new(tiles_of(out_vars)).enumerate() {
                    points.clear();
                    out_vars.iter().zip(&out).for_each(|(&v, &tile)| coords[v] = tile);
                    for inner in Odometer::new(tiles_of(reduced)) {
                        reduced.iter().zip(&inner).for_each(|(&v, &tile)| coords[v] = tile);
                        if !(kernel.has_guard && excluded(kernel, &ranges_at(&kernel.vars, &coords))) {
                            points.push(kernel.vars.position(&coords) as u32);
                        }
                    }
                    f(position as u64, &points)?;
                }
            }
            Contributions::Listed { n_outputs, pairs } => {
                let mut rest = pairs.as_slice();
                for position in 0..*n_outputs {
                    let n = rest.iter().take_while(|(p, _)| *p as u64 == position).count();
                    points.clear();
                    points.extend(rest[..n].iter().map(|(_, point)| *point));
                    rest = &rest[n..];
                    f(position, &points)?;
                }
            }
        }
        Ok(())
    }
}

fn excluded(kernel: &StatementKernel, ranges: &[tw_ir::index::Interval]) -> bool {
    kernel.has_guard && guard::never_holds(&kernel.code, kernel.reads.len(), ranges)
}
