//! Weights to disk and back.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use ulpian::io::safetensors::{LoadError, SaveError, from_bytes, load, save, to_bytes};
use ulpian::io::{HostTensor, ShapeError, Weights, WriteError, canonical_nans, weights_sha256};
use ulpian_num::Dtype;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ulpian-io-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn example() -> Weights {
    let values = [1.0, -0.0, f32::INFINITY, 1e-40, f32::from_bits(0x7FC0_0000), 2.5];
    Weights::from([
        ("b".into(), HostTensor::from_f32(vec![2, 3], &values).unwrap()),
        ("a".into(), HostTensor::new(Dtype::I64, vec![1], 7i64.to_le_bytes().to_vec()).unwrap()),
        ("c".into(), HostTensor::new(Dtype::Bool, vec![], vec![1]).unwrap()),
        ("empty".into(), HostTensor::new(Dtype::F16, vec![3, 0], vec![]).unwrap()),
    ])
}

#[test]
fn what_is_saved_is_loaded_to_the_bit() {
    let dir = folder("round");
    let path = dir.join("w.safetensors");
    save(&path, &example()).unwrap();
    assert_eq!(load(&path).unwrap(), example());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn equal_weights_give_equal_files_and_one_bit_gives_another_hash() {
    assert_eq!(to_bytes(&example()).unwrap(), to_bytes(&example()).unwrap());
    let hash = weights_sha256(&example());
    assert_eq!(hash.len(), 64);
    let mut seen = vec![hash];
    let mut changed = |change: &dyn Fn(&mut Weights)| {
        let mut weights = example();
        change(&mut weights);
        let hash = weights_sha256(&weights);
        assert!(!seen.contains(&hash));
        seen.push(hash);
    };
    let f32s = |shape: Vec<usize>, first: f32| {
        HostTensor::from_f32(shape, &[first, -0.0, f32::INFINITY, 1e-40, f32::NAN, 2.5]).unwrap()
    };
    changed(&|w| drop(w.insert("b".into(), f32s(vec![2, 3], 1.0f32.next_up()))));
    changed(&|w| drop(w.insert("b".into(), f32s(vec![3, 2], 1.0))));
    changed(&|w| drop(w.insert("b".into(), f32s(vec![6], 1.0))));
    changed(&|w| drop(w.remove("empty")));
    changed(&|w| {
        let tensor = w.remove("c").unwrap();
        w.insert("d".into(), tensor);
    });
    changed(&|w| drop(w.insert("c".into(), HostTensor::new(Dtype::U8, vec![], vec![1]).unwrap())));
}

#[test]
fn the_hash_is_the_documented_one() {
    // The same bytes put together by hand: a change of the rule must change its version line.
    use sha2::{Digest, Sha256};
    let mut bytes = b"ulpian weights 1\n".to_vec();
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(b"w");
    bytes.extend(3u64.to_le_bytes());
    bytes.extend(b"f32");
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(2u64.to_le_bytes());
    bytes.extend(1.0f32.to_le_bytes());
    bytes.extend(0x7FC0_0000u32.to_le_bytes());
    let expected: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let tensor = HostTensor::from_f32(vec![2], &[1.0, f32::from_bits(0xFF80_0001)]).unwrap();
    assert_eq!(weights_sha256(&Weights::from([("w".into(), tensor)])), expected);
}

#[test]
fn nans_are_saved_as_one_value_and_nothing_else_changes() {
    for pattern in 0..=u16::MAX {
        for (dtype, infinity, nan) in [(Dtype::F16, 0x7C00, 0x7E00u16), (Dtype::Bf16, 0x7F80, 0x7FC0)] {
            let mut bytes = pattern.to_le_bytes();
            canonical_nans(dtype, &mut bytes);
            let expected = if pattern & 0x7FFF > infinity { nan } else { pattern };
            assert_eq!(u16::from_le_bytes(bytes), expected, "{dtype} {pattern:#06x}");
        }
    }
    for (bits, expected) in [
        (0x7F80_0000u32, 0x7F80_0000u32),
        (0xFF80_0000, 0xFF80_0000),
        (0x7F80_0001, 0x7FC0_0000),
        (0xFFFF_FFFF, 0x7FC0_0000),
        (0x0000_0001, 0x0000_0001),
        (0x8000_0000, 0x8000_0000),
    ] {
        let weights =
            Weights::from([("w".into(), HostTensor::from_f32(vec![1], &[f32::from_bits(bits)]).unwrap())]);
        let back = from_bytes(Path::new("memory"), &to_bytes(&weights).unwrap()).unwrap();
        assert_eq!(back["w"].bytes(), expected.to_le_bytes());
    }
    let mut double = 0xFFF0_0000_0000_0001u64.to_le_bytes();
    canonical_nans(Dtype::F64, &mut double);
    assert_eq!(u64::from_le_bytes(double), 0x7FF8_0000_0000_0000);
    let mut integers = u64::MAX.to_le_bytes();
    canonical_nans(Dtype::I64, &mut integers);
    assert_eq!(u64::from_le_bytes(integers), u64::MAX);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let wrong = |dtype, shape: &[usize], bytes: usize| {
        HostTensor::new(dtype, shape.to_vec(), vec![0; bytes]).unwrap_err()
    };
    assert!(matches!(wrong(Dtype::F32, &[2, 2], 15), ShapeError::Size { bytes: 15, .. }));
    assert!(matches!(wrong(Dtype::F32, &[usize::MAX, 2], 0), ShapeError::Size { .. }));
    assert!(matches!(wrong(Dtype::F32, &[usize::MAX, 0], 4), ShapeError::Size { .. }));
    assert!(matches!(wrong(Dtype::U32, &[1], 4), ShapeError::Dtype(Dtype::U32)));
    let bool3 = HostTensor::new(Dtype::Bool, vec![3], vec![0, 1, 2]).unwrap_err();
    assert_eq!(bool3, ShapeError::Bool { element: 2, byte: 2 });
    let reserved = Weights::from([("__metadata__".into(), HostTensor::from_f32(vec![], &[1.0]).unwrap())]);
    assert!(matches!(to_bytes(&reserved), Err(SaveError::Format { .. })));
}

#[test]
fn torn_and_foreign_files_are_refused() {
    let dir = folder("torn");
    let whole = to_bytes(&example()).unwrap();
    for cut in 0..whole.len() {
        let error = from_bytes(Path::new("cut"), &whole[..cut]).unwrap_err();
        assert!(matches!(error, LoadError::Corrupt { .. }), "cut at {cut}: {error}");
    }
    assert!(matches!(load(&dir.join("nothing")), Err(LoadError::Missing { .. })));
    assert!(matches!(load(&dir), Err(LoadError::Unreadable { .. })));
    let header = br#"{"w":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}}  "#;
    let foreign = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
    assert!(matches!(from_bytes(Path::new("foreign"), &foreign), Err(LoadError::Dtype { .. })));
    let header = br#"{"w":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}} "#;
    let bad_bool = [&(header.len() as u64).to_le_bytes()[..], header, &[3]].concat();
    assert!(matches!(from_bytes(Path::new("bool"), &bad_bool), Err(LoadError::Tensor { .. })));
    std::fs::remove_dir_all(dir).unwrap();
}

proptest! {
    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut file = to_bytes(&example()).unwrap();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Ok(weights) = from_bytes(Path::new("mutated"), &file) {
            let _ = weights_sha256(&weights);
        }
    }
}

/// What `ULPIAN_FAULT=disk:N` does to a program: this test runs itself again with the variable set.
#[test]
fn a_full_disk_leaves_the_last_checkpoint_standing() {
    if let Some(path) = std::env::var_os("ULPIAN_TEST_SAVE_TO") {
        let error = save(Path::new(&path), &Weights::new()).err();
        assert!(error.is_none(), "the empty file must fit: {error:?}");
        let error = save(Path::new(&path), &example()).unwrap_err();
        assert!(matches!(error, SaveError::Write(WriteError::DiskFull { .. })), "{error}");
        return;
    }
    let dir = folder("fault");
    let path = dir.join("w.safetensors");
    save(&path, &example()).unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_full_disk_leaves_the_last_checkpoint_standing"])
        .env("ULPIAN_FAULT", "disk:64,oom:9999999")
        .env("ULPIAN_TEST_SAVE_TO", &path)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(load(&path).unwrap(), Weights::new());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    std::fs::remove_dir_all(dir).unwrap();
}
