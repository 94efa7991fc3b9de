//! Finds the page of the course that explains a lint of a profile.

/// Lints of `gputrace`, each with the page of the course that explains it.
const PAGES: [(&str, &str); 7] = [
    ("no-device-activity", "pytorch.md"),
    ("launch-bound", "pytorch-5.md"),
    ("sync-in-step", "pytorch-3.md"),
    ("copy-in-step", "pytorch-3.md"),
    ("one-kernel-dominates", "pytorch-4.md"),
    ("missing-backward", "pytorch-6.md"),
    ("profiler-overhead", "pytorch.md"),
];

/// Returns the page that explains a lint; `None` if there is no such page.
pub fn page_of(lint: &str) -> Option<&'static str> {
    let row = PAGES.iter().find(|(name, _)| *name == lint)?;
    Some(row.1)
}
