//! The IDX format of MNIST and its kin, plain or gzipped.
//!
//! A file is two zero bytes, an element code, a rank, that many big-endian u32 sizes, then the elements. Only unsigned
//! bytes (code 8) are read here: no data set in this format that ulpian knows uses another. The one idea: the header is
//! a claim, not a fact. Memory grows with the bytes that really arrive, never with the size that is claimed, and no more
//! is unpacked than was claimed.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, Read};

/// The largest body that is read: 1 GiB, half as much again as the largest published set in this format (EMNIST, 640 MB).
pub const MAX_BYTES: u64 = 1 << 30;
/// The largest rank that is read. Images have three dimensions, colour images four.
pub const MAX_RANK: u8 = 8;

const UNSIGNED_BYTE: u8 = 8;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const CHUNK: usize = 64 * 1024;

/// An array of unsigned bytes, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    pub dims: Vec<usize>,
    /// As many bytes as the product of `dims`.
    pub data: Vec<u8>,
}

/// Why bytes are not an IDX array.
#[derive(Debug, thiserror::Error)]
pub enum IdxError {
    #[error(
        "not an IDX file: it starts with {found:02x?}, an IDX file starts with two zero bytes (gzip with 1f 8b)"
    )]
    Magic { found: [u8; 2] },
    #[error("element code {code:#04x} is not read here: only unsigned bytes (0x08)")]
    ElementType { code: u8 },
    #[error("rank {rank} is not read here: 1 to {MAX_RANK}")]
    Rank { rank: u8 },
    #[error(
        "the header claims {dims:?} elements, more than the {MAX_BYTES} bytes that are read; the file is damaged or hostile"
    )]
    TooLarge { dims: Vec<u32> },
    #[error("truncated in the header: {found} of {needed} bytes")]
    TruncatedHeader { needed: usize, found: usize },
    #[error("truncated: the header claims {dims:?} = {needed} bytes, {found} are there")]
    Truncated { dims: Vec<u32>, needed: u64, found: u64 },
    #[error(
        "bytes follow the {needed} that the header claims ({dims:?}): header and body do not belong together"
    )]
    Trailing { dims: Vec<u32>, needed: u64 },
    #[error("damaged gzip data: {detail}")]
    Gzip { detail: String },
    #[error("no memory for {needed} bytes")]
    OutOfMemory { needed: u64 },
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads one array, unpacking gzip when the first two bytes say so; the source must end where the array ends.
///
/// ```
/// let idx = ulpian::data::idx::read(&[0, 0, 8, 1, 0, 0, 0, 2, 7, 9][..])?;
/// assert_eq!((idx.dims, idx.data), (vec![2], vec![7, 9]));
/// # Ok::<(), ulpian::data::idx::IdxError>(())
/// ```
pub fn read(mut source: impl BufRead) -> Result<Idx, IdxError> {
    // Two bytes through `read` rather than `fill_buf`: a buffer may hold one byte only.
    let mut start = [0; 2];
    let found = fill(&mut source, &mut start)?;
    let whole = start[..found].chain(source);
    if start == GZIP_MAGIC { read_plain(MultiGzDecoder::new(whole), true) } else { read_plain(whole, false) }
}

fn read_plain(mut source: impl Read, gzip: bool) -> Result<Idx, IdxError> {
    let explain = |e: IdxError| match e {
        IdxError::Io(e) if gzip && is_damage(&e) => IdxError::Gzip { detail: e.to_string() },
        other => other,
    };
    let mut head = [0; 4];
    let found = fill(&mut source, &mut head).map_err(explain)?;
    if found >= 2 && head[..2] != [0, 0] {
        return Err(IdxError::Magic { found: [head[0], head[1]] });
    }
    if found < 4 {
        return Err(IdxError::TruncatedHeader { needed: 4, found });
    }
    let [_, _, code, rank] = head;
    if code != UNSIGNED_BYTE {
        return Err(IdxError::ElementType { code });
    }
    if rank == 0 || rank > MAX_RANK {
        return Err(IdxError::Rank { rank });
    }
    let mut sizes = [0; 4 * MAX_RANK as usize];
    let sizes = &mut sizes[..4 * usize::from(rank)];
    let found = fill(&mut source, sizes).map_err(explain)?;
    if found < sizes.len() {
        return Err(IdxError::TruncatedHeader { needed: 4 + sizes.len(), found: 4 + found });
    }
    let dims: Vec<u32> =
        sizes.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
    // A zero size makes the product zero whatever else is claimed; the others are still bounded by their type.
    let needed = if dims.contains(&0) {
        0
    } else {
        dims.iter()
            .try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))
            .filter(|&n| n <= MAX_BYTES)
            .ok_or_else(|| IdxError::TooLarge { dims: dims.clone() })?
    };
    let data = read_body(&mut source, needed, &dims).map_err(explain)?;
    // One byte more: it must not be there, and asking for it makes the unpacker check its sum.
    if fill(&mut source, &mut [0]).map_err(explain)? != 0 {
        return Err(IdxError::Trailing { dims, needed });
    }
    Ok(Idx { dims: dims.iter().map(|&d| d as usize).collect(), data })
}

fn read_body(source: &mut impl Read, needed: u64, dims: &[u32]) -> Result<Vec<u8>, IdxError> {
    let mut data = Vec::new();
    let mut chunk = [0; CHUNK];
    while (data.len() as u64) < needed {
        let left = needed - data.len() as u64;
        let want = left.min(CHUNK as u64) as usize;
        let found = fill(source, &mut chunk[..want])?;
        data.try_reserve(found).map_err(|_| IdxError::OutOfMemory { needed })?;
        data.extend_from_slice(&chunk[..found]);
        if found < want {
            return Err(IdxError::Truncated { dims: dims.to_vec(), needed, found: data.len() as u64 });
        }
    }
    Ok(data)
}

/// Fills `buffer` as far as the source reaches and says how far.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, IdxError> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(done)
}

/// Errors that the unpacker raises about the data, as against the disk's own.
fn is_damage(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}
