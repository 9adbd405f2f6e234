//! Maps of block owners.

use tw_ir::workflow::{BlockSet, Boxes};
use tw_ir::{Axis, EntityRef, Grid, shape};
use tw_place::Placed;

use super::super::units::{count, counted};
use super::{Explanation, is_value};

/// The owner of a block, and the workers that computed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The worker that has it when it is finished; none if nothing makes it.
    pub(crate) owner: Option<u32>,
    /// The workers that computed it or a part of it.
    pub(crate) makers: Vec<u32>,
}

impl Cell {
    pub(crate) fn owner_text(&self) -> String {
        self.owner.map_or_else(|| "-".to_string(), |owner| owner.to_string())
    }

    /// `0-3,7`.
    pub(crate) fn makers_text(&self) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &maker in &self.makers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == maker => *last = maker,
                _ => ranges.push((maker, maker)),
            }
        }
        let text =
            |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
    }
}

/// The blocks of one value.
#[derive(Clone, Debug)]
pub(crate) struct OwnerMap {
    /// The value, or where it is made if it has no name.
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) grid: Grid,
    /// By position in the grid, row-major.
    pub(crate) cells: Vec<Cell>,
}

impl Explanation {
    /// A map for every value of the program that is in blocks, in the order in which they are made.
    pub(crate) fn owner_maps(&self, placed: &Placed) -> Vec<OwnerMap> {
        let workflow = &placed.workflow;
        let (homes, makers) = (placed.sites.homes(workflow), placed.makers());
        let map = |(id, set): (_, &BlockSet)| {
            let Boxes::Grid(grid) = &set.boxes else { return None };
            let cell = |position: u64| {
                let block = workflow.block(id, position).index();
                Cell { owner: homes[block], makers: makers[block].clone() }
            };
            Some(OwnerMap {
                name: match set.name.starts_with('%') {
                    true => self.placed_value(workflow, id),
                    false => set.name.clone(),
                },
                shape: set.shape.clone(),
                grid: grid.clone(),
                cells: (0..set.n_blocks()).map(cell).collect(),
            })
        };
        workflow.sets.iter().filter(|(_, set)| is_value(set)).filter_map(map).collect()
    }
}

/// A map as it is drawn: neighbours that are alike in one row or column.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    /// Elements of rows and columns, or coordinates of blocks where several axes are drawn as one.
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    pub(crate) cells: Vec<Vec<Cell>>,
    /// Rows and columns there would be if all were shown.
    all: (usize, usize),
}

impl Merged {
    /// A note about omitted rows and columns.
    pub(crate) fn note(&self) -> Option<String> {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let is_cut = (rows, columns) != self.all;
        is_cut.then(|| {
            format!("the first {rows} x {columns} of {} x {}", count(self.all.0 as u64), count(self.all.1 as u64))
        })
    }
}

impl OwnerMap {
    /// `c [8, 8] in 4 x 4 blocks, on 4 workers`.
    pub(crate) fn title(&self) -> String {
        let mut owners: Vec<u32> = self.cells.iter().filter_map(|cell| cell.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let tiles = self.grid.iter().map(|axis| count(axis.n_tiles())).collect::<Vec<_>>().join(" x ");
        let blocks = match self.cells.len() {
            1 => "1 block".to_string(),
            _ => format!("{tiles} blocks"),
        };
        let workers = counted(owners.len() as u64, "worker");
        format!("{} {} in {blocks}, on {workers}", self.name, shape::display(&self.shape))
    }

    /// True if some block was made by others than its owner.
    pub(crate) fn is_made_elsewhere(&self) -> bool {
        self.cells.iter().any(|cell| cell.makers.iter().any(|maker| Some(*maker) != cell.owner))
    }

    /// Rows of blocks: the last axis is drawn to the right, all others downwards.
    fn n_columns(&self) -> usize {
        self.grid.last().map_or(1, |axis| axis.n_tiles() as usize)
    }

    /// The map in at most this many rows and columns.
    pub(crate) fn merged(&self, most_rows: usize, most_columns: usize) -> Merged {
        let n_columns = self.n_columns().max(1);
        let n_rows = self.cells.len() / n_columns;
        let row = |k: usize| &self.cells[k * n_columns..(k + 1) * n_columns];
        let rows = runs(n_rows, |a, b| row(a) == row(b));
        let columns = runs(n_columns, |a, b| rows.iter().all(|&(first, _)| row(first)[a] == row(first)[b]));
        let all = (rows.len(), columns.len());
        let (rows, columns) = (&rows[..all.0.min(most_rows)], &columns[..all.1.min(most_columns)]);
        let column = |&(first, last): &(usize, usize)| match self.grid.last() {
            None => String::new(),
            Some(axis) => range(axis, first, last),
        };
        let cells =
            |&(first, _): &(usize, usize)| columns.iter().map(|&(column, _)| row(first)[column].clone()).collect();
        Merged {
            rows: rows.iter().map(|&(first, last)| self.row_label(first, last)).collect(),
            columns: columns.iter().map(column).collect(),
            cells: rows.iter().map(cells).collect(),
            all,
        }
    }

    fn row_label(&self, first: usize, last: usize) -> String {
        match &self.grid[..] {
            [] | [_] => String::new(),
            [axis, _] => range(axis, first, last),
            [axes @ .., _] => {
                // A row is named by its first block, without the coordinate along the row.
                let coordinates = |row: usize| {
                    let coords = self.grid.coords((row * self.n_columns()) as u64);
                    let at: Vec<String> = coords[..axes.len()].iter().map(u64::to_string).collect();
                    format!("block {}", at.join(","))
                };
                if first == last {
                    coordinates(first)
                } else {
                    format!("{} to {}", coordinates(first), &coordinates(last)[6..])
                }
            }
        }
    }
}

/// Elements of some neighbouring tiles.
fn range(axis: &Axis, first: usize, last: usize) -> String {
    format!("{}..{}", axis.range(first as u64).start, axis.range(last as u64).end)
}

/// First and last of every run of neighbours that are alike.
fn runs(n: usize, alike: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for k in 0..n {
        match runs.last_mut() {
            Some((first, last)) if alike(*first, k) => *last = k,
            _ => runs.push((k, k)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(tiles: &[u64], owner: impl Fn(u64) -> u32) -> OwnerMap {
        let grid = tiles.iter().map(|&n| Axis::uniform(n * 10, 10)).collect();
        let cell = |k: u64| Cell { owner: Some(owner(k)), makers: vec![owner(k)] };
        OwnerMap {
            name: "a".into(),
            shape: tiles.iter().map(|n| n * 10).collect(),
            grid,
            cells: (0..tiles.iter().product()).map(cell).collect(),
        }
    }

    fn drawn(merged: &Merged) -> Vec<String> {
        let row = |cells: &Vec<Cell>| cells.iter().map(Cell::owner_text).collect::<Vec<_>>().join(" ");
        merged.cells.iter().map(row).collect()
    }

    #[test]
    fn neighbours_that_are_alike_are_drawn_once() {
        // Four by four blocks of two by two workers.
        let map = map(&[4, 4], |k| (k / 8 * 2 + k % 4 / 2) as u32);
        let merged = map.merged(10, 10);
        assert_eq!(drawn(&merged), ["0 1", "2 3"]);
        assert_eq!(
            (merged.rows, merged.columns),
            (vec!["0..20".into(), "20..40".into()], vec!["0..20".to_string(), "20..40".into()])
        );
        assert_eq!(map.title(), "a [40, 40] in 4 x 4 blocks, on 4 workers");
        assert!(!map.is_made_elsewhere());
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let merged = map(&[30, 20], |k| k as u32 % 7).merged(5, 6);
        assert_eq!((merged.rows.len(), merged.columns.len()), (5, 6));
        assert_eq!(merged.note().unwrap(), "the first 5 x 6 of 30 x 20");
        assert_eq!(map(&[3], |k| k as u32).merged(5, 6).note(), None);
    }

    #[test]
    fn one_axis_is_a_row_and_many_are_flattened() {
        assert_eq!(drawn(&map(&[], |_| 3).merged(4, 4)), ["3"]);
        assert_eq!(drawn(&map(&[3], |k| k as u32).merged(4, 4)), ["0 1 2"]);
        let merged = map(&[2, 3, 2], |k| if k < 6 { 0 } else { k as u32 }).merged(9, 9);
        assert_eq!(merged.rows, ["block 0,0 to 0,2", "block 1,0", "block 1,1", "block 1,2"]);
        assert_eq!(drawn(&merged), ["0 0", "6 7", "8 9", "10 11"]);
    }

    #[test]
    fn makers_are_ranges() {
        let cell = Cell { owner: Some(9), makers: vec![0, 1, 2, 5, 8, 9] };
        assert_eq!(cell.makers_text(), "0-2,5,8-9");
    }
}
