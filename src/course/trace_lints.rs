//! Finds the page of the course that explains a lint, such as `pytorch-5.md` for `launch-bound`.

/// The lints of profiles and of watched trainings, each with the page of the course that explains it.
const PAGES: [(&str, &str); 16] = [
    ("no-device-activity", "pytorch.md"),
    ("launch-bound", "pytorch-5.md"),
    ("sync-in-step", "pytorch-3.md"),
    ("copy-in-step", "pytorch-3.md"),
    ("one-kernel-dominates", "pytorch-4.md"),
    ("missing-backward", "pytorch-6.md"),
    ("profiler-overhead", "pytorch.md"),
    ("host-bound", "pytorch-5.md"),
    ("first-loss", "pytorch-1.md"),
    ("gradient-coverage", "pytorch-6.md"),
    ("not-finite", "pytorch-9.md"),
    ("ledger-open", "pytorch.md"),
    ("waiting-for-data", "pytorch.md"),
    ("no-kernels", "pytorch.md"),
    ("stuck-at-ln-vocab", "pytorch-6.md"),
    ("loss-stuck", "pytorch-6.md"),
];

/// Returns the page that explains a lint; `None` if there is no such page.
pub fn page_of(lint: &str) -> Option<&'static str> {
    let row = PAGES.iter().find(|(name, _)| *name == lint)?;
    Some(row.1)
}
