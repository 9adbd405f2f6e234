//! Frames: the small records in which everything but large buffers travels.
//!
//! A frame starts with 40 bytes: kind (u8), version (u8), zero (u16), length of the frame (u32), sender (u32), window given back (u32), run (u64), id (u64),
//! tag or kind of control (u32), length of the header (u16), number of buffers (u16). Lengths of buffers (u64 each), the header and inline bytes
//! follow. Numbers are little-endian. A frame tells its own length, because a transport may receive it into memory that is larger.

use tw_ir::{Error, Result};

use crate::wire::{ControlKind, MAX_BUFFERS, MAX_CONTROL, MAX_HEADER, WireLimits};

const START: usize = 40;
const VERSION: u8 = 1;

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A whole message.
    Inline { run: u64, id: u32, header: Vec<u8>, lengths: Vec<u64>, bytes: Vec<u8> },
    /// A message whose buffers the sender keeps until they are asked for.
    Offer { offer: u64, run: u64, id: u32, header: Vec<u8>, lengths: Vec<u64> },
    /// The receiver has posted a transfer on this lane for the buffers of an offer.
    Grant { offer: u64, lane: u32 },
    /// Nobody wants the buffers of an offer.
    Refuse { offer: u64 },
    /// The buffers that were granted on a lane do not come.
    Withdraw { lane: u32 },
    /// A control message.
    Control { run: u64, kind: ControlKind, content: Vec<u8> },
    /// Nothing but window given back.
    Credit,
}

/// A frame with its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) from: u32,
    /// Bytes of the window that the sender of this frame gives back.
    pub(crate) returned: u32,
    pub(crate) content: Content,
}

/// The length of the frame of an inline message.
pub(crate) fn inline_len(header: usize, n_buffers: usize, payload: u64) -> u64 {
    (START + header + 8 * n_buffers) as u64 + payload
}

/// Appends a frame to an empty buffer. `parts` are the inline bytes, so that they are copied once; `content` has none then.
pub(crate) fn encode(frame: &Frame, parts: &[&[u8]], into: &mut Vec<u8>) {
    let none: (&[u8], &[u64], &[u8]) = (&[], &[], &[]);
    let (kind, run, number, tag, (header, lengths, bytes)) = match &frame.content {
        Content::Inline { run, id, header, lengths, bytes } => {
            (0, *run, 0, *id, (&header[..], &lengths[..], &bytes[..]))
        }
        Content::Offer { offer, run, id, header, lengths } => {
            (1, *run, *offer, *id, (&header[..], &lengths[..], none.2))
        }
        Content::Grant { offer, lane } => (2, 0, *offer, *lane, none),
        Content::Refuse { offer } => (3, 0, *offer, 0, none),
        Content::Withdraw { lane } => (4, 0, 0, *lane, none),
        Content::Control { run, kind, content } => {
            let kind = match kind {
                ControlKind::Heartbeat => 0,
                ControlKind::Error => 1,
                ControlKind::Notice => 2,
            };
            (5, *run, 0, kind, (&content[..], none.1, none.2))
        }
        Content::Credit => (6, 0, 0, 0, none),
    };
    let inline: usize = bytes.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = START + 8 * lengths.len() + header.len() + inline;
    into.reserve(length);
    into.extend_from_slice(&[kind, VERSION, 0, 0]);
    into.extend_from_slice(&(length as u32).to_le_bytes());
    into.extend_from_slice(&frame.from.to_le_bytes());
    into.extend_from_slice(&frame.returned.to_le_bytes());
    into.extend_from_slice(&run.to_le_bytes());
    into.extend_from_slice(&number.to_le_bytes());
    into.extend_from_slice(&tag.to_le_bytes());
    into.extend_from_slice(&(header.len() as u16).to_le_bytes());
    into.extend_from_slice(&(lengths.len() as u16).to_le_bytes());
    lengths.iter().for_each(|length| into.extend_from_slice(&length.to_le_bytes()));
    into.extend_from_slice(header);
    into.extend_from_slice(bytes);
    parts.iter().for_each(|part| into.extend_from_slice(part));
}

/// The length that a frame claims, for transports that receive frames into longer memory. It may be wrong, and so longer than that memory.
pub fn frame_length(start: &[u8]) -> usize {
    u32_of(start, 4) as usize
}

/// The sender that a frame claims, for transports that do not know.
pub fn frame_sender(start: &[u8]) -> u32 {
    u32_of(start, 8)
}

fn u32_of(start: &[u8], at: usize) -> u32 {
    start.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Reads a frame from the start of some bytes. Nothing is allocated beyond their number.
pub(crate) fn decode(bytes: &[u8]) -> Result<Frame> {
    let wrong = |what: &str| Error::internal(format!("a frame of another rank is damaged: {what}"));
    let start: &[u8; START] = bytes.first_chunk().ok_or_else(|| wrong("it is too short"))?;
    let u16_at = |at: usize| u16::from_le_bytes([start[at], start[at + 1]]) as usize;
    let u32_at = |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    if start[1] != VERSION {
        return Err(wrong("it has another version; all ranks need the same version of Tilewright"));
    }
    let (length, run, number, tag) = (u32_at(4) as usize, u64_at(16), u64_at(24), u32_at(32));
    let (n_header, n_buffers) = (u16_at(36), u16_at(38));
    let header_at = START + 8 * n_buffers;
    let is_control = start[0] == 5;
    if length > WireLimits::MAX_FRAME
        || n_header > if is_control { MAX_CONTROL } else { MAX_HEADER }
        || n_buffers > MAX_BUFFERS
        || header_at + n_header > length
    {
        return Err(wrong("its lengths break a limit"));
    }
    let frame = bytes.get(..length).ok_or_else(|| wrong("it is cut off"))?;
    let lengths: Vec<u64> =
        frame[START..header_at].as_chunks::<8>().0.iter().map(|length| u64::from_le_bytes(*length)).collect();
    let header = frame[header_at..header_at + n_header].to_vec();
    let inline = &frame[header_at + n_header..];
    let total = lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length));
    let total = total.ok_or_else(|| wrong("its buffers are too long"))?;
    if inline.len() as u64 != if start[0] == 0 { total } else { 0 } {
        return Err(wrong("its inline bytes do not match"));
    }
    let content = match start[0] {
        0 => Content::Inline { run, id: tag, header, lengths, bytes: inline.to_vec() },
        1 => Content::Offer { offer: number, run, id: tag, header, lengths },
        2 => Content::Grant { offer: number, lane: tag },
        3 => Content::Refuse { offer: number },
        4 => Content::Withdraw { lane: tag },
        5 => {
            let kind = match tag {
                0 => ControlKind::Heartbeat,
                1 => ControlKind::Error,
                2 => ControlKind::Notice,
                _ => return Err(wrong("its kind of control is unknown")),
            };
            Content::Control { run, kind, content: header }
        }
        6 => Content::Credit,
        _ => return Err(wrong("its kind is unknown")),
    };
    Ok(Frame { from: u32_at(8), returned: u32_at(12), content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Content> {
        let (header, lengths) = (vec![1, 2, 3], vec![2, 0, 1]);
        vec![
            Content::Inline {
                run: 1 << 40,
                id: 7,
                header: header.clone(),
                lengths: lengths.clone(),
                bytes: vec![9, 8, 7],
            },
            Content::Inline { run: 0, id: 0, header: vec![], lengths: vec![], bytes: vec![] },
            Content::Offer { offer: u64::MAX, run: 3, id: u32::MAX, header, lengths: vec![1 << 50, 5] },
            Content::Grant { offer: 5, lane: 6 },
            Content::Refuse { offer: 5 },
            Content::Withdraw { lane: 6 },
            Content::Control { run: 2, kind: ControlKind::Error, content: vec![4; MAX_CONTROL] },
            Content::Control { run: 2, kind: ControlKind::Heartbeat, content: vec![] },
            Content::Control { run: 2, kind: ControlKind::Notice, content: vec![1] },
            Content::Credit,
        ]
    }

    fn encoded(content: Content) -> (Frame, Vec<u8>) {
        let frame = Frame { from: 3, returned: 77, content };
        let mut bytes = Vec::new();
        encode(&frame, &[], &mut bytes);
        (frame, bytes)
    }

    #[test]
    fn frames_come_back_also_from_longer_memory() {
        for content in examples() {
            let (frame, mut bytes) = encoded(content);
            assert_eq!(decode(&bytes).unwrap(), frame);
            assert_eq!((frame_length(&bytes), frame_sender(&bytes)), (bytes.len(), frame.from));
            bytes.extend([0xff; 30]);
            assert_eq!(decode(&bytes).unwrap(), frame);
        }
    }

    #[test]
    fn parts_are_inline_bytes() {
        let lengths = vec![2, 3];
        let frame = Frame {
            from: 0,
            returned: 0,
            content: Content::Inline { run: 1, id: 2, header: vec![5], lengths, bytes: vec![] },
        };
        let mut bytes = Vec::new();
        encode(&frame, &[&[1, 2], &[3, 4, 5]], &mut bytes);
        assert_eq!(bytes.len() as u64, inline_len(1, 2, 5));
        assert!(matches!(decode(&bytes).unwrap().content, Content::Inline { bytes, .. } if bytes == [1, 2, 3, 4, 5]));
    }

    /// Every prefix and every changed byte gives a frame or an error.
    #[test]
    fn damaged_frames_are_refused() {
        for content in examples() {
            let (_, bytes) = encoded(content);
            for n in 0..bytes.len() {
                assert!(decode(&bytes[..n]).is_err(), "{n} bytes of {}", bytes.len());
            }
            for at in 0..bytes.len().min(100) {
                for change in 1..=255u8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= change;
                    let _ = decode(&damaged);
                }
            }
            let mut claims = bytes.clone();
            claims[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
            assert!(decode(&claims).is_err());
        }
    }
}
