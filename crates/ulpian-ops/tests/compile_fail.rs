//! Leaving out a rule, a bound or the samples of an op is a compile error.

/// With every item it compiles: a part of this file, since trybuild would build every crate below anew to link it.
#[allow(dead_code)]
#[path = "compile_pass/op_with_everything.rs"]
mod op_with_everything;

#[test]
fn an_op_that_leaves_out_an_item_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
