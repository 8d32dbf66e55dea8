//! Misuse of the kernel language that rustc itself must refuse.

#[test]
fn wrong_bounds_branches_and_double_writes_do_not_compile() {
    let t = trybuild::TestCases::new();
    t.compile_fail("tests/compile_fail/*.rs");
    t.pass("tests/compile_pass/*.rs");
}
