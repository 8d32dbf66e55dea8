//! MNIST and the sets that share its file names, Fashion-MNIST above all: four IDX files in one folder.

use super::{DataError, Dataset, assemble, idx};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The command that puts Fashion-MNIST into a folder.
pub const REMEDY: &str =
    "`scripts/fetch-fashion-mnist.sh DIR` fetches Fashion-MNIST into DIR; then pass `--data DIR`";

/// Loads Fashion-MNIST from `dir`. See [`mnist`] for the files.
pub fn fashion_mnist(dir: &Path) -> Result<Dataset, DataError> {
    load("fashion-mnist", dir)
}

/// Loads a set in MNIST's form from `dir`: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
/// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each as it is or with `.gz`. Where both are there, the
/// unpacked one is read.
pub fn mnist(dir: &Path) -> Result<Dataset, DataError> {
    load("mnist", dir)
}

fn load(name: &str, dir: &Path) -> Result<Dataset, DataError> {
    let meta = std::fs::metadata(dir).map_err(|e| unreadable(dir, e))?;
    if !meta.is_dir() {
        return Err(DataError::NotAFolder { path: dir.into(), remedy: REMEDY });
    }
    let pair = |kind: &str| -> Result<(PathBuf, idx::Idx, idx::Idx), DataError> {
        let (path, images) = read(dir, &format!("{kind}-images-idx3-ubyte"))?;
        let (_, labels) = read(dir, &format!("{kind}-labels-idx1-ubyte"))?;
        Ok((path, images, labels))
    };
    assemble(name, 255, pair("train")?, pair("t10k")?)
}

fn read(dir: &Path, name: &str) -> Result<(PathBuf, idx::Idx), DataError> {
    let plain = dir.join(name);
    let packed = dir.join(format!("{name}.gz"));
    let path = if plain.exists() { plain } else { packed };
    // A pipe that nobody writes would be waited for.
    let kind = std::fs::metadata(&path).map_err(|e| unreadable(&path, e))?;
    if !kind.is_file() {
        return Err(unreadable(&path, std::io::Error::other("not a file")));
    }
    let file = File::open(&path).map_err(|e| unreadable(&path, e))?;
    match idx::read(BufReader::new(file)) {
        Ok(idx) => Ok((path, idx)),
        Err(idx::IdxError::Io(e)) => Err(unreadable(&path, e)),
        Err(source) => Err(DataError::Idx { path, source }),
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> DataError {
    if source.kind() == std::io::ErrorKind::NotFound {
        DataError::Missing { path: path.into(), remedy: REMEDY }
    } else {
        DataError::Unreadable { path: path.into(), source }
    }
}
