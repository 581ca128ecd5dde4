//! Keys the random generators that Python code draws from.
//!
//! Owns the writing of their states: torch's through its own `set_state`; those of NumPy and `random` in
//! place, at addresses that Python has found and verified. Refuses to know which generators they are.
//! Invariants: a key gives the same draws whatever was drawn before; and whatever another thread draws
//! meanwhile, it never reads beyond the state.
#![allow(unsafe_code)]

use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyIterator, PyTuple};

use crate::draws::{Key, Seeds, Twister};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, lock};

/// Bytes of a generator's words and of the count of those consumed.
const TWISTER: usize = size_of::<Twister>() + size_of::<u32>();

/// A generator state at an address in an object that is kept alive.
struct StateAddress {
    owner: Py<PyAny>,
    words: usize,
    taken: usize,
}

impl StateAddress {
    /// Writes the words of the next draws.
    fn write(&self, words: &Twister) {
        // SAFETY: the caller of `Generators` found the state there, and the owner is alive. Another thread
        // that draws may see some words of either state.
        unsafe { ptr::copy_nonoverlapping(words.as_ptr(), self.words as *mut u32, words.len()) };
        // SAFETY: as above; with a count of 0, a thread that goes on counting stays within the words.
        unsafe { (self.taken as *mut u32).write(0) };
    }

    fn save(&self, bytes: &mut Vec<u8>) {
        for (address, len) in [(self.words, size_of::<Twister>()), (self.taken, 4)] {
            // SAFETY: as in `write`.
            bytes.extend(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
        }
    }

    fn restore(&self, bytes: &[u8; TWISTER]) {
        let (words, taken) = bytes.split_at(size_of::<Twister>());
        for (address, bytes) in [(self.words, words), (self.taken, taken)] {
            // SAFETY: as in `write`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        }
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Generators(Arc<Inner>);

struct Inner {
    /// torch's: its `set_state`, the tensor passed to it, and that tensor's address.
    torch: Option<(Py<PyAny>, Py<PyTuple>, usize)>,
    numpy: Option<StateAddress>,
    /// Address of NumPy's flag for a second normal number, followed by that number.
    spare: usize,
    python: Option<StateAddress>,
    /// Called with the seeds if one of the states cannot be written.
    others: Option<Py<PyAny>>,
}

/// Bytes of NumPy's state for pairs of normal numbers: a flag, padding, and the number.
const SPARE: usize = 16;

impl Inner {
    fn key(&self, py: Python<'_>, seeds: &Seeds) -> PyResult<()> {
        if let Some((set_state, state, address)) = &self.torch {
            let mut words = [0_u64; 3 + 624];
            words[0] = seeds.torch;
            words[1] = (1 << 32) + 624; // the seeded flag, and the count of words until the next twist
            words[2] = 1; // one word is consumed: torch checks for the next twist before a draw
            for (word, drawn) in words[3..].iter_mut().zip(seeds.torch_state()) {
                *word = drawn.into();
            }
            // SAFETY: the caller of `Generators` passes a tensor of more bytes, which nothing else writes to.
            unsafe { ptr::copy_nonoverlapping(words.as_ptr(), *address as *mut u64, words.len()) };
            set_state.call1(py, state.bind(py))?;
        }
        if let Some(numpy) = &self.numpy {
            numpy.write(&seeds.numpy_state());
            // SAFETY: as in `StateAddress::write`.
            unsafe { (self.spare as *mut i32).write(0) };
        }
        if let Some(python) = &self.python {
            python.write(&seeds.python_state());
            let owner = python.owner.bind(py);
            owner.setattr(intern!(py, "gauss_next"), py.None())?;
        }
        if let Some(others) = &self.others {
            others.call1(py, (seeds.torch, seeds.numpy, seeds.python))?;
        }
        Ok(())
    }
}

#[pymethods]
impl Generators {
    /// `torch`: see `Inner`; `numpy`: owner, and addresses of words, count and spare; `python`: owner, and
    /// address of the count, which the words follow.
    #[new]
    #[pyo3(signature = (*, torch=None, numpy=None, python=None, others=None))]
    fn new(
        torch: Option<(Py<PyAny>, Py<PyTuple>, usize)>,
        numpy: Option<(Py<PyAny>, usize, usize)>,
        python: Option<(Py<PyAny>, usize)>,
        others: Option<Py<PyAny>>,
    ) -> Self {
        let spare = numpy.as_ref().map_or(0, |(.., spare)| *spare);
        Self(Arc::new(Inner {
            torch,
            numpy: numpy.map(|(owner, words, _)| StateAddress {
                owner,
                words,
                taken: words + size_of::<Twister>(),
            }),
            spare,
            python: python.map(|(owner, taken)| StateAddress {
                owner,
                words: taken + 4,
                taken,
            }),
            others,
        }))
    }

    fn key_sample(
        &self,
        py: Python<'_>,
        seed: u64,
        epoch: u64,
        index: &Bound<'_, PyAny>,
        draw: u64,
    ) -> PyResult<()> {
        let index = number(index);
        let key = Key {
            seed,
            epoch,
            index,
            draw,
            leaf: 0,
        };
        self.0.key(py, &Seeds::of_sample(key))
    }

    fn key_batch(&self, py: Python<'_>, seed: u64, epoch: u64, batch: u64) -> PyResult<()> {
        self.0.key(py, &of_batch(seed, epoch, batch))
    }

    fn save<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::with_capacity(2 * TWISTER + SPARE);
        if let Some(numpy) = &self.0.numpy {
            numpy.save(&mut bytes);
            // SAFETY: as in `StateAddress::write`.
            bytes.extend(unsafe { std::slice::from_raw_parts(self.0.spare as *const u8, SPARE) });
        }
        if let Some(python) = &self.0.python {
            python.save(&mut bytes);
        }
        PyBytes::new(py, &bytes)
    }

    fn restore(&self, saved: &[u8]) -> PyResult<()> {
        let short = || PyValueError::new_err("not what these generators have saved");
        let mut saved = saved;
        if let Some(numpy) = &self.0.numpy {
            let (state, rest) = saved.split_first_chunk().ok_or_else(short)?;
            let (spare, rest) = rest.split_first_chunk::<SPARE>().ok_or_else(short)?;
            numpy.restore(state);
            // SAFETY: as in `StateAddress::write`.
            unsafe { ptr::copy_nonoverlapping(spare.as_ptr(), self.0.spare as *mut u8, SPARE) };
            saved = rest;
        }
        if let Some(python) = &self.0.python {
            python.restore(saved.first_chunk().ok_or_else(short)?);
        }
        Ok(())
    }
}

fn of_batch(seed: u64, epoch: u64, batch: u64) -> Seeds {
    Seeds::of_batch(Key {
        seed,
        epoch,
        index: batch,
        ..Key::default()
    })
}

/// Returns the key of an index: an integer modulo 2^64; 0 for anything else. Only samplers unknown to this
/// library have other indices, and for those the key includes the position.
fn number(index: &Bound<'_, PyAny>) -> u64 {
    if !index.is_instance_of::<PyInt>() {
        return 0;
    }
    // SAFETY: attached, and the object is an integer, for which this cannot fail.
    unsafe { ffi::PyLong_AsUnsignedLongLongMask(index.as_ptr()) }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Followed {
    indices: Py<PyAny>,
    iterator: Py<PyIterator>,
    generators: Option<Arc<Inner>>,
    /// The key without its index, and the batch number.
    key: (Key, u64),
    repeats: bool,
    place: AtomicUsize,
    current: Mutex<Option<Py<PyAny>>>,
    /// The namespace of `torch.cuda`, and the function that seeds its generators once they exist.
    devices: Option<(Py<PyDict>, Py<PyAny>)>,
}

impl Followed {
    fn key(&self, py: Python<'_>, seeds: &Seeds) -> PyResult<()> {
        let Some(generators) = &self.generators else {
            return Ok(());
        };
        generators.key(py, seeds)?;
        if let Some((names, seed)) = &self.devices {
            let is_initialized = names.bind(py).get_item(intern!(py, "_initialized"))?;
            if is_initialized.is_some_and(|it| it.is_truthy().unwrap_or(true)) {
                seed.call1(py, (seeds.torch,))?;
            }
        }
        Ok(())
    }

    /// Keys the generators for the sample `index`, which is at `place` in the batch.
    fn key_sample(&self, py: Python<'_>, index: &Bound<'_, PyAny>, place: u64) -> PyResult<()> {
        let (key, _) = self.key;
        let draw = if self.repeats { key.draw + place } else { 0 };
        let index = number(index);
        self.key(py, &Seeds::of_sample(Key { index, draw, ..key }))
    }
}

#[pymethods]
impl Followed {
    #[new]
    #[pyo3(signature = (indices, generators=None, key=None, devices=None))]
    fn new(
        indices: Bound<'_, PyAny>,
        generators: Option<&Generators>,
        key: Option<(u64, u64, u64, Option<u64>)>,
        devices: Option<(Py<PyDict>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let (seed, epoch, batch, first) = key.unwrap_or_default();
        let key = Key {
            seed,
            epoch,
            draw: first.unwrap_or_default(),
            ..Key::default()
        };
        Ok(Self {
            iterator: indices.try_iter()?.unbind(),
            indices: indices.unbind(),
            generators: generators.map(|generators| Arc::clone(&generators.0)),
            key: (key, batch),
            repeats: first.is_some(),
            place: AtomicUsize::new(0),
            current: Mutex::new(None),
            devices,
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.indices.bind(py).len()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.iterator.bind(py).clone().next().transpose()?;
        let Some(index) = next else {
            let (key, batch) = self.key;
            let last = lock(&self.current).take();
            drop(last);
            self.key(py, &of_batch(key.seed, key.epoch, batch))?;
            return Ok(None);
        };
        let index = index.unbind();
        let last = lock(&self.current).replace(index.clone_ref(py));
        drop(last); // outside of the lock: it may be an object of the user's
        let place = self.place.fetch_add(1, Ordering::Relaxed) as u64;
        self.key_sample(py, index.bind(py), place)?;
        Ok(Some(index))
    }

    fn repeat(&self, py: Python<'_>) -> PyResult<()> {
        let Some((index,)) = self.current(py) else {
            return Ok(());
        };
        let place = self.place.load(Ordering::Relaxed) as u64 - 1;
        self.key_sample(py, index.bind(py), place)
    }

    #[getter]
    fn current(&self, py: Python<'_>) -> Option<(Py<PyAny>,)> {
        let current = lock(&self.current);
        current.as_ref().map(|index| (index.clone_ref(py),))
    }
}
