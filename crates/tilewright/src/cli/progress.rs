//! A progress bar, on a terminal, once a run has taken a second.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::Watch;
use crate::session::Session;

const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows how far a session is until it is dropped.
pub(crate) struct Bar {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Shows the progress of a session, on a terminal only.
    pub(crate) fn watch(session: &Session, quiet: bool) -> Bar {
        if quiet || !std::io::stderr().is_terminal() {
            return Bar { running: None };
        }
        let session = session.clone();
        let (stop, stopped) = channel();
        let mut watch = Watch::new(&session);
        let thread = std::thread::Builder::new().spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} tasks, {msg}") {
                bar.set_style(style);
            }
            loop {
                let look = watch.look(&session);
                bar.set_length(look.total);
                bar.set_position(look.done);
                bar.set_message(look.line());
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        // Without a thread there is no bar, and that is all.
        Bar { running: thread.ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // A bar that could not be drawn is no reason to fail.
            let _ = thread.join();
        }
    }
}
