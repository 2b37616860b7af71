//! Functions of the program that runs an experiment, in place of a model of the registries.

use std::fmt;
use std::iter::Flatten;
use std::sync::Arc;

/// Makes what a model would draw, such as messages or losses. Only virtual time waits for it.
pub trait Function<T>: Send + Sync {
    /// Batches of draws, until there are no more. They depend on the seed only.
    fn batches(&self, seed: u64) -> Batches<T>;

    /// The reason for which it has failed, if it has. The draws of a run with a failure are worthless.
    fn failure(&self) -> Option<String>;
}

/// A closure, which does not fail.
impl<T, F: Fn(u64) -> Batches<T> + Send + Sync> Function<T> for F {
    fn batches(&self, seed: u64) -> Batches<T> {
        self(seed)
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

/// Batches of draws, in their order.
pub type Batches<T> = Box<dyn Iterator<Item = Vec<T>> + Send>;

/// The function of a custom model, as soon as a program has provided it. Copies share the function.
pub struct Custom<T>(Option<Arc<dyn Function<T>>>);

impl<T> Custom<T> {
    /// This function.
    pub fn new(function: impl Function<T> + 'static) -> Custom<T> {
        Custom(Some(Arc::new(function)))
    }

    /// The draws for a seed; nothing without a function.
    pub fn draws(&self, seed: u64) -> Draws<T>
    where
        T: 'static,
    {
        let none = || Box::new(std::iter::empty()) as Batches<T>;
        Draws(self.0.as_ref().map_or_else(none, |function| function.batches(seed)).flatten())
    }

    /// The reason why its draws cannot be used, if there is one.
    pub fn problem(&self) -> Option<String> {
        match &self.0 {
            Some(function) => function.failure(),
            None => Some(
                "`custom` needs a function; in Python, provide one with `Experiment.source` or `Experiment.loss`"
                    .to_owned(),
            ),
        }
    }
}

/// No function yet.
impl<T> Default for Custom<T> {
    fn default() -> Custom<T> {
        Custom(None)
    }
}

impl<T> Clone for Custom<T> {
    fn clone(&self) -> Custom<T> {
        Custom(self.0.clone())
    }
}

/// Equal if both are the same function.
impl<T> PartialEq for Custom<T> {
    fn eq(&self, other: &Custom<T>) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl<T> fmt::Debug for Custom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Custom(function)" } else { "Custom" })
    }
}

/// Draws of a function, one after the other.
pub struct Draws<T>(Flatten<Batches<T>>);

impl<T> Iterator for Draws<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }
}

impl<T> fmt::Debug for Draws<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Draws")
    }
}
