//! Writing Thrift's compact protocol.

use super::thrift::{BINARY, FALSE, I16, I32, I64, LIST, STOP, STRUCT, TRUE};

/// Bytes of a struct that is being written, and the number of its last field.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    last: i16,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// Fields are written in the order of their numbers, which differ by less than 16.
    fn field(&mut self, id: i16, ty: u8) {
        self.bytes.push(((id - self.last) as u8) << 4 | ty);
        self.last = id;
    }

    pub(super) fn i16(&mut self, id: i16, value: i16) {
        self.field(id, I16);
        self.zigzag(value.into());
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        self.zigzag(value.into());
    }

    pub(super) fn i64(&mut self, id: i16, value: u64) {
        self.field(id, I64);
        self.zigzag(value as i64);
    }

    pub(super) fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { TRUE } else { FALSE });
    }

    pub(super) fn byte(&mut self, id: i16, value: u8) {
        self.field(id, super::thrift::BYTE);
        self.bytes.push(value);
    }

    pub(super) fn text(&mut self, id: i16, text: &str) {
        self.field(id, BINARY);
        self.string(text);
    }

    fn string(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A field that is a struct.
    pub(super) fn nested(&mut self, id: i16, write: impl FnOnce(&mut Writer)) {
        self.field(id, STRUCT);
        self.fields(write);
    }

    fn fields(&mut self, write: impl FnOnce(&mut Writer)) {
        let outer = std::mem::take(&mut self.last);
        write(self);
        self.bytes.push(STOP);
        self.last = outer;
    }

    fn list(&mut self, id: i16, of: u8, n: usize) {
        self.field(id, LIST);
        match n {
            0..=14 => self.bytes.push((n as u8) << 4 | of),
            _ => {
                self.bytes.push(0xf0 | of);
                self.varint(n as u64);
            }
        }
    }

    /// A field that is a list of structs.
    pub(super) fn structs<T>(
        &mut self,
        id: i16,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Writer, T),
    ) {
        self.list(id, STRUCT, items.len());
        items.for_each(|item| self.fields(|own| write(own, item)));
    }

    pub(super) fn ints(&mut self, id: i16, items: &[i32]) {
        self.list(id, I32, items.len());
        items.iter().for_each(|&item| self.zigzag(item.into()));
    }

    pub(super) fn texts(&mut self, id: i16, items: &[&str]) {
        self.list(id, BINARY, items.len());
        items.iter().for_each(|item| self.string(item));
    }

    /// The bytes of a whole struct.
    pub(super) fn whole(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.fields(write);
        writer.bytes
    }
}
