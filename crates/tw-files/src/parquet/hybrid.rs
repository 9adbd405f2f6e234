//! Parquet's hybrid of runs and packed bits: small numbers, either repeated or packed with few bits each. Levels and the indices of dictionaries are written so.

use super::thrift::Compact;

/// Numbers that are still to be read.
pub(super) struct Hybrid<'a> {
    bytes: &'a [u8],
    /// Bits of a number, at most 32.
    width: u32,
    run: Run<'a>,
    /// Numbers that are left of the run.
    left: u64,
}

enum Run<'a> {
    Repeated(u32),
    /// The next number is the one at the position.
    Packed(&'a [u8], u64),
}

impl<'a> Hybrid<'a> {
    /// Runs of numbers of so many bits.
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Result<Hybrid<'a>, String> {
        match width {
            0..=32 => Ok(Hybrid { bytes, width, run: Run::Repeated(0), left: 0 }),
            _ => Err(format!("numbers of {width} bits")),
        }
    }

    /// Single bits without any runs.
    pub(super) fn of_bits(bytes: &'a [u8]) -> Hybrid<'a> {
        Hybrid { bytes: &[], width: 1, run: Run::Packed(bytes, 0), left: 8 * bytes.len() as u64 }
    }

    /// Begins the next run that is not empty.
    fn begin(&mut self) -> Result<(), String> {
        while self.left == 0 {
            let mut rest = Compact(self.bytes);
            let header = rest.varint()?;
            if header & 1 == 0 {
                let value = rest.take(u64::from(self.width.div_ceil(8)))?;
                let mut bytes = [0; 4];
                bytes[..value.len()].copy_from_slice(value);
                self.run = Run::Repeated(u32::from_le_bytes(bytes));
                self.left = header >> 1;
            } else {
                let groups = header >> 1;
                let claimed = groups.saturating_mul(u64::from(self.width));
                // Some writers leave out what is behind the last number.
                let packed = rest.take(claimed.min(rest.0.len() as u64))?;
                self.left = match self.width {
                    0 => groups.saturating_mul(8),
                    width => packed.len() as u64 * 8 / u64::from(width),
                };
                if self.left == 0 && groups > 0 {
                    return Err("it ends early".into());
                }
                self.run = Run::Packed(packed, 0);
            }
            self.bytes = rest.0;
        }
        Ok(())
    }

    /// Passes over numbers.
    pub(super) fn skip(&mut self, mut n: u64) -> Result<(), String> {
        while n > 0 {
            self.begin()?;
            let some = n.min(self.left);
            self.pass(some);
            n -= some;
        }
        Ok(())
    }

    fn pass(&mut self, n: u64) {
        self.left -= n;
        if let Run::Packed(_, at) = &mut self.run {
            *at += n;
        }
    }

    /// The next numbers.
    pub(super) fn fill(&mut self, mut out: &mut [u32]) -> Result<(), String> {
        while !out.is_empty() {
            self.begin()?;
            let n = self.left.min(out.len() as u64);
            let (now, later) = out.split_at_mut(n as usize);
            match self.run {
                Run::Repeated(value) => now.fill(value),
                Run::Packed(bytes, at) => unpack(bytes, self.width, at, now),
            }
            self.pass(n);
            out = later;
        }
        Ok(())
    }

    /// The next bit, and how often it follows, at most `most` times; for numbers of one bit.
    pub(super) fn repeated(&mut self, most: u64) -> Result<(bool, u64), String> {
        self.begin()?;
        let (bit, n) = match self.run {
            Run::Repeated(value) => (value != 0, self.left),
            Run::Packed(bytes, at) => {
                let bits = word(bytes, (at / 8) as usize) >> (at % 8);
                let bit = bits & 1 == 1;
                let n = if bit { bits.trailing_ones() } else { bits.trailing_zeros() };
                // The bits behind those of the word are zeros that were shifted in.
                (bit, u64::from(n).min(64 - at % 8).min(self.left))
            }
        };
        let n = n.min(most);
        self.pass(n);
        Ok((bit, n))
    }
}

/// Eight bytes from a position on, the first one lowest; zeros behind the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(eight)
        }
    }
}

fn unpack(bytes: &[u8], width: u32, first: u64, out: &mut [u32]) {
    let mask = (1u64 << width) - 1;
    let mut bit = first * u64::from(width);
    // A word has several narrow numbers, wherever the first of them begins.
    const AT_ONCE: usize = 7;
    let n_narrow = if (1..=8).contains(&width) { out.len() / AT_ONCE * AT_ONCE } else { 0 };
    let (narrow, others) = out.split_at_mut(n_narrow);
    for seven in narrow.chunks_exact_mut(AT_ONCE) {
        let word = word(bytes, (bit / 8) as usize) >> (bit % 8);
        seven.iter_mut().enumerate().for_each(|(k, out)| *out = (word >> (k as u32 * width) & mask) as u32);
        bit += AT_ONCE as u64 * u64::from(width);
    }
    for out in others {
        *out = (word(bytes, (bit / 8) as usize) >> (bit % 8) & mask) as u32;
        bit += u64::from(width);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Numbers as packed groups and as runs, in turn.
    fn written(numbers: &[u32], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (k, part) in numbers.chunks(16).enumerate() {
            if k % 3 == 2 {
                for value in part {
                    bytes.push(1 << 1);
                    bytes.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
                }
                continue;
            }
            bytes.push(2 << 1 | 1);
            let mut packed = vec![0u8; 2 * width as usize];
            for (n, value) in part.iter().enumerate() {
                for b in 0..width as usize {
                    let bit = n * width as usize + b;
                    packed[bit / 8] |= ((value >> b & 1) as u8) << (bit % 8);
                }
            }
            bytes.extend(packed);
        }
        bytes
    }

    #[test]
    fn numbers_of_every_width() {
        for width in 0..=32u32 {
            let mask = ((1u64 << width) - 1) as u32;
            let numbers: Vec<u32> = (0..96u32).map(|k| k.wrapping_mul(2654435761) & mask).collect();
            let bytes = written(&numbers, width);
            for skipped in [0, 1, 15, 40, 96] {
                let mut hybrid = Hybrid::new(&bytes, width).unwrap();
                hybrid.skip(skipped).unwrap();
                let mut found = vec![0; 96 - skipped as usize];
                let (first, rest) = found.split_at_mut(7.min(96 - skipped as usize));
                hybrid.fill(first).unwrap();
                hybrid.fill(rest).unwrap();
                assert_eq!(found, numbers[skipped as usize..], "{width} bits from {skipped} on");
                assert!(hybrid.fill(&mut [0]).is_err());
            }
        }
        assert!(Hybrid::new(&[], 33).is_err());
    }

    #[test]
    fn bits_are_counted_in_runs() {
        let bits: Vec<u32> = (0..400u32).map(|k| (k % 97 > 60 || k % 7 == 0) as u32).collect();
        let bytes = written(&bits, 1);
        for most in [1, 3, 1000] {
            let mut hybrid = Hybrid::new(&bytes, 1).unwrap();
            let mut found = Vec::new();
            while found.len() < bits.len() {
                let (bit, n) = hybrid.repeated(most).unwrap();
                assert!((1..=most).contains(&n));
                found.extend(std::iter::repeat_n(u32::from(bit), n as usize));
            }
            assert_eq!(found, bits);
        }
        let mut packed = Hybrid::of_bits(&[0xff; 20]);
        let mut n = 0;
        while n < 160 {
            let (bit, more) = packed.repeated(u64::MAX).unwrap();
            assert!(bit && more > 0);
            n += more;
        }
        assert!(packed.repeated(1).is_err());
    }

    #[test]
    fn claims_are_not_believed() {
        // 2^62 groups of nothing, a run without its value, and an empty run after another one.
        let mut groups = Hybrid::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 0).unwrap();
        groups.skip(1 << 62).unwrap();
        assert!(Hybrid::new(&[8], 9).unwrap().skip(1).is_err());
        assert!(Hybrid::new(&[0, 5, 0, 5, 0], 3).unwrap().skip(1).is_err());
        assert!(Hybrid::new(&[0xff; 20], 1).unwrap().skip(1).is_err());
        assert!(Hybrid::new(&[3], 8).unwrap().skip(1).is_err());
    }
}
