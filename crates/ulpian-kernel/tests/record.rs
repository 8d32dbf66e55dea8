//! What the recorder writes, and what it refuses.

use ulpian_kernel::ir::{Access, Combine, Op};
use ulpian_kernel::record::{RecordError, Traced, record};
use ulpian_num::{Dtype, Val};

type F = Val<Traced, f32>;

#[test]
fn equal_pure_instructions_are_written_once_and_unused_ones_not_at_all() {
    let k = record("k", false, |r| {
        let (x, y) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
        let i = r.iota(64, 1);
        let v: F = Val::new(r.load(x, i, None, 0, true));
        let _unused = v * v;
        let s = (v + v) - (v + v);
        r.store(y, i, None, s.0, true);
    })
    .expect("records");
    let adds =
        k.body.insts.iter().filter(|i| matches!(i.op, Op::Binary(ulpian_num::Binary::Add, ..))).count();
    let muls =
        k.body.insts.iter().filter(|i| matches!(i.op, Op::Binary(ulpian_num::Binary::Mul, ..))).count();
    assert_eq!((adds, muls), (1, 0), "{k}");
}

#[test]
fn the_hash_ignores_the_name_and_sees_everything_else() {
    let make = |name: &str, half: f32, keep: bool| {
        record(name, keep, |r| {
            let (x, y) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
            let i = r.iota(64, 1);
            let v: F = Val::new(r.load(x, i, None, 0, true));
            r.store(y, i, None, (v * Val::lit(half)).0, true);
        })
        .expect("records")
        .hash()
    };
    assert_eq!(make("a", 0.5, false), make("b", 0.5, false));
    assert_ne!(make("a", 0.5, false), make("a", 0.25, false));
    assert_ne!(make("a", 0.5, false), make("a", 0.5, true));
    // Literals are told apart by bits.
    assert_ne!(make("a", 0.0, false), make("a", -0.0, false));
}

#[test]
fn shapes_that_do_not_broadcast_are_an_error_that_names_them() {
    let e = record("k", false, |r| {
        let y = r.buffer(Dtype::U32, Access::Write);
        let (a, b) = (r.iota(64, 1), r.iota(32, 1));
        let s = a + b;
        r.store(y, a, None, s.0, false);
    })
    .expect_err("shapes differ");
    let text = e.to_string();
    assert!(text.contains("1x64") && text.contains("1x32") && text.contains("record.rs"), "{text}");
}

#[test]
fn a_value_that_leaks_from_its_loop_is_an_error() {
    let e = record("k", false, |r| {
        let y = r.buffer(Dtype::U32, Access::Write);
        let n = r.param();
        let mut leaked = None;
        r.repeat(n, &[n.0], |_, i, carried| {
            let c: Val<Traced, u32> = Val::new(carried[0]);
            let inner = c + i;
            leaked = Some(inner);
            vec![inner.0]
        });
        let out = leaked.expect("the body ran") + n;
        r.store(y, n, None, out.0, false);
    })
    .expect_err("a leak");
    assert!(
        matches!(e, RecordError::Invalid { ref detail, .. } if detail.contains("outside the block")),
        "{e}"
    );
}

#[test]
fn a_loop_must_carry_what_it_was_given() {
    let e = record("k", false, |r| {
        let n = r.param();
        let wide = r.iota(8, 1);
        r.repeat(n, &[n.0], |_, _, _| vec![wide.0]);
    })
    .expect_err("types differ");
    assert!(e.to_string().contains("carries"), "{e}");
}

#[test]
fn storing_to_a_read_buffer_is_refused() {
    let e = record("k", false, |r| {
        let x = r.buffer(Dtype::F32, Access::Read);
        let i = r.iota(4, 1);
        r.store(x, i, None, Val::<Traced, f32>::lit(1.0).0, false);
    })
    .expect_err("access");
    assert!(e.to_string().contains("do not fit"), "{e}");
}

#[test]
fn reductions_need_a_power_of_two() {
    let e = record("k", false, |r| {
        let y = r.buffer(Dtype::U32, Access::Write);
        let i = r.iota(48, 1);
        let s = r.reduce(Combine::Sum, 1, &[i.0]);
        r.store(y, Val::lit(0), None, s[0], false);
    });
    assert!(e.is_err());
}

#[test]
fn text_shows_nested_blocks() {
    let k = record("walk", false, |r| {
        let y = r.buffer(Dtype::U32, Access::Write);
        let n = r.param();
        let out = r.repeat(n, &[n.0], |_, i, c| vec![(Val::<Traced, u32>::new(c[0]) + i).0]);
        r.store(y, Val::lit(0), None, out[0], false);
    })
    .expect("records");
    let text = k.to_string();
    assert!(text.contains("loop") && text.contains("yield") && text.contains("store"), "{text}");
}
