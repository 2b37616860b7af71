//! Means of the machine for a run: the right to make wires, and kernels.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub use trunkline_kernel::KernelMeans;
use trunkline_wire::WireError;
#[cfg(target_os = "linux")]
use trunkline_wire::ground::{Access, InitProgram};

/// With what wires are made.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub struct WireMeans {
    pub(crate) access: Access,
    pub(crate) init: InitProgram,
}

#[cfg(target_os = "linux")]
impl WireMeans {
    /// Gains the right to make wires, see [`Access::enter`]: has to be done before the process starts its second thread.
    /// The program, with these arguments, calls [`serve_init`](trunkline_wire::ground::serve_init).
    ///
    /// # Errors
    /// If the system forbids it, with the setting that does.
    pub fn gain(program: PathBuf, arguments: Vec<String>) -> Result<WireMeans, WireError> {
        Ok(WireMeans { access: Access::enter()?, init: InitProgram { program, arguments } })
    }
}

/// With what wires are made: there is nothing.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Debug)]
pub enum WireMeans {}

#[cfg(not(target_os = "linux"))]
impl WireMeans {
    /// Does not gain it.
    ///
    /// # Errors
    /// Always.
    pub fn gain(_program: PathBuf, _arguments: Vec<String>) -> Result<WireMeans, WireError> {
        Err(WireError::Forbidden("the wire needs Linux network namespaces".to_owned()))
    }
}

/// The means to start kernels: there are none.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Debug)]
pub enum KernelMeans {}
