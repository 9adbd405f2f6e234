//! Choosing tiles where nobody has.
//!
//! Choices depend on shapes and options alone, never on threads, memory or ranks: the same program has the same blocks everywhere.

use tw_ir::Axis;

use crate::options::PlanOptions;

/// Blocks may grow to this multiple of the wanted size when they take their cut from an operand.
const SLACK: u64 = 4;

/// Cuts the axes that are still `None`, then halves the longest tiles until a block has about the wanted size.
///
/// Given axes are kept as they are unless the block would be more than four times too large.
pub(crate) fn complete(shape: &[u64], given: &[Option<Axis>], element_size: u64, options: &PlanOptions) -> Vec<Axis> {
    let mut axes: Vec<Axis> = shape
        .iter()
        .zip(given)
        .map(|(&n, axis)| match (axis, options.tile) {
            (Some(axis), _) => axis.clone(),
            (None, Some(tile)) => Axis::uniform(n, tile),
            (None, None) => Axis::whole(n),
        })
        .collect();
    let free: Vec<usize> = (0..axes.len()).filter(|&k| given[k].is_none() && options.tile.is_none()).collect();
    let wanted = (options.block_bytes / element_size).max(1);
    shrink(&mut axes, &free, wanted);
    let all: Vec<usize> = (0..axes.len()).collect();
    shrink(&mut axes, &all, wanted.saturating_mul(SLACK));
    axes
}

/// Cuts a whole tensor.
pub(crate) fn automatic(shape: &[u64], element_size: u64, options: &PlanOptions) -> Vec<Axis> {
    complete(shape, &vec![None; shape.len()], element_size, options)
}

/// Halves the longest tile among the candidates until a block has at most `limit` elements.
fn shrink(axes: &mut [Axis], candidates: &[usize], limit: u64) {
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

    #[test]
    fn blocks_reach_the_wanted_size() {
        let options = PlanOptions::default();
        assert_eq!(automatic(&[8000, 8000], 8, &options), vec![Axis::uniform(8000, 2000); 2]);
        assert_eq!(automatic(&[10, 10], 8, &options), vec![Axis::whole(10); 2]);
        assert_eq!(
            automatic(&[100_000_000, 4], 8, &options),
            vec![Axis::uniform(100_000_000, 781_250), Axis::whole(4)]
        );
    }

    #[test]
    fn given_axes_are_kept() {
        let options = PlanOptions::default();
        let ragged = Axis::from_lengths(&[3, 7]).unwrap();
        assert_eq!(complete(&[10, 5], &[Some(ragged.clone()), None], 8, &options), vec![ragged, Axis::whole(5)]);
        let tile = PlanOptions { tile: Some(4), ..PlanOptions::default() };
        assert_eq!(automatic(&[10], 8, &tile), vec![Axis::uniform(10, 4)]);
    }
}
