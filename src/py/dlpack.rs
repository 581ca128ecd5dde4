//! torch tensors over memory of this crate, made through DLPack.
//!
//! Owns the C structures of DLPack (dlpack.h 1.3) and the way into torch: the C exchange table of
//! `torch.Tensor` where there is one, otherwise a capsule for `torch.utils.dlpack.from_dlpack`. Refuses
//! memory that torch owns already. Invariant: an owner is dropped exactly once, when the last alias of its
//! tensor is gone, on any thread, with or without the interpreter.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::slice;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use crate::memory::{Dtype, Owner};

/// Major version of DLPack whose structures follow.
const MAJOR: u32 = 1;
/// Minor version: 1.1 added the codes of the float8 dtypes.
const MINOR: u32 = 1;
/// `kDLCPU`.
const CPU: i32 = 1;
/// Name of a capsule with a `DLManagedTensor` that has not been consumed.
const UNUSED: &CStr = c"dltensor";

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLTensor`, with its device and data type in place.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: unsafe extern "C" fn(*mut Versioned),
    flags: u64,
    tensor: Tensor,
}

/// `DLManagedTensor`, from before version 1.0.
#[repr(C)]
struct Legacy {
    tensor: Tensor,
    context: *mut c_void,
    deleter: unsafe extern "C" fn(*mut Legacy),
}

/// `DLPackExchangeAPI`; only the functions called here have their types.
#[repr(C)]
struct ExchangeTable {
    version: Version,
    previous: *const ExchangeTable,
    _allocate: *const c_void,
    _from_object: *const c_void,
    to_object: ToObject,
    borrow: Option<Borrow>,
}

/// `DLPackManagedTensorToPyObjectNoSync`: consumes the tensor; returns 0, or -1 with an exception set.
type ToObject = unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> c_int;

/// `DLPackDLTensorFromPyObjectNoSync`: describes a tensor, which keeps alive what the description points to;
/// returns 0, or -1 with an exception set.
type Borrow = unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int;

/// The memory of a torch tensor; strides are in bytes.
pub(super) struct Borrowed {
    pub(super) pointer: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<isize>,
    pub(super) dtype: Dtype,
}

/// A managed tensor `M` with what it points to. `M` is the first field, so both have one address.
#[repr(C)]
struct Export<M, O> {
    managed: MaybeUninit<M>,
    /// Shape, then strides in elements.
    extents: SmallVec<[i64; 8]>,
    _owner: O,
}

/// The way in which torch imports tensors.
enum Import {
    Table(ToObject),
    Capsule(Py<PyAny>),
}

/// Makes a tensor of `shape` that owns `lease`; its storage has the lease's size.
///
/// # Errors
///
/// `ValueError` if the lease has not exactly the size of `shape`, and what torch raises.
pub(super) fn tensor<O: Owner + 'static>(
    py: Python<'_>,
    lease: O,
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Py<PyAny>> {
    static IMPORT: PyOnceLock<Import> = PyOnceLock::new();
    let bytes = shape
        .iter()
        .try_fold(dtype.itemsize(), |bytes, &size| bytes.checked_mul(size));
    if bytes != Some(lease.len()) {
        let message = format!(
            "cannot make a {} tensor of shape {shape:?} of {} bytes",
            dtype.name(),
            lease.len()
        );
        return Err(PyValueError::new_err(message));
    }
    match IMPORT.get_or_try_init(py, || find_import(py))? {
        Import::Table(to_object) => through_table(py, *to_object, lease, shape, dtype),
        Import::Capsule(from_dlpack) => through_capsule(from_dlpack.bind(py), lease, shape, dtype),
    }
}

fn find_import(py: Python<'_>) -> PyResult<Import> {
    let torch = py.import("torch")?;
    if let Some(table) = find_table(&torch)? {
        return Ok(Import::Table(table.to_object));
    }
    let from_dlpack = py.import("torch.utils.dlpack")?.getattr("from_dlpack")?;
    Ok(Import::Capsule(from_dlpack.unbind()))
}

/// Describes a tensor. Its memory stays in place until the tensor is resized or shared.
///
/// Returns None if the elements differ from what is in memory (lazily negated or conjugated), if it is not a
/// dense CPU tensor of a supported dtype, or if torch has no such function.
pub(super) fn borrow(tensor: &Bound<'_, PyAny>) -> PyResult<Option<Borrowed>> {
    static BORROW: PyOnceLock<Option<Borrow>> = PyOnceLock::new();
    let py = tensor.py();
    let find = || {
        let table = find_table(&py.import("torch")?)?;
        PyResult::Ok(table.and_then(|table| table.borrow))
    };
    let Some(borrow) = BORROW.get_or_try_init(py, find)? else {
        return Ok(None);
    };
    let mut seen = Tensor {
        data: ptr::null_mut(),
        device_type: 0,
        device_id: 0,
        ndim: 0,
        code: 0,
        bits: 0,
        lanes: 0,
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the function is torch's, called attached with one of its tensors and a place to write to.
    if unsafe { borrow(tensor.as_ptr(), &raw mut seen) } != 0 {
        drop(PyErr::fetch(py)); // the slower reader raises a better error
        return Ok(None);
    }
    let dtype = Dtype::from_dlpack(seen.code, seen.bits, seen.lanes);
    let (Some(dtype), CPU) = (dtype, seen.device_type) else {
        return Ok(None);
    };
    if dtype.is_inexact() && is_lazy(tensor, dtype)? {
        return Ok(None);
    }
    let ndim = usize::try_from(seen.ndim).unwrap_or(0);
    if ndim > 0 && (seen.shape.is_null() || seen.strides.is_null()) {
        return Ok(None);
    }
    let (sizes, steps) = if ndim == 0 {
        (&[][..], &[][..])
    } else {
        // SAFETY: the function has stored `ndim` sizes that live as long as the tensor.
        let sizes = unsafe { slice::from_raw_parts(seen.shape, ndim) };
        // SAFETY: and as many strides.
        (sizes, unsafe { slice::from_raw_parts(seen.strides, ndim) })
    };
    let itemsize = dtype.itemsize().cast_signed();
    Ok(Some(Borrowed {
        pointer: (seen.data as usize).wrapping_add(seen.byte_offset as usize),
        shape: sizes
            .iter()
            .map(|&size| usize::try_from(size).unwrap_or(0))
            .collect(),
        strides: steps.iter().map(|&step| step as isize * itemsize).collect(),
        dtype,
    }))
}

/// Returns true if a tensor's elements are lazily negated, or conjugated, which only complex ones can be.
fn is_lazy(tensor: &Bound<'_, PyAny>, dtype: Dtype) -> PyResult<bool> {
    let py = tensor.py();
    let is = |name| tensor.call_method0(name)?.is_truthy();
    Ok(is(intern!(py, "is_neg"))? || (dtype.is_complex() && is(intern!(py, "is_conj"))?))
}

/// Returns torch's exchange table; None before torch 2.10.
fn find_table(torch: &Bound<'_, PyModule>) -> PyResult<Option<&'static ExchangeTable>> {
    const NAME: &CStr = c"dlpack_exchange_api";
    let class = torch.getattr("Tensor")?;
    let Some(found) = class.getattr_opt("__dlpack_c_exchange_api__")? else {
        return Ok(None);
    };
    let Ok(capsule) = found.cast::<PyCapsule>() else {
        return Ok(None);
    };
    let Ok(table) = capsule.pointer_checked(Some(NAME)) else {
        return Ok(None);
    };
    let mut table: *const ExchangeTable = table.as_ptr().cast_const().cast();
    // SAFETY: a capsule of this name points to a table that lives as long as the process, and so
    // do the older ones that it leads to. Their first two fields are the same in all versions.
    while let Some(header) = unsafe { table.as_ref() } {
        if header.version.major == MAJOR {
            return Ok(Some(header));
        }
        table = header.previous;
    }
    Ok(None)
}

fn through_table<O: Owner + 'static>(
    py: Python<'_>,
    to_object: ToObject,
    lease: O,
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Py<PyAny>> {
    let managed = export(lease, shape, dtype, |tensor| Versioned {
        version: Version {
            major: MAJOR,
            minor: MINOR,
        },
        context: ptr::null_mut(),
        deleter: delete::<Versioned, O>,
        flags: 0,
        tensor,
    });
    let mut object: *mut c_void = ptr::null_mut();
    // SAFETY: the function is torch's, called attached, and takes the tensor over, even if it fails.
    let status = unsafe { to_object(managed.as_ptr(), &raw mut object) };
    if status != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: on success the function has stored a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, object.cast()) }.map(Bound::unbind)
}

fn through_capsule<O: Owner + 'static>(
    from_dlpack: &Bound<'_, PyAny>,
    lease: O,
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Py<PyAny>> {
    let py = from_dlpack.py();
    // A torch without an exchange table may not know the codes of the float8 dtypes.
    let carried = if dtype.is_float8() {
        Dtype::UInt8
    } else {
        dtype
    };
    let managed = export(lease, shape, carried, |tensor| Legacy {
        tensor,
        context: ptr::null_mut(),
        deleter: delete::<Legacy, O>,
    });
    // SAFETY: a managed tensor under the name that says so, and a destructor that frees it unless
    // its consumer, who renames the capsule, has taken it over.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(
            py,
            managed.cast(),
            UNUSED,
            Some(drop_unused::<O>),
        )
    }?;
    let tensor = from_dlpack.call1((capsule,))?;
    if carried == dtype {
        return Ok(tensor.unbind());
    }
    let dtype = py.import(intern!(py, "torch"))?.getattr(dtype.name())?;
    tensor
        .call_method1(intern!(py, "view"), (dtype,))
        .map(Bound::unbind)
}

/// Puts a managed tensor made by `manage` on the heap, for [`delete`] to free.
#[allow(clippy::cast_possible_wrap)] // the number of dimensions
fn export<M, O: Owner + 'static>(
    mut lease: O,
    shape: &[usize],
    dtype: Dtype,
    manage: impl FnOnce(Tensor) -> M,
) -> NonNull<M> {
    let ndim = shape.len();
    let mut extents: SmallVec<[i64; 8]> = SmallVec::from_elem(1, 2 * ndim);
    for (extent, &size) in extents.iter_mut().zip(shape) {
        *extent = size.cast_signed() as i64;
    }
    for dim in (1..ndim).rev() {
        extents[ndim + dim - 1] = extents[ndim + dim] * extents[dim].max(1);
    }
    let (code, bits, lanes) = dtype.dlpack();
    let data = if lease.is_empty() {
        ptr::null_mut()
    } else {
        lease.as_mut_ptr().cast()
    };
    let export = Box::leak(Box::new(Export {
        managed: MaybeUninit::uninit(),
        extents,
        _owner: lease,
    }));
    // The pointers lead into the allocation itself: it is leaked first, so it does not move any more.
    let (sizes, strides) = export.extents.split_at_mut(ndim);
    let tensor = Tensor {
        data,
        device_type: CPU,
        device_id: 0,
        ndim: ndim as i32,
        code,
        bits,
        lanes,
        shape: sizes.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    export.managed.write(manage(tensor));
    NonNull::from(export).cast()
}

/// Frees an export: torch calls it when the last alias of the tensor is gone.
unsafe extern "C" fn delete<M, O: Owner + 'static>(managed: *mut M) {
    let freed = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `managed` is the first field of an `Export<M, O>` that `export` leaked, and DLPack
        // calls a deleter once.
        drop(unsafe { Box::from_raw(managed.cast::<Export<M, O>>()) });
    }));
    // A panic must not cross into torch, and cannot be handled here.
    drop(freed);
}

/// Frees the tensor of a capsule that was not consumed.
unsafe extern "C" fn drop_unused<O: Owner + 'static>(capsule: *mut ffi::PyObject) {
    // SAFETY: called with the capsule that is about to go.
    if unsafe { ffi::PyCapsule_IsValid(capsule, UNUSED.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: the capsule is valid under this name.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, UNUSED.as_ptr()) };
    // SAFETY: it holds what `through_capsule` put there, and its name says that it is unconsumed.
    unsafe { delete::<Legacy, O>(managed.cast()) };
}
