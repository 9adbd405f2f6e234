//! Where blocks are written to.

use std::fmt::Debug;
use std::sync::Arc;

use tw_ir::Result;

use crate::block::Block;

/// A tensor that is written block by block. Several threads write at once. Nobody sees anything of it before it is committed; a sink that is dropped
/// uncommitted leaves nothing behind.
pub trait Sink: Debug + Send + Sync {
    /// Writes a block where its box says. Every element is written once.
    fn write(&self, block: &Block) -> Result<()>;

    /// Scratch space of a write: the bytes that writing a block of so many bytes allocates for a moment besides the block.
    fn scratch(&self, block_bytes: u64) -> u64 {
        let _ = block_bytes;
        0
    }

    /// What other processes need to know to write blocks of the same tensor. `None` if one process has to write all of it.
    fn joint(&self) -> Option<String> {
        None
    }

    /// Makes what was written durable, but not visible yet. Called at most once, after the last write has returned.
    fn make_durable(&self) -> Result<()>;

    /// Makes what was written visible. Called at most once, after [`Sink::make_durable`] has succeeded.
    fn commit(&self) -> Result<()>;
}

/// Commits what one program has written. All sinks are durable before the first is visible: what takes long, and may fail because a disk is full, happens while
/// nothing is. A crash between two commits leaves the sinks before it visible, and nothing of the others.
pub fn commit_all(sinks: Vec<Arc<dyn Sink>>) -> Result<()> {
    sinks.iter().try_for_each(|sink| sink.make_durable())?;
    sinks.iter().try_for_each(|sink| sink.commit())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tw_ir::Error;

    use super::*;

    /// Notes what it is asked for; the sink of the given number fails to become durable.
    #[derive(Debug)]
    struct Noting {
        number: usize,
        failing: usize,
        log: Arc<Mutex<Vec<String>>>,
    }

    impl Sink for Noting {
        fn write(&self, _: &Block) -> Result<()> {
            Ok(())
        }
        fn make_durable(&self) -> Result<()> {
            self.log.lock().unwrap().push(format!("durable {}", self.number));
            if self.number == self.failing { Err(Error::io("the disk is full")) } else { Ok(()) }
        }
        fn commit(&self) -> Result<()> {
            self.log.lock().unwrap().push(format!("visible {}", self.number));
            Ok(())
        }
    }

    fn committed(failing: usize) -> (Result<()>, Vec<String>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let sinks = (0..3).map(|number| Arc::new(Noting { number, failing, log: log.clone() }) as Arc<dyn Sink>);
        let outcome = commit_all(sinks.collect());
        let log = log.lock().unwrap().clone();
        (outcome, log)
    }

    #[test]
    fn nothing_is_visible_before_everything_is_durable() {
        let (outcome, log) = committed(usize::MAX);
        assert!(outcome.is_ok());
        assert_eq!(log, ["durable 0", "durable 1", "durable 2", "visible 0", "visible 1", "visible 2"]);
        for failing in 0..3 {
            let (outcome, log) = committed(failing);
            assert_eq!(outcome.unwrap_err().message(), "the disk is full");
            assert!(log.iter().all(|line| line.starts_with("durable")), "{log:?}");
        }
    }
}
