use ulpian_kernel::target::{Target, View};
use ulpian_num::F16;

fn body<T: Target>(t: &mut T, x: &View<F16>, i: &T::Tile<u32>) -> T::Tile<F16> {
    let v = t.load_storage(x, i, None, F16(0));
    t.map2(&v, &v, |a, b| a + b)
}

fn main() {}
