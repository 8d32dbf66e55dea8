//! Misuse of the kernel language that rustc itself must refuse.

/// Used as meant, the same compiles: a part of this file, since trybuild would build every crate below anew to link it.
#[allow(dead_code)]
#[path = "compile_pass/halves_widened_then_added.rs"]
mod halves_widened_then_added;

#[test]
fn wrong_bounds_branches_and_double_writes_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
