//! A model's parameters: one flat vector, and the names and shapes of the tensors in it.

use std::ops::Range;

/// A named block of the flat parameter vector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    /// Name in the model file, as `layers.0.s.2.weight`.
    pub name: String,
    /// Shape in the model file; a weight is outputs × inputs.
    pub shape: Vec<usize>,
    /// Position of its first value.
    pub offset: usize,
}

impl Tensor {
    /// Its place in the flat vector.
    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape.iter().product::<usize>()
    }
}

/// Hands out places in the flat vector while a model is laid out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    tensors: Vec<Tensor>,
    len: usize,
}

impl Layout {
    /// Adds a tensor behind the others and returns where it starts.
    pub(crate) fn add(&mut self, name: String, shape: &[usize]) -> usize {
        let offset = self.len;
        self.len += shape.iter().product::<usize>();
        self.tensors.push(Tensor {
            name,
            shape: shape.to_vec(),
            offset,
        });
        offset
    }

    /// The tensors in order.
    pub(crate) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Number of parameters.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
