//! Terms and their types.

use std::collections::BTreeSet;
use std::fmt;

use tw_ir::error::{Error, Result};

use super::kernel::{KernelFunction, KeyMap, Predicate};
use super::types::{Spread, Type};

/// How a relation is computed.
#[derive(Clone, Debug)]
pub(super) enum RelationTerm {
    /// A relation that is there.
    Input {
        /// Its name.
        name: String,
        /// Its type.
        ty: Type,
    },
    /// Every tuple to every site.
    Broadcast(Box<RelationTerm>),
    /// Tuples to sites by these components of their keys.
    Shuffle(Vec<usize>, Box<RelationTerm>),
    /// Pairs of tuples on one site whose keys agree: the key is the left one and the rest of the right one.
    Join {
        /// Components that agree, left and right.
        on: Vec<(usize, usize)>,
        /// From both arrays to one.
        kernel: KernelFunction,
        /// Left.
        left: Box<RelationTerm>,
        /// Right.
        right: Box<RelationTerm>,
    },
    /// Arrays of tuples on one site with equal components, combined.
    Aggregate {
        /// The components that stay.
        group: Vec<usize>,
        /// Applied to every array first.
        before: KernelFunction,
        /// From two arrays to one; associative and commutative.
        kernel: KernelFunction,
        /// Applied to every result.
        after: KernelFunction,
        /// Of what.
        input: Box<RelationTerm>,
    },
    /// Tuples whose keys fulfil a condition.
    Filter(Predicate, Box<RelationTerm>),
    /// Keys and arrays mapped.
    Map {
        /// The new keys.
        keys: KeyMap,
        /// The new array, the same for every new key.
        kernel: KernelFunction,
        /// Of what.
        input: Box<RelationTerm>,
    },
}

impl RelationTerm {
    /// A relation that is there.
    pub(super) fn input(name: &str, ty: Type) -> RelationTerm {
        RelationTerm::Input { name: name.to_string(), ty }
    }
    /// Every tuple to every site.
    pub(super) fn broadcast(self) -> RelationTerm {
        RelationTerm::Broadcast(Box::new(self))
    }
    /// Tuples to sites by components of their keys.
    pub(super) fn shuffle(self, by: &[usize]) -> RelationTerm {
        RelationTerm::Shuffle(by.to_vec(), Box::new(self))
    }
    /// Pairs of tuples.
    pub(super) fn join(self, right: RelationTerm, on: &[(usize, usize)], kernel: KernelFunction) -> RelationTerm {
        RelationTerm::Join { on: on.to_vec(), kernel, left: Box::new(self), right: Box::new(right) }
    }
    /// Arrays combined, by components of keys.
    pub(super) fn aggregate(self, group: &[usize], kernel: KernelFunction) -> RelationTerm {
        let (before, after) = (KernelFunction::identity(), KernelFunction::identity());
        RelationTerm::Aggregate { group: group.to_vec(), before, kernel, after, input: Box::new(self) }
    }
    /// Tuples whose keys fulfil a condition.
    pub(super) fn filter(self, predicate: Predicate) -> RelationTerm {
        RelationTerm::Filter(predicate, Box::new(self))
    }
    /// Keys and arrays mapped.
    pub(super) fn map(self, keys: KeyMap, kernel: KernelFunction) -> RelationTerm {
        RelationTerm::Map { keys, kernel, input: Box::new(self) }
    }

    /// The term in words: `local aggregate(sum, local join(broadcast(a), shuffle(b)))`. A map that adds key components is
    /// `replicate(copies, input)`.
    pub(super) fn words(&self) -> String {
        match self {
            RelationTerm::Input { name, .. } => name.clone(),
            RelationTerm::Broadcast(input) => format!("broadcast({})", input.words()),
            RelationTerm::Shuffle(_, input) => format!("shuffle({})", input.words()),
            RelationTerm::Join { left, right, .. } => format!("local join({}, {})", left.words(), right.words()),
            RelationTerm::Aggregate { kernel, input, .. } => format!("local aggregate({kernel}, {})", input.words()),
            RelationTerm::Filter(_, input) => format!("local filter({})", input.words()),
            RelationTerm::Map { keys, .. } if !keys.is_identity() => {
                let (mut copies, mut below) = (1, self);
                while let RelationTerm::Map { keys, input, .. } = below {
                    (copies, below) = (copies * keys.arity(), &**input);
                }
                format!("replicate({copies}, {})", below.words())
            }
            RelationTerm::Map { input, .. } => format!("local map({})", input.words()),
        }
    }

    /// Its subterms.
    pub(super) fn parts(&self) -> Vec<&RelationTerm> {
        match self {
            RelationTerm::Input { .. } => Vec::new(),
            RelationTerm::Join { left, right, .. } => vec![left, right],
            RelationTerm::Broadcast(input) | RelationTerm::Shuffle(_, input) | RelationTerm::Filter(_, input) => {
                vec![input]
            }
            RelationTerm::Aggregate { input, .. } | RelationTerm::Map { input, .. } => vec![input],
        }
    }

    /// The same term with one subterm replaced.
    pub(super) fn with_part(&self, number: usize, part: RelationTerm) -> RelationTerm {
        let mut term = self.clone();
        let slot = match &mut term {
            RelationTerm::Input { .. } => return term,
            RelationTerm::Join { left, .. } if number == 0 => left,
            RelationTerm::Join { right, .. } => right,
            RelationTerm::Broadcast(input) | RelationTerm::Shuffle(_, input) | RelationTerm::Filter(_, input) => input,
            RelationTerm::Aggregate { input, .. } | RelationTerm::Map { input, .. } => input,
        };
        **slot = part;
        term
    }

    /// The kernel that combines the parts of a sum, from the aggregate that made them; replicas of one array are not parts.
    pub(super) fn kernel_of_parts(&self) -> Option<&KernelFunction> {
        match self {
            RelationTerm::Aggregate { kernel, .. } => Some(kernel),
            RelationTerm::Filter(_, input) | RelationTerm::Map { input, .. } | RelationTerm::Shuffle(_, input) => {
                input.kernel_of_parts()
            }
            RelationTerm::Input { .. } | RelationTerm::Broadcast(_) | RelationTerm::Join { .. } => None,
        }
    }

    /// The type of the relation. Keys must be unique, components must exist, and a local operator must find its tuples on one
    /// site.
    pub(super) fn types(&self) -> Result<Type> {
        match self {
            RelationTerm::Input { ty, .. } => Ok(ty.clone()),
            RelationTerm::Broadcast(input) => match input.types()? {
                Type { spread: Spread::Partial, .. } => Err(partial("a broadcast")),
                ty => Ok(Type { spread: Spread::All, ..ty }),
            },
            RelationTerm::Shuffle(by, input) => {
                let ty = input.types()?;
                self.check_components(by, ty.frontier.len())?;
                // A shuffle of parts brings the parts together; only an aggregate may follow.
                let spread = if ty.spread == Spread::Partial { Spread::Partial } else { Spread::part(by) };
                Ok(Type { spread, ..ty })
            }
            RelationTerm::Filter(predicate, input) => {
                let ty = input.types()?;
                self.check_components(predicate.reads(), ty.frontier.len())?;
                let keys = ty.keys().into_iter().filter(|key| predicate.holds(key)).collect();
                Ok(Type::of_keys(keys, ty.frontier.len(), ty.bound, ty.spread))
            }
            RelationTerm::Map { keys, kernel, input } => self.type_of_map(keys, kernel, input.types()?),
            RelationTerm::Aggregate { group, before, kernel, after, input } => {
                let ty = input.types()?;
                self.check_components(group, ty.frontier.len())?;
                let bound = before.bound(&[&ty.bound]);
                let bound = after.bound(&[&kernel.bound(&[&bound, &bound])]);
                let parts = if ty.spread == Spread::Partial { input.kernel_of_parts() } else { None };
                if parts.is_some_and(|parts| parts.name() != kernel.name() || !before.distributes_over(kernel)) {
                    return Err(partial("another aggregate"));
                }
                match self.type_of_aggregate(group, bound, ty, input) {
                    Type { spread: Spread::Partial, .. } if !after.distributes_over(kernel) => Err(partial("a map")),
                    ty => Ok(ty),
                }
            }
            RelationTerm::Join { on, kernel, left, right } => {
                self.type_of_join(on, kernel, left.types()?, right.types()?)
            }
        }
    }

    fn check_components(&self, components: &[usize], arity: usize) -> Result<()> {
        let twice = |k: usize| components[..k].contains(&components[k]);
        if let Some(wrong) = components.iter().find(|&&k| k >= arity) {
            return Err(Error::source(format!("`{self}` names component {wrong} of keys with {arity}")));
        }
        if matches!(self, RelationTerm::Filter(..)) {
            return Ok(());
        }
        match (0..components.len()).find(|&k| twice(k)) {
            Some(k) => Err(Error::source(format!("`{self}` names component {} twice", components[k]))),
            None => Ok(()),
        }
    }

    fn type_of_map(&self, map: &KeyMap, kernel: &KernelFunction, ty: Type) -> Result<Type> {
        if ty.spread == Spread::Partial && !kernel.is_identity() {
            return Err(partial("a map"));
        }
        let bound = kernel.bound(&[&ty.bound]);
        if map.is_identity() {
            return Ok(Type { bound, ..ty });
        }
        let mut keys: BTreeSet<Vec<u64>> = BTreeSet::new();
        for key in ty.keys() {
            for new in map.keys(&key) {
                if keys.contains(&new) {
                    return Err(Error::source(format!(
                        "`{map}` gives the key {new:?} twice, the second time for {key:?}"
                    )));
                }
                keys.insert(new);
            }
        }
        let arity = keys.first().map_or(ty.frontier.len(), Vec::len);
        if let Some(key) = keys.iter().find(|key| key.len() != arity) {
            return Err(Error::source(format!("`{map}` gives keys of different lengths: {key:?}")));
        }
        let spread = match ty.spread {
            Spread::All => Spread::All,
            Spread::Partial => Spread::Partial,
            Spread::Part(by) => {
                let places = by.iter().map(|&k| map.place(k)).collect::<Option<Vec<usize>>>();
                places.map_or(Spread::Somewhere, Spread::Part)
            }
            Spread::Somewhere => Spread::Somewhere,
        };
        let made = Type::of_keys(keys, arity, bound, spread);
        match made.first_hole() {
            Some(hole) if ty.keys.is_none() => {
                Err(Error::source(format!("`{map}` leaves a hole: no tuple has the key {hole:?}")))
            }
            _ => Ok(made),
        }
    }

    fn type_of_aggregate(&self, group: &[usize], bound: Vec<u64>, ty: Type, input: &RelationTerm) -> Type {
        // The new positions of the components that decide the site, if all of them stay.
        let places = |by: &Spread| match by {
            Spread::Part(by) => {
                let places = by.iter().map(|k| group.iter().position(|g| g == k)).collect::<Option<Vec<usize>>>();
                places.map_or(Spread::Partial, Spread::Part)
            }
            _ => Spread::Partial,
        };
        let spread = match &ty.spread {
            Spread::All => Spread::All,
            Spread::Partial => match input {
                // Parts that were shuffled by what stays are together.
                RelationTerm::Shuffle(by, _) => places(&Spread::part(by)),
                _ => Spread::Partial,
            },
            Spread::Somewhere => Spread::Partial,
            by => places(by),
        };
        Type { bound, spread, ..ty.project(group) }
    }

    fn type_of_join(&self, on: &[(usize, usize)], kernel: &KernelFunction, left: Type, right: Type) -> Result<Type> {
        let (on_left, on_right): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
        self.check_components(&on_left, left.frontier.len())?;
        self.check_components(&on_right, right.frontier.len())?;
        let bound = kernel.bound(&[&left.bound, &right.bound]);
        let rest: Vec<usize> = (0..right.frontier.len()).filter(|k| !on_right.contains(k)).collect();
        // The position of a right key component in the joined key.
        let place = |k: usize| match on_right.iter().position(|&r| r == k) {
            Some(i) => on_left[i],
            None => left.frontier.len() + rest.iter().position(|&r| r == k).unwrap_or(0),
        };
        let spread = match (&left.spread, &right.spread) {
            (Spread::Partial, _) | (_, Spread::Partial) => return Err(partial("a join")),
            (Spread::All, Spread::All) => Spread::All,
            (Spread::All, Spread::Part(by)) => Spread::Part(by.iter().map(|&k| place(k)).collect()),
            (Spread::Part(by), Spread::All) => Spread::Part(by.clone()),
            (Spread::All, Spread::Somewhere) | (Spread::Somewhere, Spread::All) => Spread::Somewhere,
            // Both by the same components of the join: tuples that meet are on one site.
            (Spread::Part(l), Spread::Part(r))
                if l.iter().all(|k| on_left.contains(k)) && r.iter().map(|&k| place(k)).eq(l.iter().copied()) =>
            {
                Spread::Part(l.clone())
            }
            _ => {
                return Err(Error::source(format!("`{self}` joins tuples that are on different sites"))
                    .help("broadcast one side, or shuffle both by the components they are joined on"));
            }
        };
        if left.keys.is_none() && right.keys.is_none() {
            let mut frontier = left.frontier.clone();
            on.iter().for_each(|&(l, r)| frontier[l] = frontier[l].min(right.frontier[r]));
            frontier.extend(rest.iter().map(|&k| right.frontier[k]));
            return Ok(Type::new(&frontier, &bound, spread));
        }
        let arity = left.frontier.len() + rest.len();
        let right_keys = right.keys();
        let keys = left.keys().into_iter().flat_map(|l| {
            let meets = right_keys.iter().filter(|r| on.iter().all(|&(a, b)| l[a] == r[b]));
            meets.map(|r| l.iter().copied().chain(rest.iter().map(|&k| r[k])).collect()).collect::<Vec<Vec<u64>>>()
        });
        Ok(Type::of_keys(keys.collect(), arity, bound, spread))
    }
}

fn partial(what: &str) -> Error {
    Error::source(format!("{what} of arrays that are only parts of sums")).help("shuffle and aggregate them first")
}

impl fmt::Display for RelationTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelationTerm::Input { name, .. } => f.write_str(name),
            RelationTerm::Broadcast(input) => write!(f, "BCAST({input})"),
            RelationTerm::Shuffle(by, input) => write!(f, "SHUF{by:?}({input})"),
            RelationTerm::Join { on, kernel, left, right } => write!(f, "join{on:?}[{kernel}]({left}, {right})"),
            RelationTerm::Aggregate { group, before, kernel, after, input } => {
                let around = |word: &str, k: &KernelFunction| match k.is_identity() {
                    true => String::new(),
                    false => format!("{word} {k}, "),
                };
                let (after, before) = (around("after", after), around("before", before));
                write!(f, "agg{group:?}[{after}{before}{kernel}]({input})")
            }
            RelationTerm::Filter(predicate, input) => write!(f, "filter[{predicate}]({input})"),
            RelationTerm::Map { keys, kernel, input } => write!(f, "map[{keys}, {kernel}]({input})"),
        }
    }
}
