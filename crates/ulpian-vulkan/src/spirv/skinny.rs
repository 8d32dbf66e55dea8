//! Products with one row or one column.
