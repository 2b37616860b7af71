//! How many cases a property test tries: a few hundred with every change, as many as one likes in the long run.

use proptest::test_runner::Config;

/// As many cases as `PROPTEST_CASES` says, or else `few`; for `#![proptest_config(cases(256))]`.
///
/// It prints the number, by which `cargo xtask soak` tells property tests from others.
#[allow(clippy::print_stdout, reason = "the harness shows it with `--nocapture` only")]
pub fn cases(few: u32) -> Config {
    let is_long = std::env::var_os("PROPTEST_CASES").is_some();
    let config = if is_long { Config::default() } else { Config::with_cases(few) };
    println!("property: {} cases", config.cases);
    config
}
