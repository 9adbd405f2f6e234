//! Free room of a spill file.

use std::collections::{BTreeMap, BTreeSet};

/// Ranges of a file that hold nothing.
///
/// In a file that goes with its process, neighbours become one range, and a range may serve less than it has: otherwise a file of blocks of many sizes would grow
/// although most of it is free. In a durable file slots keep their places and sizes for ever: what an earlier process has described begins where some slot begins.
#[derive(Debug)]
pub(super) struct FreeRoom {
    /// Bytes, by where they begin.
    by_offset: BTreeMap<u64, u64>,
    /// The same, by how many they are.
    by_room: BTreeSet<(u64, u64)>,
    joins: bool,
}

impl FreeRoom {
    /// Nothing is free yet. With `joins`, slots are joined and cut.
    pub(super) fn new(joins: bool) -> FreeRoom {
        FreeRoom { by_offset: BTreeMap::new(), by_room: BTreeSet::new(), joins }
    }

    /// Where so many bytes are free, in the smallest range that has them. They are in use from now on.
    pub(super) fn take(&mut self, room: u64) -> Option<u64> {
        let &(found, offset) = self.by_room.range((room, 0)..).next()?;
        if found != room && !self.joins {
            return None;
        }
        self.remove(offset, found);
        if found > room {
            self.insert(offset + room, found - room);
        }
        Some(offset)
    }

    /// Bytes are free again. `end` is where the file ends; gives where it ends if what is free at its end is cut off.
    pub(super) fn give(&mut self, mut offset: u64, mut room: u64, end: u64) -> u64 {
        if !self.joins {
            self.insert(offset, room);
            return end;
        }
        if let Some((&before, &own)) = self.by_offset.range(..offset).next_back()
            && before + own == offset
        {
            self.remove(before, own);
            (offset, room) = (before, own + room);
        }
        if let Some(&own) = self.by_offset.get(&(offset + room)) {
            self.remove(offset + room, own);
            room += own;
        }
        if offset + room == end {
            return offset;
        }
        self.insert(offset, room);
        end
    }

    fn insert(&mut self, offset: u64, room: u64) {
        self.by_offset.insert(offset, room);
        self.by_room.insert((room, offset));
    }

    fn remove(&mut self, offset: u64, room: u64) {
        self.by_offset.remove(&offset);
        self.by_room.remove(&(room, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_never_overlap_and_all_room_comes_back() {
        for joins in [true, false] {
            let mut state = 7u64;
            let mut below = |n: u64| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % n
            };
            let (mut free, mut end) = (FreeRoom::new(joins), 0u64);
            let mut used: BTreeMap<u64, u64> = BTreeMap::new();
            for _ in 0..20_000 {
                if below(2) == 0 || used.is_empty() {
                    let room = 1 + below(9);
                    let offset = free.take(room).unwrap_or_else(|| {
                        end += room;
                        end - room
                    });
                    let before = used.range(..offset + room).next_back();
                    assert!(before.is_none_or(|(&at, &own)| at + own <= offset) && offset + room <= end);
                    used.insert(offset, room);
                } else {
                    let at = *used.keys().nth(below(used.len() as u64) as usize).unwrap();
                    let room = used.remove(&at).unwrap();
                    end = free.give(at, room, end);
                }
                let (in_use, is_free): (u64, u64) = (used.values().sum(), free.by_offset.values().sum());
                assert_eq!(in_use + is_free, end, "no room is lost");
                assert_eq!(free.by_offset.len(), free.by_room.len());
            }
            for (at, room) in used {
                end = free.give(at, room, end);
            }
            assert!(!joins || (end == 0 && free.by_offset.is_empty()));
        }
    }
}
