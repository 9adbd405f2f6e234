//! Collecting what a walk without data meets: of every loop the first turn, where it differs, and the turn that repeats.

use tw_ir::span::Span;

use super::{Around, Role};

/// Where in the control flow a segment stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Its role in the innermost loop or branch.
    pub role: Role,
    /// That loop or branch.
    pub span: Span,
    /// How many loops and branches are around it.
    pub depth: usize,
    /// The branches it is in, outermost first: the number of the `if`, and whether it is the other branch.
    pub branches: Vec<(u32, bool)>,
    /// The turns of the innermost loop that it stands for.
    pub turn: Turn,
}

/// Which turns of the loop around it a segment stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// All of them, or there is no loop.
    Every,
    /// The first one, which is planned otherwise than the others.
    First,
    /// All but the first.
    Later,
}

impl Position {
    pub(crate) fn new(around: &[Around<'_>]) -> Position {
        let branch = |around: &Around<'_>| match around.role {
            Role::Then => Some((around.number, false)),
            Role::Otherwise => Some((around.number, true)),
            _ => None,
        };
        Position {
            role: around.last().map_or(Role::Straight, |around| around.role),
            span: around.last().map_or(Span::None, |around| *around.span),
            depth: around.len(),
            branches: around.iter().filter_map(branch).collect(),
            turn: Turn::Every,
        }
    }

    /// How many loops are around it.
    pub(crate) fn n_loops(&self) -> usize {
        self.depth - self.branches.len()
    }
}

/// What is collected of a segment.
pub(crate) trait Item {
    fn position(&mut self) -> &mut Position;
    /// True if both are planned alike, so that one of them can stand for both.
    fn repeats(&self, other: &Self) -> bool;
    /// Takes over what an item that it stands for needed more of.
    fn stand_for(&mut self, other: &Self);
}

/// Items in the order in which segments run.
pub(crate) struct Collected<T> {
    pub(crate) items: Vec<T>,
    /// For every loop that is walked, where the items of its turns begin.
    turns: Vec<Vec<usize>>,
}

impl<T> Default for Collected<T> {
    fn default() -> Collected<T> {
        Collected { items: Vec::new(), turns: Vec::new() }
    }
}

/// Notes the turn of a loop, unless a loop inside has said which of its own turns the item stands for.
fn note(item: &mut impl Item, turn: Turn) {
    let known = &mut item.position().turn;
    if *known == Turn::Every {
        *known = turn;
    }
}

impl<T: Item> Collected<T> {
    pub(crate) fn begin_turn(&mut self, turn: usize) {
        if turn == 0 {
            self.turns.push(Vec::new());
        }
        if let Some(turns) = self.turns.last_mut() {
            turns.push(self.items.len());
        }
    }

    pub(crate) fn end_loop(&mut self) {
        let Some(turns) = self.turns.pop() else { return };
        let (&[first, second, ..], Some(&last)) = (turns.as_slice(), turns.last()) else { return };
        let mut repeated = self.items.split_off(last);
        let between = self.items.split_off(second);
        let began = self.items.split_off(first);
        let is_aligned = began.len() == repeated.len();
        if !repeated.is_empty() {
            // Turns between the first and the last are shown by the last.
            for turn in between.chunks_exact(repeated.len()) {
                let alike = repeated.iter_mut().zip(turn).filter(|(later, item)| later.repeats(item));
                alike.for_each(|(later, item)| later.stand_for(item));
            }
        }
        for (k, mut item) in began.into_iter().enumerate() {
            match repeated.get_mut(k).filter(|_| is_aligned) {
                Some(later) if later.repeats(&item) => later.stand_for(&item),
                later => {
                    if let Some(later) = later {
                        note(later, Turn::Later);
                    }
                    note(&mut item, Turn::First);
                    self.items.push(item);
                }
            }
        }
        self.items.append(&mut repeated);
    }
}
