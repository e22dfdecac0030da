//! Tables of numbers: row-major `f32`, one row per event.

/// An owned table, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    values: Vec<f32>,
    cols: usize,
}

impl Matrix {
    /// A table of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self {
            values: vec![0.0; rows * cols],
            cols,
        }
    }

    /// Takes over `values`, read row by row.
    ///
    /// # Panics
    /// If the number of values is not a multiple of `cols`.
    pub fn from_vec(values: Vec<f32>, cols: usize) -> Self {
        assert!(
            cols > 0 && values.len().is_multiple_of(cols),
            "{} values do not fill rows of {cols} columns",
            values.len()
        );
        Self { values, cols }
    }

    /// A table whose entries are `value(row, column)`.
    pub fn from_fn(rows: usize, cols: usize, mut value: impl FnMut(usize, usize) -> f32) -> Self {
        let mut matrix = Self::zeros(rows, cols);
        for row in 0..rows {
            for col in 0..cols {
                matrix.values[row * cols + col] = value(row, col);
            }
        }
        matrix
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// One row, to write into.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row by row, to write into.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The values themselves, row by row.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// A read-only view of all rows.
    pub fn view(&self) -> Rows<'_> {
        Rows {
            values: &self.values,
            cols: self.cols,
        }
    }

    /// A view to write into.
    pub fn view_mut(&mut self) -> MatrixMut<'_> {
        MatrixMut {
            values: &mut self.values,
            cols: self.cols,
        }
    }
}

/// A read-only view of consecutive rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    values: &'a [f32],
    cols: usize,
}

impl<'a> Rows<'a> {
    /// Views `values` as rows of `cols` columns.
    ///
    /// # Panics
    /// If the number of values is not a multiple of `cols`.
    pub fn new(values: &'a [f32], cols: usize) -> Self {
        assert!(
            cols > 0 && values.len().is_multiple_of(cols),
            "{} values do not fill rows of {cols} columns",
            values.len()
        );
        Self { values, cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// All values, row by row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// The rows of `range` as a view of their own.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Rows<'a> {
        Rows {
            values: &self.values[range.start * self.cols..range.end * self.cols],
            cols: self.cols,
        }
    }

    /// The rows with these numbers, copied, in this order.
    pub fn gather(&self, rows: &[u32]) -> Matrix {
        let mut values = Vec::with_capacity(rows.len() * self.cols);
        for &row in rows {
            values.extend_from_slice(self.row(row as usize));
        }
        Matrix {
            values,
            cols: self.cols,
        }
    }

    /// A copy that owns its values.
    pub fn to_matrix(&self) -> Matrix {
        Matrix {
            values: self.values.to_vec(),
            cols: self.cols,
        }
    }
}

/// A view of consecutive rows to write into.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    values: &'a mut [f32],
    cols: usize,
}

impl<'a> MatrixMut<'a> {
    /// Views `values` as rows of `cols` columns.
    ///
    /// # Panics
    /// If the number of values is not a multiple of `cols`.
    pub fn new(values: &'a mut [f32], cols: usize) -> Self {
        assert!(
            cols > 0 && values.len().is_multiple_of(cols),
            "{} values do not fill rows of {cols} columns",
            values.len()
        );
        Self { values, cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row, to write into.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// All values, row by row, to write into.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.values
    }

    /// The values themselves, for as long as the view was made for.
    pub fn into_values(self) -> &'a mut [f32] {
        self.values
    }
}
