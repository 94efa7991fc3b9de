//! What the worker of a check tells its watcher.

use std::sync::mpsc::Sender;

use super::watch::CheckState;
use protocol::{KernelMatch, KernelResult};

/// The state of a check, and the way to tell the watcher about it.
pub(super) struct CheckNews {
    pub state: CheckState,
    pub outbox: Sender<CheckState>,
}

impl CheckNews {
    pub(super) fn result(&mut self, index: usize) -> &mut KernelResult {
        &mut self.state.report.files[index]
    }

    /// Records that a shape is right, with the largest error of all tries at it.
    pub(super) fn matched(&mut self, index: usize, mut matched: KernelMatch) {
        let known = &mut self.result(index).shapes;
        if let Some(before) = known.iter().position(|other| other.shape == matched.shape) {
            let before = known.remove(before);
            matched.error = matched.error.max(before.error);
            matched.share = matched.share.max(before.share);
        }
        known.push(matched);
    }

    /// Tells the watcher that the worker now tries a file at a shape. `running` is true while the kernel runs on a device, where its time is
    /// limited.
    pub(super) fn tries(&mut self, file: Option<usize>, shape: &str, running: bool) {
        self.state.file = file;
        self.state.shape = shape.to_owned();
        self.state.running = running;
        self.state.compiling = false;
        self.tell();
    }

    /// Tells the watcher that the worker now reads or compiles a file.
    pub(super) fn compiles(&mut self, file: usize, shape: &str) {
        self.tries(Some(file), shape, false);
        self.state.compiling = true;
        self.tell();
    }

    pub(super) fn tell(&self) {
        let _ = self.outbox.send(self.state.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_shape_keeps_the_largest_error_of_its_tries() {
        let (outbox, _inbox) = channel();
        let mut state = CheckState::default();
        state.report.files.push(KernelResult::default());
        let mut news = CheckNews { state, outbox };

        for (error, share) in [(1e-3, 0.1), (1e-6, 0.9), (1e-5, 0.2)] {
            let matched = KernelMatch {
                shape: "7 × 3".to_owned(),
                error,
                share,
                against: "reference".to_owned(),
            };
            news.matched(0, matched);
        }

        let [shape] = &news.result(0).shapes[..] else {
            panic!("one shape was tried");
        };
        assert_eq!((shape.error, shape.share), (1e-3, 0.9));
    }
}
