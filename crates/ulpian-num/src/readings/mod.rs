//! The readings that judge a formula instead of computing it: [`Interval`], [`Doubled`], [`Dual`].
//!
//! The same generic formula over [`crate::Real`] gives, by its reading alone, an enclosure of its exact value, a value of
//! about 100 bits, or its derivative. No kernel is ever compiled in these readings; they are for tests, references and
//! bounds. Everything a reading must know of a function stands once in [`facts`]: where it is defined, where it turns,
//! and its partial derivatives as formulas of the same language.
//!
//! ```
//! use ulpian_num::readings::{Doubled, Dual, Interval};
//! use ulpian_num::{Real, Val};
//!
//! fn silu<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
//!     x * x.sigmoid()
//! }
//! let exact = silu(Val::<Interval, f32>::lit(0.5)).0.ends();
//! assert!(exact.0 <= 0.31122966560092726 && 0.31122966560092727 <= exact.1 && exact.1 - exact.0 < 1e-15);
//! let slope = silu(Val::<Dual<Doubled>, f32>::new(Dual::<Doubled>::variable(0.5))).0.slope;
//! assert_eq!(slope.hi(), 0.7399611873026518);
//! let more = silu(Val::<Doubled, f32>::lit(0.5)).0;
//! assert_eq!(more.hi(), 0.3112296656009273);
//! ```

mod dd;
mod dd_functions;
mod dd_gamma;
pub mod doubled;
pub mod dual;
pub mod facts;
pub mod interval;
mod interval_functions;

pub use dd::Dd;
pub use doubled::Doubled;
pub use dual::Dual;
pub use interval::Interval;
