//! The one error that users of the library meet: what failed, with which shapes and dtypes, and what to do.

use crate::data::DataError;
use crate::io::safetensors::{LoadError, SaveError};
use crate::io::{ShapeError, WriteError};
use ulpian_graph::{GraphError, OpError};
use ulpian_kernel::device::DeviceError;
use ulpian_num::Dtype;

/// Why a call failed. No call of the library panics on its input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Op(OpError),
    #[error(transparent)]
    Device(DeviceError),
    #[error(transparent)]
    Graph(GraphError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Bytes(#[from] ShapeError),
    #[error("{op}: its tensors are on {first} and on {other}; move one with to_device")]
    DeviceMismatch { op: &'static str, first: String, other: String },
    #[error("{op}: {given} values do not fill shape {shape:?}; give {} or change the shape", product(shape))]
    Length { op: &'static str, given: usize, shape: Vec<usize> },
    #[error("{op}: the tensor is {dtype}, not {asked}; call to_dtype first")]
    WrongDtype { op: &'static str, dtype: Dtype, asked: Dtype },
    #[error("{op}: {value} is no value of {dtype}; call to_dtype on the tensor for a dtype that holds it")]
    OutOfRange { op: &'static str, value: String, dtype: Dtype },
    #[error("item: a tensor of shape {shape:?} is not one number; index or reduce it first")]
    NotOneElement { shape: Vec<usize> },
    #[error("{what} = {value}: {need}")]
    Argument { what: String, value: String, need: String },
    #[error("parameter {name}: {detail}; load weights of the same model")]
    Parameter { name: String, detail: String },
}

/// What every fallible call returns.
pub type Result<T> = std::result::Result<T, Error>;

impl From<OpError> for Error {
    fn from(e: OpError) -> Error {
        Error::Op(e)
    }
}
impl From<DeviceError> for Error {
    fn from(e: DeviceError) -> Error {
        Error::Device(e)
    }
}
impl From<GraphError> for Error {
    /// An op's or a device's error stays what it is, whoever passed it on.
    fn from(e: GraphError) -> Error {
        match e {
            GraphError::Op(e) => Error::Op(e),
            GraphError::Device(e) => Error::Device(e),
            other => Error::Graph(other),
        }
    }
}

/// Exact up to the point where no memory could hold as many.
fn product(shape: &[usize]) -> u128 {
    shape.iter().fold(1, |n: u128, &e| n.saturating_mul(e as u128))
}

pub(crate) fn argument(what: &str, value: impl std::fmt::Debug, need: &str) -> Error {
    Error::Argument { what: what.into(), value: format!("{value:?}"), need: need.into() }
}
