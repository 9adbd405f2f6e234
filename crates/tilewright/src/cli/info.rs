//! `tw info`.

use std::path::Path;

use tw_block::Source;
use tw_files::FileSummary;
use tw_ir::error::Result;
use tw_lang::InputDecl;

use super::Failure;
use super::load::{Loaded, ProgramArgs};
use super::out::Out;
use crate::explain::table::{Align, Table};
use crate::explain::units;

/// Arguments of `tw info`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let path = &args.program.file;
    if tw_files::is_known(path)? {
        let summary = tw_files::describe(path)?;
        match tw_files::open(path) {
            Ok(source) => array(path, source.as_ref(), &summary, out),
            // A group has arrays, but is none.
            Err(_) if summary.bytes_on_disk.is_none() => {
                out.heading(format_args!("{}: {}", path.display(), summary.format));
                summary.lines.iter().for_each(|line| out.line(format_args!("  {line}")));
            }
            Err(error) => return Err(error.into()),
        }
    } else {
        program(&args.program.load()?, out)
    }
    Ok(())
}

fn array(path: &Path, source: &dyn Source, summary: &FileSummary, out: &mut Out) {
    let (ty, bytes) = (source.ty(), source.n_bytes());
    out.heading(format_args!("{}: {ty}", path.display()));
    let n = bytes / ty.dtype.size();
    out.line(format_args!("  {} in {} elements, {}", units::bytes(bytes), units::count(n), source.layout()));
    let on_disk = match summary.bytes_on_disk {
        Some(bytes) => format!("{} on disk", units::bytes(bytes)),
        None => "more files than are counted".into(),
    };
    out.line(format_args!("  {}, {on_disk}", summary.format));
}

fn program(loaded: &Loaded, out: &mut Out) {
    let unit = &loaded.unit;
    let mut table = Table::new(&[("", Align::Left), ("name", Align::Left), ("type", Align::Left), ("", Align::Left)]);
    for (name, value) in &unit.params {
        table.row(vec!["param".into(), name.clone(), value.to_string(), String::new()]);
    }
    for InputDecl { name, ty, path, .. } in &unit.inputs {
        let from = path.as_ref().map_or_else(|| "bind with --input".to_string(), |path| format!("from {path}"));
        table.row(vec!["input".into(), name.clone(), ty.to_string(), from]);
    }
    for (name, &value) in unit.program.outputs.iter().zip(&unit.program.body.results) {
        let ty = unit.program.ty(value);
        let late = if ty.known_shape().is_none() { "an extent depends on data" } else { "" };
        let shape: Vec<String> =
            ty.shape.iter().map(|extent| extent.known().map_or("?".to_string(), |n| n.to_string())).collect();
        table.row(vec!["output".into(), name.clone(), format!("{}[{}]", ty.dtype, shape.join(", ")), late.into()]);
    }
    out.heading(loaded.source.file());
    out.text(table.to_text(2));
    out.line(format_args!("  matrix products by {}", tw_block::provider()));
    if let Some(note) = tw_block::Provider::note() {
        out.line(format_args!("  {note}"));
    }
}
