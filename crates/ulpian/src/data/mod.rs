//! Data sets of labelled images, and the order in which training sees them.
//!
//! Here live readers, the embedded digits and the shuffle. Networks and networking never live here: what is not in the
//! library is fetched by a script, in the open. The one idea: a [`Dataset`] that exists is whole and consistent, so
//! nothing after it checks again.

mod digits;
mod files;
pub mod idx;
mod shuffle;

pub use digits::{TRAIN as DIGITS_TRAIN, digits};
pub use files::{fashion_mnist, mnist};
pub use shuffle::permutation;

use std::path::PathBuf;

/// Why a data set could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("{} is not there; {remedy}", path.display())]
    Missing { path: PathBuf, remedy: &'static str },
    #[error("{} is not a folder; {remedy}", path.display())]
    NotAFolder { path: PathBuf, remedy: &'static str },
    #[error("{} cannot be read: {source}; check the path and its permissions", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}; fetch the file again", path.display())]
    Idx { path: PathBuf, source: idx::IdxError },
    #[error("{}: {detail}; these files do not belong together, fetch them again", path.display())]
    Inconsistent { path: PathBuf, detail: String },
    #[error("batch: index {index} is outside the {len} images of this split")]
    Index { index: u32, len: usize },
    #[error("data set {name}: {detail}; every image needs its pixels and its label")]
    Parts { name: String, detail: String },
}

/// Labelled grey images, split into a part that trains and a part that tests.
#[derive(Clone, PartialEq, Eq)]
pub struct Dataset {
    pub name: String,
    /// Row-major (image, row, column).
    pub train_images: Vec<u8>,
    pub train_labels: Vec<u8>,
    pub test_images: Vec<u8>,
    pub test_labels: Vec<u8>,
    pub height: usize,
    pub width: usize,
    /// Every label is below this.
    pub classes: usize,
    /// The value of full ink: pixels are divided by it to lie in 0..=1.
    pub max_value: u8,
}

/// One part of a [`Dataset`].
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    pub images: &'a [u8],
    pub labels: &'a [u8],
    /// Pixels of one image.
    pub pixels: usize,
    pub max_value: u8,
}

/// Images as floats and their labels, in the order that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Row-major (image, pixel), each pixel divided by [`Dataset::max_value`], rounded once to nearest even.
    pub images: Vec<f32>,
    pub labels: Vec<i32>,
}

impl Dataset {
    pub fn train(&self) -> Split<'_> {
        self.split(&self.train_images, &self.train_labels)
    }

    pub fn test(&self) -> Split<'_> {
        self.split(&self.test_images, &self.test_labels)
    }

    /// Pixels of one image.
    pub fn pixels(&self) -> usize {
        self.height.saturating_mul(self.width)
    }

    /// Checks what the readers of this module have checked, for a data set that was put together elsewhere: sizes that
    /// fit each other, labels below `classes`, pixels of at most `max_value`.
    pub fn check(&self) -> Result<(), DataError> {
        let wrong = |detail: String| Err(DataError::Parts { name: self.name.clone(), detail });
        if self.pixels() == 0 || self.classes == 0 || self.max_value == 0 {
            return wrong(format!(
                "images of {}x{} pixels up to {} in {} classes, none of which may be 0",
                self.height, self.width, self.max_value, self.classes
            ));
        }
        for (part, split) in [("training", self.train()), ("test", self.test())] {
            if split.len().checked_mul(split.pixels) != Some(split.images.len()) {
                return wrong(format!(
                    "{} pixels are not {} {part} images of {}x{}",
                    split.images.len(),
                    split.len(),
                    self.height,
                    self.width
                ));
            }
            if u32::try_from(split.len()).is_err() {
                return wrong(format!("{} {part} images, more than 32-bit indices reach", split.len()));
            }
            if let Some(label) = split.labels.iter().find(|&&l| usize::from(l) >= self.classes) {
                return wrong(format!("{part} label {label}, wanted 0 to {}", self.classes - 1));
            }
            if let Some(pixel) = split.images.iter().find(|&&p| p > self.max_value) {
                return wrong(format!("{part} pixel value {pixel}, wanted 0 to {}", self.max_value));
            }
        }
        Ok(())
    }

    fn split<'a>(&'a self, images: &'a [u8], labels: &'a [u8]) -> Split<'a> {
        Split { images, labels, pixels: self.pixels(), max_value: self.max_value }
    }
}

impl std::fmt::Debug for Dataset {
    /// Sizes only: the pixels of 70,000 images help nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset")
            .field("name", &self.name)
            .field("train", &self.train_labels.len())
            .field("test", &self.test_labels.len())
            .field("height", &self.height)
            .field("width", &self.width)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

impl Split<'_> {
    /// Images in this part.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The images at `indices`, in that order. An index outside the split is an error, never clamped.
    pub fn batch(&self, indices: &[u32]) -> Result<Batch, DataError> {
        let mut images = vec![];
        let mut labels = vec![];
        let max = f32::from(self.max_value);
        for &index in indices {
            let at = index as usize;
            let label = *self.labels.get(at).ok_or(DataError::Index { index, len: self.len() })?;
            let whole = at
                .checked_mul(self.pixels)
                .and_then(|start| self.images.get(start..start.checked_add(self.pixels)?));
            let pixels = whole.ok_or_else(|| DataError::Parts {
                name: "of a split".into(),
                detail: format!("{} pixels end before image {index} does", self.images.len()),
            })?;
            images.extend(pixels.iter().map(|&p| f32::from(p) / max));
            labels.push(i32::from(label));
        }
        Ok(Batch { images, labels })
    }
}

type Part = (PathBuf, idx::Idx, idx::Idx);

/// Puts the four arrays together after checking that they fit each other.
fn assemble(name: &str, max_value: u8, train: Part, test: Part) -> Result<Dataset, DataError> {
    for (path, images, labels) in [&train, &test] {
        let wrong = |detail: String| Err(DataError::Inconsistent { path: path.clone(), detail });
        let ([count, height, width], [labelled]) = (&images.dims[..], &labels.dims[..]) else {
            return wrong(format!(
                "images of shape {:?} and labels of shape {:?}, wanted (n, height, width) and (n)",
                images.dims, labels.dims
            ));
        };
        if count != labelled {
            return wrong(format!("{count} images but {labelled} labels"));
        }
        if count * height * width == 0 {
            return wrong(format!("no pixels in shape {:?}", images.dims));
        }
        if images.dims[1..] != train.1.dims[1..] {
            return wrong(format!(
                "images of {:?} pixels beside training images of {:?}",
                &images.dims[1..],
                &train.1.dims[1..]
            ));
        }
        if u32::try_from(*count).is_err() {
            return wrong(format!("{count} images, more than 32-bit indices reach"));
        }
        if let Some(label) = labels.data.iter().find(|&&l| usize::from(l) >= CLASSES) {
            return wrong(format!("label {label}, wanted 0 to {}", CLASSES - 1));
        }
        if let Some(pixel) = images.data.iter().find(|&&p| p > max_value) {
            return wrong(format!("pixel value {pixel}, wanted 0 to {max_value}"));
        }
    }
    let ((_, train_images, train_labels), (_, test_images, test_labels)) = (train, test);
    Ok(Dataset {
        name: name.to_owned(),
        height: train_images.dims[1],
        width: train_images.dims[2],
        train_images: train_images.data,
        train_labels: train_labels.data,
        test_images: test_images.data,
        test_labels: test_labels.data,
        classes: CLASSES,
        max_value,
    })
}

/// Digits and garments alike.
const CLASSES: usize = 10;
