use ulpian_kernel::target::Target;

fn body<T: Target>(t: &mut T, x: &T::Tile<i32>) -> T::Tile<i32> {
    t.map1(x, |v| v.exp())
}

fn main() {}
