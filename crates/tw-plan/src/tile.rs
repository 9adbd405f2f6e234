//! Automatic tiles, for values without a requested tiling.
//!
//! - A segment with a contraction cuts tensors into about sixteen squares of at most 16 MiB: enough tasks for all threads, large enough that packing costs little, and each sum
//!   is one chain. One where blocks meet other blocks in other ways, as in a gather, has squares of at most 8 MiB. Squares of large tensors grow up to 32 MiB, so that there are not too many.
//! - Any other segment cuts leading axes first, into contiguous blocks of about 2 MiB, which stay in cache between the passes of, say, a softmax.
//! - A source that one block function reads whole is loaded whole.
//!
//! The choice depends on the program, its shapes and the options, never on threads, memory or ranks: the same program has the same blocks on every machine.

use tw_ir::contraction::Contraction;
use tw_ir::index::{Idx, Var};
use tw_ir::program::{IndexStmt, Op, Program};
use tw_ir::tiling::cut_leading;
use tw_ir::{Axis, Grid};

use crate::options::PlanOptions;

/// Blocks may grow to this multiple of the wanted size when they take their cut from an operand.
const SLACK: u64 = 4;

/// Most bytes of a square block.
const SQUARE_BYTES: u64 = 32 << 20;

/// Most bytes of a square block of a tensor that has no more than [`MANY_SQUARES`] of them: in a contraction large enough that a matrix product forgets its packing, elsewhere
/// small enough that a task which meets several is small.
const CONTRACTED_BYTES: u64 = 16 << 20;
const MET_BYTES: u64 = 8 << 20;

/// A tensor with more square blocks has larger ones.
const MANY_SQUARES: u64 = 256;

/// Fewest bytes of a square block that is cut from a larger tensor: a product of such blocks takes long beside a task's overhead.
const SMALLEST_SQUARE_BYTES: u64 = 512 << 10;

/// Blocks that a tensor cut into squares should have: enough that a single product keeps all threads busy without summing in several chains.
pub(crate) const SQUARE_BLOCKS: u64 = 16;

/// Bytes of a streamed block: small enough to stay in cache from one pass to the next, large enough that a task forgets its overhead.
const STREAM_BYTES: u64 = 2 << 20;

/// A streamed tensor has at most about this many blocks; those of a larger one grow, up to the square size.
const STREAM_BLOCKS: u64 = 1 << 14;

/// The automatic tiling of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The longest axis is halved until a block is small enough: for contractions, transposes, and operators that pair blocks with blocks.
    Square {
        /// The most bytes of a block of a tensor that is not large.
        bytes: u64,
    },
    /// Leading axes are cut first, so that blocks are contiguous and rows stay whole: for everything that runs over its operands side by side.
    Stream,
}

/// Chooses tiles for one straight-line program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiler {
    style: Style,
    /// Tile length the user wants for every axis.
    tile: Option<u64>,
    /// Block size the user wants.
    block_bytes: Option<u64>,
    /// True if tilings of operands were chosen for their readers.
    chosen: bool,
}

impl Tiler {
    /// The tiler for a program.
    pub(crate) fn new(program: &Program, options: &PlanOptions) -> Tiler {
        let streams = program.body.nodes.iter().all(|node| match &node.op {
            Op::Index(stmt) => runs_side_by_side(stmt),
            // Runs of a sort are sorted much faster while they stay in cache.
            Op::Sort { .. } => true,
            Op::Source(_) | Op::Scan(_) | Op::Retile { .. } | Op::Concat { .. } | Op::Store { .. } => true,
            Op::Compact { .. } | Op::Expand { .. } => true,
            _ => false,
        });
        let contracts = program.body.nodes.iter().any(|node| matches!(&node.op, Op::Index(stmt) if contracts(stmt)));
        let style = match (streams, contracts) {
            (true, _) => Style::Stream,
            (false, true) => Style::Square { bytes: CONTRACTED_BYTES },
            (false, false) => Style::Square { bytes: MET_BYTES },
        };
        Tiler { style, tile: options.tile, block_bytes: options.block_bytes, chosen: false }
    }

    /// The same for operands whose tilings were chosen for their readers.
    pub(crate) fn with_chosen_cuts(self) -> Tiler {
        Tiler { chosen: true, ..self }
    }

    /// Cuts the axes that are still `None` so that a block has about the wanted size.
    ///
    /// Given axes are kept as they are unless the block would be more than four times too large.
    pub(crate) fn complete(&self, shape: &[u64], given: &[Option<Axis>], element_size: u64) -> Grid {
        let mut axes: Grid = shape
            .iter()
            .zip(given)
            .map(|(&n, axis)| match (axis, self.tile) {
                (Some(axis), _) => axis.clone(),
                (None, Some(tile)) => Axis::uniform(n, tile),
                (None, None) => Axis::whole(n),
            })
            .collect();
        let free: Vec<usize> = (0..axes.len()).filter(|&k| given[k].is_none() && self.tile.is_none()).collect();
        let wanted = (self.bytes_per_block(shape, element_size) / element_size).max(1);
        match self.style {
            // In a contraction, next to axes that are cut already, a free one is cut only if it must be: it is often that of a small operand, and each of its tiles would
            // read all of the large one.
            Style::Square { bytes: CONTRACTED_BYTES } if free.len() < axes.len() => {
                shrink(&mut axes, &free, wanted.saturating_mul(SLACK));
            }
            Style::Square { .. } => shrink(&mut axes, &free, wanted),
            Style::Stream => cut_leading(&mut axes, &free, wanted),
        }
        let all: Vec<usize> = (0..axes.len()).collect();
        shrink(&mut axes, &all, wanted.saturating_mul(SLACK));
        axes
    }

    /// Cuts some axes further, until blocks have the wanted size.
    pub(crate) fn shrink_to_wanted(&self, axes: &mut Grid, candidates: &[usize], element_size: u64) {
        if self.tile.is_none() {
            let wanted = (self.bytes_per_block(&axes.shape(), element_size) / element_size).max(1);
            shrink(axes, candidates, wanted);
        }
    }

    /// Cuts a whole tensor.
    pub(crate) fn automatic(&self, shape: &[u64], element_size: u64) -> Grid {
        self.complete(shape, &vec![None; shape.len()], element_size)
    }

    /// The cut a statement uses of an operand: the operand's own, unless that is a thin slice of a large tensor and the statement would read all of
    /// another operand for it. Assembling thicker blocks is then cheaper, unless they would be large. `beside` is how many elements the same side of the product has along
    /// other axes, `block` how many bytes a block of the operand has.
    pub(crate) fn thicken(&self, stmt: &IndexStmt, axis: Axis, operand_bytes: u64, beside: u64, block: u64) -> Axis {
        const THIN: u64 = 256;
        const THICK: u64 = 1024;
        let free = self.tile.is_none() && self.block_bytes.is_none() && !self.chosen;
        match axis {
            Axis::Uniform { extent, tile }
                if free && tile.saturating_mul(beside) < THIN && operand_bytes > SQUARE_BYTES && contracts(stmt) =>
            {
                let thicker = (THICK / tile.max(1)).min(CONTRACTED_BYTES / block.max(1)).max(1);
                Axis::uniform(extent, tile.max(1) * thicker)
            }
            axis => axis,
        }
    }

    /// Tile length of a variable that no operand and no result cuts.
    pub(crate) fn points_per_tile(&self) -> u64 {
        const POINTS: u64 = 1 << 22;
        self.tile.unwrap_or(POINTS)
    }

    fn bytes_per_block(&self, shape: &[u64], element_size: u64) -> u64 {
        let total = shape.iter().fold(element_size, |bytes, &n| bytes.saturating_mul(n));
        self.block_bytes.unwrap_or(match self.style {
            Style::Square { bytes } => {
                let most = (total / MANY_SQUARES).clamp(bytes, SQUARE_BYTES);
                (total / SQUARE_BLOCKS).clamp(SMALLEST_SQUARE_BYTES, most)
            }
            Style::Stream => (total / STREAM_BLOCKS).clamp(STREAM_BYTES, SQUARE_BYTES),
        })
    }
}

/// True if the operands of a statement are read in step with each other and with what is written: the same variable leads everywhere. A
/// contraction is not: each operand leaves out variables of another.
fn runs_side_by_side(stmt: &IndexStmt) -> bool {
    // The leading variable. Vectors are left out: broadcast ones are read again for every row, but they fit in cache.
    let leading = |idx: &[Idx]| {
        let mut vars = idx.iter().filter_map(Idx::max_var);
        vars.next().filter(|_| vars.next().is_some())
    };
    let mut all: Vec<Var> = stmt.reads.iter().filter_map(|read| leading(&read.idx)).collect();
    if stmt.accum.is_none() {
        all.extend(leading(&stmt.out.idx));
    }
    !contracts(stmt) && all.windows(2).all(|pair| pair[0] == pair[1])
}

/// True if every point of one operand meets many points of another.
fn contracts(stmt: &IndexStmt) -> bool {
    Contraction::of_statement(stmt).is_some_and(|contraction| contraction.reuses_operands())
}

/// Halves the longest tile among the candidates until a block has at most `limit` elements.
pub(crate) fn shrink(axes: &mut [Axis], candidates: &[usize], limit: u64) {
    loop {
        let block = axes.iter().fold(1u64, |n, axis| n.saturating_mul(axis.longest().max(1)));
        let longest = candidates.iter().copied().max_by_key(|&k| (axes[k].longest(), std::cmp::Reverse(k)));
        match longest {
            Some(k) if block > limit && axes[k].longest() > 1 => {
                axes[k] = Axis::uniform(axes[k].extent(), axes[k].longest().div_ceil(2));
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiler(style: Style) -> Tiler {
        Tiler { style, tile: None, block_bytes: None, chosen: false }
    }

    #[test]
    fn blocks_reach_the_wanted_size() {
        let square = tiler(Style::Square { bytes: CONTRACTED_BYTES });
        assert_eq!(*square.automatic(&[8000, 8000], 8), [Axis::uniform(8000, 1000), Axis::uniform(8000, 2000)]);
        assert_eq!(*square.automatic(&[10, 10], 8), vec![Axis::whole(10); 2]);
        // A matrix that would fit into one block is cut as well: its products should not run on one thread.
        assert_eq!(*square.automatic(&[2000, 2000], 8), vec![Axis::uniform(2000, 500); 2]);
        assert_eq!(*square.automatic(&[100_000_000, 4], 8), [Axis::uniform(100_000_000, 390_625), Axis::whole(4)]);
        // There are never very many squares.
        assert_eq!(
            *square.automatic(&[1 << 17, 1 << 16], 8),
            [Axis::uniform(1 << 17, 2048), Axis::uniform(1 << 16, 2048)]
        );
        let met = tiler(Style::Square { bytes: MET_BYTES });
        assert_eq!(*met.automatic(&[8000, 8000], 8), vec![Axis::uniform(8000, 1000); 2]);
    }

    #[test]
    fn streams_keep_rows_whole() {
        let stream = tiler(Style::Stream);
        assert_eq!(*stream.automatic(&[8000, 8000], 8), [Axis::uniform(8000, 32), Axis::whole(8000)]);
        assert_eq!(*stream.automatic(&[3, 1 << 20], 8), [Axis::uniform(3, 1), Axis::uniform(1 << 20, 1 << 18)]);
        assert_eq!(*stream.automatic(&[0, 5], 8), [Axis::whole(0), Axis::whole(5)]);
        // A terabyte is not cut into half a million blocks.
        assert_eq!(*stream.automatic(&[1 << 37], 8), [Axis::uniform(1 << 37, 1 << 22)]);
    }

    #[test]
    fn given_axes_are_kept() {
        let ragged = Axis::from_lengths(&[3, 7]).unwrap();
        for style in [Style::Square { bytes: MET_BYTES }, Style::Stream] {
            assert_eq!(
                *tiler(style).complete(&[10, 5], &[Some(ragged.clone()), None], 8),
                [ragged.clone(), Axis::whole(5)]
            );
            let by_four = Tiler { tile: Some(4), ..tiler(style) };
            assert_eq!(*by_four.automatic(&[10], 8), [Axis::uniform(10, 4)]);
        }
    }

    #[test]
    fn what_a_program_does_decides() {
        let style = |text: &str| {
            let unit = tw_lang::parse_program(text, &Default::default(), &tw_lang::NoFiles, &Default::default());
            Tiler::new(&unit.unwrap().program, &PlanOptions::default()).style
        };
        let given = "input a: f64[100, 100]\ninput b: f64[100, 100]\ninput v: f64[100]\n";
        for (text, expected) in [
            ("y = a * b + v", Style::Stream),
            ("y = sum(a, axis=0)", Style::Stream),
            ("y[i] = sum[j](a[i, j] * v[j])", Style::Stream),
            ("y = a @ b", Style::Square { bytes: CONTRACTED_BYTES }),
            ("y = a + transpose(b)", Style::Square { bytes: MET_BYTES }),
            ("y[i] = sum[j](a[i, j] * b[j, i])", Style::Square { bytes: MET_BYTES }),
            ("y[i, j] = min[k](a[i, k] + b[k, j])", Style::Square { bytes: CONTRACTED_BYTES }),
        ] {
            assert_eq!(style(&format!("{given}{text}\noutput y\n")), expected, "{text}");
        }
    }
}
