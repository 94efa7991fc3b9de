//! How a test is skipped where no adapter can run its kernels.

/// Prints that the test is skipped, and why. With `PERFLINGS_REQUIRE_ADAPTER=1`, which promises an adapter, it fails instead.
pub(crate) fn skip(why: impl std::fmt::Display) {
    eprintln!("skipped: no adapter ({why})");
    let required = std::env::var_os("PERFLINGS_REQUIRE_ADAPTER").is_some_and(|value| value == "1");
    assert!(
        !required,
        "PERFLINGS_REQUIRE_ADAPTER=1, but there is no adapter: {why}"
    );
}
