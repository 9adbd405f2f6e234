//! Hashes of schedules.

use std::fmt;

use super::Schedule;

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The hash of parts of a message, one after the other. The context separates hashes that mean different things.
    pub fn of(context: &str, parts: &[&[u8]]) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        Digest(*hasher.finalize().as_bytes())
    }

    /// One hash for several, in their order.
    pub fn of_all(digests: &[Digest]) -> Digest {
        let parts: Vec<&[u8]> = digests.iter().map(|digest| &digest.0[..]).collect();
        Digest::of("tilewright 1 schedules of a plan", &parts)
    }

    /// The first eight hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..8].to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Digests {
    bits: Digest,
    hash: Digest,
}

impl Schedule {
    /// A hash over what decides the bits of the results: provider, kernels, sets of blocks, constants, tasks and regions. Equal schedules by this hash give
    /// equal results on any engine, with any budget, wherever tasks run; resuming relies on it.
    pub fn bits(&self) -> Digest {
        self.digests().bits
    }

    /// A hash over everything that can change results or traffic: beside what decides the bits, the order of steps, placement, budget, sources and
    /// sinks. Equal in every process and on every platform. Labels and places in the user's text do not count.
    pub fn hash(&self) -> Digest {
        self.digests().hash
    }

    fn digests(&self) -> &Digests {
        self.digests.get_or_init(|| {
            let (bits, run) = (self.encode_bits(), self.encode_run());
            Digests {
                bits: Digest::of("tilewright 1 schedule: bits", &[&bits]),
                hash: Digest::of("tilewright 1 schedule: bits and run", &[&bits, &run]),
            }
        })
    }
}
