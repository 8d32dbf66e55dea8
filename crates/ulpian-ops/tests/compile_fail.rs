//! Leaving out a rule, a bound or the samples of an op is a compile error.

#[test]
fn an_op_that_leaves_out_an_item_does_not_compile() {
    let t = trybuild::TestCases::new();
    t.compile_fail("tests/compile_fail/*.rs");
    t.pass("tests/compile_pass/*.rs");
}
