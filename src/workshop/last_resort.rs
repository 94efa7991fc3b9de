//! Ends the program when a request to end it is not heeded. A terminal that went away can keep the thread that
//! reads keys busy for ever; the engine would stay with it.

use std::thread::Builder;
use std::time::Duration;

/// How long the screen may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// Watches for SIGHUP and SIGTERM from now on.
#[cfg(unix)]
pub fn watch() {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::iterator::Signals;
    let Ok(mut signals) = Signals::new([SIGHUP, SIGTERM]) else {
        return;
    };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            std::thread::sleep(GRACE);
            // The process ends as if nobody had listened; the engine follows when its input closes.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    // Without the thread the screen's own handler is all there is.
    let _ = Builder::new().name("last-resort".to_owned()).spawn(wait);
}

/// There are no such signals here.
#[cfg(not(unix))]
pub fn watch() {}
