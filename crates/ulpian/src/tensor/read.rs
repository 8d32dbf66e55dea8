//! Asking for values.

use super::Tensor;
use crate::error::{Error, Result};
use ulpian_graph::{HostTensor, Node, Options};
use ulpian_num::Element;

impl Tensor {
    /// Computes the value and keeps it on the device. Later uses start from it.
    pub fn realize(&self) -> Result<()> {
        Tensor::realize_all(&[self])
    }
    /// Computes several values of one device in one program.
    pub fn realize_all(tensors: &[&Tensor]) -> Result<()> {
        if tensors.is_empty() {
            return Ok(());
        }
        let (first, nodes): (_, Vec<Node>) = super::gather("realize", tensors)?;
        Ok(ulpian_graph::realize(&nodes, &first.device, Options::default())?)
    }
    pub(crate) fn host(&self) -> Result<HostTensor> {
        Ok(ulpian_graph::read(&self.node, &self.device, Options::default())?)
    }
    /// The value's row-major little-endian bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.host()?.bytes)
    }
    /// The value as named files keep it.
    pub fn to_host(&self) -> Result<crate::io::HostTensor> {
        let host = self.host()?;
        Ok(crate::io::HostTensor::new(host.ty.dtype, host.ty.shape, host.bytes)?)
    }
    /// The elements in row-major order; `D` must be the tensor's dtype.
    pub fn to_vec<D: Element>(&self) -> Result<Vec<D>> {
        let wrong = Error::WrongDtype { op: "to_vec", dtype: self.dtype(), asked: D::DTYPE };
        if D::DTYPE != self.dtype() {
            return Err(wrong);
        }
        self.host()?.values().ok_or(wrong)
    }
    /// The only element.
    pub fn item<D: Element>(&self) -> Result<D> {
        if self.numel() != 1 {
            return Err(Error::NotOneElement { shape: self.shape().to_vec() });
        }
        Ok(self.to_vec()?[0])
    }
}
