//! Named functions of keys and of arrays.

use std::fmt;
use std::sync::Arc;

type BoundOf = dyn Fn(&[&[u64]]) -> Vec<u64> + Send + Sync;
type ValueOf = dyn Fn(&[i64]) -> i64 + Send + Sync;
type KeysOf = dyn Fn(&[u64]) -> Vec<Vec<u64>> + Send + Sync;
type Holds = dyn Fn(&[u64]) -> bool + Send + Sync;

/// A function of one or two arrays, identified by its name.
///
/// It gives the shape of its result, and a meaning on single numbers, which stand for arrays when terms are
/// [evaluated](super::evaluate).
#[derive(Clone)]
pub(super) struct KernelFunction {
    name: Arc<str>,
    bound: Arc<BoundOf>,
    value: Arc<ValueOf>,
    /// Names of functions of two arrays that it may be applied before instead of after.
    distributes_over: Arc<[String]>,
    /// A flag, because any function may be called `id`.
    identity: bool,
}

impl KernelFunction {
    /// A function with a name, the bound of its result from those of its arguments, and its meaning on numbers.
    pub(super) fn new(
        name: &str,
        bound: impl Fn(&[&[u64]]) -> Vec<u64> + Send + Sync + 'static,
        value: impl Fn(&[i64]) -> i64 + Send + Sync + 'static,
    ) -> KernelFunction {
        KernelFunction {
            name: name.into(),
            bound: Arc::new(bound),
            value: Arc::new(value),
            distributes_over: Arc::new([]),
            identity: false,
        }
    }

    /// A function of arrays of one bound to an array of that bound.
    pub(super) fn same_bound(name: &str, value: impl Fn(&[i64]) -> i64 + Send + Sync + 'static) -> KernelFunction {
        KernelFunction::new(name, |bounds| bounds.first().map_or_else(Vec::new, |bound| bound.to_vec()), value)
    }

    /// The array itself.
    pub(super) fn identity() -> KernelFunction {
        KernelFunction { identity: true, ..KernelFunction::same_bound("id", |values| values[0]) }
    }

    /// The product of two matrices.
    #[cfg(test)]
    pub(super) fn mat_mul() -> KernelFunction {
        let bound = |bounds: &[&[u64]]| match bounds {
            [[m, _], [_, n]] => vec![*m, *n],
            _ => Vec::new(),
        };
        KernelFunction::new("matMul", bound, |values| values[0].wrapping_mul(values[1]))
    }

    /// The sum of two arrays.
    #[cfg(test)]
    pub(super) fn add() -> KernelFunction {
        KernelFunction::same_bound("add", |values| values[0].wrapping_add(values[1]))
    }

    /// The product of two arrays element by element.
    #[cfg(test)]
    pub(super) fn mul() -> KernelFunction {
        KernelFunction::same_bound("mul", |values| values[0].wrapping_mul(values[1]))
    }

    /// The same function, known to distribute over another: `f(g(a, b)) = g(f(a), f(b))`.
    #[cfg(test)]
    pub(super) fn distributing_over(mut self, other: &KernelFunction) -> KernelFunction {
        let names = self.distributes_over.iter().cloned().chain([other.name.to_string()]);
        self.distributes_over = names.collect();
        self
    }

    /// Whether it distributes over another function.
    pub(super) fn distributes_over(&self, other: &KernelFunction) -> bool {
        self.is_identity() || self.distributes_over.iter().any(|name| **name == *other.name)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True for the identity.
    pub(super) fn is_identity(&self) -> bool {
        self.identity
    }

    /// The bound of its result.
    pub(super) fn bound(&self, arguments: &[&[u64]]) -> Vec<u64> {
        (self.bound)(arguments)
    }

    /// Its meaning on numbers.
    pub(super) fn value(&self, arguments: &[i64]) -> i64 {
        (self.value)(arguments)
    }

    /// The composition: this function after another.
    pub(super) fn after(&self, first: &KernelFunction) -> KernelFunction {
        if self.is_identity() {
            return first.clone();
        }
        if first.is_identity() {
            return self.clone();
        }
        let (outer, inner) = (self.clone(), first.clone());
        let (outer_value, inner_value) = (self.clone(), first.clone());
        KernelFunction::new(
            &format!("{}.{}", self.name, first.name),
            move |bounds| outer.bound(&[&inner.bound(bounds)]),
            move |values| outer_value.value(&[inner_value.value(values)]),
        )
    }
}

/// A function from a key to one or more keys.
#[derive(Clone)]
pub(super) struct KeyMap {
    name: Arc<str>,
    arity: usize,
    keys: Arc<KeysOf>,
    form: Form,
}

/// Known properties of a key function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It gives the key itself.
    Identity,
    /// It adds a component at this position and leaves the others as they are.
    Insert(usize),
    /// Nothing.
    Any,
}

impl KeyMap {
    /// A named function with this many keys per key.
    pub(super) fn new(
        name: &str,
        arity: usize,
        keys: impl Fn(&[u64]) -> Vec<Vec<u64>> + Send + Sync + 'static,
    ) -> KeyMap {
        KeyMap { name: name.into(), arity, keys: Arc::new(keys), form: Form::Any }
    }

    /// The key itself.
    pub(super) fn identity() -> KeyMap {
        KeyMap { form: Form::Identity, ..KeyMap::new("id", 1, |key| vec![key.to_vec()]) }
    }

    /// Inserts a component at a position, with each value below `copies`: the array is replicated.
    pub(super) fn insert(position: usize, copies: u64) -> KeyMap {
        let map = KeyMap::new(&format!("insert({position},{copies})"), copies as usize, move |key| {
            let with = |value: u64| {
                let mut key = key.to_vec();
                key.insert(position.min(key.len()), value);
                key
            };
            (0..copies).map(with).collect()
        });
        KeyMap { form: Form::Insert(position), ..map }
    }

    /// The number of keys per key.
    pub(super) fn arity(&self) -> usize {
        self.arity
    }

    /// True for the identity.
    pub(super) fn is_identity(&self) -> bool {
        self.form == Form::Identity
    }

    /// The position of a component in the new keys, if it is known to be in all of them.
    pub(super) fn place(&self, component: usize) -> Option<usize> {
        match self.form {
            Form::Identity => Some(component),
            Form::Insert(position) => Some(component + usize::from(component >= position)),
            Form::Any => None,
        }
    }

    /// The keys for a key.
    pub(super) fn keys(&self, key: &[u64]) -> Vec<Vec<u64>> {
        (self.keys)(key)
    }

    /// This function after another.
    pub(super) fn after(&self, first: &KeyMap) -> KeyMap {
        if self.is_identity() {
            return first.clone();
        }
        if first.is_identity() {
            return self.clone();
        }
        let (outer, inner) = (self.clone(), first.clone());
        KeyMap::new(&format!("{}.{}", self.name, first.name), self.arity.saturating_mul(first.arity), move |key| {
            inner.keys(key).iter().flat_map(|key| outer.keys(key)).collect()
        })
    }
}

/// A predicate on some components of a key.
#[derive(Clone)]
pub(super) struct Predicate {
    name: Arc<str>,
    reads: Vec<usize>,
    holds: Arc<Holds>,
}

impl Predicate {
    /// A named predicate on these components of a key, in this order.
    #[cfg(test)]
    pub(super) fn new(
        name: &str,
        reads: &[usize],
        holds: impl Fn(&[u64]) -> bool + Send + Sync + 'static,
    ) -> Predicate {
        Predicate { name: name.into(), reads: reads.to_vec(), holds: Arc::new(holds) }
    }

    /// The components it reads.
    pub(super) fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Whether it holds for a key.
    pub(super) fn holds(&self, key: &[u64]) -> bool {
        let read: Vec<u64> = self.reads.iter().map(|&k| key[k]).collect();
        (self.holds)(&read)
    }

    /// Both conditions.
    pub(super) fn and(&self, other: &Predicate) -> Predicate {
        let n = self.reads.len();
        let (a, b) = (Arc::clone(&self.holds), Arc::clone(&other.holds));
        Predicate {
            name: format!("{} & {}", self.name, other.name).into(),
            reads: self.reads.iter().chain(&other.reads).copied().collect(),
            holds: Arc::new(move |read| a(&read[..n]) && b(&read[n..])),
        }
    }

    /// The same predicate on moved components: component `k` is now at `moved(k)`. `None` if one of them is gone.
    pub(super) fn moved(&self, moved: impl Fn(usize) -> Option<usize>) -> Option<Predicate> {
        let reads = self.reads.iter().map(|&k| moved(k)).collect::<Option<Vec<usize>>>()?;
        Some(Predicate { reads, ..self.clone() })
    }
}

macro_rules! named {
    ($($type:ident)*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })*
    };
}
named! { KernelFunction KeyMap Predicate }

impl fmt::Display for KernelFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
impl fmt::Display for KeyMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.reads)
    }
}
