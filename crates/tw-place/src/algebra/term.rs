//! Terms and their types.

use std::collections::BTreeSet;
use std::fmt;

use tw_ir::error::{Error, Result};

use super::kernel::{Kernel, KeyMap, Predicate};
use super::types::{Spread, Type};

/// How a relation is computed.
#[derive(Clone, Debug)]
pub enum Term {
    /// A relation that is there.
    Input {
        /// Its name.
        name: String,
        /// Its type.
        ty: Type,
    },
    /// Every tuple to every site.
    Broadcast(Box<Term>),
    /// Tuples to sites by these components of their keys.
    Shuffle(Vec<usize>, Box<Term>),
    /// Pairs of tuples on one site whose keys agree: the key is the left one and the rest of the right one.
    Join {
        /// Components that agree, left and right.
        on: Vec<(usize, usize)>,
        /// From both arrays to one.
        kernel: Kernel,
        /// Left.
        left: Box<Term>,
        /// Right.
        right: Box<Term>,
    },
    /// Arrays of tuples on one site with equal components, combined.
    Aggregate {
        /// The components that stay.
        group: Vec<usize>,
        /// Applied to every array first.
        before: Kernel,
        /// From two arrays to one; associative and commutative.
        kernel: Kernel,
        /// Applied to every result.
        after: Kernel,
        /// Of what.
        input: Box<Term>,
    },
    /// Tuples whose keys fulfil a condition.
    Filter(Predicate, Box<Term>),
    /// Keys and arrays mapped.
    Map {
        /// The new keys.
        keys: KeyMap,
        /// The new array, the same for every new key.
        kernel: Kernel,
        /// Of what.
        input: Box<Term>,
    },
}

impl Term {
    /// A relation that is there.
    pub fn input(name: &str, ty: Type) -> Term {
        Term::Input { name: name.to_string(), ty }
    }
    /// Every tuple to every site.
    pub fn broadcast(self) -> Term {
        Term::Broadcast(Box::new(self))
    }
    /// Tuples to sites by components of their keys.
    pub fn shuffle(self, by: &[usize]) -> Term {
        Term::Shuffle(by.to_vec(), Box::new(self))
    }
    /// Pairs of tuples.
    pub fn join(self, right: Term, on: &[(usize, usize)], kernel: Kernel) -> Term {
        Term::Join { on: on.to_vec(), kernel, left: Box::new(self), right: Box::new(right) }
    }
    /// Arrays combined, by components of keys.
    pub fn aggregate(self, group: &[usize], kernel: Kernel) -> Term {
        let (before, after) = (Kernel::identity(), Kernel::identity());
        Term::Aggregate { group: group.to_vec(), before, kernel, after, input: Box::new(self) }
    }
    /// Tuples whose keys fulfil a condition.
    pub fn filter(self, predicate: Predicate) -> Term {
        Term::Filter(predicate, Box::new(self))
    }
    /// Keys and arrays mapped.
    pub fn map(self, keys: KeyMap, kernel: Kernel) -> Term {
        Term::Map { keys, kernel, input: Box::new(self) }
    }

    /// Its subterms.
    pub fn parts(&self) -> Vec<&Term> {
        match self {
            Term::Input { .. } => Vec::new(),
            Term::Join { left, right, .. } => vec![left, right],
            Term::Broadcast(input) | Term::Shuffle(_, input) | Term::Filter(_, input) => vec![input],
            Term::Aggregate { input, .. } | Term::Map { input, .. } => vec![input],
        }
    }

    /// The same term with one subterm replaced.
    pub fn with_part(&self, number: usize, part: Term) -> Term {
        let mut term = self.clone();
        let slot = match &mut term {
            Term::Input { .. } => return term,
            Term::Join { left, .. } if number == 0 => left,
            Term::Join { right, .. } => right,
            Term::Broadcast(input) | Term::Shuffle(_, input) | Term::Filter(_, input) => input,
            Term::Aggregate { input, .. } | Term::Map { input, .. } => input,
        };
        **slot = part;
        term
    }

    /// The kernel that combines the parts of a sum, from the aggregate that made them; replicas of one array are not parts.
    pub(super) fn kernel_of_parts(&self) -> Option<&Kernel> {
        match self {
            Term::Aggregate { kernel, .. } => Some(kernel),
            Term::Filter(_, input) | Term::Map { input, .. } | Term::Shuffle(_, input) => input.kernel_of_parts(),
            Term::Input { .. } | Term::Broadcast(_) | Term::Join { .. } => None,
        }
    }

    /// The type of the relation. Keys must be unique, components must exist, and a local operator must find its tuples on one
    /// site.
    pub fn types(&self) -> Result<Type> {
        match self {
            Term::Input { ty, .. } => Ok(ty.clone()),
            Term::Broadcast(input) => match input.types()? {
                Type { spread: Spread::Partial, .. } => Err(partial("a broadcast")),
                ty => Ok(Type { spread: Spread::All, ..ty }),
            },
            Term::Shuffle(by, input) => {
                let ty = input.types()?;
                self.check_components(by, ty.frontier.len())?;
                // A shuffle of parts brings the parts together; only an aggregate may follow.
                let spread = if ty.spread == Spread::Partial { Spread::Partial } else { Spread::part(by) };
                Ok(Type { spread, ..ty })
            }
            Term::Filter(predicate, input) => {
                let ty = input.types()?;
                self.check_components(predicate.reads(), ty.frontier.len())?;
                let keys = ty.keys().into_iter().filter(|key| predicate.holds(key)).collect();
                Ok(Type::of_keys(keys, ty.frontier.len(), ty.bound, ty.spread))
            }
            Term::Map { keys, kernel, input } => self.type_of_map(keys, kernel, input.types()?),
            Term::Aggregate { group, before, kernel, after, input } => {
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
            Term::Join { on, kernel, left, right } => self.type_of_join(on, kernel, left.types()?, right.types()?),
        }
    }

    fn check_components(&self, components: &[usize], arity: usize) -> Result<()> {
        let twice = |k: usize| components[..k].contains(&components[k]);
        if let Some(wrong) = components.iter().find(|&&k| k >= arity) {
            return Err(Error::source(format!("`{self}` names component {wrong} of keys with {arity}")));
        }
        if matches!(self, Term::Filter(..)) {
            return Ok(());
        }
        match (0..components.len()).find(|&k| twice(k)) {
            Some(k) => Err(Error::source(format!("`{self}` names component {} twice", components[k]))),
            None => Ok(()),
        }
    }

    fn type_of_map(&self, map: &KeyMap, kernel: &Kernel, ty: Type) -> Result<Type> {
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

    fn type_of_aggregate(&self, group: &[usize], bound: Vec<u64>, ty: Type, input: &Term) -> Type {
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
                Term::Shuffle(by, _) => places(&Spread::part(by)),
                _ => Spread::Partial,
            },
            Spread::Somewhere => Spread::Partial,
            by => places(by),
        };
        Type { bound, spread, ..ty.project(group) }
    }

    fn type_of_join(&self, on: &[(usize, usize)], kernel: &Kernel, left: Type, right: Type) -> Result<Type> {
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

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Input { name, .. } => f.write_str(name),
            Term::Broadcast(input) => write!(f, "BCAST({input})"),
            Term::Shuffle(by, input) => write!(f, "SHUF{by:?}({input})"),
            Term::Join { on, kernel, left, right } => write!(f, "join{on:?}[{kernel}]({left}, {right})"),
            Term::Aggregate { group, before, kernel, after, input } => {
                let around = |word: &str, k: &Kernel| match k.is_identity() {
                    true => String::new(),
                    false => format!("{word} {k}, "),
                };
                let (after, before) = (around("after", after), around("before", before));
                write!(f, "agg{group:?}[{after}{before}{kernel}]({input})")
            }
            Term::Filter(predicate, input) => write!(f, "filter[{predicate}]({input})"),
            Term::Map { keys, kernel, input } => write!(f, "map[{keys}, {kernel}]({input})"),
        }
    }
}
