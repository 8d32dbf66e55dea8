//! Hostile and honest data files through the public readers.

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use ulpian::data::idx::{self, Idx, IdxError};
use ulpian::data::{DataError, digits, fashion_mnist, mnist, permutation};

fn encode(dims: &[u32], body: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|d| file.extend(d.to_be_bytes()));
    file.extend(body);
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ulpian-data-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_wrong_header_gets_its_own_error() {
    let read = |bytes: &[u8]| idx::read(bytes).unwrap_err();
    assert!(matches!(read(b""), IdxError::TruncatedHeader { needed: 4, found: 0 }));
    assert!(matches!(read(b"\0\0\x08"), IdxError::TruncatedHeader { needed: 4, found: 3 }));
    assert!(matches!(read(b"PK\x03\x04"), IdxError::Magic { found: [0x50, 0x4b] }));
    assert!(matches!(read(b"\0\x01\x08\x01"), IdxError::Magic { found: [0, 1] }));
    for code in (0..=255u8).filter(|&c| c != 8) {
        assert!(matches!(read(&[0, 0, code, 1, 0, 0, 0, 0]), IdxError::ElementType { code: c } if c == code));
    }
    for rank in [0, 9, 255] {
        assert!(matches!(read(&[0, 0, 8, rank, 0, 0, 0, 0]), IdxError::Rank { rank: r } if r == rank));
    }
    assert!(matches!(read(&[0, 0, 8, 2, 0, 0, 0, 1]), IdxError::TruncatedHeader { needed: 12, found: 8 }));
    assert!(matches!(read(&encode(&[2, 3], &[0; 5])), IdxError::Truncated { needed: 6, found: 5, .. }));
    assert!(matches!(read(&encode(&[2, 3], &[0; 7])), IdxError::Trailing { needed: 6, .. }));
    assert!(matches!(read(&encode(&[0, 3], &[1])), IdxError::Trailing { needed: 0, .. }));
    assert!(matches!(read(&encode(&[u32::MAX; 3], &[0; 64])), IdxError::TooLarge { .. }));
    assert!(matches!(read(&encode(&[(1 << 30) + 1], &[0; 64])), IdxError::TooLarge { .. }));
    // A claim within the limit but without the bytes: nothing near the claim is allocated, see the next test.
    assert!(matches!(read(&encode(&[1 << 30], &[0; 64])), IdxError::Truncated { found: 64, .. }));
}

#[test]
fn zero_sizes_are_arrays_without_elements() {
    assert_eq!(
        idx::read(&encode(&[0, 28, 28], &[])[..]).unwrap(),
        Idx { dims: vec![0, 28, 28], data: vec![] }
    );
    assert_eq!(idx::read(&encode(&[u32::MAX, u32::MAX, 0], &[])[..]).unwrap().data.len(), 0);
}

#[test]
fn each_damage_of_gzip_is_refused() {
    let whole = encode(&[40, 40], &[7; 1600]);
    let good = gzip(&whole);
    assert_eq!(idx::read(&good[..]).unwrap().data, vec![7; 1600]);
    for cut in 0..good.len() {
        assert!(idx::read(&good[..cut]).is_err(), "cut at {cut}");
    }
    let mut sum = good.clone();
    let at = sum.len() - 6;
    sum[at] ^= 1;
    assert!(matches!(idx::read(&sum[..]), Err(IdxError::Gzip { .. })), "wrong checksum");
    let mut trailing = good.clone();
    trailing.extend(b"garbage");
    assert!(matches!(idx::read(&trailing[..]), Err(IdxError::Gzip { .. })), "garbage after the member");
    assert!(matches!(idx::read(&b"\x1f\x8bnot gzip at all"[..]), Err(IdxError::Gzip { .. })));
}

#[test]
fn a_bomb_is_not_unpacked_past_its_claim() {
    // 256 MiB of zeros behind a header that claims 16: the reader stops at the 17th.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&encode(&[4, 4], &[])).unwrap();
    let block = vec![0; 1 << 20];
    (0..256).for_each(|_| encoder.write_all(&block).unwrap());
    let bomb = encoder.finish().unwrap();
    let mut source = Counting { rest: &bomb, taken: 0 };
    let error = idx::read(std::io::BufReader::with_capacity(4096, &mut source)).unwrap_err();
    assert!(matches!(error, IdxError::Trailing { needed: 16, .. }), "{error}");
    assert!(source.taken <= 3 * 4096, "{} of {} packed bytes were read", source.taken, bomb.len());
}

struct Counting<'a> {
    rest: &'a [u8],
    taken: usize,
}
impl std::io::Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.rest.read(buffer)?;
        self.taken += n;
        Ok(n)
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(dims in prop::collection::vec(0u32..6, 1..=8), packed: bool, seed: u8) {
        let size = dims.iter().product::<u32>();
        let body: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
        let file = encode(&dims, &body);
        let file = if packed { gzip(&file) } else { file };
        let idx = idx::read(&file[..]).unwrap();
        prop_assert_eq!(idx.dims, dims.iter().map(|&d| d as usize).collect::<Vec<_>>());
        prop_assert_eq!(idx.data, body);
    }

    /// Any change of any bytes gives an error or an array that is exactly what its header says: never a panic, never
    /// more data than the file holds.
    #[test]
    fn mutated_files_never_panic_and_never_lie(
        changes in prop::collection::vec((0usize..64, any::<u8>()), 1..6),
        cut in prop::option::of(0usize..64),
        packed: bool,
    ) {
        let body: Vec<u8> = (0..48).collect();
        let plain = encode(&[3, 4, 4], &body);
        let mut file = if packed { gzip(&plain) } else { plain };
        for (at, value) in changes {
            let at = at % file.len();
            file[at] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut);
        }
        if let Ok(idx) = idx::read(&file[..]) {
            prop_assert_eq!(idx.data.len(), idx.dims.iter().product::<usize>());
            prop_assert!(packed || idx.data.len() <= file.len());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0usize..3) {
        let head: &[u8] = [&b""[..], &b"\0\0\x08"[..], &b"\x1f\x8b\x08"[..]][start];
        let _ = idx::read(&[head, &bytes[..]].concat()[..]);
    }

    #[test]
    fn orders_are_permutations(seed: u64, epoch: u64, n in 0u32..500) {
        let mut order = permutation(seed, epoch, n);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..n));
    }
}

#[test]
fn the_embedded_digits_are_the_documented_ones() {
    let set = digits().unwrap();
    assert_eq!((set.height, set.width, set.classes, set.max_value), (8, 8, 10, 16));
    assert_eq!((set.train().len(), set.test().len()), (1437, 360));
    // The first image of scikit-learn's load_digits(): a zero.
    assert_eq!(set.train_images[..16], [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]);
    assert_eq!(set.train_labels[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    // The sums that load_digits() gives: 561,718 over all pixels.
    let sum = |pixels: &[u8]| pixels.iter().map(|&p| u64::from(p)).sum::<u64>();
    assert_eq!(sum(&set.train_images) + sum(&set.test_images), 561_718);
    assert_eq!(*set.test_labels.last().unwrap(), 8);
}

#[test]
fn batches_are_scaled_and_bad_indices_are_named() {
    let set = digits().unwrap();
    let batch = set.train().batch(&[1436, 0, 0]).unwrap();
    assert_eq!(batch.labels.len(), 3);
    assert_eq!(batch.images.len(), 3 * 64);
    assert_eq!(batch.images[64..128], batch.images[128..]);
    assert_eq!(batch.images[64 + 3], 13.0 / 16.0);
    let error = set.train().batch(&[0, 1437]).unwrap_err();
    assert!(matches!(error, DataError::Index { index: 1437, len: 1437 }));
    assert_eq!(set.test().batch(&[]).unwrap().images, Vec::<f32>::new());
}

fn small_set(folder: &Folder, suffix: &str, pack: impl Fn(&[u8]) -> Vec<u8>) {
    let files: [(&str, Vec<u8>); 4] = [
        ("train-images-idx3-ubyte", encode(&[3, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255])),
        ("train-labels-idx1-ubyte", encode(&[3], &[0, 9, 4])),
        ("t10k-images-idx3-ubyte", encode(&[1, 2, 2], &[1, 1, 1, 1])),
        ("t10k-labels-idx1-ubyte", encode(&[1], &[2])),
    ];
    for (name, bytes) in files {
        folder.put(&format!("{name}{suffix}"), &pack(&bytes));
    }
}

#[test]
fn a_folder_loads_packed_or_plain() {
    let (packed, plain) = (Folder::new("packed"), Folder::new("plain"));
    small_set(&packed, ".gz", gzip);
    small_set(&plain, "", <[u8]>::to_vec);
    let set = fashion_mnist(&packed.0).unwrap();
    assert_eq!((set.train().len(), set.test().len(), set.height, set.width), (3, 1, 2, 2));
    assert_eq!(set.train().batch(&[2]).unwrap().images[3], 1.0);
    let other = mnist(&plain.0).unwrap();
    assert_eq!((other.train_images, other.name.as_str()), (set.train_images, "mnist"));
}

#[test]
fn a_missing_folder_or_file_names_the_remedy() {
    let folder = Folder::new("missing");
    for dir in [folder.0.join("nowhere"), folder.0.clone()] {
        let error = fashion_mnist(&dir).unwrap_err();
        assert!(matches!(error, DataError::Missing { .. }), "{error}");
        assert!(error.to_string().contains("scripts/fetch-fashion-mnist.sh"), "{error}");
    }
    folder.put("file", b"");
    assert!(matches!(fashion_mnist(&folder.0.join("file")), Err(DataError::NotAFolder { .. })));
    let directory_as_file = Folder::new("dir-as-file");
    std::fs::create_dir(directory_as_file.0.join("train-images-idx3-ubyte")).unwrap();
    assert!(matches!(fashion_mnist(&directory_as_file.0), Err(DataError::Unreadable { .. })));
    let pipe = Folder::new("pipe");
    let made = std::process::Command::new("mkfifo").arg(pipe.0.join("train-images-idx3-ubyte")).status();
    if made.is_ok_and(|s| s.success()) {
        assert!(matches!(fashion_mnist(&pipe.0), Err(DataError::Unreadable { .. })));
    }
}

#[test]
fn files_that_do_not_fit_each_other_are_refused() {
    let wrong: [(&str, &str, Vec<u8>); 6] = [
        ("labels for images", "train-images-idx3-ubyte", encode(&[3], &[1, 2, 3])),
        ("images for labels", "train-labels-idx1-ubyte", encode(&[3, 1, 1], &[1, 2, 3])),
        ("one label short", "train-labels-idx1-ubyte", encode(&[2], &[1, 2])),
        ("label 10", "t10k-labels-idx1-ubyte", encode(&[1], &[10])),
        ("test images of another size", "t10k-images-idx3-ubyte", encode(&[1, 2, 3], &[0; 6])),
        ("no images", "t10k-images-idx3-ubyte", encode(&[0, 2, 2], &[])),
    ];
    for (what, name, bytes) in wrong {
        let folder = Folder::new(&format!("fit-{}", what.replace(' ', "-")));
        small_set(&folder, "", <[u8]>::to_vec);
        folder.put(name, &bytes);
        let error = fashion_mnist(&folder.0).unwrap_err();
        assert!(matches!(error, DataError::Inconsistent { .. }), "{what}: {error}");
    }
}

#[test]
fn a_truncated_file_is_named_in_the_error() {
    let folder = Folder::new("truncated");
    small_set(&folder, "", <[u8]>::to_vec);
    folder.put("t10k-images-idx3-ubyte", &encode(&[1, 2, 2], &[1, 1]));
    let error = fashion_mnist(Path::new(&folder.0)).unwrap_err();
    assert!(matches!(error, DataError::Idx { source: IdxError::Truncated { .. }, .. }), "{error}");
    assert!(error.to_string().contains("t10k-images-idx3-ubyte"), "{error}");
}
