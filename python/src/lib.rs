//! `neb._neb`: the library behind the Python package. Arrays in, arrays out; everything a user meets is in `python/neb`.
//!
//! Tables are contiguous `float32` arrays of two dimensions, which the Python side sees to. They are read where they lie; every
//! computation runs without the interpreter's lock.

mod array;
mod check;
mod compute;
mod error;
mod posterior;
mod run;
mod simulator;
mod source;
mod surrogate;
mod watch;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
#[pyo3(name = "_neb")]
fn neb_module(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<surrogate::Surrogate>()?;
    m.add_class::<source::Source>()?;
    m.add_class::<simulator::Simulator>()?;
    m.add_function(wrap_pyfunction!(surrogate::settings, m)?)?;
    m.add_function(wrap_pyfunction!(source::fit_source, m)?)?;
    m.add_function(wrap_pyfunction!(posterior::draw, m)?)?;
    m.add_function(wrap_pyfunction!(posterior::log_prob, m)?)?;
    m.add_function(wrap_pyfunction!(posterior::maximum, m)?)?;
    m.add_function(wrap_pyfunction!(posterior::calibrate, m)?)?;
    m.add_function(wrap_pyfunction!(check::compare, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_values, m)?)?;
    m.add_function(wrap_pyfunction!(run::check_run_target, m)?)?;
    m.add_function(wrap_pyfunction!(run::save_run, m)?)?;
    m.add_function(wrap_pyfunction!(run::unfold, m)?)?;
    m.add_function(wrap_pyfunction!(run::write_report, m)?)?;
    m.add_function(wrap_pyfunction!(run::report_top, m)?)?;
    m.add_function(wrap_pyfunction!(compute::set_threads, m)?)?;
    m.add_function(wrap_pyfunction!(compute::forked, m)?)?;
    Ok(())
}
