//! Reading and writing a plan file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tw_ir::program::{ExtentId, MaskCounts, Op, Program, ValueId, mask_pieces};
use tw_ir::{Span, text};
use tw_lang::NoFiles;
use tw_plan::PlanOptions;

use crate::generate::function_table;

/// The line between a program and what is expected of it.
const SEPARATOR: &str = "----";

/// A program and the plan that is expected of it.
#[derive(Clone, Debug)]
pub struct PlanCase {
    /// Where it was read from.
    pub path: PathBuf,
    /// Everything before the separator.
    pub input: String,
    /// Everything after it; `None` if there is no separator or nothing after it.
    pub expected: Option<String>,
    /// The program. The span of every operation is its number in `labels`, or that of the first operation of its line of a host language.
    pub program: Program,
    /// How every operation of the program is called: by the name of its result, or by its text.
    pub labels: Vec<String>,
    /// How it is planned.
    pub options: PlanOptions,
    /// How many elements every mask selects, so that segments behind masks can be planned too.
    pub selected: Option<u64>,
    /// True if the program cannot be planned: it depends on data, or planning fails.
    pub is_unplanned: bool,
}

impl PlanCase {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<PlanCase, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        PlanCase::parse(path, &text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Its path below the directory of plan files.
    pub fn name(&self) -> String {
        self.path.strip_prefix(super::directory()).unwrap_or(&self.path).display().to_string()
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<PlanCase, String> {
        let (input, expected) = split(text);
        let mut program = parse_program(&input)?;
        let labels = program.body.nodes.iter().map(|node| label(&program, node.results.first(), &node.span, &input));
        let labels = labels.collect();
        let spans: Vec<Span> = program.body.nodes.iter().map(|node| node.span).collect();
        for (k, node) in program.body.nodes.iter_mut().enumerate() {
            // Operations of one line of a host language stay together.
            let is_same = |other: &Span| matches!(other, Span::Host { .. }) && *other == spans[k];
            let k = spans.iter().position(is_same).unwrap_or(k);
            node.span = Span::text(k, k + 1);
        }
        let path = path.to_path_buf();
        let (options, selected, is_unplanned) = (PlanOptions::default(), None, false);
        let mut file = PlanCase { path, input, expected, program, labels, options, selected, is_unplanned };
        let directives: Vec<String> =
            file.input.lines().filter_map(|line| Some(line.trim_start().strip_prefix("#!")?.trim().into())).collect();
        for directive in directives {
            file.directive(&directive)?;
        }
        Ok(file)
    }

    fn directive(&mut self, directive: &str) -> Result<(), String> {
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let number = || rest.trim().parse::<u64>().map_err(|_| format!("`{rest}` after `{word}` is not a number"));
        match (word, rest) {
            ("tile", _) => self.options.tile = Some(number()?),
            ("block-bytes", _) => self.options.block_bytes = Some(number()?),
            ("selects", _) => self.selected = Some(number()?),
            ("rewrites", "off") => self.options.rewrites = false,
            ("unplanned", "") => self.is_unplanned = true,
            _ => return Err(format!("`{directive}` is not a directive")),
        }
        Ok(())
    }

    /// The text of the file with another expectation.
    pub fn with_expected(&self, expected: &str) -> String {
        format!("{}{SEPARATOR}\n{expected}", self.input)
    }

    /// A program with known extents where it selects by masks, as the segments behind them have: every mask holds as often as the file says,
    /// evenly spread.
    pub fn with_counts(&self, program: Program) -> Result<Program, String> {
        let Some(n) = self.selected else { return Ok(program) };
        let mut program = program;
        let mut counted: Vec<ValueId> = Vec::new();
        program.body.nodes.retain(|node| match node.op {
            Op::Resolve => {
                counted.extend(&node.results);
                false
            }
            _ => true,
        });
        let extents = program.extents.clone();
        let known = |id: ExtentId| counted.contains(&extents[id].value).then_some(n);
        for info in program.values.values_mut() {
            info.ty = info.ty.resolve(&known);
        }
        for k in 0..program.body.nodes.len() {
            let node = &program.body.nodes[k];
            let mut op = node.op.resolve(&known);
            if let Op::Compact { counts, .. } | Op::Expand { counts } = &mut op {
                let shape = program.ty(node.args[0]).require_shape().map_err(|error| error.to_string())?;
                let pieces = mask_pieces(&shape, &[], self.options.tile.unwrap_or(u64::MAX));
                *counts = Some(MaskCounts::even(pieces, n).map_err(|error| error.to_string())?);
            }
            program.body.nodes[k].op = op;
        }
        Ok(program)
    }
}

/// What stands before the separator, and after it.
fn split(text: &str) -> (String, Option<String>) {
    let mut input = String::new();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        if line.trim_end() == SEPARATOR {
            let expected: String = lines.map(|line| format!("{line}\n")).collect();
            return (input, (!expected.trim().is_empty()).then_some(expected));
        }
        input.push_str(line);
        input.push('\n');
    }
    (input, None)
}

/// A program of the language, or the text of one if it begins as that does: for what the language cannot say.
fn parse_program(input: &str) -> Result<Program, String> {
    let bare: String = input.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    if bare.trim_start().starts_with("program {") {
        return text::parse_program(&bare, &function_table()).map_err(|error| error.to_string());
    }
    let unit = tw_lang::parse_program(input, &BTreeMap::new(), &NoFiles, &function_table());
    let message = |errors: Vec<tw_ir::Error>| errors.iter().map(|error| error.to_string()).collect::<Vec<_>>();
    unit.map(|unit| unit.program).map_err(|errors| message(errors).join("\n"))
}

fn label(program: &Program, result: Option<&ValueId>, span: &Span, input: &str) -> String {
    let name = result.and_then(|&value| program.values[value].name.clone());
    let written = match span {
        Span::Text { start, end, .. } => input.get(*start as usize..*end as usize),
        _ => None,
    };
    let number = || result.map_or_else(|| "store".to_string(), |value| value.to_string());
    name.or_else(|| written.map(quoted)).unwrap_or_else(number)
}

/// A part of a program as a name: on one line, and not too long.
fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.replace('\n', " ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("`{} ..`", line[..end].trim_end()),
        None => format!("`{line}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PlanCase, String> {
        PlanCase::parse(Path::new("x.plan"), text)
    }

    #[test]
    fn programs_come_with_options_and_expectations() {
        let text = "#! tile 3\n#! rewrites off\ny = arange(7) + 1\noutput y\n----\nplan\n";
        let file = parse(text).unwrap();
        assert_eq!((file.options.tile, file.options.rewrites), (Some(3), false));
        assert_eq!((file.labels.last().map(String::as_str), file.expected.as_deref()), (Some("y"), Some("plan\n")));
        assert_eq!(file.with_expected("plan\n"), text);
        for without in ["y = arange(7)\noutput y\n", "y = arange(7)\noutput y\n----\n"] {
            assert_eq!(parse(without).unwrap().expected, None);
        }
    }

    #[test]
    fn slips_are_found() {
        for wrong in ["#! tile big\nx = 1\noutput x\n", "#! wish\nx = 1\noutput x\n", "x = \n", "program { oops }\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
