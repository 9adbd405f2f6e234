//! Tensor distribution notation (TDN, from DISTAL and SpDISTAL): distributions written by the user.
//!
//! ```text
//! machine M(4, 2)
//! a(x, y) -> M(x, y)     # blocks of rows and columns
//! b(x, y) -> M(y)        # by columns over the first axis of the machine; workers along the second share each part
//! c(x, y) -> M(x, 0)     # by rows, on one face of the machine
//! ```
//!
//! A variable on both sides splits that tensor axis over that machine axis. Workers along a machine axis without such a variable share the values that they all
//! touch. A number fixes a coordinate (a face). Machine axes that are not mentioned come last and are shared.

use tw_ir::error::{Error, Result};
use tw_ir::program::{Program, ValueId};
use tw_ir::span::Span;

use super::machine::Machine;
use super::mesh::{Mesh, Ownership};

/// A machine as a mesh, and the distributions of tensors on it.
///
/// ```
/// use tw_place::Notation;
/// let notation = Notation::parse("machine M(4, 2)\na(x, y) -> M(x, y)\n").unwrap();
/// assert_eq!(notation.n_workers(), 8);
/// let error = Notation::parse("machine M(4)\na(x) -> N(x)\n").unwrap_err();
/// assert_eq!(error.message(), "`N` is not the machine, which is called `M`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notation {
    machine: String,
    sides: Vec<u64>,
    tensors: Vec<Distribution>,
}

/// One line: a tensor, its rank, and an entry for each machine axis.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Distribution {
    tensor: String,
    rank: usize,
    along: Vec<Along>,
    /// Its line number, from 1.
    line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// An axis of the tensor.
    Axis(usize),
    /// Only the workers at this coordinate.
    Face(u64),
    /// No variable: all workers along the axis share.
    Shared,
}

impl Notation {
    /// Parses a text. Errors have a position in it.
    pub fn parse(text: &str) -> Result<Notation> {
        let mut notation: Option<Notation> = None;
        let mut start = 0;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            let content = line.split('#').next().unwrap_or("").trim();
            let at = start + line.find(content).unwrap_or(0);
            let span = Span::text(at, at + content.len());
            start += line.len();
            if content.is_empty() {
                continue;
            }
            let machine = content.strip_prefix("machine").filter(|rest| rest.starts_with(char::is_whitespace));
            match (&mut notation, machine) {
                (None, Some(machine)) => notation = Some(Notation::of_machine(machine).map_err(|e| e.at(&span))?),
                (None, None) => {
                    return Err(Error::source("the first line says what the machine is")
                        .at(&span)
                        .help("such as `machine M(4, 2)`"));
                }
                (Some(_), Some(_)) => return Err(Error::source("there is one machine").at(&span)),
                (Some(notation), None) => {
                    let line = notation.distribution(content, number).map_err(|error| error.at(&span))?;
                    notation.tensors.push(line);
                }
            }
        }
        notation.ok_or_else(|| Error::source("a distribution begins with its machine, such as `machine M(4, 2)`"))
    }

    /// Workers of the machine.
    pub fn n_workers(&self) -> u64 {
        self.sides.iter().product()
    }

    fn of_machine(text: &str) -> Result<Notation> {
        let (name, sides) = call(text)?;
        let side = |text: &&str| match text.parse::<u64>() {
            Ok(n) if (1..=super::machine::MOST_WORKERS).contains(&n) => Ok(n),
            _ => Err(Error::source(format!("`{text}` is not a number of workers"))),
        };
        let sides: Vec<u64> = sides.iter().map(side).collect::<Result<_>>()?;
        let total = sides.iter().try_fold(1u64, |n, side| n.checked_mul(*side));
        if sides.is_empty() || total.is_none_or(|n| n > super::machine::MOST_WORKERS) {
            return Err(Error::source(format!("`{}` is no grid of workers", text.trim())));
        }
        Ok(Notation { machine: name.to_string(), sides, tensors: Vec::new() })
    }

    fn distribution(&self, text: &str, line: usize) -> Result<Distribution> {
        let (tensor, machine) = text
            .split_once("->")
            .ok_or_else(|| Error::source(format!("`{text}` is not `tensor(axes) -> {}(axes)`", self.machine)))?;
        let ((tensor, axes), (machine, places)) = (call(tensor)?, call(machine)?);
        if machine != self.machine {
            let text = format!("`{machine}` is not the machine, which is called `{}`", self.machine);
            return Err(Error::source(text));
        }
        if self.tensors.iter().any(|other| other.tensor == tensor) {
            return Err(Error::source(format!("`{tensor}` is distributed twice")));
        }
        if places.len() > self.sides.len() {
            return Err(Error::source(format!("`{machine}` has {} axes, not {}", self.sides.len(), places.len())));
        }
        for side in [&axes, &places] {
            let repeated = side.iter().enumerate().find(|(k, name)| is_name(name) && side[..*k].contains(name));
            if let Some((_, name)) = repeated {
                return Err(Error::source(format!("`{name}` is there twice on one side")));
            }
        }
        if let Some(wrong) = axes.iter().find(|name| !is_name(name)) {
            return Err(Error::source(format!("`{wrong}` is not a name for an axis of `{tensor}`")));
        }
        let along = |(&side, place): (&u64, Option<&&str>)| match place {
            None | Some(&"*") => Ok(Along::Shared),
            Some(name) if is_name(name) => {
                Ok(axes.iter().position(|axis| axis == name).map_or(Along::Shared, Along::Axis))
            }
            Some(text) => match text.parse::<u64>() {
                Ok(face) if face < side => Ok(Along::Face(face)),
                _ => Err(Error::source(format!("`{text}` is not a place along an axis of {side} workers"))),
            },
        };
        let places = places.iter().map(Some).chain(std::iter::repeat(None));
        let along = self.sides.iter().zip(places).map(along).collect::<Result<_>>()?;
        Ok(Distribution { tensor: tensor.to_string(), rank: axes.len(), along, line })
    }

    /// The owners of each tensor that has a line, and the mesh of the producing statement if each worker has a part.
    pub(super) fn owners(&self, program: &Program, machine: &Machine) -> Result<Vec<(ValueId, Written)>> {
        if self.n_workers() != machine.n_workers() as u64 {
            let sides: Vec<String> = self.sides.iter().map(u64::to_string).collect();
            let text = format!(
                "`{}({})` has {} workers, the machine that is planned for {}",
                self.machine,
                sides.join(", "),
                self.n_workers(),
                machine.n_workers()
            );
            return Err(Error::plan(text));
        }
        let mut owners = Vec::new();
        for line in &self.tensors {
            let is_named = |value: &ValueId| program.values[*value].name.as_ref() == Some(&line.tensor);
            for value in program.values.keys().filter(is_named) {
                let Some(shape) = program.ty(value).known_shape() else { continue };
                if shape.len() != line.rank {
                    let text = format!("`{}` has {} axes, not {}", line.tensor, shape.len(), line.rank);
                    return Err(Error::plan(text).note(format!("in line {} of the distribution", line.line)));
                }
                owners.push((value, Written { along: line.along.clone(), sides: self.sides.clone(), shape }));
            }
        }
        Ok(owners)
    }

    /// An error if a line names a tensor that none of the programs has.
    pub fn check_names(&self, programs: &[&Program]) -> Result<()> {
        let values = programs.iter().flat_map(|program| program.values.values());
        let mut names: Vec<&str> = values.filter_map(|value| value.name.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        match self.tensors.iter().find(|line| !names.contains(&line.tensor.as_str())) {
            None => Ok(()),
            Some(line) => {
                let text = format!("the distribution names `{}`, which the plan does not have", line.tensor);
                let error = Error::plan(text).note(format!("in line {} of the distribution", line.line));
                Err(error.help(format!("it has {}", names.join(", "))))
            }
        }
    }
}

/// The distribution of one value.
pub(super) struct Written {
    along: Vec<Along>,
    sides: Vec<u64>,
    shape: Vec<u64>,
}

impl Written {
    /// The owners. Workers off the face own nothing.
    pub(super) fn ownership(&self) -> Ownership {
        let mesh = Mesh::new(self.sides.clone());
        let along_axis = |axis: usize| self.along.iter().position(|along| *along == Along::Axis(axis));
        let vars = (0..self.shape.len()).map(along_axis).collect();
        let faces = self.along.iter().map(|along| match along {
            Along::Face(face) => Some(*face),
            _ => None,
        });
        Ownership::on_faces(&self.shape, &mesh, vars, faces.collect())
    }

    /// The mesh of the producing statement, if each machine axis has a variable.
    pub(super) fn mesh(&self, out_vars: &[Option<usize>], n_vars: usize) -> Option<Mesh> {
        let var = |along: &Along| match along {
            Along::Axis(axis) => out_vars[*axis],
            _ => None,
        };
        let vars: Vec<usize> = self.along.iter().map(var).collect::<Option<_>>()?;
        let mut factors = vec![1; n_vars];
        vars.iter().zip(&self.sides).for_each(|(&var, &side)| factors[var] = side);
        Some(Mesh::numbered(factors, &vars))
    }
}

/// Splits `name(a, b)` into the name and the text between the parentheses.
fn call(text: &str) -> Result<(&str, Vec<&str>)> {
    let wrong = || Error::source(format!("`{}` is not `name(axes)`", text.trim()));
    let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    if !is_name(name.trim()) {
        return Err(wrong());
    }
    let inner = inner.trim();
    Ok((name.trim(), if inner.is_empty() { Vec::new() } else { inner.split(',').map(str::trim).collect() }))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_refused_where_they_are() {
        for (text, message) in [
            ("a(x) -> M(x)", "the first line says what the machine is"),
            ("machine M(0)", "not a number of workers"),
            ("machine M()", "no grid of workers"),
            ("machine M(100000, 100000)", "no grid of workers"),
            ("machine M(4)\nmachine M(4)", "there is one machine"),
            ("machine M(4)\na(x) M(x)", "is not `tensor(axes) -> M(axes)`"),
            ("machine M(4)\na(x -> M(x)", "is not `name(axes)`"),
            ("machine M(4)\na(x, x) -> M(x)", "`x` is there twice on one side"),
            ("machine M(4)\na(x) -> M(x, y)", "`M` has 1 axes, not 2"),
            ("machine M(4)\na(x) -> M(4)", "`4` is not a place along an axis of 4 workers"),
            ("machine M(4)\na(1) -> M(0)", "`1` is not a name for an axis of `a`"),
            ("machine M(4)\na(x) -> M(x)\na(x) -> M(x)", "`a` is distributed twice"),
        ] {
            let error = Notation::parse(text).unwrap_err();
            assert!(error.message().contains(message), "{text}: {}", error.message());
            let last = text.lines().last().unwrap_or_default();
            let start = text.len() - last.len();
            assert_eq!(error.span(), &Span::text(start, text.len()), "{text}");
        }
        Notation::parse("machine\tM(4)\n").unwrap();
        assert!(Notation::parse("# nothing\n").unwrap_err().message().contains("begins with its machine"));
    }
}
