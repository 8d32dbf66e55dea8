use ulpian_kernel::target::{Target, ViewMut};

fn body<T: Target>(t: &mut T, y: ViewMut<f32>, i: &T::Tile<u32>, v: &T::Tile<f32>) {
    t.store(y, i, None, v);
    t.store(y, i, None, v);
}

fn main() {}
