//! Meshes of workers over the variables of a statement, and the shards that follow from them.

use std::ops::Range;

use tw_ir::BoxRegion;

/// A mesh of workers. It splits each variable of a statement into equal parts; each combination of parts belongs to one worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mesh {
    factors: Vec<u64>,
    /// Variables from the slowest to the fastest, in the numbering of workers.
    numbering: Vec<usize>,
    /// Its first worker.
    first: u64,
}

impl Mesh {
    /// A mesh with these extents, its workers numbered row-major.
    pub fn new(factors: Vec<u64>) -> Mesh {
        Mesh { numbering: (0..factors.len()).collect(), factors, first: 0 }
    }

    /// A mesh with these extents. The given variables come first in the numbering of workers; the last of them changes fastest.
    pub fn numbered(factors: Vec<u64>, by: &[usize]) -> Mesh {
        let rest = (0..factors.len()).filter(|var| !by.contains(var));
        Mesh { numbering: by.iter().copied().chain(rest).collect(), factors, first: 0 }
    }

    /// The same mesh under each numbering of its workers, row-major first, at most `most` of them.
    pub fn numberings(&self, most: usize) -> Vec<Mesh> {
        let (cut, whole): (Vec<usize>, Vec<usize>) = (0..self.factors.len()).partition(|&var| self.factors[var] > 1);
        let mut orders = vec![Vec::new()];
        for _ in 0..cut.len() {
            let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                let more = cut.iter().filter(|var| !order.contains(var));
                more.map(|&var| order.iter().copied().chain([var]).collect()).collect()
            };
            // In lexical order, the first of all have the first beginnings.
            orders = orders.iter().flat_map(longer).take(most).collect();
        }
        let numbered = |order: Vec<usize>| Mesh {
            factors: self.factors.clone(),
            numbering: order.into_iter().chain(whole.iter().copied()).collect(),
            first: self.first,
        };
        orders.into_iter().take(most).map(numbered).collect()
    }

    /// Extents of the mesh: the number of parts of each variable.
    pub fn factors(&self) -> &[u64] {
        &self.factors
    }

    /// Workers of the mesh.
    pub fn n_workers(&self) -> u64 {
        self.factors.iter().product()
    }

    /// The same mesh with another first worker.
    pub fn beginning_at(self, first: u64) -> Mesh {
        Mesh { first, ..self }
    }

    /// True for the workers of the mesh.
    pub fn contains(&self, worker: u64) -> bool {
        self.workers().contains(&worker)
    }

    /// Its workers.
    pub fn workers(&self) -> Range<u64> {
        self.first..self.first + self.n_workers()
    }

    /// All meshes of `n_workers` over variables with these extents that leave no part empty, in lexical order. With many variables, only as few as necessary are
    /// split.
    pub fn all(n_workers: u64, extents: &[u64]) -> Vec<Mesh> {
        let mut found = Vec::new();
        let fewest = if extents.len() > MANY_VARIABLES { FEW_CUT } else { extents.len() };
        for most in fewest..=extents.len() {
            extend(n_workers, extents, most, &mut Vec::new(), &mut found);
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    /// The part of each variable that belongs to a worker of the mesh.
    pub fn coordinates(&self, worker: u64) -> Vec<u64> {
        let mut rest = worker - self.first;
        let mut coordinates = vec![0; self.factors.len()];
        for &var in self.numbering.iter().rev() {
            coordinates[var] = rest % self.factors[var];
            rest /= self.factors[var];
        }
        coordinates
    }

    /// The worker at these parts of the variables.
    pub fn worker(&self, coordinates: &[u64]) -> u64 {
        self.first + self.numbering.iter().fold(0, |worker, &var| worker * self.factors[var] + coordinates[var])
    }

    /// The worker of a point.
    pub fn worker_at(&self, point: &[u64], variables: &[Variable]) -> u64 {
        // Asked for every task, so without a list of the parts.
        self.first
            + self.numbering.iter().fold(0, |worker, &k| {
                let (var, factor) = (&variables[k], self.factors[k]);
                worker * factor + part_of((point[k] + var.first) / var.grain, var.n_grains(), factor)
            })
    }

    /// Points of the busiest worker over an even share.
    pub fn imbalance(&self, variables: &[Variable]) -> f64 {
        let longest = |(var, &factor): (&Variable, &u64)| {
            let longest = (var.n_grains().div_ceil(factor) * var.grain).min(var.extent);
            longest as f64 * factor as f64 / var.extent.max(1) as f64
        };
        variables.iter().zip(&self.factors).map(longest).product()
    }
}

/// A variable of a statement, and the output axis that it runs along, whose parts split it. The variable may cover only the interior of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Number of its values, from 0.
    pub extent: u64,
    /// The element of the axis at which it begins.
    pub first: u64,
    /// Elements of the axis.
    pub along: u64,
    /// Parts begin at multiples of this many elements: the length of the tiles that stay whole, or 1.
    pub grain: u64,
}

impl Variable {
    /// A variable that is split into equal parts of its own.
    pub fn alone(extent: u64) -> Variable {
        Variable { extent, first: 0, along: extent, grain: 1 }
    }

    /// The same variable, split between grains only.
    pub fn in_grains(self, grain: u64) -> Variable {
        Variable { grain: grain.max(1), ..self }
    }

    /// Grains of the axis.
    fn n_grains(&self) -> u64 {
        self.along.div_ceil(self.grain)
    }

    /// Elements in part `k` of `n` parts of the axis.
    pub fn part_along(&self, k: u64, n: u64) -> Range<u64> {
        part_in_grains(self.along, self.grain, k, n)
    }

    /// Values in part `k` of `n` parts of the axis.
    pub fn part(&self, k: u64, n: u64) -> Range<u64> {
        let part = self.part_along(k, n);
        self.value_at(part.start)..self.value_at(part.end)
    }

    /// The first value at or after an element of the axis.
    pub fn value_at(&self, element: u64) -> u64 {
        element.saturating_sub(self.first).min(self.extent)
    }
}

/// With more variables than this, only this many are split; otherwise there would be too many meshes.
const MANY_VARIABLES: usize = 6;
const FEW_CUT: usize = 3;

fn extend(n_workers: u64, extents: &[u64], cuts: usize, chosen: &mut Vec<u64>, found: &mut Vec<Mesh>) {
    match extents {
        [] => {
            if n_workers == 1 {
                found.push(Mesh::new(chosen.clone()));
            }
        }
        [extent, rest @ ..] => {
            let most = if cuts == 0 { 1 } else { n_workers.min(*extent) };
            for factor in (1..=most).filter(|factor| n_workers.is_multiple_of(*factor)) {
                chosen.push(factor);
                extend(n_workers / factor, rest, cuts - (factor > 1) as usize, chosen, found);
                chosen.pop();
            }
        }
    }
}

/// Part `k` of `n` equal parts of an extent.
pub fn part(extent: u64, k: u64, n: u64) -> Range<u64> {
    let at = |k: u64| (extent as u128 * k as u128 / n as u128) as u64;
    at(k)..at(k + 1)
}

/// Part `k` of `n` parts of an extent that have equally many grains each.
fn part_in_grains(extent: u64, grain: u64, k: u64, n: u64) -> Range<u64> {
    let part = part(extent.div_ceil(grain), k, n);
    (part.start * grain).min(extent)..(part.end * grain).min(extent)
}

/// The part that an element is in.
pub fn part_of(element: u64, extent: u64, n: u64) -> u64 {
    // Part k begins at the floor of k * extent / n, so the last k whose beginning is not beyond the element.
    let k = ((element as u128 + 1) * n as u128).div_ceil(extent.max(1) as u128).saturating_sub(1);
    (k as u64).min(n.saturating_sub(1))
}

/// The shards of an array. Workers that touch the same part of the array, because the mesh splits variables that the array does not have, share that part
/// evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    shape: Vec<u64>,
    mesh: Mesh,
    /// The variable along each axis, if there is one, and its grain there.
    vars: Vec<Option<usize>>,
    grains: Vec<u64>,
    /// Pieces along each axis of a part: one per worker that shares the part, or fewer.
    pieces: Vec<u64>,
    /// Workers per piece of a part, and the turn: which of them owns the piece.
    per_piece: u64,
    turn: u64,
    /// Coordinates along variables that an owner must have.
    faces: Vec<Option<u64>>,
}

impl Ownership {
    /// The owners of an array whose axes follow variables of a statement.
    pub fn new(shape: &[u64], mesh: &Mesh, vars: Vec<Option<usize>>) -> Ownership {
        Ownership::on_faces(shape, mesh, vars, vec![None; mesh.factors.len()])
    }

    /// The same, but only workers at given coordinates along some variables that the array does not have own a shard.
    pub fn on_faces(shape: &[u64], mesh: &Mesh, vars: Vec<Option<usize>>, faces: Vec<Option<u64>>) -> Ownership {
        let (pieces, grains) = (vec![1; shape.len()], vec![1; shape.len()]);
        let (shape, mesh) = (shape.to_vec(), mesh.clone());
        Ownership { shape, mesh, vars, grains, pieces, faces, per_piece: 1, turn: 0 }.in_pieces_of(1)
    }

    /// The same owners, with parts of so many elements or multiples of that along each axis.
    pub fn in_grains(self, grains: Vec<u64>) -> Ownership {
        Ownership { grains, ..self }
    }

    /// Part `k` of an axis that is split by a variable.
    fn part(&self, axis: usize, k: u64, parts: u64) -> Range<u64> {
        part_in_grains(self.shape[axis], self.grains[axis], k, parts)
    }

    /// The same owners with no piece below this many elements: some workers that share a part then own nothing of it.
    pub fn in_pieces_of(mut self, least: u64) -> Ownership {
        let has = |var: usize| self.vars.contains(&Some(var)) || self.faces[var].is_some();
        let shared = (0..self.mesh.factors.len()).filter(|&var| !has(var)).map(|var| self.mesh.factors[var]);
        let sharers: u64 = shared.product();
        self.pieces = vec![1; self.shape.len()];
        let mut n_pieces = 1;
        for factor in super::layout::prime_factors(sharers).into_iter().rev() {
            let length = |axis: usize| {
                let parts = self.vars[axis].map_or(1, |var| self.mesh.factors[var]);
                self.shape[axis] as f64 / parts as f64 / self.pieces[axis] as f64
            };
            let elements: f64 = (0..self.shape.len()).map(length).product();
            if elements / (factor as f64) < least as f64 {
                continue;
            }
            if let Some(axis) = (0..self.shape.len()).max_by(|&a, &b| length(a).total_cmp(&length(b)).then(b.cmp(&a))) {
                self.pieces[axis] *= factor;
                n_pieces *= factor;
            }
        }
        (self.per_piece, self.turn) = (sharers / n_pieces, 0);
        self
    }

    /// The same owners with another turn: another of the workers that could own a piece owns it.
    pub fn turned(mut self, turn: u64) -> Ownership {
        self.turn = turn % self.per_piece;
        self
    }

    /// The number of workers that could own a piece.
    pub fn turns(&self) -> u64 {
        self.per_piece
    }

    /// The turn: which of the workers that could own a piece owns it.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Axes of the array.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The part of the array that a worker touches.
    fn touched(&self, worker: u64) -> BoxRegion {
        let coordinates = self.mesh.coordinates(worker);
        BoxRegion::from_ranges(self.vars.iter().enumerate().map(|(axis, var)| match var {
            Some(var) => self.part(axis, coordinates[*var], self.mesh.factors[*var]),
            None => 0..self.shape[axis],
        }))
    }

    /// The part of the array that a worker owns.
    pub fn owned(&self, worker: u64) -> BoxRegion {
        let Some(mut number) = self.piece_of(worker) else {
            let nowhere = vec![0; self.shape.len()];
            return BoxRegion { hi: nowhere.clone(), lo: nowhere };
        };
        let touched = self.touched(worker);
        let mut owned = touched.clone();
        for axis in (0..self.shape.len()).rev() {
            let pieces = self.pieces[axis];
            let within = part(touched.hi[axis] - touched.lo[axis], number % pieces, pieces);
            number /= pieces;
            (owned.lo[axis], owned.hi[axis]) = (touched.lo[axis] + within.start, touched.lo[axis] + within.end);
        }
        owned
    }

    /// Whether a worker owns an array without axes.
    pub fn owns_scalar(&self, worker: u64) -> bool {
        self.piece_of(worker).is_some()
    }

    /// The piece of its part that a worker owns, if any.
    fn piece_of(&self, worker: u64) -> Option<u64> {
        if !self.mesh.contains(worker) {
            return None;
        }
        let coordinates = self.mesh.coordinates(worker);
        let on_faces = self.faces.iter().zip(&coordinates).all(|(face, place)| face.is_none_or(|face| face == *place));
        let others = (0..coordinates.len()).filter(|&var| !self.vars.contains(&Some(var)) && self.faces[var].is_none());
        let sharer = others.fold(0, |number, var| number * self.mesh.factors[var] + coordinates[var]);
        (on_faces && sharer % self.per_piece == self.turn).then_some(sharer / self.per_piece)
    }

    /// The worker that owns an element.
    pub fn owner(&self, element: &[u64]) -> u64 {
        let mut coordinates = vec![0; self.mesh.factors.len()];
        let mut number = 0;
        for (axis, &x) in element.iter().enumerate() {
            let n = self.shape[axis];
            let whole = match self.vars[axis] {
                Some(var) => {
                    let grain = self.grains[axis];
                    coordinates[var] = part_of(x / grain, n.div_ceil(grain), self.mesh.factors[var]);
                    self.part(axis, coordinates[var], self.mesh.factors[var])
                }
                None => 0..n,
            };
            number = number * self.pieces[axis] + part_of(x - whole.start, whole.end - whole.start, self.pieces[axis]);
        }
        number = number * self.per_piece + self.turn;
        for (var, factor) in self.mesh.factors.iter().enumerate().rev() {
            if let Some(face) = self.faces[var] {
                coordinates[var] = face;
            } else if !self.vars.contains(&Some(var)) {
                coordinates[var] = number % factor;
                number /= factor;
            }
        }
        self.mesh.worker(&coordinates)
    }

    /// The cuts of the array with which each block has one owner.
    pub fn cuts(&self, axis: usize) -> Vec<u64> {
        let n = self.shape[axis];
        let parts = self.vars[axis].map_or(1, |var| self.mesh.factors[var]);
        let mut cuts = Vec::new();
        for k in 0..parts {
            let whole = self.part(axis, k, parts);
            let within = |piece: u64| part(whole.end - whole.start, piece, self.pieces[axis]).start;
            cuts.extend((0..self.pieces[axis]).map(|piece| whole.start + within(piece)));
        }
        cuts.push(n);
        cuts.dedup();
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_and_know_their_elements() {
        for (extent, n) in [(10, 3), (7, 7), (100, 8), (5, 1), (3, 5)] {
            let mut next = 0;
            for k in 0..n {
                let range = part(extent, k, n);
                assert_eq!(range.start, next);
                range.clone().for_each(|x| assert_eq!(part_of(x, extent, n), k, "{x} of {extent} in {n}"));
                next = range.end;
            }
            assert_eq!(next, extent);
        }
    }

    #[test]
    fn parts_keep_grains_whole() {
        let var = Variable { extent: 19, first: 1, along: 21, grain: 4 };
        let parts: Vec<Range<u64>> = (0..3).map(|k| var.part(k, 3)).collect();
        assert_eq!(parts, [0..7, 7..15, 15..19]);
        let mesh = Mesh::new(vec![3]);
        for (k, part) in (0..).zip(parts) {
            part.for_each(|x| assert_eq!(mesh.worker_at(&[x], &[var]), k, "{x}"));
        }
        assert_eq!(mesh.imbalance(&[Variable::alone(20).in_grains(5)]), 1.5);
    }

    #[test]
    fn meshes_are_all_factorisations() {
        let all = Mesh::all(12, &[100, 100, 100]);
        assert_eq!(all.len(), 18);
        assert!(all.iter().all(|mesh| mesh.n_workers() == 12));
        assert_eq!(Mesh::all(7, &[3, 100]), [Mesh::new(vec![1, 7])]);
        assert!(Mesh::all(7, &[3, 3]).is_empty());
        let numbered = Mesh::new(vec![2, 3, 1, 2]).numberings(100);
        assert_eq!(numbered.len(), 6);
        assert_eq!(Mesh::new(vec![2; 40]).numberings(5).len(), 5);
        assert!(Mesh::all(4096, &[4096; 12]).len() < 50_000);
        assert_eq!(numbered[0].coordinates(7), Mesh::new(vec![2, 3, 1, 2]).coordinates(7));
        for mesh in numbered {
            (0..12).for_each(|worker| assert_eq!(mesh.worker(&mesh.coordinates(worker)), worker));
        }
    }

    #[test]
    fn every_element_has_one_owner_who_touches_it() {
        for mesh in
            [vec![2, 3, 2], vec![1, 1, 12], vec![4, 3, 1]].map(Mesh::new).iter().flat_map(|mesh| mesh.numberings(6))
        {
            for vars in [vec![Some(0), Some(2)], vec![Some(2), Some(1)], vec![None, Some(0)], vec![None, None]] {
                let ownership = Ownership::new(&[24, 36], &mesh, vars);
                let in_grains = ownership.clone().in_grains(vec![4, 3]);
                for ownership in [ownership.clone(), ownership.in_pieces_of(200).turned(1), in_grains] {
                    let mut n_owned = 0;
                    for worker in 0..12 {
                        let owned = ownership.owned(worker);
                        assert!(ownership.touched(worker).contains(&owned));
                        n_owned += owned.n_elements();
                        for x in owned.lo[0]..owned.hi[0] {
                            for y in owned.lo[1]..owned.hi[1] {
                                assert_eq!(ownership.owner(&[x, y]), worker);
                            }
                        }
                        let cut = |axis: usize, at: u64| ownership.cuts(axis).contains(&at);
                        assert!((0..2).all(|axis| cut(axis, owned.lo[axis]) && cut(axis, owned.hi[axis])));
                    }
                    assert_eq!(n_owned, 24 * 36);
                }
            }
        }
    }
}
