//! The digits that come inside the library: 1,797 handwritten digits of 8x8 pixels, values 0 to 16.
//!
//! Where they come from, and their licence, is told in `assets/README.md`. They are kept as the IDX files they would be
//! on disk, so that one reader serves everything.

use super::{DataError, Dataset, assemble, idx};

const IMAGES: &[u8] = include_bytes!("../../assets/digits-images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../assets/digits-labels-idx1-ubyte.gz");

/// Images that train; the 360 after them test. Four fifths, in the order of the source. The writers of the last images
/// are not those of the first, so the test asks for more than memory.
pub const TRAIN: usize = 1437;

/// Loads the digits. The split is the same for ever: the first [`TRAIN`] images train, the last 360 test.
///
/// ```
/// let digits = ulpian::data::digits()?;
/// assert_eq!((digits.train().len(), digits.test().len(), digits.max_value), (1437, 360, 16));
/// # Ok::<(), ulpian::data::DataError>(())
/// ```
pub fn digits() -> Result<Dataset, DataError> {
    let read = |name: &str, bytes: &[u8]| {
        idx::read(bytes)
            .map_err(|source| DataError::Idx { path: format!("(embedded) {name}").into(), source })
    };
    let mut images = read("digits-images-idx3-ubyte.gz", IMAGES)?;
    let mut labels = read("digits-labels-idx1-ubyte.gz", LABELS)?;
    let pixels: usize = images.dims[1..].iter().product();
    let test_images =
        idx::Idx { dims: [&[360], &images.dims[1..]].concat(), data: images.data.split_off(TRAIN * pixels) };
    let test_labels = idx::Idx { dims: vec![360], data: labels.data.split_off(TRAIN) };
    images.dims[0] = TRAIN;
    labels.dims[0] = TRAIN;
    let embedded = |kind: &str| format!("(embedded) digits {kind}").into();
    assemble(
        "digits",
        16,
        (embedded("training set"), images, labels),
        (embedded("test set"), test_images, test_labels),
    )
}
