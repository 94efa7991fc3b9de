//! The most floating-point operations a second this device was measured to do, measured once per process.

use std::sync::OnceLock;

use super::devices::Opened;

/// FLOP/s, or `None` on a device that is not calibrated yet.
pub fn peak_flops(opened: &Opened) -> Option<f64> {
    static CPU: OnceLock<f64> = OnceLock::new();
    opened
        .queued
        .then(|| *CPU.get_or_init(crate::ops::cpu::roof::peak_flops))
}
