use ulpian_kernel::target::Target;
use ulpian_num::Val;

fn body<T: Target>(t: &mut T, x: &T::Tile<f32>) -> T::Tile<f32> {
    t.map1(x, |v| if v.lt(Val::lit(0.0)) { Val::lit(0.0) } else { v })
}

fn main() {}
