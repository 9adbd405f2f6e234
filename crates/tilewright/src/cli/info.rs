//! `tw info`.

use std::fs::File;
use std::io::Read;

use tw_block::npy::NpyReader;
use tw_ir::TensorType;
use tw_ir::error::{Error, Result};
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
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(6).read_to_end(&mut start))
        .map_err(|error| Error::io(format!("{} cannot be read: {error}", path.display())))?;
    let is_array = start == b"\x93NUMPY" || path.extension().is_some_and(|extension| extension == "npy");
    if is_array {
        array(&NpyReader::open(path)?, out)
    } else {
        program(&args.program.load()?, out)
    }
    Ok(())
}

fn array(reader: &NpyReader, out: &mut Out) {
    let header = reader.header();
    let ty = TensorType::known(header.dtype, &header.shape);
    let n = header.shape.iter().product::<u64>();
    let order = if header.fortran { "column-major (Fortran)" } else { "row-major (C)" };
    out.heading(format_args!("{}: {ty}", reader.path().display()));
    out.line(format_args!(
        "  {} in {} elements, {order}, data from byte {} on",
        units::bytes(n * header.dtype.size()),
        units::count(n),
        header.data_offset
    ));
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
