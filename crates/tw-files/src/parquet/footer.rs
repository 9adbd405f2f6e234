//! The footer of a file: its bytes, and a check of its schema before the crate `parquet` decodes it.
//!
//! The schema is a tree, written as a list of elements in depth-first order, each with the number of its children. The crate makes room for as many children as an element claims, calls itself
//! once per level of the tree, and copies the names of all groups around a column into that column. A footer of a few bytes can so ask for gigabytes, and one of a few kilobytes can
//! overflow the stack, which ends the process. This module walks the list first and refuses such trees.
//!
//! The walk must see the elements that the crate will see. The crate ignores the type that a field declares if it knows the field's number, so a field with a wrong type would make the two
//! readers disagree about where the next element starts. The walk therefore knows the same fields ([`ELEMENT`]) and refuses those of another type, as well as numbers that do not fit
//! their type. The crate reads the first schema alone, and reads nothing that matters before it: the walk ends behind that schema.

use ::parquet::file::metadata::FooterTail;
use bytes::Bytes;

use super::pages::FileBytes;
use super::thrift::{BINARY, BYTE, Compact, FALSE, I32, LIST, STRUCT, TRUE};

/// Schemas that are nested deeper are refused. The schemas of real files have about ten levels.
const MOST_LEVELS: usize = 100;

/// The paths of all columns together take at most this many bytes.
const MOST_PATH_BYTES: u64 = 256 << 20;

/// Bytes that a part of a path takes beside its text: the string, and how it is allocated.
const PART_BYTES: u64 = 40;

/// Fields that the crate does not know either are skipped if they are nested at most this deep.
const MOST_SKIPPED_LEVELS: usize = 16;

/// Bytes at the end of a file: the length of the footer, and four letters.
const TAIL_BYTES: usize = 8;

/// The bytes of a footer whose schema is safe to decode.
pub(super) fn read(file: &FileBytes) -> Result<Bytes, String> {
    let tail_start = file.length.checked_sub(TAIL_BYTES as u64).ok_or("the file is too short")?;
    let tail = file.bytes(tail_start, TAIL_BYTES)?;
    let tail = FooterTail::try_from(&tail[..]).map_err(|error| error.to_string())?;
    if tail.is_encrypted_footer() {
        return Err("it is encrypted, which is not supported".into());
    }
    let start = tail_start.checked_sub(tail.metadata_length() as u64).ok_or("it is longer than the file")?;
    let footer = Bytes::from(file.bytes(start, tail.metadata_length())?);
    check_schema(&footer)?;
    Ok(footer)
}

/// What a field holds, in Thrift's compact protocol.
enum Kind {
    Bool,
    Byte,
    I32,
    Binary,
    Struct(&'static [(i16, Kind)]),
}

/// The fields of an element of a schema, by their numbers.
const ELEMENT: &[(i16, Kind)] = &[
    (1, Kind::I32),
    (2, Kind::I32),
    (3, Kind::I32),
    (NAME, Kind::Binary),
    (NUM_CHILDREN, Kind::I32),
    (6, Kind::I32),
    (7, Kind::I32),
    (8, Kind::I32),
    (9, Kind::I32),
    (10, Kind::Struct(LOGICAL_TYPE)),
];

const NAME: i16 = 4;
const NUM_CHILDREN: i16 = 5;

/// The logical types with their parameters; those without parameters are empty structs.
const LOGICAL_TYPE: &[(i16, Kind)] = &[
    (1, Kind::Struct(&[])),
    (2, Kind::Struct(&[])),
    (3, Kind::Struct(&[])),
    (4, Kind::Struct(&[])),
    (5, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32)])),
    (6, Kind::Struct(&[])),
    (7, Kind::Struct(TIME)),
    (8, Kind::Struct(TIME)),
    (10, Kind::Struct(&[(1, Kind::Byte), (2, Kind::Bool)])),
    (11, Kind::Struct(&[])),
    (12, Kind::Struct(&[])),
    (13, Kind::Struct(&[])),
    (14, Kind::Struct(&[])),
    (15, Kind::Struct(&[])),
    (16, Kind::Struct(&[(1, Kind::Byte)])),
    (17, Kind::Struct(&[(1, Kind::Binary)])),
    (18, Kind::Struct(&[(1, Kind::Binary), (2, Kind::I32)])),
    (19, Kind::Struct(&[])),
];

/// Times and timestamps: whether they are in UTC, and their unit.
const TIME: &[(i16, Kind)] =
    &[(1, Kind::Bool), (2, Kind::Struct(&[(1, Kind::Struct(&[])), (2, Kind::Struct(&[])), (3, Kind::Struct(&[]))]))];

/// Refuses footers whose schema the crate cannot decode in little memory and on a small stack.
fn check_schema(footer: &[u8]) -> Result<(), String> {
    let mut bytes = Compact(footer);
    let mut last = 0;
    loop {
        // Fields are written in the order of their numbers: nothing but the version, 1, comes before the schema, 2.
        match bytes.field(last)? {
            Some((1, I32)) => drop(bytes.int()?),
            Some((2, LIST)) => return check_tree(&mut bytes),
            Some((id, _)) => return Err(format!("field {id} comes before the schema, or has a wrong type")),
            None => return Err("it has no schema".into()),
        }
        last = 1;
    }
}

/// A group whose children are being read.
struct Group {
    children_left: u64,
    name_bytes: u64,
}

fn check_tree(bytes: &mut Compact<'_>) -> Result<(), String> {
    let (n_elements, of) = bytes.list()?;
    if n_elements > 0 && of != STRUCT {
        return Err("its schema is not a list of structs".into());
    }
    let mut groups: Vec<Group> = Vec::new();
    // Children that are claimed and not yet read, of all groups. The root counts as one.
    let mut claimed = 1;
    // Bytes of one path to the innermost group, and of the paths of all columns so far.
    let (mut group_path, mut paths) = (0, 0u64);
    for k in 0..n_elements {
        let element = bytes.element()?;
        if claimed == 0 {
            return Err("its schema has more than one root".into());
        }
        claimed = claimed - 1 + element.n_children;
        if claimed > n_elements - k - 1 {
            return Err(format!("its schema has {n_elements} elements, fewer than they claim as their children"));
        }
        let own = element.name_bytes + PART_BYTES;
        if element.n_children > 0 {
            if groups.len() == MOST_LEVELS {
                return Err(format!("its schema is nested deeper than {MOST_LEVELS} levels"));
            }
            group_path += own;
            groups.push(Group { children_left: element.n_children, name_bytes: own });
            continue;
        }
        paths = paths.saturating_add(group_path + own);
        if paths > MOST_PATH_BYTES {
            return Err(format!("the paths of its columns take more than {MOST_PATH_BYTES} bytes"));
        }
        // The last child of a group finishes the group, which may be a last child itself.
        while let Some(group) = groups.last_mut() {
            group.children_left -= 1;
            if group.children_left > 0 {
                break;
            }
            group_path -= group.name_bytes;
            groups.pop();
        }
    }
    Ok(())
}

/// What matters of an element of a schema.
#[derive(Default)]
struct Element {
    n_children: u64,
    name_bytes: u64,
}

impl Compact<'_> {
    fn element(&mut self) -> Result<Element, String> {
        let mut element = Element::default();
        let mut last = 0;
        while let Some((id, ty)) = self.field(last)? {
            match (id, ty) {
                (NUM_CHILDREN, I32) => {
                    let n = self.int()?;
                    element.n_children =
                        n.try_into().map_err(|_| format!("an element of its schema has {n} children"))?;
                }
                (NAME, BINARY) => {
                    element.name_bytes = self.varint()?;
                    self.take(element.name_bytes)?;
                }
                _ => self.known(ELEMENT, id, ty)?,
            }
            last = id;
        }
        Ok(element)
    }

    /// Skips a field of a struct with these known fields. Known structs are nested only as deep as the tables above.
    fn known(&mut self, fields: &'static [(i16, Kind)], id: i16, ty: u8) -> Result<(), String> {
        let Some((_, kind)) = fields.iter().find(|(known, _)| *known == id) else {
            return self.skip(ty, MOST_SKIPPED_LEVELS);
        };
        match (kind, ty) {
            (Kind::Bool, TRUE | FALSE) => Ok(()),
            (Kind::Byte, BYTE) => self.take(1).map(drop),
            (Kind::I32, I32) => self.int().map(drop),
            (Kind::Binary, BINARY) => self.skip(BINARY, 1),
            (Kind::Struct(fields), STRUCT) => {
                let mut last = 0;
                while let Some((id, ty)) = self.field(last)? {
                    self.known(fields, id, ty)?;
                    last = id;
                }
                Ok(())
            }
            _ => Err(format!("field {id} of an element of its schema has a wrong type")),
        }
    }
}
