use ulpian_kernel::target::Target;

fn body<T: Target>(t: &mut T, x: &T::Tile<f32>) -> T::Tile<bool> {
    t.map1(x, |v| v < v)
}

fn main() {}
